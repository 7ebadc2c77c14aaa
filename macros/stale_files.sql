{% macro stale_files(counted) %}
    {#- Files whose completed segments are not the ones that `this` holds: new, landed again, or gone. -#}
    {%- set query -%}
        with

        landed as (

            select source_id, epoch, binlog_file, segment_start, landed_at
            from {{ ref('int_completed_segments') }}
            where {{ counted }} > 0

        ),

        held as (

            select distinct source_id, epoch, binlog_file, segment_start, landed_at
            from {{ this }}

        ),

        differing as (

            (select * from landed except select * from held)
            union all
            (select * from held except select * from landed)

        )

        select
            differing.source_id,
            differing.epoch,
            differing.binlog_file,
            count(landed.segment_start) > 0 as is_landed
        from differing
        left join landed
            on
                differing.source_id = landed.source_id
                and differing.epoch = landed.epoch
                and differing.binlog_file = landed.binlog_file
        group by differing.source_id, differing.epoch, differing.binlog_file
        order by differing.source_id, differing.epoch, differing.binlog_file
    {%- endset -%}
    {%- set files = [] -%}
    {%- for row in run_query(query).rows -%}
        {%- do files.append({'source_id': row[0], 'epoch': row[1] | int, 'binlog_file': row[2], 'is_landed': row[3]}) -%}
    {%- endfor -%}
    {{ return(files) }}
{% endmacro %}
