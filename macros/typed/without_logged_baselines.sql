{% macro without_logged_baselines(lives, row_key) -%}
{%- set order = 'epoch, file_sequence, start_pos, payload_ordinal, row_ordinal' -%}
{%- set by_key = 'partition by ' ~ row_key | join(', ') ~ ' order by ' ~ order -%}
-- The log shows a row of a baseline too, if it has an earlier change of it, or a whole image before its next change.
known as (

    select * except (is_first_of_age, next_change)
    from (
        select
            *,
            age is distinct from lag(age) over ({{ by_key }}) as is_first_of_age,
            first_value(if(event_type is null, null, struct(age, cardinality(row_before) as columns))) ignore nulls over (
                {{ by_key }} rows between 1 following and unbounded following
            ) as next_change
        from {{ lives }}
    )
    where
        event_type is not null
        or (
            is_first_of_age
            and not coalesce(
                next_change.age = age and next_change.columns >= cardinality(row_after) and may_have_begun_with_rows,
                false
            )
        )

),

{% endmacro %}
