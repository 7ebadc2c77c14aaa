{% macro record_of(code, inputs, built=none) %}
    {#- A table that is written anew has another `built`, even from the same inputs: somebody may have repaired it. -#}
    {%- if leaves_rows_out() -%}
        {#- No later run has this code, so the table is built again. -#}
        {{ return({'code': rows_left_out(), 'inputs': '', 'built': local_md5(invocation_id)}) }}
    {%- endif -%}
    {{ return({
        'code': code,
        'inputs': inputs,
        'built': built or (local_md5(invocation_id) if inputs else ''),
    }) }}
{% endmacro %}
