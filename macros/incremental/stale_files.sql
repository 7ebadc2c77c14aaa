{% macro stale_files(counted) %}
    {#- Files whose completed segments differ from those in `this`: new, landed again, or gone. -#}
    {%- set query -%}
        with

        segments as (

            select source_id, epoch, binlog_file, segment_start, landed_at, true as is_landed
            from {{ ref('int_completed_segments') }}
            where {{ counted }} > 0
            union all
            {# DISTINCT first, so that few rows are collected into sets, however large `this` is. -#}
            select distinct source_id, epoch, binlog_file, segment_start, landed_at, false as is_landed
            from {{ this }}

        )

        select source_id, epoch, binlog_file, bool_or(is_landed) as is_landed
        from segments
        group by source_id, epoch, binlog_file
        having
            array_sort(collect_set(case when is_landed then struct(segment_start, landed_at) end))
            != array_sort(collect_set(case when not is_landed then struct(segment_start, landed_at) end))
    {%- endset -%}
    {%- set files = [] -%}
    {%- for row in run_query(query).rows -%}
        {%- do files.append({'source_id': row[0], 'epoch': row[1] | int, 'binlog_file': row[2], 'is_landed': row[3]}) -%}
    {%- endfor -%}
    {{ return(files | sort(attribute='source_id,epoch,binlog_file')) }}
{% endmacro %}
