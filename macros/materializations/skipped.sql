{% macro skipped() %}
    {%- call noop_statement('main', 'UNCHANGED') -%}{%- endcall -%}
    {{ return({'relations': []}) }}
{% endmacro %}
