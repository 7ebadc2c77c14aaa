{% macro depends_on_a_hint(column_values, unknown_hints) -%}
{#- An integer was read as signed: without a minus it is the same number either way. -#}
exists(
    {{ unknown_hints }},
    missing -> if(
        missing.hint = 'sign',
        {{ column_values }}[missing.ordinal] like '-%',
        {{ column_values }}[missing.ordinal] is not null
    )
)
{%- endmacro %}
