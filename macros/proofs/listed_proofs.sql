{% macro listed_proofs() -%}
inline(
    array(
    {%- for proof in proofs() %}
        named_struct(
            'proof_number', {{ loop.index }},
            'proof', '{{ proof.name }}',
            'violation', {{ text_literal(first_sentence(proof.get('test', proof.name))) }},
            'quality_model', '{{ proof.get('model', proof.name) }}',
            'severity', '{{ severity_of_test(proof.get('test', 'is_empty_' ~ proof.name ~ '_')) }}',
            'unit', '{{ proof.unit }}'
        )
        {%- if not loop.last %},{% endif %}
    {%- endfor %}
    )
)
{%- endmacro %}
