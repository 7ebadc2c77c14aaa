{% macro unquoted_name(name) -%}
case
    when {{ name }} like '`%' then replace(substring({{ name }}, 2, length({{ name }}) - 2), '``', '`')
    when {{ name }} like '"%' then replace(substring({{ name }}, 2, length({{ name }}) - 2), '""', '"')
    else {{ name }}
end
{%- endmacro %}
