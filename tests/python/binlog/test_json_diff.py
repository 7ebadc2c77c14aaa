"""Changes of JSON documents, compared with a document that Python changed in the same way."""

import copy
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.binlog import scan_binlog
from ingest.binlog.rows import patches
from ingest.binlog.rows.json_diff import JsonDiffError, apply_changes, read_changes
from tests.support.binlog import forge
from tests.support.binlog.replay import Decoded


def apply_diffs(document: str, diffs: str) -> str:
    return apply_changes(document, read_changes(diffs))


KEYS = st.text(st.characters(codec="utf-8"), max_size=4)
LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(st.characters(codec="utf-8"), max_size=6)
)
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


def printed(value: Any) -> str:
    """Return a document as the server prints it."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        return "{" + ", ".join(f"{printed(key)}: {printed(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(printed, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@st.composite
def changed(draw: st.DrawFn) -> tuple[Any, list[list[Any]], Any]:
    """Return a document, changes of it, and the changed document."""
    document = draw(DOCUMENTS)
    root = [copy.deepcopy(document)]
    diffs = []
    for _ in range(draw(st.integers(0, 4))):
        parent: Any = root
        leg: Any = 0
        path = "$"
        while isinstance(parent[leg], list | dict) and parent[leg] and draw(st.booleans()):
            parent = parent[leg]
            leg = draw(st.sampled_from(list(parent) if isinstance(parent, dict) else range(len(parent))))
            path += f".{json.dumps(leg)}" if isinstance(leg, str) else f"[{leg}]"
        target, value = parent[leg], draw(DOCUMENTS)
        told = copy.deepcopy(value)
        operation = draw(st.sampled_from((0, 1, 2)))
        if operation == 0:
            parent[leg] = value
            diffs.append([0, path, told])
        elif operation == 1 and isinstance(target, list):
            index = draw(st.integers(0, len(target)))
            target.insert(index, value)
            diffs.append([1, f"{path}[{index}]", told])
        elif operation == 1 and isinstance(target, dict):
            key = draw(KEYS)
            if key not in target:
                target[key] = value
                diffs.append([1, f"{path}.{json.dumps(key)}", told])
        elif operation == 2 and path != "$":
            del parent[leg]
            diffs.append([2, path])
    return document, diffs, root[0]


@given(changed())
def test_a_document_after_its_changes(case: tuple[Any, list[list[Any]], Any]) -> None:
    document, diffs, expected = case
    assert apply_diffs(printed(document), json.dumps(diffs)) == printed(expected)


def test_numbers_keep_their_digits() -> None:
    document = '{"a": 1.50, "b": 64.0, "c": 1e308, "d": 18446744073709551615, "e": -0.0}'
    assert apply_diffs(document, "[]") == document
    assert apply_diffs(document, '[[2,"$.a"],[0,"$.b",0.10]]') == document.replace('"a": 1.50, ', "").replace(
        "64.0", "0.10"
    )


def test_keys_that_need_no_quotes() -> None:
    assert apply_diffs('{"é": {"a1": [1, 2]}}', '[[0,"$.é.a1[1]","x"]]') == '{"é": {"a1": [1, "x"]}}'


@pytest.mark.parametrize(
    ("document", "diffs"),
    [
        ('{"a": 1}', '[[0,"$.b",1]]'),
        ('{"a": 1}', '[[2,"$.b"]]'),
        ('{"a": 1}', '[[1,"$.a",1]]'),
        ('{"a": "text"}', '[[0,"$.a[0]",1]]'),
        ("[1]", '[[0,"$[1]",1]]'),
        ("[1]", '[[0,"$.a",1]]'),
        ("[1]", '[[0,"$[*]",1]]'),
        ('{"a": 1}', '[[0,"$.a.b.c",1]]'),
    ],
)
def test_a_change_that_does_not_fit_is_an_error(document: str, diffs: str) -> None:
    with pytest.raises(JsonDiffError):
        apply_diffs(document, diffs)


# --- changes that no server writes ---

Diff = tuple[int, str, forge.JsonValue]


def nested(levels: int) -> forge.JsonValue:
    value: forge.JsonValue = []
    for _ in range(levels - 1):
        value = [value]
    return value


def changes_file(folder: Path, document: forge.JsonValue, diffs: Sequence[Diff], has_document: bool = True) -> Path:
    """Write a file with an UPDATE that changes a document in part, followed by an INSERT."""
    vector = b""
    for operation, path, value in diffs:
        vector += bytes([operation]) + forge.packed(len(path.encode())) + path.encode()
        if operation != 2:
            data = forge.json_document(value)
            vector += forge.packed(len(data)) + data
    before = forge.json_document(document)
    maker = forge.FileMaker()
    maker.begin()
    maker.table_map([forge.JSON], b"\x04")
    image = b"\x00" + struct.pack("<I", len(before)) + before if has_document else b""
    # The after image contains changes for the first of the JSON columns.
    image += b"\x01\x01" + b"\x00" + struct.pack("<I", len(vector)) + vector
    maker.rows(39, 1, image, bitmaps=b"\xff\xff" if has_document else b"\x00\xff", ends_statement=False)
    maker.rows(30, 1, b"\x00" + struct.pack("<I", 2) + forge.json_document(True))
    maker.commit()
    maker.rotate()
    return maker.write(folder)


def test_changes_in_a_file_are_applied(tmp_path: Path) -> None:
    diffs: list[Diff] = [(0, "$.a", 1.5), (1, '$."b c"', [True]), (2, '$."\\u00e9"', None), (1, "$.n[last-1]", "x")]
    decoded = Decoded.of(changes_file(tmp_path, {"a": 1, "é": 2, "n": [1, 2]}, diffs))
    assert [row["after_values"] for row in decoded.row_events] == [
        ['{"a": 1.5, "n": ["x", 1, 2], "b c": [true]}'],
        ["true"],
    ]


def test_changes_of_a_document_that_the_log_does_not_have_are_told(tmp_path: Path) -> None:
    diffs: list[Diff] = [(0, "$.a", 1.5), (1, '$."b c"', [{"é": True}]), (2, "$.n[last-1]", None), (0, "$.z", None)]
    decoded = Decoded.of(changes_file(tmp_path, {}, diffs, has_document=False))
    assert decoded.unsupported_events == []
    update, insert = decoded.row_events
    assert (update["after_values"], update["after_columns"], update["undecoded_columns"]) == ([None], [], [0])
    assert update["json_changes"] == [
        {"column_ordinal": 0, "operation": operation, "path": path, "value": value}
        for operation, path, value in (
            ("replace", "$.a", "1.5"),
            ("insert", '$."b c"', '[{"é": true}]'),
            ("remove", "$.n[last-1]", None),
            ("replace", "$.z", "null"),
        )
    ]
    assert (insert["after_values"], insert["after_columns"]) == (["true"], None)
    assert insert["undecoded_columns"] is insert["json_changes"] is None
    assert [(row["inserts"], row["updates"]) for row in decoded.transactions] == [(1, 1)]


@pytest.mark.parametrize("has_document", [True, False])
@pytest.mark.parametrize(
    ("document", "diffs"),
    [
        ({}, [(1, '$."\\x41"', 1)]),
        ({}, [(1, '$."\\u12"', 1)]),
        ({}, [(0, "a", 1)]),
        ({}, [(1, '$."\\ud800"', 1)]),
        ({}, [(1, '$."\\udc00\\ud800"', 1)]),
        ({}, [(1, '$."a', 1)]),
        ({}, [(0, "", 1)]),
        ({}, [(2, "$", None)]),
        ({}, [(1, "$", 1)]),
        ([1], [(1, f"$[{'1' * 5000}]", 1)]),
        ([1], [(0, "$[last-99999999999]", 1)]),
        ([1, 2, 3, 4], [(0, "$[٣]", 1)]),
        ({"a": [1]}, [(0, "$" + "[0]" * 100_000, 1)]),
        ([[]], [(1, "$" + "[0]" * (120 * number + 1), nested(120)) for number in range(20)]),
        ([[]], [(1, "$[0][0]", nested(120)), (1, "$[0][0]" + "[0]" * 119, nested(20))]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_changes_that_no_server_writes_are_named_and_the_file_goes_on(
    tmp_path: Path, document: forge.JsonValue, diffs: list[Diff], has_document: bool
) -> None:
    assert_named_alone(changes_file(tmp_path, document, diffs, has_document))


def test_changes_that_move_more_than_any_server_asks_for_are_named(tmp_path: Path) -> None:
    assert_named_alone(changes_file(tmp_path, [None] * 20_000, [(1, "$[0]", None)] * 15_000))


def test_documents_that_outgrow_a_batch_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "DATA_LIMIT", 10_000)
    path = changes_file(tmp_path, ["x" * 9_000], [(1, "$[0]", "y" * 2_000)])
    assert_named_alone(path, "value_too_large")


def assert_named_alone(path: Path, reason: str = "undecodable_value") -> None:
    """Assert that the file's change is reported as undecodable, and that everything else is decoded."""
    assert scan_binlog(path).defect is None
    decoded = Decoded.of(path)
    assert [(row["reason"], row["event_type"]) for row in decoded.unsupported_events] == [
        (reason, "PARTIAL_UPDATE_ROWS")
    ]
    assert [row["after_values"] for row in decoded.row_events] == [["true"]]
    assert [(row["inserts"], row["updates"]) for row in decoded.transactions] == [(1, 0)]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.text(st.sampled_from('$.[]"\\last-0123456789abudcf é\n{}')).map("$".__add__),
            DOCUMENTS,
        ),
        max_size=4,
    )
)
def test_whatever_a_path_holds_a_text_or_an_error_comes_of_it(diffs: list[tuple[int, str, Any]]) -> None:
    try:
        found = apply_diffs('{"a": [1, {"b": 2}], "": []}', json.dumps(diffs))
    except JsonDiffError:
        return
    assert json.loads(found.encode()) is not Ellipsis
