{% macro lost_values(columns, image, first, only_zero_dates) -%}
{#- Names of columns whose text is not NULL, but whose value is. A view has at most 32,700 characters, so that each
    column has only a short part in it. -#}
{%- set names, dates = [], [] -%}
{%- for name, type in columns.items() -%}
    {%- set value = 'v' ~ (first + loop.index0) -%}
    {%- if type != 'string' -%}
        {%- do names.append('if(' ~ value ~ ' is null,' ~ binloom.text_literal(name) ~ ',null)') -%}
    {%- endif -%}
    {%- if type in ('date', 'timestamp', 'timestamp_ntz') -%}
        {%- do dates.append(binloom.text_literal(name)) -%}
    {%- endif -%}
{%- endfor -%}
{%- set is_zero_date -%}
array_contains(array({{ dates | join(',') }}), name) and {{ image }}[name] rlike '^[0-9]{4}-[0-9]{2}-[0-9]{2}'
{%- endset -%}
{%- if not names or (only_zero_dates and not dates) -%}
cast(array() as array<string>)
{%- else -%}
filter(
    array({{ names | join(',') }}),
    name -> name is not null and {{ image }}[name] is not null
        {%- if only_zero_dates %} and {{ is_zero_date }}{% elif dates %} and not ({{ is_zero_date }}){% endif %}
)
{%- endif -%}
{%- endmacro %}
