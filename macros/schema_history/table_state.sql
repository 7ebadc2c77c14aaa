{% macro table_state(status, columns='null', evidence='null', evidence_id='null', detail='null') -%}
named_struct(
    'status', {{ status }},
    'columns', {{ columns }},
    'evidence', {{ evidence }},
    'evidence_id', {{ evidence_id }},
    'detail', {{ detail }}
)
{%- endmacro %}
