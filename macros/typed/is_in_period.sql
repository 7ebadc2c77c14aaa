{% macro is_in_period(period, pos) -%}
{%- for sign, end in (('>', period.since), ('<', period.until)) if end %}
            and struct(epoch, file_sequence, {{ pos }}) {{ sign }} struct({{ end[0] }}, {{ end[1] }}L, {{ end[2] }}L)
{%- endfor -%}
{%- endmacro %}
