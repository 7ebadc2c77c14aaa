{% macro skipped(why='UNCHANGED') %}
    {%- call noop_statement('main', why) -%}{%- endcall -%}
    {{ return({'relations': []}) }}
{% endmacro %}
