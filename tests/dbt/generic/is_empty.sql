{% test is_empty(model) %}

-- One row is one violation: the model itself says what is wrong and where.
select * from {{ model }}

{% endtest %}
