{% macro column_fits(wire, defined) -%}
{#- Compares the sizes in the metadata of the table map, and whether NULL is allowed. A character takes one to four
    bytes. MariaDB counts the byte for the method in the size of a compressed column. -#}
{%- set size = "(" ~ wire ~ ".metadata - if(" ~ wire ~ ".type = 'VARCHAR_COMPRESSED', 1, 0))" -%}
{%- set first_size = "try_cast(regexp_extract(" ~ defined ~ ".column_type, '\\\\(([0-9]+)', 1) as int)" -%}
{%- set second_size = "try_cast(regexp_extract(" ~ defined ~ ".column_type, '\\\\([0-9]+,([0-9]+)\\\\)', 1) as int)" -%}
(
    coalesce({{ wire }}.is_nullable = {{ defined }}.is_nullable, true)
    and coalesce(
        case
            when {{ wire }}.type = 'NEWDECIMAL'
                then {{ wire }}.metadata = {{ first_size }} * 256 + coalesce({{ second_size }}, 0)
            when {{ wire }}.type in ('TIME2', 'DATETIME2', 'TIMESTAMP2')
                then {{ wire }}.metadata = coalesce({{ first_size }}, 0)
            when {{ wire }}.type = 'BIT'
                then {{ wire }}.metadata = {{ first_size }}
            when {{ defined }}.data_type in ('binary', 'varbinary')
                then {{ size }} = {{ first_size }}
            when {{ defined }}.data_type in ('char', 'varchar')
                then {{ size }} between {{ first_size }} and 4 * {{ first_size }}
        end,
        true
    )
)
{%- endmacro %}
