{% macro pk_values_after(before_values, after_values, after_columns, primary_key_ordinals) -%}
case
    when {{ after_columns }} is null and size({{ primary_key_ordinals }}) = 1
        then case
            when
                {{ before_values }}[{{ primary_key_ordinals }}[0]] != {{ after_values }}[{{ primary_key_ordinals }}[0]]
                then {{ pk_values(after_values, primary_key_ordinals) }}
        end
    when
        exists(
            {{ primary_key_ordinals }},
            place -> ({{ after_columns }} is null or array_contains({{ after_columns }}, place))
            and {{ before_values }}[place] != {{ after_values }}[place]
        )
        -- A key column that the after image lacks has not changed.
        then array_join(
            transform(
                {{ primary_key_ordinals }},
                place -> {{ escaped_key_value(
                    'if(' ~ after_columns ~ ' is null or array_contains(' ~ after_columns ~ ', place), '
                    ~ after_values ~ '[place], ' ~ before_values ~ '[place])'
                ) }}
            ),
            '|'
        )
end
{%- endmacro %}
