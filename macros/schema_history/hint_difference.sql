{% macro hint_difference(hint, unknown_hint, decoded, defined) -%}
{#- Only hints that change the text of a value count. An unknown hint is a difference as soon as the version has it,
    even when the decoder guessed right, because its rows are in quarantine. With metadata, the log itself has signs and
    character sets. When the character set is not marked as unknown, bytes that are valid UTF-8 were read as text, so a
    UTF-8 column is right. Labels with a backslash are skipped, because a backslash is written in several ways. -#}
{%- set is_unsigned -%}
({{ defined }}.column_type rlike '(?i)unsigned|zerofill')
{%- endset -%}
{%- set labels -%}
concat(
    lower({{ decoded }}.type), '(',
    array_join(transform({{ decoded }}.members, label -> concat("'", replace(label, "'", "''"), "'")), ','), ')'
)
{%- endset -%}
{%- set charset -%}
case
    when
        {{ defined }}.data_type in (
            'binary', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob', 'vector'
        )
        then 'binary'
    else regexp_replace(lower({{ defined }}.character_set), '^utf8$', 'utf8mb3')
end
{%- endset -%}
case
    when
        {{ unknown_hint }} = 'sign'
        or (
            {{ hint }} != 'metadata'
            and {{ defined }}.data_type in ('tinyint', 'smallint', 'mediumint', 'int', 'bigint')
            and coalesce({{ decoded }}.is_unsigned, false) != {{ is_unsigned }}
        )
        then if({{ is_unsigned }}, 'unsigned', 'signed')
    when
        ({{ unknown_hint }} = 'type' and {{ defined }}.data_type = 'binary')
        or ({{ defined }}.data_type in ('inet4', 'inet6', 'uuid') and {{ decoded }}.type = 'STRING')
        then {{ defined }}.column_type
    when
        -- Labels that are bytes (`x'…'`) or unknown (`enum(?)`) are no text, whatever the decoder knows.
        not {{ defined }}.column_type rlike '[(,]x\'|[(][?][)]'
        and (
            {{ unknown_hint }} = 'labels'
            or (
                {{ defined }}.data_type in ('enum', 'set')
                and locate(chr(92), {{ defined }}.column_type) = 0
                and coalesce({{ labels }}, '') != {{ defined }}.column_type
            )
        )
        then {{ defined }}.column_type
    when
        {{ unknown_hint }} = 'charset'
        or (
            {{ hint }} != 'metadata'
            and {{ defined }}.data_type in (
                'char', 'varchar', 'tinytext', 'text', 'mediumtext', 'longtext', 'binary', 'varbinary', 'tinyblob',
                'blob', 'mediumblob', 'longblob'
            )
            and coalesce(regexp_replace(lower({{ decoded }}.charset), '^utf8$', 'utf8mb3'), 'utf8mb4')
            != coalesce({{ charset }}, coalesce({{ decoded }}.charset, 'utf8mb4'))
            and not (
                {{ decoded }}.charset is null and {{ charset }} in ('utf8mb3', 'utf8mb4', 'ascii')
            )
        )
        then concat('character set ', {{ charset }})
end
{%- endmacro %}
