{% materialization test, adapter='spark' %}
    {%- set inputs = local_md5(compiled_code ~ tojson(model.config, sort_keys=true) ~ state_of_parents(model)) -%}
    {%- set notes = shared_notes() -%}
    {%- do notes.tested.update({model.unique_id: inputs}) -%}
    {%- if passed_test(model.unique_id, inputs) in notes.passed
        and not flags.FULL_REFRESH and not should_store_failures() -%}
        {%- call noop_statement('main', 'UNCHANGED', res=notes.no_failures) -%}{%- endcall -%}
        {{ return({'relations': []}) }}
    {%- endif -%}
    {{ return(dbt.materialization_test_default()) }}
{% endmaterialization %}
