{% macro position_before(epoch, file_sequence, pos, until) -%}
(
    {{ epoch }} < {{ until }}_epoch
    or (
        {{ epoch }} = {{ until }}_epoch
        and (
            {{ file_sequence }} < {{ until }}_file_sequence
            or ({{ file_sequence }} = {{ until }}_file_sequence and {{ pos }} < {{ until }}_pos)
        )
    )
)
{%- endmacro %}
