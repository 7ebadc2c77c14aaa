{% materialization parts, adapter='spark' %}
    {%- set existing = load_cached_relation(this) -%}
    {%- set target_relation = this.incorporate(type='table') -%}
    {%- set built = built_parts(this) -%}
    {#- These are the parts that the compiled SQL reads: nothing that they follow from changes meanwhile. -#}
    {%- set stale = stale_parts() -%}
    {#- On a cluster each model has a session of its own. -#}
    {%- do run_query("set spark.sql.sources.partitionOverwriteMode = DYNAMIC") -%}
    {{ run_hooks(pre_hooks) }}
    {%- if stale is none -%}
        {%- do forget_parts(built) -%}
        {%- if existing is not none -%}
            {%- do adapter.drop_relation(existing) -%}
        {%- endif -%}
        {%- call statement('main') -%}
            {{ create_table_as(False, target_relation, compiled_code) }}
        {%- endcall -%}
        {%- do persist_docs(target_relation, model) -%}
    {%- elif stale -%}
        {#- Spark replaces the partitions that a query returns. A part that might return nothing would keep its old rows. If
            the model tells which parts have rows, few might: they are dropped when it is known that they have none,
            because somebody may read the table meanwhile. So are parts that no longer exist: the rows of a compacted
            file are in other parts, and for a moment in both. After a build that was cut short nothing is known of
            them. -#}
        {%- set landed = stale | selectattr('is_landed') | list -%}
        {%- set gone = stale | rejectattr('is_landed') | list -%}
        {%- set unsure = landed | rejectattr('has_rows') | selectattr('is_built') | list -%}
        {%- set drops_later = is_whole(built) and config.get('meta').parts.has_rows is defined -%}
        {#- A build that is cut short here must not be taken for the one before it. -#}
        {%- do note_whole(built, false) -%}
        {%- do adapt_columns(existing) -%}
        {%- do drop_parts(this, stale | rejectattr('has_rows') | reject('in', unsure + gone if drops_later else [])) -%}
        {%- if landed -%}
            {%- call statement('main') -%}
                {{ replace_parts(compiled_code) }}
            {%- endcall -%}
        {%- else -%}
            {%- call noop_statement('main', 'NO NEW ROWS') -%}{%- endcall -%}
        {%- endif -%}
        {%- if drops_later -%}
            {%- do drop_parts(this, gone + parts_without_rows(unsure, compiled_code)) -%}
        {%- endif -%}
    {%- else -%}
        {%- call noop_statement('main', 'NOTHING NEW') -%}{%- endcall -%}
    {%- endif -%}
    {%- if leaves_rows_out() -%}
        {#- Without a record, the next build writes the whole table. -#}
        {%- do run_query("drop table if exists " ~ built) -%}
    {%- elif stale != [] or not is_whole(built) -%}
        {%- do record_parts(built) -%}
        {%- do note_whole(built, true) -%}
    {%- endif -%}
    {%- do apply_grants(target_relation, config.get('grants'), should_revoke(existing, full_refresh_mode=stale is none)) -%}
    {{ run_hooks(post_hooks) }}
    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}
