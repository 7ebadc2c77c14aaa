{% macro has_character_set(data_type) -%}
{{ data_type }} in ('char', 'varchar', 'tinytext', 'text', 'mediumtext', 'longtext', 'enum', 'set')
{%- endmacro %}
