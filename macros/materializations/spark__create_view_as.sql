{% macro spark__create_view_as(relation, sql) -%}
    create or replace view {{ relation }}
    {{ spark__tblproperties_clause() }}
    {%- if config.get('contract').enforced %}
        {{ get_assert_columns_equivalent(sql) }}
    {%- endif %}
    as
    {{ sql }}
{%- endmacro %}
