{% macro with_present_names(image, former_names, is_list=false) -%}
{%- if not former_names -%}
{{ image }}
{%- else -%}
case
    {%- for period in former_names %}
    when table_version_id in ({% for id in period.table_version_ids %}{{ binloom.text_literal(id) }}{{ ', ' if not loop.last }}{% endfor %})
        {%- set name -%}
            case name
                {%- for former, present in period.names.items() %} when {{ binloom.text_literal(former) }} then {{ binloom.text_literal(present) }}
                {%- endfor %} else name end
        {%- endset %}
        then {% if is_list -%}
        transform({{ image }}, name -> {{ name }})
        {%- else -%}
        transform_keys({{ image }}, (name, text) -> {{ name }})
        {%- endif %}
    {%- endfor %}
    else {{ image }}
end
{%- endif -%}
{%- endmacro %}
