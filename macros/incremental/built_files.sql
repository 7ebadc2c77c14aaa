{% macro built_files() %}
    {#- Not a model: it may only change together with `this`. Lost or emptied, everything is built again. -#}
    {{ return(api.Relation.create(schema=this.schema, identifier=this.identifier ~ '_built_files', type='table')) }}
{% endmacro %}
