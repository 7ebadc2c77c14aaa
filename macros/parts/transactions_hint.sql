{% macro transactions_hint(alias, files) %}
    {#- A few transactions are broadcast, so that the row events need no shuffle. When they are too many for the
        driver's memory, both sides are shuffled by the key. -#}
    {%- if is_building() -%}
        {%- set query -%}
            select coalesce(sum(transactions), 0) from {{ ref('int_completed_segments') }} where {{ in_files(files) }}
        {%- endset -%}
        {%- set is_few = run_query(query).rows[0][0] | int <= var('broadcast_transactions_limit') -%}
        {{ return("/*+ " ~ ("broadcast" if is_few else "shuffle_hash") ~ "(" ~ alias ~ ") */") }}
    {%- endif -%}
{% endmacro %}
