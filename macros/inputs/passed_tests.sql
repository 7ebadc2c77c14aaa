{% macro passed_tests(results) %}
    {#- The tests that passed in this run, and those that passed in an earlier run and were not in this one. -#}
    {%- set notes = shared_notes() -%}
    {%- set tested = [] -%}
    {%- set passed = [] -%}
    {%- for result in results if result.node.unique_id in notes.tested -%}
        {%- set test = passed_test(result.node.unique_id, notes.tested[result.node.unique_id]) -%}
        {%- do tested.append(test[:6]) -%}
        {%- do passed.append(test) if result.status == 'pass' -%}
    {%- endfor -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'test' -%}
        {%- set name = local_md5(node.unique_id)[:6] -%}
        {%- for test in notes.passed if test[:6] == name and name not in tested -%}
            {%- do passed.append(test) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(passed | sort | join('')) }}
{% endmacro %}
