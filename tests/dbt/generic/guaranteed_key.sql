{% test guaranteed_key(model, columns=none, column_name=none) %}

{{ config(enabled=var('test_guarantees')) }}
-- Two rows with one key, or a row without a value of it.
select
    {{ columns | default([column_name], true) | join(',\n    ') }},
    count(*) as occurrences
from {{ model }}
group by {{ columns | default([column_name], true) | join(', ') }}
having
    count(*) > 1
    or not ({{ columns | default([column_name], true) | join(' is not null and ') }} is not null)

{% endtest %}
