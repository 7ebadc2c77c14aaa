{% macro unknown_hints_in_words(unknown_hints, column_names) -%}
{%- set words = {'sign': 'sign', 'charset': 'character set', 'labels': 'labels', 'type': 'type'} -%}
concat(
    'nothing tells ',
    concat_ws(
        ' and ',
        {%- for hint, word in words.items() %}
        'the {{ word }} of ' || nullif(
            array_join(
                transform(
                    filter({{ unknown_hints }}, missing -> missing.hint = '{{ hint }}'),
                    missing -> {{ column_names }}[missing.ordinal]
                ),
                ', '
            ),
            ''
        ){{ ',' if not loop.last }}
        {%- endfor %}
    ),
    ' at this position'
)
{%- endmacro %}
