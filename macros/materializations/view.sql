{% materialization view, adapter='spark' %}
    {%- set code = code_of_model() -%}
    {%- if recorded(model).get('code') == code and not should_full_refresh() -%}
        {{ return(skipped()) }}
    {%- endif -%}
    {%- do shared_notes().recorded.update({model.unique_id: {'code': rows_left_out() if leaves_rows_out() else code}}) -%}
    {{ return(dbt.materialization_view_spark()) }}
{% endmaterialization %}
