"""Row changes as lines of JSON, CSV or text, built from the decoder's Arrow batches.

Arrow's string kernels build JSON and CSV, a whole batch at a time: a Python object for each value would cost many times
the decoding. `json_line` gives the same output for one row with `json.dumps`. It is used for rows that are too large
for an Arrow string, and tests compare the two.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binloom.commands.output import iso
from ingest.escapes import UNSEEN_BEYOND_ASCII, csv_cell, json_visible

CSV_COLUMNS = (
    "start_pos",
    "end_pos",
    "payload_ordinal",
    "row_ordinal",
    "event_type",
    "event_timestamp",
    "gtid",
    "schema_name",
    "table_name",
    "column_names",
    "before",
    "after",
    "before_columns",
    "after_columns",
    "undecoded_columns",
    "json_changes",
    "unknown_hints",
)
# Fields that few rows have: a line contains them only when they are not NULL.
_RARE = ("undecoded_columns", "json_changes")

# Arrow strings have 32-bit offsets, and escaping makes a text at most six times as long.
_BATCH_BYTES = 128 << 20

_ESCAPES = {0x08: "\\b", 0x09: "\\t", 0x0A: "\\n", 0x0C: "\\f", 0x0D: "\\r"} | {
    code: f"\\u{code:04x}" for code in (*range(0x20), 0x7F) if code not in (0x08, 0x09, 0x0A, 0x0C, 0x0D)
}
# First UTF-8 bytes of invisible characters beyond ASCII. Few texts contain such bytes.
_UNSEEN_LEADS = [0xC2, 0xD8, 0xE1, 0xE2, 0xEF, 0xF3]

ColumnNames = Callable[[str], Sequence[str] | None]
UnknownHints = Callable[[str], Sequence[Mapping[str, Any]] | None]


def nothing_unknown(table_map_id: str) -> None:
    """Return None for every table map: no column has unknown hints."""


def json_lines(
    batch: pa.RecordBatch, names: ColumnNames, unknown: UnknownHints = nothing_unknown
) -> Iterator[memoryview | bytes]:
    """Yield the batch's rows as UTF-8 JSON lines, in blocks ready for writing.

    Parameters
    ----------
    batch
        Row events as the decoder yields them (`ingest.binlog.batches.ROW_EVENTS`).
    names
        Column names by `table_map_id`, None when they are unknown.
    unknown
        Columns by `table_map_id` whose values depend on missing hints, in the format of `table_maps.unknown_hints`.
    """
    yield from _blocks(
        batch, lambda part: _json_block(part, names, unknown), lambda row: json_line(row, names, unknown)
    )


def csv_lines(
    batch: pa.RecordBatch, names: ColumnNames, unknown: UnknownHints = nothing_unknown
) -> Iterator[memoryview | bytes]:
    """Yield the batch's rows as CSV without a header; columns are `CSV_COLUMNS`, an array is JSON in one cell."""
    yield from _blocks(batch, lambda part: _csv_block(part, names, unknown), lambda row: _csv_line(row, names, unknown))


def _blocks(batch: pa.RecordBatch, block: Any, line: Any) -> Iterator[memoryview | bytes]:
    if batch.num_rows == 0:
        return
    if batch.get_total_buffer_size() <= _BATCH_BYTES or batch.nbytes <= _BATCH_BYTES:
        yield _text_of(block(batch))
    elif batch.num_rows == 1:
        yield line(batch.to_pylist()[0])
    else:
        half = batch.num_rows // 2
        yield from _blocks(batch.slice(0, half), block, line)
        yield from _blocks(batch.slice(half), block, line)


def json_line(row: Mapping[str, Any], names: ColumnNames, unknown: UnknownHints = nothing_unknown) -> bytes:
    """Return one row of a batch (`to_pylist`) as a JSON line."""
    change = {key: row[key] for key in CSV_COLUMNS[:5]}
    change["event_timestamp"] = iso(row["event_timestamp"])
    change |= {key: row[key] for key in CSV_COLUMNS[6:9]}
    if (known := names(row["table_map_id"])) is not None:
        change["column_names"] = list(known)
    change["before"] = None if row["event_type"] == "INSERT" else row["before_values"]
    change["after"] = None if row["event_type"] == "DELETE" else row["after_values"]
    for key in ("before_columns", "after_columns", *_RARE):
        if row[key] is not None:
            change[key] = row[key]
    if missing := unknown(row["table_map_id"]):
        change["unknown_hints"] = missing
    return _dumps(change).encode() + b"\n"


def _csv_line(row: Mapping[str, Any], names: ColumnNames, unknown: UnknownHints) -> bytes:
    change = json.loads(json_line(row, names, unknown))
    cells = []
    for key in CSV_COLUMNS:
        value = change.get(key)
        text = _dumps(value) if isinstance(value, list) else value
        cells.append("" if text is None else csv_cell(str(text)))
    return ",".join(cells).encode() + b"\n"


# --- a whole batch at a time ---


def _json_block(batch: pa.RecordBatch, names: ColumnNames, unknown: UnknownHints) -> pa.Array:
    scalar = _scalars(batch)
    event_type = batch.column("event_type")
    parts: list[Any] = [
        '{"start_pos":',
        scalar["start_pos"],
        ',"end_pos":',
        scalar["end_pos"],
        ',"payload_ordinal":',
        scalar["payload_ordinal"],
        ',"row_ordinal":',
        scalar["row_ordinal"],
        ',"event_type":',
        _each_distinct(event_type, json.dumps),
        ',"event_timestamp":',
        _each_distinct(batch.column("event_timestamp"), lambda moment: f'"{iso(moment)}"'),
        ',"gtid":',
        pc.fill_null(_each_distinct(batch.column("gtid"), _dumps), "null"),
        ',"schema_name":',
        _each_distinct(batch.column("schema_name"), _dumps),
        ',"table_name":',
        _each_distinct(batch.column("table_name"), _dumps),
        _each_distinct(batch.column("table_map_id"), lambda key: _member("column_names", names(key))),
        ',"before":',
        _image(batch.column("before_values"), pc.equal(event_type.cast(pa.string()), "INSERT")),
        ',"after":',
        _image(batch.column("after_values"), pc.equal(event_type.cast(pa.string()), "DELETE")),
    ]
    for key in ("before_columns", "after_columns"):
        ordinals = batch.column(key)
        if ordinals.null_count < len(ordinals):
            member = pc.binary_join_element_wise(f',"{key}":[', _joined(ordinals, pa.string()), "]", "")
            parts.append(pc.fill_null(member, ""))
    for key in _RARE:
        parts.append(_rare_texts(batch.column(key), partial(_member, key)))
    parts.append(_each_distinct(batch.column("table_map_id"), lambda key: _member("unknown_hints", unknown(key))))
    return pc.binary_join_element_wise(*parts, "}\n", "")


def _csv_block(batch: pa.RecordBatch, names: ColumnNames, unknown: UnknownHints) -> pa.Array:
    scalar = _scalars(batch)
    event_type = batch.column("event_type")
    ordinals = {}
    for key in ("before_columns", "after_columns"):
        column = batch.column(key)
        if column.null_count < len(column):
            text = pc.binary_join_element_wise("[", _joined(column, pa.string()), "]", "")
            ordinals[key] = pc.fill_null(_csv_quoted(text), "")
        else:
            ordinals[key] = ""
    cells: list[Any] = [
        scalar["start_pos"],
        scalar["end_pos"],
        scalar["payload_ordinal"],
        scalar["row_ordinal"],
        _each_distinct(event_type, csv_cell),
        _each_distinct(batch.column("event_timestamp"), lambda moment: str(iso(moment))),
        pc.fill_null(_each_distinct(batch.column("gtid"), csv_cell), ""),
        _each_distinct(batch.column("schema_name"), csv_cell),
        _each_distinct(batch.column("table_name"), csv_cell),
        _each_distinct(
            batch.column("table_map_id"),
            lambda key: "" if (known := names(key)) is None else csv_cell(_dumps(list(known))),
        ),
        _csv_image(batch.column("before_values"), pc.equal(event_type.cast(pa.string()), "INSERT")),
        _csv_image(batch.column("after_values"), pc.equal(event_type.cast(pa.string()), "DELETE")),
        ordinals["before_columns"],
        ordinals["after_columns"],
        *(_rare_texts(batch.column(key), lambda value: csv_cell(_dumps(value))) for key in _RARE),
        _each_distinct(
            batch.column("table_map_id"), lambda key: csv_cell(_dumps(missing)) if (missing := unknown(key)) else ""
        ),
    ]
    return pc.binary_join_element_wise(pc.binary_join_element_wise(*cells, ","), "\n", "")


def _scalars(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return {key: batch.column(key).cast(pa.string()) for key in CSV_COLUMNS[:4]}


def _each_distinct(column: pa.Array, text: Any) -> pa.Array:
    """Apply a Python function to each distinct value of a column; NULL stays NULL."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    texts = pa.array([None if value is None else text(value) for value in column.dictionary.to_pylist()], pa.string())
    return texts.take(column.indices)


def _rare_texts(column: pa.Array, text: Callable[[Any], str]) -> pa.Array | str:
    """Apply a Python function to each value of a column that is mostly NULL; the text of NULL is empty."""
    if column.null_count == len(column):
        return ""
    return pa.array(["" if value is None else text(value) for value in column.to_pylist()], pa.string())


def _image(values: pa.Array, is_absent: pa.Array) -> pa.Array:
    """Return a row image as a JSON array, or the text `null` if the event type has no such image."""
    image = pc.binary_join_element_wise("[", _joined(values, None), "]", "")
    return pc.if_else(is_absent, "null", image)


def _csv_image(values: pa.Array, is_absent: pa.Array) -> pa.Array:
    image = pc.binary_join_element_wise("[", _joined(values, None), "]", "")
    return pc.if_else(is_absent, "", _csv_quoted(image))


def _joined(lists: pa.Array, cast_to: pa.DataType | None) -> pa.Array:
    """Join each list's elements with commas: JSON strings, or plain numbers when `cast_to` is given."""
    values = lists.flatten()
    texts = values.cast(cast_to) if cast_to is not None else _json_strings(values)
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(lists) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    mask = pc.is_null(lists) if lists.null_count else None
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), texts, mask=mask), ",")


def _json_strings(values: pa.Array) -> pa.Array:
    """Quote and escape text as `_dumps` does; NULL becomes the text `null`."""
    present = np.bincount(_bytes_of(values), minlength=256)
    if present[0x5C]:
        values = pc.replace_substring(values, "\\", "\\\\")
    if present[0x22]:
        values = pc.replace_substring(values, '"', '\\"')
    for code, escape in _ESCAPES.items():
        if present[code]:
            values = pc.replace_substring(values, chr(code), escape)
    if present[_UNSEEN_LEADS].any():
        hidden = pc.fill_null(pc.match_substring_regex(values, f"[{UNSEEN_BEYOND_ASCII}]"), False)
        escaped = [json_visible(text) for text in values.filter(hidden).to_pylist()]
        values = pc.replace_with_mask(values, hidden, pa.array(escaped, values.type))
    return pc.fill_null(pc.binary_join_element_wise('"', values, '"', ""), "null")


def _csv_quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', "")


def _bytes_of(texts: pa.Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the UTF-8 bytes of a string array, without a copy."""
    buffers = texts.buffers()
    if not len(texts) or buffers[2] is None:
        return np.zeros(0, dtype=np.uint8)
    offsets = np.frombuffer(buffers[1], dtype=np.int32)
    first, last = offsets[texts.offset], offsets[texts.offset + len(texts)]
    return np.frombuffer(buffers[2], dtype=np.uint8)[first:last]


def _text_of(lines: pa.Array) -> memoryview:
    """Return the concatenated lines, which an Arrow string array already stores end to end."""
    return _bytes_of(lines).data


def _dumps(value: Any) -> str:
    return json_visible(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _member(key: str, value: Sequence[Any] | None) -> str:
    return "" if value is None else f',"{key}":{_dumps(list(value))}'
