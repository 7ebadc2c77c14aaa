{% macro note_passed_tests() %}
    {%- if execute and flags.WHICH == 'build' -%}
        {%- set notes = shared_notes() -%}
        {%- set row_events = load_cached_relation(source('binlog', 'row_events')) -%}
        {%- for tests in modules.re.findall(passed_tests_property() ~ '=(\\w+)', row_events.information) -%}
            {%- do notes.passed.extend(modules.re.findall('.{16}', tests)) -%}
        {%- endfor -%}
        {%- set none_failed = "select 0 as failures, false as should_warn, false as should_error" -%}
        {%- do notes.update({'no_failures': run_query(none_failed)}) -%}
    {%- endif -%}
{% endmacro %}
