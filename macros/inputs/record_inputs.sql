{% macro record_inputs(code, inputs) %}
    {%- set record = record_of(code, inputs) -%}
    {%- do run_query("alter table " ~ this ~ " set " ~ tblproperties_of(record)) -%}
    {%- do shared_notes().recorded.update({model.unique_id: record}) -%}
{% endmacro %}
