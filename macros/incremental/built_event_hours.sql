{% macro built_event_hours() %}
    {#- This is no model because it may only change together with row_changes. If it is lost or emptied, everything is
        rebuilt. -#}
    {%- set relation = api.Relation.create(
        schema=ref('int_event_hours').schema, identifier='row_changes_built_hours', type='table'
    ) -%}
    {{ return(relation) }}
{% endmacro %}
