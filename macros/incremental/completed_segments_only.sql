{% macro completed_segments_only(relation) -%}
{#- A segment is in progress before its first row lands, so what is not unfinished is complete. Mostly nothing is
    unfinished; Spark then sees an empty side and leaves the join out, where a semi join costs a look-up a row. The rows
    of a replaced one are in another segment, too; of one that was skipped or removed there are none. -#}
select /*+ broadcast(unfinished) */ landed.*
from {{ relation }} as landed
left anti join {{ ref('stg_binlog__segments') }} as unfinished
    on
        {{ same_segment('landed', 'unfinished') }}
        and unfinished.status in ('in_progress', 'failed', 'replaced')
{%- endmacro %}
