{% macro transactions_hint(alias, files=none) %}
    {#- A few transactions are broadcast, so that the row events need no shuffle. When they are too many for the
        driver's memory, both sides are shuffled by the key. -#}
    {%- set hint = "" -%}
    {%- if execute and flags.WHICH in ['run', 'build'] -%}
        {%- set query -%}
            select coalesce(sum(transactions), 0) from {{ ref('int_completed_segments') }}
            {%- if files is not none %} where {{ in_files(files) }}{% endif %}
        {%- endset -%}
        {%- if run_query(query).rows[0][0] | int <= var('broadcast_transactions_limit') -%}
            {%- set hint = "/*+ broadcast(" ~ alias ~ ") */" -%}
        {%- else -%}
            {%- set hint = "/*+ shuffle_hash(" ~ alias ~ ") */" -%}
        {%- endif -%}
    {%- endif -%}
    {{ return(hint) }}
{% endmacro %}
