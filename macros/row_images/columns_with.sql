{% macro columns_with(columns, column, event) -%}
case
    when {{ event }}.place is null then concat({{ columns }}, array({{ column }}))
    when {{ event }}.place = 'first' then concat(array({{ column }}), {{ columns }})
    else
        transform(
            array(
                array_position(transform({{ columns }}, col -> lower(col.name)), lower({{ event }}.after_column))
            ),
            place -> if(
                place > 0,
                concat(
                    slice({{ columns }}, 1, cast(place as int)),
                    array({{ column }}),
                    slice({{ columns }}, cast(place as int) + 1, size({{ columns }}))
                ),
                null
            )
        )[0]
end
{%- endmacro %}
