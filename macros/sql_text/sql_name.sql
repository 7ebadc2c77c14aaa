{% macro sql_name(no_words=[]) -%}
    {%- set gap = sql_gap() ~ '*' -%}
    {%- set no_word = '(?!(?:' ~ no_words | join('|') ~ ')\\b)' if no_words else '' -%}
    {%- set identifier = '((?:`[^`]*`)+|(?:"[^"]*")+|' ~ no_word ~ '[\\w$\\x{80}-\\x{10ffff}]+)' -%}
{{ identifier }}(?:{{ gap }}\.{{ gap }}{{ identifier }})?
{%- endmacro %}
