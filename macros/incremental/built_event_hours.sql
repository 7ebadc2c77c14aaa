{% macro built_event_hours() %}
    {#- Not a model: it may only change together with row_changes. Lost or emptied, everything is built again. -#}
    {%- set relation = api.Relation.create(
        schema=ref('int_event_hours').schema, identifier='row_changes_built_hours', type='table'
    ) -%}
    {{ return(relation) }}
{% endmacro %}
