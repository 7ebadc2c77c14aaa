-- A command that selects a model selects the tests that refer to it. This test needs int_row_change_counts, which is
-- built from stg_binlog__table_versions. The latter is named without a ref, so that it can be built alone.
{% set versions = graph.nodes['model.binloom.stg_binlog__table_versions'].relation_name if execute else 'versions' -%}

with

row_change_counts as (

    select * from {{ ref('int_row_change_counts') }}

),

table_versions as (

    select * from {{ versions }}

)

select row_change_counts.*
from row_change_counts
left anti join table_versions on row_change_counts.table_version_id = table_versions.table_version_id
where row_change_counts.table_version_id is not null
