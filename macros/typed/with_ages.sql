{% macro with_ages(lives) -%}
-- Rows of different ages of a table have nothing to do with each other, even if their keys are equal.
removed_before as (

    select /*+ broadcast(removals) */
        {{ lives }}.*,
        filter(
            removals.positions,
            removed ->
                struct(removed.epoch, removed.file_sequence, removed.transaction_pos)
                < struct({{ lives }}.epoch, {{ lives }}.file_sequence, {{ lives }}.transaction_pos)
        ) as removals_before
    from {{ lives }}
    left join removals on {{ lives }}.source_id = removals.source_id

),

aged as (

    select
        * except (removals_before),
        coalesce(array_size(removals_before), 0) as age,
        coalesce(array_max(removals_before).has_rows, true) as may_have_begun_with_rows
    from removed_before

),

{% endmacro %}
