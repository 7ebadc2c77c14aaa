{% macro completed_segments_only(relation) -%}
select /*+ broadcast(completed) */ landed.*
from {{ relation }} as landed
left semi join {{ ref('stg_binlog__segments') }} as completed
    on landed.source_id = completed.source_id
    and landed.epoch = completed.epoch
    and landed.binlog_file = completed.binlog_file
    and landed.segment_start = completed.segment_start
    and completed.status = 'completed'
{%- endmacro %}
