{% test guaranteed_values(model, column_name, values) %}

{{ config(enabled=var('test_guarantees')) }}
-- NULL is among the values of each column.
select {{ column_name }} from {{ model }}
where {{ column_name }} not in ('{{ values | join("', '") }}')

{% endtest %}
