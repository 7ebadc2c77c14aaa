{% macro dml_part(statement, part) -%}
    {%- set gap = sql_gap() ~ '*' -%}
    {%- set heads = [
        '(?:insert|replace)\\b(?:GAP\\b(?:low_priority|delayed|high_priority|ignore)\\b)*(?:GAP\\binto\\b)?',
        'update\\b(?:GAP\\b(?:low_priority|ignore)\\b)*',
        'delete\\b(?:GAP\\b(?:low_priority|quick|ignore|history)\\b)*(?:GAP\\bfrom\\b)?',
        'load\\bGAP(?:data|xml)\\b(?:GAP\\b(?:low_priority|concurrent|local)\\b)*GAPinfile\\bGAPFILE(?:GAP\\b(?:replace|ignore)\\b)?'
        ~ 'GAPinto\\bGAPtable\\b',
        'create\\b(?:GAPor\\bGAPreplace\\b)?GAPtable\\b(?:GAPif\\bGAPnot\\bGAPexists\\b)?',
    ] -%}
    {%- set file = '(?:\\x27(?:[^\\x27\\\\]|\\\\.)*\\x27|"(?:[^"\\\\]|\\\\.)*")' -%}
    {%- set common_tables = '(?:with\\b(?s:.*?)\\)GAP(?=(?:insert|replace|update|delete)\\b))?' -%}
    {%- set pattern = '(?i)^' ~ common_tables ~ '(' ~ heads | join('|') ~ ')GAP(?:\\(GAP)*' ~ sql_name() -%}
    {%- set groups = {'head': 1, 'first_name': 2, 'second_name': 3} -%}
nullif(regexp_extract({{ statement }}, r'{{ pattern | replace('FILE', file) | replace('GAP', gap) }}', {{ groups[part] }}), '')
{%- endmacro %}
