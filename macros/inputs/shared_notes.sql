{% macro shared_notes() %}
    {#- dbt runs nodes in several threads, each with a context of its own; only the graph is common to all. -#}
    {{ return(graph.setdefault(
        'binloom', {'raw': {}, 'recorded': {}, 'states': {}, 'checked': {}, 'passed': [], 'tested': {}}
    )) }}
{% endmacro %}
