{{ config(materialized='view') }}

with

baselines as (

    select * from {{ ref('baselines') }}

),

baseline_rows as (

    select * from {{ ref('stg_binlog__baseline_rows') }}

),

keyed as (

    select /*+ broadcast(baselines) */
        baselines.baseline_id,
        baselines.source_id,
        baselines.epoch,
        baselines.binlog_file,
        baselines.file_sequence,
        baselines.binlog_pos,
        baselines.schema_name,
        baselines.table_name,
        baseline_rows.row_number,
        {{ pk_values('baseline_rows.row_values', 'baselines.primary_key_ordinals') }} as pk_values,
        if(
            baseline_rows.known_columns is null,
            map_from_arrays(baselines.column_names, baseline_rows.row_values),
            map_from_arrays(
                transform(baseline_rows.known_columns, place -> baselines.column_names[place]),
                transform(baseline_rows.known_columns, place -> baseline_rows.row_values[place])
            )
        ) as row,
        baselines.table_version_id
    from baseline_rows
    inner join baselines
        on
            baseline_rows.baseline_id = baselines.baseline_id
            and baseline_rows.schema_name = baselines.schema_name
            and baseline_rows.table_name = baselines.table_name

),

final as (

    select
        baseline_id,
        source_id,
        epoch,
        binlog_file,
        file_sequence,
        binlog_pos,
        schema_name,
        table_name,
        row_number,
        pk_values,
        sha2(pk_values, 256) as pk_hash,
        row,
        table_version_id
    from keyed

)

select * from final
