-- depends_on: {{ ref('baselines') }}

{% if is_building() and has_no_rows(ref('baselines')) -%}
{{ without_rows() }}
{% else %}
with

pairs as (

    select * from {{ ref('int_baseline_pairs') }}

),

stepped as (

    select * from {{ ref('int_baseline_steps') }}

),

baseline_rows as (

    select * from {{ ref('baseline_rows') }}

),

{% for rows, their_baseline in [('rows_before', 'previous_baseline_id'), ('rows_found', 'baseline_id')] -%}
{{ rows }} as (

    select /*+ broadcast(pairs) */
        pairs.baseline_id,
        pairs.schema_name,
        pairs.table_name,
        baseline_rows.pk_values,
        baseline_rows.row
    from baseline_rows
    inner join pairs
        on
            baseline_rows.baseline_id = pairs.{{ their_baseline }}
            and baseline_rows.schema_name = pairs.schema_name
            and baseline_rows.table_name = pairs.table_name

),

{% endfor -%}
-- The row before, with the changes one after another. An image may lack columns; those keep their values.
expected as (

    select
        coalesce(rows_before.baseline_id, stepped.baseline_id) as baseline_id,
        coalesce(rows_before.schema_name, stepped.schema_name) as schema_name,
        coalesce(rows_before.table_name, stepped.table_name) as table_name,
        coalesce(rows_before.pk_values, stepped.pk_values) as pk_values,
        aggregate(
            coalesce(stepped.steps, array()),
            rows_before.row,
            (row, step) -> case
                when step.row_after is not null
                    then map_filter(
                        map_concat(
                            map_filter(
                                coalesce(if(step.is_on_row, row, null), step.row_before, map()),
                                (name, value) -> not map_contains_key(step.row_after, name)
                            ),
                            step.row_after
                        ),
                        (name, value) -> not array_contains(step.undecoded_columns, name)
                    )
            end
        ) as row
    from rows_before
    full outer join stepped
        on
            rows_before.baseline_id = stepped.baseline_id
            and rows_before.schema_name = stepped.schema_name
            and rows_before.table_name = stepped.table_name
            and rows_before.pk_values = stepped.pk_values

),

compared as (

    select
        coalesce(expected.baseline_id, rows_found.baseline_id) as baseline_id,
        coalesce(expected.schema_name, rows_found.schema_name) as schema_name,
        coalesce(expected.table_name, rows_found.table_name) as table_name,
        coalesce(expected.pk_values, rows_found.pk_values) as pk_values,
        case
            when expected.row is null and rows_found.row is not null then 'unexpected'
            when expected.row is not null and rows_found.row is null then 'missing'
            else 'values_differ'
        end as difference,
        filter(
            map_keys(rows_found.row),
            name -> map_contains_key(expected.row, name) and not expected.row[name] <=> rows_found.row[name]
        ) as columns,
        expected.row is not null as is_expected,
        rows_found.row is not null as is_found
    from expected
    full outer join rows_found
        on
            expected.baseline_id = rows_found.baseline_id
            and expected.schema_name = rows_found.schema_name
            and expected.table_name = rows_found.table_name
            and expected.pk_values = rows_found.pk_values

),

final as (

    select /*+ broadcast(pairs) */
        pairs.source_id,
        pairs.schema_name,
        pairs.table_name,
        compared.pk_values,
        compared.difference,
        if(compared.difference = 'values_differ', compared.columns, null) as columns,
        pairs.previous_baseline_id,
        pairs.baseline_id,
        pairs.epoch,
        pairs.binlog_file,
        pairs.binlog_pos
    from compared
    inner join pairs
        on
            compared.baseline_id = pairs.baseline_id
            and compared.schema_name = pairs.schema_name
            and compared.table_name = pairs.table_name
    where
        compared.is_expected != compared.is_found
        or (compared.is_found and size(compared.columns) > 0)

)

select * from final
{%- endif %}
