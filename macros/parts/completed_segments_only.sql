{% macro completed_segments_only(relation) -%}
{#- A segment is in progress before its first row lands, so a segment that is not unfinished is complete. Usually
    nothing is unfinished; Spark then sees an empty side and skips the join, whereas a semi join costs one look-up per
    row. Rows of a replaced segment are also in another segment, the folder of an expired one goes a little later; skipped and removed segments have no rows. -#}
select /*+ broadcast(unfinished) */ landed.*
from {{ relation }} as landed
left anti join {{ ref('stg_binlog__segments') }} as unfinished
    on
        {{ same_segment('landed', 'unfinished') }}
        and unfinished.status in ('in_progress', 'failed', 'replaced', 'expired')
{%- endmacro %}
