{% macro typed_value(text, type) -%}
{%- if type == 'string' -%}
{{ text }}
{%- elif type == 'binary' -%}
if({{ text }} like '0x%', unhex(substr({{ text }}, 3)), null)
{%- elif type == 'array<string>' -%}
if({{ text }} = '', cast(array() as array<string>), split({{ text }}, ','))
{%- elif type == 'date' -%}
if(length({{ text }}) = 10, try_cast({{ text }} as date), null)
{%- elif type == 'timestamp' -%}
try_cast(if(length({{ text }}) > 10, concat({{ text }}, '+00:00'), null) as timestamp)
{%- elif type == 'timestamp_ntz' -%}
if({{ text }} like '____-__-__%', try_cast({{ text }} as timestamp_ntz), null)
{%- elif type in ('float', 'double') -%}
nullif(nullif(try_cast({{ text }} as {{ type }}), {{ type }}('inf')), {{ type }}('-inf'))
{%- elif type.startswith('decimal(') -%}
{#- A cast rounds. With as many places after the point as possible, it does not. -#}
{%- set precision, scale = type[8:-1].split(',') -%}
if(
    try_cast({{ text }} as {{ type }}) = try_cast({{ text }} as decimal(38,{{ 38 - (precision | int) + (scale | int) }})),
    try_cast({{ text }} as {{ type }}),
    null
)
{%- else -%}
try_cast({{ text }} as {{ type }})
{%- endif -%}
{%- endmacro %}
