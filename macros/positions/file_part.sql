{% macro file_part(segment_start) -%}
{#- A part has about 64 MiB of a file, so that a file that grows is not written again from its beginning. -#}
cast({{ segment_start }} div 67108864 as int)
{%- endmacro %}
