{% test is_empty(model) %}

-- A test that fails keeps a build from what stands behind its model. This one stands behind all proofs: what is wrong in
-- one place is no reason not to look at the others.
-- depends_on: {{ ref('proofs') }}
-- One row is one violation: the model itself says what is wrong and where.
select * from {{ model }}

{% endtest %}
