{% materialization incremental, adapter='spark' %}
    {%- set code = code_of_model() -%}
    {%- set inputs = local_md5(code ~ state_of_parents(model)) -%}
    {%- set before = recorded(model) -%}
    {%- if before.get('inputs') == inputs and not should_full_refresh() -%}
        {{ return(skipped()) }}
    {%- endif -%}
    {%- set existing = load_cached_relation(this) -%}
    {%- set target_relation = this.incorporate(type='table') -%}
    {%- set built = built_parts(this) -%}
    {%- set differs = should_full_refresh() or leaves_rows_out() or has_rows_left_out(model) -%}
    {%- set is_rebuilt = differs or not has_parts_of_model(existing, built) -%}
    {%- set is_whole = before.get('inputs') and not is_rebuilt -%}
    {%- set stale = [] if is_rebuilt else stale_parts(built) + ([] if is_whole else unrecorded_parts(built)) -%}
    {%- if is_whole and before.code == code and not stale -%}
        {%- do record_inputs(code, inputs, before.built) -%}
        {{ return(skipped()) }}
    {%- endif -%}
    {#- On a cluster each model has a session of its own. -#}
    {%- do run_query("set spark.sql.sources.partitionOverwriteMode = DYNAMIC") -%}
    {{ run_hooks(pre_hooks) }}
    {%- if is_rebuilt -%}
        {%- do forget_parts(built) -%}
        {%- if existing is not none -%}
            {%- do adapter.drop_relation(existing) -%}
        {%- endif -%}
        {%- call statement('main') -%}
            {{ create_table_as(False, target_relation, limited_to(none, compiled_code)) }}
        {%- endcall -%}
    {%- else -%}
        {#- A build that is cut short here must not be taken for the one before it. -#}
        {%- do record_inputs('', '') -%}
        {%- if before.get('code') != code -%}
            {%- do adapt_columns(existing, limited_to(none, compiled_code)) -%}
        {%- endif -%}
        {#- Spark replaces the partitions that a query returns. A part that might return nothing would keep its old rows. If
            the model tells which parts have rows, few might: they are dropped when it is known that they have none,
            because somebody may read the table meanwhile. So are parts that no longer exist: the rows of a compacted
            file are in other parts, and for a moment in both. After a build that was cut short nothing is known of
            them. -#}
        {%- set landed = stale | selectattr('is_landed') | list -%}
        {%- set gone = stale | rejectattr('is_landed') | list -%}
        {%- set unsure = landed | rejectattr('has_rows') | selectattr('is_built') | list -%}
        {%- set drops_later = is_whole and config.get('meta').parts.has_rows is defined -%}
        {%- do drop_parts(this, stale | rejectattr('has_rows') | reject('in', unsure + gone if drops_later else [])) -%}
        {%- if landed -%}
            {%- call statement('main') -%}
                {{ replace_parts(limited_to(landed, compiled_code)) }}
            {%- endcall -%}
        {%- else -%}
            {%- do skipped() -%}
        {%- endif -%}
        {%- if drops_later -%}
            {%- do drop_parts(this, gone + parts_without_rows(unsure, compiled_code)) -%}
        {%- endif -%}
    {%- endif -%}
    {%- if not leaves_rows_out() -%}
        {%- do record_parts(built) -%}
    {%- endif -%}
    {{ run_hooks(post_hooks) }}
    {%- do record_inputs(code, inputs) -%}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
