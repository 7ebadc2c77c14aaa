"""Columns of digests and tags: of a source with masks, they have nothing that may be a value of a row."""

import pyarrow as pa
import pytest

from ingest.ddl.digests.digest import DigestReader
from ingest.ddl.digests.digest_batches import DIGEST_COLUMNS, DigestColumns

TEXT = "update t set a = 'alice' where id = 5 /*application:Shop,user:alice*/"


def columns(reader: DigestColumns, *statements: tuple[str, str | None, str | None]) -> list[list[object]]:
    names = ("kind", "sql_text", "sql_mode")
    parts = zip(*statements, strict=True)
    found = reader.of(
        pa.RecordBatch.from_pydict({name: pa.array(part, pa.string()) for name, part in zip(names, parts, strict=True)})
    )
    assert [column.type for column in found] == [field.type for field in DIGEST_COLUMNS]
    return [column.to_pylist() for column in found]


def test_statements_have_digests_and_tags() -> None:
    digest, _ = DigestReader().read(TEXT)
    hashes, texts, tags = columns(
        DigestColumns(),
        ("ROWS_QUERY", TEXT, None),
        ("QUERY", "BEGIN", "ANSI_QUOTES"),
        ("INTVAR", "SET INSERT_ID=5", None),
        ("ANNOTATE", None, None),
        ("QUERY", 'insert into "t" values (1)', "REAL_AS_FLOAT,ANSI_QUOTES"),
    )
    assert hashes[:4] == [digest.hash, None, None, None]
    assert texts == [digest.text, None, None, None, "INSERT INTO `t` VALUES (?)"]
    assert tags == [[("application", "Shop"), ("user", "alice")], None, None, None, None]


@pytest.mark.parametrize("key", [None, b"0123456789abcdef"])
def test_masks_hide_texts_and_unknown_tags(key: bytes | None) -> None:
    digest, _ = DigestReader().read(TEXT)
    hashes, texts, tags = columns(
        DigestColumns(is_masked=True, key=key),
        ("ROWS_QUERY", TEXT, None),
        ("QUERY", 'update t set a = "alice" where id = 7', "ANSI_QUOTES"),
    )
    assert texts == [None, None]
    assert tags == [[("application", "Shop")], None]
    # What is a name in the mode of the session may be a value all the same.
    assert hashes[0] == hashes[1]
    assert (hashes[0] == digest.hash) == (key is None)
