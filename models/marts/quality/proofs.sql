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

figures as (

    select stack(
        4,
        'bytes', coalesce(sum(file_size), 0),
        'files', count(*),
        'events', coalesce(sum(events), 0),
        'sources', count(distinct source_id)
    ) as (unit, checked)
    from binlog_files

    union all

    select
        'segments' as unit,
        count(*) as checked
    from completed_segments

    union all

    select stack(
        2,
        'transactions', coalesce(sum(transactions), 0),
        'gtids', coalesce(sum(transactions) filter (where first_number is not null), 0)
    ) as (unit, checked)
    from gtid_ranges

    union all

    select stack(
        2,
        'row_events', coalesce(sum(row_events), 0),
        'hours', count(distinct event_hour)
    ) as (unit, checked)
    from row_event_counts

    union all

    select
        'row_changes' as unit,
        coalesce(sum(row_changes), 0) as checked
    from row_change_counts

    union all

    select
        'table_maps' as unit,
        count(*) as checked
    from table_maps

),

listed as (

    select * from values
    {%- for proof in proofs() %}
        (
            {{ loop.index }},
            '{{ proof.name }}',
            {{ text_literal(first_sentence(proof.get('model', proof.name))) }},
            '{{ proof.get('model', proof.name) }}',
            '{{ severity_of_test(proof.get('test', 'is_empty_' ~ proof.name ~ '_')) }}',
            '{{ proof.unit }}'
        ){{ ',' if not loop.last }}
    {%- endfor %}
        as proofs (proof_number, proof, violation, quality_model, severity, unit)

),

counted as (
{% for proof in proofs() %}
    select
        '{{ proof.name }}' as proof,
        source_id,
        count(*) as violations
    from {{ ref(proof.get('model', proof.name)) }}
    where {{ proof.get('where', 'true') }}
    group by source_id
{% if not loop.last %}
    union all
{% endif %}
{% endfor %}
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
        coalesce(summed.violations_by_source, cast(map() as map<string, bigint>)) as violations_by_source,
        figures.checked,
        listed.unit
    from listed
    inner join figures on listed.unit = figures.unit
    left join summed on listed.proof = summed.proof

)

select * from final
