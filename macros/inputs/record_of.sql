{% macro record_of(code, inputs) %}
    {#- A table that is built anew has another `built`, even from the same inputs: somebody may have repaired it. -#}
    {{ return({'code': code, 'inputs': inputs, 'built': local_md5(invocation_id) if inputs else ''}) }}
{% endmacro %}
