{% macro gtid_intervals(gtids) -%}
{#- MySQL: `uuid:1-5:7:tag:1-3,uuid:4`, where a part that is not a number is the tag of the numbers after it. MariaDB:
    positions `0-1-9`, which include all numbers up to 9, and ranges `0-1-5 to 0-1-9`. -#}
flatten(
    transform(
        filter(split(regexp_replace({{ gtids }}, r'\s*,\s*', ','), ','), item -> item != ''),
        item -> case
            when item like '%:%'
                then aggregate(
                    slice(split(item, ':'), 2, size(split(item, ':'))),
                    named_struct(
                        'tag', '',
                        'intervals', cast(array() as array<struct<stem: string, low: bigint, high: bigint>>)
                    ),
                    (known, part) -> if(
                        part rlike '^[0-9]',
                        named_struct(
                            'tag', known.tag,
                            'intervals', concat(
                                known.intervals,
                                array(
                                    named_struct(
                                        'stem', concat(split_part(item, ':', 1), ':', known.tag),
                                        'low', cast(split_part(part, '-', 1) as bigint),
                                        'high', cast(split_part(part, '-', -1) as bigint)
                                    )
                                )
                            )
                        ),
                        named_struct('tag', concat(part, ':'), 'intervals', known.intervals)
                    )
                ).intervals
            else array(
                named_struct(
                    'stem', regexp_extract(item, '^([0-9]+-[0-9]+-)', 1),
                    'low', if(item like '% to %', cast(regexp_extract(item, '^[0-9]+-[0-9]+-([0-9]+)', 1) as bigint), 1L),
                    'high', cast(split_part(item, '-', -1) as bigint)
                )
            )
        end
    )
)
{%- endmacro %}
