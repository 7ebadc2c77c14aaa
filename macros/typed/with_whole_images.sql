{% macro with_whole_images(lives, row_key) -%}
{%- set order = 'epoch, file_sequence, start_pos, payload_ordinal, row_ordinal' -%}
table_versions as (

    select
        table_version_id,
        column_count
    from {{ ref('table_versions') }}

),

-- A new life, and an image with all columns, need no values of earlier changes.
images as (

    select /*+ broadcast(table_versions) */
        {{ lives }}.* except (row_after),
        {{ binloom.whole_image() }} as row_after,
        coalesce(
            event_type = 'INSERT'
            or previous_pk_values is not null
            or cardinality({{ binloom.whole_image() }}) >= column_count,
            false
        ) as is_whole
    from {{ lives }}
    left join table_versions on {{ lives }}.table_version_id = table_versions.table_version_id

),

stretches as (

    select
        *,
        count_if(is_whole) over (partition by {{ row_key | join(', ') }} order by {{ order }}) as stretch
    from images

),

-- Of a row with very many partial images, older values are unknown: each image has all changes of its stretch.
collected as (

    select
        *,
        collect_list(struct(row_after, undecoded_columns)) over (
            partition by {{ row_key | join(', ') }}, age, stretch
            order by {{ order }} rows between 999 preceding and current row
        ) as changes
    from stretches

),

carried as (

    select
        * except (row_after, changes),
        if(
            row_after is null or is_whole,
            row_after,
            aggregate(
                changes,
                cast(map() as map<string, string>),
                (row, change) -> coalesce(
                    map_concat(
                        map_filter(
                            row,
                            (name, text) ->
                                not map_contains_key(change.row_after, name)
                                and not coalesce(array_contains(change.undecoded_columns, name), false)
                        ),
                        change.row_after
                    ),
                    cast(map() as map<string, string>)
                )
            )
        ) as row_after
    from collected

),

{% endmacro %}
