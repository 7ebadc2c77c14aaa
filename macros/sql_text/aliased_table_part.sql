{% macro aliased_table_part(statement, alias, part) -%}
    {%- set gap = sql_gap() -%}
    {%- set reference = '(?i)(?:\\b(?:from|using|join)\\b|,)' ~ gap ~ '*(?:\\(' ~ gap ~ '*)*'
        ~ sql_name(['from', 'using', 'join', 'as']) ~ gap ~ '+(?:as\\b' ~ gap ~ '*)?`?' -%}
    {%- set groups = {'first_name': 1, 'second_name': 2} -%}
case
    when {{ alias }} rlike r'^[\w$\x{80}-\x{10ffff}]+$'
        then nullif(
            regexp_extract(
                {{ statement }},
                concat(r'{{ reference }}', replace({{ alias }}, '$', r'\$'), r'(?![\w$\x{80}-\x{10ffff}])'),
                {{ groups[part] }}
            ),
            ''
        )
end
{%- endmacro %}
