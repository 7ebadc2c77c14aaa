{% macro breaks_the_chain(link, previous) -%}
coalesce(
    not {{ link }}is_rolled_back
    and not {{ previous }}.is_rolled_back
    and (
        {{ link }}existed_before != {{ previous }}.exists_after
        or (
            {{ link }}existed_before
            and (
                {{ link }}version_hash != {{ previous }}.version_hash
                or (
                    {{ link }}before_hashes != {{ previous }}.after_hashes
                    -- A column that one of the two images lacks proves nothing.
                    and exists(
                        zip_with({{ link }}before_hashes, {{ previous }}.after_hashes, (left, right) -> left != right),
                        differs -> differs
                    )
                )
            )
        )
    ),
    false
)
{%- endmacro %}
