{% macro text_literal(text) -%}
    {#- Characters that would end the literal, and unprintable ones, are written as code points. So is `{`, because dbt
        renders the text of a hook a second time, and Spark replaces ${name} by the value of a setting. -#}
'{% for sign in text -%}
    {{ sign if sign.isprintable() and sign not in "\\'{" else "\\U" ~ sign.encode('utf-32-be').hex() }}
{%- endfor %}'
{%- endmacro %}
