{% macro depends_on_a_hint(column_values, unknown_hints) -%}
{#- Integers were read as signed: one without a minus is the same number when unsigned. -#}
exists(
    {{ unknown_hints }},
    missing -> if(
        missing.hint = 'sign',
        {{ column_values }}[missing.ordinal] like '-%',
        {{ column_values }}[missing.ordinal] is not null
    )
)
{%- endmacro %}
