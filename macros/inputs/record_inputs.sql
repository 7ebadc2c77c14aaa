{% macro record_inputs(code, inputs, built=none) %}
    {%- set record = record_of(code, inputs, built) -%}
    {%- do run_query("alter table " ~ this ~ " set " ~ tblproperties_of(record)) -%}
    {%- do shared_notes().recorded.update({model.unique_id: record}) -%}
{% endmacro %}
