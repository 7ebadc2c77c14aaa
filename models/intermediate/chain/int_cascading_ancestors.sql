{{ config(materialized='view') }}

with recursive

unlogged_cascades as (

    select
        source_id,
        constraint_name,
        schema_name,
        table_name,
        column_names,
        referenced_schema_name,
        referenced_table_name,
        referenced_column_names,
        delete_rule not in ('NO ACTION', 'RESTRICT') as follows_deletes,
        update_rule not in ('NO ACTION', 'RESTRICT') as follows_updates
    from {{ ref('unlogged_cascades') }}

),

broken_tables as (

    select distinct
        source_id,
        schema_name,
        table_name
    from {{ ref('int_chain_breaks') }}

),

-- A table that a cascade changes has no row event, so the row event is at the table that the cascade began with.
ancestors as (

    select
        unlogged_cascades.* except (constraint_name),
        array(struct(unlogged_cascades.schema_name, unlogged_cascades.constraint_name)) as passed_constraints
    from unlogged_cascades
    inner join broken_tables
        on
            unlogged_cascades.source_id = broken_tables.source_id
            and unlogged_cascades.schema_name = broken_tables.schema_name
            and unlogged_cascades.table_name = broken_tables.table_name

    union all

    select
        ancestors.source_id,
        ancestors.schema_name,
        ancestors.table_name,
        ancestors.column_names,
        parents.referenced_schema_name,
        parents.referenced_table_name,
        parents.referenced_column_names,
        parents.follows_deletes,
        parents.follows_updates,
        array_append(
            ancestors.passed_constraints, struct(parents.schema_name, parents.constraint_name)
        ) as passed_constraints
    from ancestors
    inner join unlogged_cascades as parents
        on
            ancestors.source_id = parents.source_id
            and ancestors.referenced_schema_name = parents.schema_name
            and ancestors.referenced_table_name = parents.table_name
    where
        -- InnoDB refuses a cascade of more than 15 levels.
        size(ancestors.passed_constraints) < 15
        -- Foreign keys may form a circle.
        and not array_contains(ancestors.passed_constraints, struct(parents.schema_name, parents.constraint_name))

),

final as (

    select distinct
        source_id,
        schema_name,
        table_name,
        column_names,
        referenced_schema_name,
        referenced_table_name,
        referenced_column_names,
        follows_deletes,
        follows_updates
    from ancestors

)

select * from final
