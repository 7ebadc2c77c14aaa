{% macro holds_for_rows(definitions, rows, files) -%}
{{ position_reached(rows ~ '.epoch', files ~ '.file_sequence', rows ~ '.last_pos', definitions ~ '.valid_from') }}
and {{ position_before(rows ~ '.epoch', files ~ '.file_sequence', rows ~ '.first_pos', definitions ~ '.valid_to') }}
{%- endmacro %}
