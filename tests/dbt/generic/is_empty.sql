{% test is_empty(model) %}

-- A failed test makes a build skip everything downstream of its model. This test depends on proofs, which is downstream
-- of all quality models, so that a violation in one does not stop the check of the others. It reads nothing of it.
-- depends_on: {{ ref('proofs') }}
-- One row is one violation; the columns of the model give its kind and place.
select * from {{ model }}

{% endtest %}
