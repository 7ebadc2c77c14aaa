with

binlog_files as (

    select * from {{ ref('stg_binlog__binlog_files') }}

),

completed_segments as (

    select * from {{ ref('int_completed_segments') }}

),

gtid_ranges as (

    select * from {{ ref('int_gtid_ranges') }}

),

row_event_counts as (

    select * from {{ ref('int_row_event_counts') }}

),

row_change_counts as (

    select * from {{ ref('int_row_change_counts') }}

),

table_maps as (

    select * from {{ ref('stg_binlog__table_maps') }}

),

baselines as (

    select * from {{ ref('baselines') }}

),

figures as (

    select
        map(
            'bytes', coalesce(sum(file_size), 0),
            'files', count(*),
            'events', coalesce(sum(events), 0),
            'sources', count(distinct source_id)
        ) as figures
    from binlog_files

    union all

    select
        map(
            'segments', count(*)
        ) as figures
    from completed_segments

    union all

    select
        map(
            'transactions', coalesce(sum(transactions), 0),
            'gtids', coalesce(sum(if(first_number is null, 0, transactions)), 0)
        ) as figures
    from gtid_ranges

    union all

    select
        map(
            'row_events', coalesce(sum(row_events), 0),
            'hours', count(distinct event_hour)
        ) as figures
    from row_event_counts

    union all

    select
        map(
            'row_changes', coalesce(sum(row_changes), 0)
        ) as figures
    from row_change_counts

    union all

    select
        map(
            'table_maps', count(*)
        ) as figures
    from table_maps

    union all

    select
        map(
            'baseline_rows', coalesce(sum(row_count), 0)
        ) as figures
    from baselines

),

units as (

    select explode(figures) as (unit, checked) from figures

),

-- Macros write the list and the counts for each proof.
listed as (

    select {{ listed_proofs() }}

),

counted as (

    {{ counted_violations() }}

),

summed as (

    select
        proof,
        sum(violations) as violations,
        map_from_entries(collect_list(struct(source_id, violations))) as violations_by_source
    from counted
    group by proof

),

final as (

    select
        listed.proof_number,
        listed.proof,
        listed.violation,
        listed.quality_model,
        listed.severity,
        coalesce(summed.violations, 0) as violations,
        coalesce(summed.violations_by_source, from_json('{}', 'map<string,bigint>')) as violations_by_source,
        units.checked,
        listed.unit
    from listed
    inner join units on listed.unit = units.unit
    left join summed on listed.proof = summed.proof

)

select * from final
