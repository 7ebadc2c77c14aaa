{% macro typed_current(history, columns, prefix='binloom_') -%}
{%- set version_columns = [
    'pk_values', 'version', 'valid_from', 'change_id', 'valid_from_gtid', 'unknown_columns', 'zero_dates',
    'unfit_columns',
] -%}
select
    {%- for name in columns %}
    {{ binloom.quoted_name(name) }},
    {%- endfor %}
    {%- for name in version_columns %}
    {{ prefix }}{{ name }}{{ ',' if not loop.last }}
    {%- endfor %}
from {{ history }}
where {{ prefix }}is_current
{%- endmacro %}
