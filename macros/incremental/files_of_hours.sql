{% macro files_of_hours(hours) %}
    {#- Files that have row events in one of the hours. -#}
    {%- set files = [] -%}
    {%- if hours -%}
        {%- set query -%}
            select distinct source_id, epoch, binlog_file
            from {{ ref('int_row_event_counts') }}
            where event_hour in (
                {%- for hour in hours %}{{ text_literal(hour) }}{% if not loop.last %}, {% endif %}{% endfor -%}
            )
            order by source_id, epoch, binlog_file
        {%- endset -%}
        {%- for row in run_query(query).rows -%}
            {%- do files.append({'source_id': row[0], 'epoch': row[1] | int, 'binlog_file': row[2]}) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(files) }}
{% endmacro %}
