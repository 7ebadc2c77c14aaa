{% macro pk_values(column_values, primary_key_ordinals) -%}
case
    when size({{ primary_key_ordinals }}) = 1
        then {{ escaped_key_value(column_values ~ '[' ~ primary_key_ordinals ~ '[0]]') }}
    when size({{ primary_key_ordinals }}) > 1 and forall({{ primary_key_ordinals }}, place -> {{ column_values }}[place] is not null)
        then array_join(
            transform({{ primary_key_ordinals }}, place -> {{ escaped_key_value(column_values ~ '[place]') }}), '|'
        )
end
{%- endmacro %}
