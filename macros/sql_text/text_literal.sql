{% macro text_literal(text) -%}
    {#- What would end the literal is written as its code point, and what does not show. `{` as well: dbt renders the
        text of a hook once more, and Spark puts the value of a setting for ${name}. -#}
'{% for sign in text -%}
    {{ sign if sign.isprintable() and sign not in "\\'{" else "\\U" ~ sign.encode('utf-32-be').hex() }}
{%- endfor %}'
{%- endmacro %}
