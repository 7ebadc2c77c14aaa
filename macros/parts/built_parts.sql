{% macro built_parts(table) %}
    {#- This is no model because it may only change together with the table. If it is lost or emptied, everything is
        rebuilt. -#}
    {{ return(api.Relation.create(
        schema=generate_schema_name('intermediate', none), identifier=table.identifier ~ '_built_parts', type='table'
    )) }}
{% endmacro %}
