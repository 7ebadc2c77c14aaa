{% macro in_parts(parts) -%}
    {%- set files = {} -%}
    {%- for part in parts or [] -%}
        {%- set key = (part.source_id, part.epoch, part.binlog_file) -%}
        {%- do files.setdefault(key, {'event_hour': [], 'file_part': []}) -%}
        {%- for column, values in files[key].items() if part[column] is defined and part[column] not in values -%}
            {%- do values.append(part[column]) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if parts is none or files | length > var('literal_files_limit') -%}
true
    {%- elif not parts -%}
false
    {%- else -%}
        {%- set hours = parts | map(attribute='event_hour') | list -%}
{#- The range lets the reader skip whole row groups. For each file, the rows of a few more parts may be found: those are
    whole parts too, so writing them again changes nothing. -#}
event_timestamp >= to_timestamp({{ text_literal(hours | min) }}, 'yyyy-MM-dd-HH')
    and event_timestamp < to_timestamp({{ text_literal(hours | max) }}, 'yyyy-MM-dd-HH') + interval 1 hour
    and (
        {%- for key, values in files.items() %}
        (
            {{ in_files([{'source_id': key[0], 'epoch': key[1], 'binlog_file': key[2]}]) }}
            and event_hour in ({% for hour in values.event_hour %}{{ text_literal(hour) }}{{ ", " if not loop.last }}{% endfor %})
            and file_part in ({{ values.file_part | join(', ') }})
        ){{ " or" if not loop.last }}
        {%- endfor %}
    )
    {%- endif -%}
{%- endmacro %}
