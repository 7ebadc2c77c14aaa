"""The fast line writer of `binloom decode`, compared with `json.dumps` and the csv module."""

import csv
import io
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binloom.commands import lines
from ingest.binlog.batches import ROW_EVENTS
from ingest.escapes import json_visible, visible

NAMES = {"named": ["id", 'a "quoted", name'], "unnamed": None}.get

texts = st.one_of(
    st.none(),
    st.text(max_size=8),
    st.text(alphabet='"\\,\n\r\t\x00\x01\x1f\x7f\x9b \u2028\u202e\ufeff\U000e0041é…©𝄞', max_size=6),
    st.sampled_from(["", "null", "0", '{"a": [1, "b"]}']),
)
images = st.lists(texts, min_size=2, max_size=2)
ordinals = st.one_of(st.none(), st.lists(st.integers(0, 1), max_size=2))
json_changes = st.none() | st.lists(
    st.fixed_dictionaries(
        {
            "column_ordinal": st.integers(0, 1),
            "operation": st.sampled_from(["replace", "insert", "remove"]),
            "path": st.sampled_from(["$", '$."a \\" b"[0]', "$.é"]),
            "value": texts,
        }
    ),
    max_size=2,
)


@st.composite
def row_batches(draw: st.DrawFn) -> pa.RecordBatch:
    rows = draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "start_pos": st.integers(4, 2**40),
                    "end_pos": st.integers(4, 2**40),
                    "payload_ordinal": st.integers(0, 3),
                    "row_ordinal": st.integers(0, 2**31 - 1),
                    "transaction_pos": st.just(4),
                    "event_type": st.sampled_from(["INSERT", "UPDATE", "DELETE"]),
                    "event_timestamp": st.datetimes(
                        datetime(1970, 1, 1), datetime(2106, 2, 7), timezones=st.just(UTC)
                    ).map(lambda moment: moment.replace(microsecond=0)),
                    "server_id": st.just(1),
                    "gtid": st.one_of(st.none(), st.sampled_from(["0-1-2", "3e11fa47-71ca-11e1-9e33-c80aa9429562:23"])),
                    "table_map_id": st.sampled_from(["named", "unnamed", "never seen"]),
                    "schema_name": st.sampled_from(["shop", 'sh"op', "=1+1", "\x1b[2J\u202e"]),
                    "table_name": st.sampled_from(["orders", "naïve,\\table"]),
                    "column_count": st.just(2),
                    "before_values": images,
                    "after_values": images,
                    "before_columns": ordinals,
                    "after_columns": ordinals,
                    "undecoded_columns": ordinals,
                    "json_changes": json_changes,
                }
            ),
            max_size=6,
        )
    )
    columns = []
    for field in ROW_EVENTS:
        plain = field.type if pa.types.is_list(field.type) else None
        column = pa.array([row[field.name] for row in rows], plain)
        if pa.types.is_dictionary(field.type):
            column = column.cast(pa.string()).dictionary_encode()
        columns.append(column.cast(field.type))
    batch = pa.RecordBatch.from_arrays(columns, schema=ROW_EVENTS)
    return batch.slice(draw(st.integers(0, max(0, len(rows) - 1))))


@given(row_batches())
def test_json_lines_are_those_of_json_dumps(batch: pa.RecordBatch) -> None:
    expected = b"".join(lines.json_line(row, NAMES) for row in batch.to_pylist())
    printed = b"".join(lines.json_lines(batch, NAMES))
    assert printed == expected
    assert visible(printed.decode(), keep="\n") == printed.decode()
    rows = [json.loads(line) for line in printed.splitlines()]
    assert [row["table_name"] for row in rows] == batch["table_name"].to_pylist()
    for row, before, after in zip(
        rows, batch["before_values"].to_pylist(), batch["after_values"].to_pylist(), strict=True
    ):
        assert row["before"] in (None, before) and row["after"] in (None, after)


@given(row_batches())
def test_csv_lines_hold_the_same_as_the_json_lines(batch: pa.RecordBatch) -> None:
    text = b"".join(lines.csv_lines(batch, NAMES)).decode()
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len(rows) == batch.num_rows
    for cells, row in zip(rows, batch.to_pylist(), strict=True):
        change = json.loads(lines.json_line(row, NAMES))
        expected = [_cell(change.get(column)) for column in lines.CSV_COLUMNS]
        assert visible(text, keep="\n\r\t") == text
        assert cells == expected


@pytest.mark.parametrize("block", [lines.json_lines, lines.csv_lines])
def test_rows_too_large_for_one_arrow_string_are_printed_alike(block: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = _batch_of(["x" * 1000, 'quote " and , comma\n'] * 20)
    whole = b"".join(block(batch, NAMES))
    monkeypatch.setattr(lines, "_BATCH_BYTES", 1000)
    pieces = list(block(batch, NAMES))
    assert len(pieces) > 1
    assert b"".join(pieces) == whole


def test_the_image_that_an_event_type_does_not_have_is_null_and_a_partial_one_says_its_columns() -> None:
    batch = _batch_of(["a", "b", "c"], event_types=["INSERT", "UPDATE", "DELETE"], after_columns=[None, [1], None])
    insert, update, delete = (json.loads(line) for line in b"".join(lines.json_lines(batch, {}.get)).splitlines())
    assert insert["before"] is None and insert["after"] == ["a", None]
    assert update["before"] == update["after"] == ["b", None] and update["after_columns"] == [1]
    assert delete["after"] is None and delete["before"] == ["c", None]
    assert "after_columns" not in insert and "column_names" not in insert


def _batch_of(
    values: list[str], event_types: list[str] | None = None, after_columns: list[Any] | None = None
) -> pa.RecordBatch:
    count = len(values)
    images = [[value, None] for value in values]
    columns = {
        "event_type": event_types or ["UPDATE"] * count,
        "event_timestamp": [datetime(2026, 11, 20, 8, tzinfo=UTC)] * count,
        "gtid": [None] * count,
        "table_map_id": ["named"] * count,
        "schema_name": ["shop"] * count,
        "table_name": ["orders"] * count,
        "before_values": images,
        "after_values": images,
        "before_columns": [None] * count,
        "after_columns": after_columns or [None] * count,
        "undecoded_columns": [None] * count,
        "json_changes": [None] * count,
    }
    arrays = []
    for field in ROW_EVENTS:
        plain = pa.string() if pa.types.is_dictionary(field.type) else field.type
        array = pa.array(columns.get(field.name, list(range(count))), plain)
        arrays.append(array.dictionary_encode() if pa.types.is_dictionary(field.type) else array)
    return pa.RecordBatch.from_arrays(
        [a.cast(f.type) for a, f in zip(arrays, ROW_EVENTS, strict=True)], schema=ROW_EVENTS
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return json_visible(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return visible(f"'{value}" if value == "=1+1" else str(value))
