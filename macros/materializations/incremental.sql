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
    {#- On a cluster each model has a session of its own. -#}
    {%- do run_query("set spark.sql.sources.partitionOverwriteMode = DYNAMIC") -%}
    {{ run_hooks(pre_hooks) }}
    {%- if should_full_refresh() or not has_parts_of_model(existing, built) -%}
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
        {%- set stale = stale_parts(built) + ([] if before.get('inputs') else unrecorded_parts(built)) -%}
        {#- Spark replaces the partitions that a query returns. A part that might return nothing would keep its old rows. -#}
        {%- do drop_parts(this, stale | rejectattr('has_rows')) -%}
        {%- set landed = stale | selectattr('is_landed') | list -%}
        {%- if landed -%}
            {%- call statement('main') -%}
                {{ replace_parts(limited_to(landed, compiled_code)) }}
            {%- endcall -%}
        {%- else -%}
            {%- do skipped() -%}
        {%- endif -%}
    {%- endif -%}
    {%- do record_parts(built) -%}
    {{ run_hooks(post_hooks) }}
    {%- do record_inputs(code, inputs) -%}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
