{% macro has_no_rows(relation) %}
    {{ return(run_query("select 1 from " ~ relation ~ " limit 1").rows | length == 0) }}
{% endmacro %}
