{% macro record_of(code, inputs, built=none) %}
    {#- A table that is written anew has another `built`, even from the same inputs: somebody may have repaired it. -#}
    {{ return({
        'code': code,
        'inputs': inputs,
        'built': built or (local_md5(invocation_id) if inputs else ''),
    }) }}
{% endmacro %}
