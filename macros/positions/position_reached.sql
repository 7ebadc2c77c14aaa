{% macro position_reached(epoch, file_sequence, pos, since) -%}
(
    {{ epoch }} > {{ since }}_epoch
    or (
        {{ epoch }} = {{ since }}_epoch
        and (
            {{ file_sequence }} > {{ since }}_file_sequence
            or ({{ file_sequence }} = {{ since }}_file_sequence and {{ pos }} >= {{ since }}_pos)
        )
    )
)
{%- endmacro %}
