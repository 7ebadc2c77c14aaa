"""The column hints that the decoder gets from a snapshot."""

import pytest

from ingest.binlog.events.hints import enum_members


@pytest.mark.parametrize(
    ("column_type", "members"),
    [
        ("enum('a','b')", ("a", "b")),
        ("set('it''s','(x)','a,b')", ("it's", "(x)", "a,b")),
        ("enum('')", ("",)),
        ("enum('\\n','a\\\\b')", ("\n", "a\\b")),
    ],
)
def test_labels(column_type: str, members: tuple[str, ...]) -> None:
    assert enum_members(column_type) == members


@pytest.mark.parametrize("column_type", ["enum(x'6394')", "enum('a',x'6394')", "enum('c", "enum('a','c)", "enum('a'"])
def test_labels_that_the_server_does_not_show(column_type: str) -> None:
    # MySQL 5.6 cuts the text at the first character that is not in the column's character set.
    assert enum_members(column_type) is None
