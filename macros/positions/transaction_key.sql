{% macro transaction_key(file_number, transaction_pos) -%}
shiftleft(cast({{ file_number }} as bigint), 40) + {{ transaction_pos }}
{%- endmacro %}
