"""Tags in the comments of statements: which application, controller or route sent a statement.

Two forms are known. sqlcommenter (OpenTelemetry, Rails 7, Django, Hibernate and others) writes
`key='value',key='value'` with URL encoding, marginalia `key:value,key:value`. Any other comment has no tags.
A comment is input of a stranger: tags are bounded in number and size, and their values are data.
"""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import unquote

APPLICATION_TAGS: Final = ("application", "app", "service")
"""Keys that name the application; the first of them counts."""

MOST_TAGS: Final = 32
LONGEST_TAG: Final = 1024

_KEY: Final = r"[A-Za-z_](?:[\w.\-]|%[0-9A-Fa-f]{2}){0,63}"
_COMMENTED: Final = re.compile(rf"\s*+({_KEY})\s*+=\s*+'((?:[^'\\]|\\.)*+)'\s*+(,|\Z)", re.DOTALL)
_MARGINAL: Final = re.compile(rf"\s*+({_KEY}):(?!\s)([^,]*+)(,|\Z)")


def comment_tags(comments: Iterable[str]) -> dict[str, str]:
    """Return the tags in the comments of a statement, by key; the first of equal keys counts."""
    tags: dict[str, str] = {}
    for comment in comments:
        for key, value in _tags(_content(comment)):
            if len(tags) == MOST_TAGS:
                return tags
            tags.setdefault(key, value[:LONGEST_TAG])
    return tags


def _content(comment: str) -> str:
    if comment.startswith("/*"):
        return comment[2:].removesuffix("*/")
    return comment.removeprefix("#").removeprefix("--")


def _tags(content: str) -> list[tuple[str, str]]:
    """Return the tags of a comment; none if any part of it is no tag, because it is a text for people then."""
    content = content.strip()
    for pattern in (_COMMENTED, _MARGINAL):
        tags, place, separator = [], 0, ","
        while separator and (found := pattern.match(content, place)):
            key, value, separator = found.groups()
            place = found.end()
            tags.append((unquote(key), _decoded(value) if pattern is _COMMENTED else value.strip()))
        if tags and place == len(content) and not separator:
            return tags
    return []


def _decoded(value: str) -> str:
    # Bytes that are no UTF-8 become U+FFFD.
    return unquote(re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL), errors="replace")
