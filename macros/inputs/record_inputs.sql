{% macro record_inputs(code, inputs) %}
    {%- do run_query(
        "alter table " ~ this ~ " set tblproperties ('binloom.code' = '" ~ code ~ "', 'binloom.inputs' = '" ~ inputs ~ "')"
    ) -%}
    {%- do shared_notes().recorded.update({model.unique_id: {'code': code, 'inputs': inputs}}) -%}
{% endmacro %}
