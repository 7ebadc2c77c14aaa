{% macro files_looked_back_on(files) %}
    {%- if files is none -%}
        {{ return(none) }}
    {%- endif -%}
    {%- set query -%}
        select distinct
            earlier.source_id,
            earlier.epoch,
            earlier.binlog_file
        from (select * from {{ ref('int_chain_files') }} where {{ in_files(files) }}) as files
        inner join {{ ref('int_chain_files') }} as earlier
            on
                files.source_id = earlier.source_id
                and earlier.place between files.place - {{ var('chain_lookback_files') }} and files.place
        order by earlier.source_id, earlier.epoch, earlier.binlog_file
    {%- endset -%}
    {{ return(listed_parts(query)) }}
{% endmacro %}
