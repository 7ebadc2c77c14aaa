{% macro current_parts() %}
    {#- Either a model lists the parts, or they are the parts that another table was built from. -#}
    {%- set parts = config.get('meta').parts -%}
    {%- set relation = built_parts(ref(parts.built)) if parts.built is defined else ref(parts.model) -%}
    {%- set columns = config.get('partition_by') | join(', ') -%}
    {{ return(
        "select " ~ columns ~ ", " ~ parts.get('fingerprint', 'fingerprint') ~ " as fingerprint, "
        ~ parts.get('has_rows', 'false') ~ " as has_rows from " ~ relation
    ) }}
{% endmacro %}
