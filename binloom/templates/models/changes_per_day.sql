select
    source_id,
    schema_name,
    table_name,
    cast(committed_at as date) as committed_on,
    count(*) as changes
from {{ ref('row_changes') }}
where outcome = 'commit'
group by all
