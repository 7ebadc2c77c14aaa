{% materialization table, adapter='spark' %}
    {%- set code = code_of_model() -%}
    {%- set inputs = local_md5(code ~ state_of_parents(model)) -%}
    {%- if recorded(model).get('inputs') == inputs and not should_full_refresh() -%}
        {{ return(skipped()) }}
    {%- endif -%}
    {%- do shared_notes().checked.update({model.unique_id: recorded(model).get('code') == code}) -%}
    {%- do shared_notes().recorded.update({model.unique_id: record_of(code, inputs)}) -%}
    {{ return(dbt.materialization_table_spark()) }}
{% endmaterialization %}
