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
    {%- endif -%}
    {#- Spark would plan the whole SQL of the model, which may be long, to find no rows. -#}
    {%- set is_empty = gets_no_rows() -%}
    {%- if may_be_same and has_same_rows(existing, without_rows() if is_empty else compiled_code) -%}
        {#- The table keeps its state, so that nothing downstream is built or tested. -#}
        {%- do record_inputs(code, inputs, before.built) -%}
        {{ return(skipped('SAME ROWS')) }}
    {%- endif -%}
    {%- do shared_notes().checked.update({model.unique_id: has_same_code}) -%}
    {%- do shared_notes().recorded.update({model.unique_id: record_of(code, inputs)}) -%}
    {{ return(create_without_rows(existing) if is_empty else dbt.materialization_table_spark()) }}
{% endmaterialization %}
