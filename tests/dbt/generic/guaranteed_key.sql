{% test guaranteed_key(model, columns=none, column_name=none) %}

{{ config(enabled=var('test_guarantees')) }}
{%- set key = columns or [column_name] %}
-- Two rows with one key, or a row without a value of it.
select
    {{ key | join(',\n    ') }},
    count(*) as occurrences
from {{ model }}
group by {{ key | join(', ') }}
having count(*) > 1 or not ({{ key | join(' is not null and ') }} is not null)

{% endtest %}
