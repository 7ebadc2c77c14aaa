"""Changes of JSON documents, against a document that was changed the same way in Python."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.binlog.json_diff import JsonDiffError, apply_diffs

KEYS = st.text(st.characters(codec="utf-8"), max_size=4)
LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(st.characters(codec="utf-8"), max_size=6)
)
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


def printed(value: Any) -> str:
    """A document as the server prints it."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        return "{" + ", ".join(f"{printed(key)}: {printed(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(printed, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@st.composite
def changed(draw: st.DrawFn) -> tuple[Any, list[list[Any]], Any]:
    """A document, changes of it, and what it then is."""
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
