{% macro counted_violations() -%}
    {%- for proof in proofs() -%}
select
    '{{ proof.name }}' as proof,
    source_id,
    count(*) as violations
from {{ ref(proof.get('model', proof.name)) }}
where {{ proof.get('where', 'true') }}
group by source_id
        {%- if not loop.last %}
union all
        {% endif -%}
    {%- endfor -%}
{%- endmacro %}
