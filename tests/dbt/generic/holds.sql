{% test holds(model, expression) %}

-- A condition that is NULL does not hold.
select * from {{ model }}
where not coalesce({{ expression }}, false)

{% endtest %}
