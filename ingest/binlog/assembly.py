"""Arrow batches over the kernel's output buffers, without a copy."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingest.binlog.batches import DICTIONARY, JSON_CHANGES, ORDINALS, ROW_EVENTS, SCHEMAS, TEXTS, TIMESTAMP
from ingest.binlog.buffers import SIDES, ControlBuffers, Int64s, RowBuffers, buffer
from ingest.binlog.events.format import FormatDescription
from ingest.binlog.events.reader import MalformedEventError
from ingest.binlog.events.statement_events import CREATE_FILE, INTVAR, LOAD, NEW_LOAD, RAND, USER_VAR, statement_text
from ingest.binlog.events.status_variables import SessionReader, Status
from ingest.binlog.events.table_map import TableMap
from ingest.binlog.events.types import event_name
from ingest.binlog.kernel import layout
from ingest.binlog.kernel.layout import NULL
from ingest.binlog.reasons import DETAILS, REASONS
from ingest.binlog.rows.json_diff import Change
from ingest.binlog.savepoints import Savepoints
from ingest.binlog.text.charsets import charset_of
from ingest.binlog.text.collations import collation_names
from ingest.binlog.text.server_statements import decode_statement

_INT32: Final = pa.int32()
_INT64: Final = pa.int64()
_KINDS: Final = pa.array(["INSERT", "UPDATE", "DELETE"])
_OUTCOMES: Final = pa.array(["none", "commit", "rollback", "xa_prepare"])
_STATEMENT_KINDS: Final = pa.array(
    ["QUERY", "ROWS_QUERY", "ANNOTATE", "LOAD", "INTVAR", "RAND", "USER_VAR", "START_ALTER", "ROLLBACK_ALTER"]
)
_EVENT_KINDS: Final = {LOAD: 3, CREATE_FILE: 3, NEW_LOAD: 3, INTVAR: 4, RAND: 5, USER_VAR: 6}
_START_ALTER, _ROLLBACK_ALTER = 7, 8
_UTF8_CLIENTS: Final = ("utf8mb4", "utf8mb3", "ascii", "binary", None)


class TableDictionaries:
    """Dictionaries of table map ids, schemas and tables by map number; all batches of a file share them."""

    def __init__(self, maps: Sequence[TableMap]) -> None:
        self._maps = maps
        self._arrays: tuple[pa.Array, pa.Array, pa.Array] | None = None

    def arrays(self) -> tuple[pa.Array, pa.Array, pa.Array]:
        if self._arrays is None or len(self._arrays[0]) != len(self._maps):
            self._arrays = (
                pa.array([table_map.table_map_id for table_map in self._maps]),
                pa.array([table_map.schema_name for table_map in self._maps]),
                pa.array([table_map.table_name for table_map in self._maps]),
            )
        return self._arrays


def gtids_of(control: ControlBuffers, count: int) -> pa.Array:
    """Return the GTIDs of the first `count` transaction records; NULL for anonymous transactions."""
    return _known_texts(control, layout.TXN_HAS_GTID, control.gtid_offsets, control.gtid_data, count)


def _known_texts(
    control: ControlBuffers, word: int, offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8], count: int
) -> pa.Array:
    """Return texts of transaction records; NULL where the record's `word` is 0."""
    has = control.transactions[:count, word].astype(bool)
    valid = None if has.all() else buffer(np.packbits(has, bitorder="little"))
    used = buffer(data[: int(offsets[count])])
    return pa.Array.from_buffers(pa.string(), count, [valid, buffer(offsets[: count + 1]), used])


def row_batch(
    rows: RowBuffers,
    count: int,
    images: dict[str, pa.Array],
    is_partial: bool,
    gtids: pa.Array,
    tables: "TableDictionaries",
) -> pa.RecordBatch:
    """Return the first `count` rows as a batch of `ROW_EVENTS`.

    `images` contains the texts of all values on both sides, `gtids` the GTIDs of the batch's transactions.
    `is_partial` is true when any image lacks columns.
    """
    map_indices = _numbers(rows.maps[:count], _INT32)
    ids, schemas, names = (
        pa.DictionaryArray.from_arrays(map_indices, dictionary, safe=False) for dictionary in tables.arrays()
    )
    offsets = buffer(rows.value_offsets[: count + 1])
    before, after = (pa.Array.from_buffers(TEXTS, count, [None, offsets], children=[images[side]]) for side in SIDES)
    if is_partial:
        ordinals = [_ordinal_lists(*rows.ordinal_lists[side], count) for side in SIDES]
    else:
        ordinals = [pa.nulls(count, ORDINALS)] * 2
    return pa.RecordBatch.from_arrays(
        [
            _numbers(rows.starts[:count]),
            _numbers(rows.ends[:count]),
            _numbers(rows.payload_ordinals[:count], _INT32),
            _numbers(rows.ordinals[:count], _INT32),
            _numbers(rows.txn_pos[:count]),
            pa.DictionaryArray.from_arrays(_numbers(rows.kinds[:count], _INT32), _KINDS, safe=False),
            _numbers(rows.times[:count], TIMESTAMP),
            _numbers(rows.servers[:count]),
            _dictionary_of_gtids(rows.txns[:count], gtids),
            ids,
            schemas,
            names,
            _numbers(rows.widths[:count], _INT32),
            before,
            after,
            *ordinals,
            pa.nulls(count, ORDINALS),
            pa.nulls(count, JSON_CHANGES),
        ],
        schema=ROW_EVENTS,
    )


def with_undecoded(batch: pa.RecordBatch, undecoded: Mapping[int, Mapping[int, Sequence[Change]]]) -> pa.RecordBatch:
    """Return a batch of `ROW_EVENTS` that marks unknown after-image values, for which only the changes are known.

    `undecoded` contains the changes by row and by column ordinal. These columns are not in `after_columns`.
    """
    after = batch.column("after_columns")
    widths = batch.column("column_count")
    present = {row: after[row].as_py() for row in undecoded}
    found: dict[str, dict[int, Any]] = {
        "after_columns": {
            row: [ordinal for ordinal in _all_or(present[row], widths[row].as_py()) if ordinal not in columns]
            for row, columns in undecoded.items()
        },
        "undecoded_columns": {row: sorted(columns) for row, columns in undecoded.items()},
        "json_changes": {
            row: [
                {"column_ordinal": ordinal, "operation": change.operation, "path": change.path, "value": change.text}
                for ordinal in sorted(columns)
                for change in columns[ordinal]
            ]
            for row, columns in undecoded.items()
        },
    }
    for name, elements in found.items():
        index = batch.schema.get_field_index(name)
        batch = batch.set_column(index, batch.schema.field(index), replaced(batch.column(index), elements))
    return batch


def _all_or(present: list[int] | None, width: int) -> Sequence[int]:
    return range(width) if present is None else present


def replaced(array: pa.Array, elements: Mapping[int, Any]) -> pa.Array:
    """Return an array with other elements at some indexes."""
    places = np.arange(len(array))
    places[list(elements)] = len(array) + np.arange(len(elements))
    return pa.concat_arrays([array, pa.array(list(elements.values()), array.type)]).take(pa.array(places))


def transaction_batch(control: ControlBuffers, count: int, savepoints: Savepoints) -> pa.RecordBatch:
    """Return the first `count` transaction records as a batch of `TRANSACTIONS`; `savepoints` are those of the file."""
    columns = np.ascontiguousarray(control.transactions[:count].T)
    changes = columns[layout.TXN_INSERTS : layout.TXN_DELETES + 1]
    return pa.RecordBatch.from_arrays(
        [
            _numbers(columns[layout.TXN_START]),
            _numbers(columns[layout.TXN_END]),
            gtids_of(control, count),
            _nullable(columns[layout.TXN_XID]),
            _known_texts(control, layout.TXN_HAS_XA, control.xa_offsets, control.xa_data, count),
            _nullable(columns[layout.TXN_THREAD]),
            _numbers(columns[layout.TXN_SERVER]),
            _numbers(columns[layout.TXN_STARTED], TIMESTAMP),
            _nullable(columns[layout.TXN_COMMITTED], TIMESTAMP),
            _nullable(columns[layout.TXN_ORIGINAL], TIMESTAMP),
            pa.array(columns[layout.TXN_IS_DDL] != 0),
            _OUTCOMES.take(_numbers(columns[layout.TXN_OUTCOME])),
            _numbers(columns[layout.TXN_EVENTS]),
            _numbers(changes.sum(axis=0)),
            *(_numbers(change) for change in changes),
            savepoints.ranges(columns[layout.TXN_START]),
        ],
        schema=SCHEMAS["transactions"],
    )


def statement_batch(control: ControlBuffers, count: int, format: FormatDescription) -> pa.RecordBatch:
    """Return the first `count` statement records, from a file of `format`, as a batch of `STATEMENTS`."""
    columns = np.ascontiguousarray(control.statements[:count].T)
    schemas = _texts(control.schema_offsets, control.schema_data, count, None)
    kinds = columns[layout.STMT_KIND]
    texts = _texts(control.text_offsets, control.text_data, count, columns[layout.STMT_CHARSET])
    statuses, status_of = _statuses(control, count, format)
    if any(status.gtid_flags_extra for status in statuses):
        kinds = np.where(
            kinds == layout.KIND_QUERY, np.array([_query_kind(each) for each in statuses])[status_of], kinds
        )
    if events := np.flatnonzero(kinds == layout.KIND_EVENT).tolist():
        kinds = kinds.copy()
        types = columns[layout.STMT_TYPE].tolist()
        kinds[events] = [_EVENT_KINDS[types[number]] for number in events]
        bounds, data = control.text_offsets, control.text_data
        bodies = [data[bounds[number] : bounds[number + 1]].tobytes() for number in events]
        statements = [_sql_of_event(types[number], body, format) for number, body in zip(events, bodies, strict=True)]
        texts = pc.replace_with_mask(
            texts, pa.array(columns[layout.STMT_KIND] == layout.KIND_EVENT), pa.array(statements, pa.string())
        )
    return pa.RecordBatch.from_arrays(
        [
            _numbers(columns[layout.STMT_START]),
            _numbers(columns[layout.STMT_END]),
            _numbers(columns[layout.STMT_PAYLOAD_ORDINAL].astype(np.int32), pa.int32()),
            _nullable(columns[layout.STMT_TXN]),
            _STATEMENT_KINDS.take(_numbers(kinds)),
            pc.if_else(pc.equal(schemas, ""), pa.scalar(None, pa.string()), schemas),
            _nullable(columns[layout.STMT_THREAD]),
            _nullable(columns[layout.STMT_ERROR], pa.int32()),
            texts,
            *_sessions(statuses, status_of),
            _numbers(columns[layout.STMT_TIME], TIMESTAMP),
        ],
        schema=SCHEMAS["statements"],
    )


def _sql_of_event(code: int, body: bytes, format: FormatDescription) -> str | None:
    """Return the SQL that an event's fields represent; None when the fields do not fit into the event."""
    try:
        return statement_text(code, body, format.post_header_size(code))
    except MalformedEventError:
        return None


@cache
def _session_reader(flavor: str) -> SessionReader:
    return SessionReader(flavor)


def _statuses(control: ControlBuffers, count: int, format: FormatDescription) -> tuple[list[Status], pa.Array]:
    """Return the different blocks of status variables, and the index of the block of each statement."""
    bounds = control.status_offsets[: count + 1]
    data = buffer(control.status_data[: max(int(bounds[-1]), 1)])
    blocks = pa.Array.from_buffers(pa.binary(), count, [None, buffer(bounds), data]).dictionary_encode()
    return [_session_reader(format.flavor).status(block) for block in blocks.dictionary.to_pylist()], blocks.indices


def _query_kind(status: Status) -> int:
    """Return the kind of a QUERY event.

    MariaDB with `binlog_alter_two_phase` logs the text of an ALTER when it begins, and again when it ends: the first
    event changes nothing yet, and that of an ALTER that failed nothing at all. Source: sql/log_event.h,
    Gtid_log_event::FL_START_ALTER_E1 and FL_ROLLBACK_ALTER_E1.
    """
    flags = status.gtid_flags_extra or 0
    return _START_ALTER if flags & 2 else _ROLLBACK_ALTER if flags & 8 else layout.KIND_QUERY


def _sessions(statuses: list[Status], status_of: pa.Array) -> list[pa.Array]:
    """Return SQL mode, time zone, character sets of client and connection, and server collation of each statement."""
    columns: list[list[str | None]] = [
        *([getattr(status, name) for status in statuses] for name in ("sql_mode", "time_zone", "character_set_client")),
        [charset_of(status.collation_connection or 0) for status in statuses],
        [collation_names().get(status.collation_server or 0) for status in statuses],
    ]
    return [pa.array(column, pa.string()).take(status_of) for column in columns]


def _texts(
    offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8], count: int, collations: Int64s | None
) -> pa.Array:
    """Return statement texts, decoded from their clients' character sets; UTF-8 texts are not copied."""
    bounds = offsets[: count + 1]
    charsets = {number: charset_of(number) for number in set(collations.tolist() if collations is not None else [])}
    if all(charset in _UTF8_CLIENTS for charset in charsets.values()):
        texts = pa.Array.from_buffers(
            pa.string(), count, [None, buffer(bounds), buffer(data[: max(int(bounds[-1]), 1)])]
        )
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            pass
        else:
            return texts
    numbers = collations.tolist() if collations is not None else [0] * count
    raw = data[: int(bounds[-1])].tobytes()
    return pa.array(
        [
            decode_statement(raw[first:last], charsets.get(number))
            for first, last, number in zip(bounds[:-1].tolist(), bounds[1:].tolist(), numbers, strict=True)
        ],
        pa.string(),
    )


def table_map_batch(maps: list[TableMap]) -> pa.RecordBatch:
    """Return table maps as a batch of `TABLE_MAPS`."""
    return pa.RecordBatch.from_pylist(
        [
            {
                "table_map_id": table_map.table_map_id,
                "schema_name": table_map.schema_name,
                "table_name": table_map.table_name,
                "column_count": len(table_map.columns),
                "columns": [
                    {
                        "ordinal": column.ordinal,
                        "type": column.type,
                        "metadata": column.metadata,
                        "is_nullable": column.is_nullable,
                        "is_unsigned": column.is_unsigned,
                        "charset": column.charset,
                        "members": column.members,
                        "name": column.name,
                        "is_primary_key": column.is_primary_key,
                        "is_visible": column.is_visible,
                    }
                    for column in table_map.columns
                ],
                "hint": table_map.hint,
                "unknown_hints": unknown_hints(table_map),
            }
            for table_map in maps
        ],
        schema=SCHEMAS["table_maps"],
    )


def unknown_hints(table_map: TableMap) -> list[dict[str, object]] | None:
    """Return the columns whose values depend on an unknown fact, each with this fact; None if there are none."""
    found: list[dict[str, object]] = [
        {"ordinal": column.ordinal, "hint": column.unknown_hint}
        for column in table_map.columns
        if column.unknown_hint is not None
    ]
    return found or None


def problem_batch(records: Int64s, maps: Sequence[TableMap], messages: Mapping[int, str]) -> pa.RecordBatch:
    """Return problem records, one per row, as a batch of `UNSUPPORTED_EVENTS`.

    `maps` contains all table maps known so far, `messages` the events' own messages by physical offset.
    """
    columns: dict[str, list[object]] = {name: [] for name in SCHEMAS["unsupported_events"].names}
    for start, end, code, number, row, column, reason in records.tolist():
        table_map = maps[number] if number >= 0 else None
        columns["start_pos"].append(start)
        columns["end_pos"].append(end)
        columns["event_type"].append(event_name(code))
        columns["schema_name"].append(table_map.schema_name if table_map else None)
        columns["table_name"].append(table_map.table_name if table_map else None)
        columns["reason"].append(REASONS[reason])
        message = f"; the server says: {messages[start]}" if start in messages else ""
        columns["detail"].append(_detail(reason, row, column, table_map) + message)
    return pa.RecordBatch.from_pydict(columns, schema=SCHEMAS["unsupported_events"])


def _detail(reason: int, row: int, column: int, table_map: TableMap | None) -> str:
    where = f"row {row}: " if row >= 0 else ""
    if column >= 0 and table_map is not None:
        names = table_map.column_names or ()
        name = f" ({names[column]})" if column < len(names) else ""
        described_column = table_map.logged_columns[column]
        charset = f", character set {described_column.charset}" if described_column.charset else ""
        where = f"row {row}, column {column}{name} of type {described_column.type}{charset}: "
    return where + DETAILS[reason]


def _numbers(values: npt.NDArray[Any], kind: pa.DataType = _INT64) -> pa.Array:
    """Return an Arrow array over contiguous numbers of the kind's width."""
    return pa.Array.from_buffers(kind, len(values), [None, buffer(values)])


def _nullable(values: Int64s, kind: pa.DataType = _INT64) -> pa.Array:
    """Return an Arrow array over a record's column; numbers equal to `layout.NULL` become NULL."""
    known = values != NULL
    valid = None if known.all() else buffer(np.packbits(known, bitorder="little"))
    if kind == _INT32:
        values = values.astype(np.int32)
    return pa.Array.from_buffers(kind, len(values), [valid, buffer(values)])


def _dictionary_of_gtids(indices: npt.NDArray[np.int32], gtids: pa.Array) -> pa.Array:
    """Return the GTID of each row as an index into the GTIDs of its batch's transactions."""
    if gtids.null_count == 0:
        return pa.DictionaryArray.from_arrays(_numbers(indices, _INT32), gtids, safe=False)
    known = np.asarray(gtids.is_valid())
    if not known.any():
        return pa.nulls(len(indices), DICTIONARY)
    mask = pa.array(~known[indices])
    return pa.DictionaryArray.from_arrays(pa.array(indices, mask=np.asarray(mask)), gtids.fill_null(""), safe=False)


def _ordinal_lists(
    offsets: npt.NDArray[np.int32], values: npt.NDArray[np.int32], is_partial: npt.NDArray[np.uint8], count: int
) -> pa.Array:
    """Return the column ordinals of partial images; NULL for full images."""
    used = int(offsets[count])
    valid = buffer(np.packbits(is_partial[:count], bitorder="little"))
    return pa.Array.from_buffers(
        ORDINALS, count, [valid, buffer(offsets[: count + 1])], children=[_numbers(values[:used], _INT32)]
    )
