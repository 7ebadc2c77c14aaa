{% macro without_logged_baselines(lives, row_key) -%}
{%- set order = 'epoch, file_sequence, start_pos, payload_ordinal, row_ordinal' -%}
{%- set by_key = 'partition by ' ~ row_key | join(', ') ~ ' order by ' ~ order %}
-- The log shows a row of a baseline too, if it has an earlier change of it, or if its next change has a before image.
known as (

    select * except (place_of_key, is_in_next_image)
    from (
        select
            *,
            row_number() over ({{ by_key }}) as place_of_key,
            first_value(if(event_type is null, null, row_before is not null)) ignore nulls over (
                {{ by_key }} rows between 1 following and unbounded following
            ) as is_in_next_image
        from {{ lives }}
    )
    where event_type is not null or (place_of_key = 1 and not coalesce(is_in_next_image, false))

),

{% endmacro %}
