{% macro ddl_part(statement, part) -%}
    {%- set identifier = '(?:`(?:[^`]|``)+`|"(?:[^"]|"")+"|[^\\s`".(),;]+)' -%}
    {%- set object_types = 'table|database|schema|index|view|trigger|procedure|function|event|user|role|sequence'
        ~ '|tablespace|server|package' -%}
    {%- set modifiers = 'or\\s+replace|temporary|unique|fulltext|spatial|online|offline|ignore|undo|aggregate'
        ~ '|algorithm\\s*=\\s*\\S+|definer\\s*=\\s*\\S+|sql\\s+security\\s+\\w+' -%}
    {%- set pattern = '(?i)^(create|alter|drop|rename|truncate)\\s+(?:(?:' ~ modifiers ~ ')\\s+)*'
        ~ '(?:(' ~ object_types ~ ')s?\\s+)?(?:if\\s+(?:not\\s+)?exists\\s+)?'
        ~ '(' ~ identifier ~ ')(?:\\s*\\.\\s*(' ~ identifier ~ '))?' -%}
    {%- set on_pattern = '(?i)\\son\\s+(' ~ identifier ~ ')(?:\\s*\\.\\s*(' ~ identifier ~ '))?' -%}
    {%- set groups = {'verb': 1, 'object_type': 2, 'first_name': 3, 'second_name': 4} -%}
    {%- set on_groups = {'first_name_after_on': 1, 'second_name_after_on': 2} -%}
    {%- if part in groups -%}
nullif(regexp_extract({{ statement }}, r'{{ pattern }}', {{ groups[part] }}), '')
    {%- else -%}
nullif(regexp_extract({{ statement }}, r'{{ on_pattern }}', {{ on_groups[part] }}), '')
    {%- endif -%}
{%- endmacro %}
