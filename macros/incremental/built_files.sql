{% macro built_files() %}
    {#- This is no model because it may only change together with `this`. If it is lost or emptied, everything is
        rebuilt. -#}
    {{ return(api.Relation.create(schema=this.schema, identifier=this.identifier ~ '_built_files', type='table')) }}
{% endmacro %}
