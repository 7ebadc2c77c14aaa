{% macro table_candidate(state, confidence) -%}
named_struct(
    'columns', {{ state }}.columns,
    'evidence', {{ state }}.evidence,
    'evidence_id', {{ state }}.evidence_id,
    'confidence', {{ confidence }}
)
{%- endmacro %}
