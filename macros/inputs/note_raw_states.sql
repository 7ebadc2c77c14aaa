{% macro note_raw_states() %}
    {#- Whoever opened the tables for this run has set them: see ingest.landing.published. -#}
    {%- if execute and flags.WHICH in ['run', 'build'] -%}
        {%- set states = run_query("set binloom.raw_states").rows[0][1] -%}
        {%- do shared_notes().raw.update(dict(modules.re.findall('(\\w+):(\\w+)', states))) -%}
    {%- endif -%}
{% endmacro %}
