{% test guaranteed_value(model, column_name) %}

{{ config(enabled=var('test_guarantees')) }}
select * from {{ model }}
where {{ column_name }} is null

{% endtest %}
