{% materialization table, adapter='spark' %}
    {%- set code = code_of_model() -%}
    {%- set inputs = local_md5(code ~ state_of_parents(model)) -%}
    {%- set before = recorded(model) -%}
    {%- set existing = load_cached_relation(this) -%}
    {%- set has_same_code = existing is not none and before.get('code') == code -%}
    {%- set is_asked_for = should_full_refresh() or leaves_rows_out() -%}
    {%- set may_be_same = has_same_code and not is_asked_for and not config.get('meta').changes_with_every_file -%}
    {%- if before.get('inputs') == inputs and not should_full_refresh() -%}
        {{ return(skipped()) }}
    {%- elif may_be_same and (stays_empty(existing) or has_same_rows(existing, compiled_code)) -%}
        {#- The table keeps its state, so that nothing downstream is built or tested. -#}
        {%- do record_inputs(code, inputs, before.built) -%}
        {{ return(skipped('SAME ROWS')) }}
    {%- endif -%}
    {%- do shared_notes().checked.update({model.unique_id: has_same_code}) -%}
    {%- do shared_notes().recorded.update({model.unique_id: record_of(code, inputs)}) -%}
    {{ return(dbt.materialization_table_spark()) }}
{% endmaterialization %}
