{% macro altered_columns(event, columns) -%}
{%- set given = 'get(' ~ event ~ '.columns, 0)' -%}
{%- set place_of -%}
array_position(transform({{ columns }}, col -> lower(col.name)), lower({{ event }}.column_name))
{%- endset -%}
case {{ event }}.action
    when 'add_column' then
        case
            when exists({{ columns }}, col -> lower(col.name) = lower({{ given }}.name))
                then if({{ event }}.is_conditional, {{ columns }}, null)
            else {{ columns_with(columns, given, event) }}
        end
    when 'drop_column' then
        if(
            {{ place_of }} > 0 or {{ event }}.is_conditional,
            filter({{ columns }}, col -> lower(col.name) != lower({{ event }}.column_name)),
            null
        )
    when 'rename_column' then
        if(
            {{ place_of }} > 0 or {{ event }}.is_conditional,
            transform(
                {{ columns }},
                col -> if(
                    lower(col.name) = lower({{ event }}.column_name),
                    {{ column_struct('col', {'name': given ~ '.name'}) }},
                    col
                )
            ),
            null
        )
    when 'modify_column' then
        case
            when {{ place_of }} = 0 then if({{ event }}.is_conditional, {{ columns }}, null)
            when {{ event }}.place is null
                then transform(
                    {{ columns }},
                    col -> if(
                        lower(col.name) = lower({{ event }}.column_name), {{ redefined_column(given, 'col') }}, col
                    )
                )
            else
                {{ columns_with(
                    'filter(' ~ columns ~ ', col -> lower(col.name) != lower(' ~ event ~ '.column_name))',
                    redefined_column(given, 'get(' ~ columns ~ ', cast(' ~ place_of ~ ' as int) - 1)'),
                    event
                ) }}
        end
    when 'add_primary_key' then
        if(
            size(array_except({{ event }}.key_columns, transform({{ columns }}, col -> lower(col.name)))) = 0,
            transform(
                {{ columns }},
                col -> {{ column_struct('col', {
                    'is_nullable':
                        'col.is_nullable and not array_contains(' ~ event ~ '.key_columns, lower(col.name))',
                    'is_primary_key': 'array_contains(' ~ event ~ '.key_columns, lower(col.name))',
                }) }}
            ),
            null
        )
    when 'drop_primary_key' then
        transform({{ columns }}, col -> {{ column_struct('col', {'is_primary_key': 'false'}) }})
    when 'convert_character_set' then
        transform(
            {{ columns }},
            col -> if(
                {{ has_character_set('col.data_type') }},
                {{ column_struct('col', {'character_set': event ~ '.character_set'}) }},
                col
            )
        )
end
{%- endmacro %}
