"""Rows with long texts, which a restore passes on in parts."""

from typing import Any

import pyarrow as pa
import pytest

from recover.restore import rows as restored
from recover.restore.writing import _joined
from recover.timeline.state import Row


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_rows_are_passed_on_in_parts_of_some_length(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restored, "_TEXT_AT_ONCE", 10)
    table = pa.table({"a": pa.array(["x" * 4, None, "y" * 4, "z" * 25, "", "u"], kind), "b": pa.array(["1"] * 6, kind)})
    parts = [*restored._parts(table)]
    assert pa.concat_tables(parts).equals(table)
    assert [part.num_rows for part in parts] == [2, 1, 2, 1]
    assert [part.num_rows for part in restored._parts(table.slice(0, 0))] == [0]


def test_rows_that_are_followed_one_by_one_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restored, "_TEXT_AT_ONCE", 10)
    rows = iter([Row({"a": text}, (), ()) for text in ("x" * 8, "y" * 8, None, "z" * 30, "u")])
    taken = []
    while part := restored._some(rows):
        taken.append([row.values["a"] for row in part])
    assert taken == [["x" * 8, "y" * 8], [None, "z" * 30], ["u"]]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_literals_of_any_array_become_statements(kind: Any) -> None:
    lines = pa.array(["(1)", "(2)"], kind)
    assert [*_joined(lines, "INSERT INTO t VALUES")] == [(2, "INSERT INTO t VALUES\n(1),\n(2);")]
