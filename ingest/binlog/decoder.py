"""Binlog files as Arrow batches: what `open_binlog` gives."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingest.binlog.batches import DICTIONARY, ORDINALS, ROW_EVENTS, SCHEMAS, TEXTS, TIMESTAMP, BatchKind
from ingest.binlog.buffers import (
    DATA_LIMIT,
    SIDES,
    Context,
    ControlBuffers,
    Int64s,
    Pool,
    RowBuffers,
    Window,
    buffer,
)
from ingest.binlog.charsets import charset_of, decode_text
from ingest.binlog.events import TABLE_MAP, actions, event_name
from ingest.binlog.filters import TableFilter
from ingest.binlog.format import HEADER_SIZE, FormatDescription, read_format
from ingest.binlog.hints import SchemaHints
from ingest.binlog.kernel import layout, run
from ingest.binlog.kernel.layout import MAP_WORDS, NULL, SLOT_COUNT, SLOT_WORDS
from ingest.binlog.listing import Event, list_events
from ingest.binlog.plan import ColumnPlan
from ingest.binlog.reasons import DETAILS, REASONS
from ingest.binlog.table_map import MalformedTableMapError, TableMap, parse_table_map, with_hints
from ingest.errors import BinlogNotReadableError, CorruptBinlogError, TruncatedBinlogError, UsageError

Batches = Iterator[tuple[BatchKind, pa.RecordBatch]]

_INT32: Final = pa.int32()
_INT64: Final = pa.int64()
_KINDS: Final = pa.array(["INSERT", "UPDATE", "DELETE"])
_OUTCOMES: Final = pa.array(["none", "commit", "rollback", "xa_prepare"])
_STATEMENT_KINDS: Final = pa.array(["QUERY", "ROWS_QUERY", "ANNOTATE"])
_UTF8_CLIENTS: Final = ("utf8mb4", "utf8mb3", "ascii", "binary", None)
_WHOLE_FILE: Final = (1 << 62) - 1


def open_binlog(
    path: str | Path,
    *,
    hints: SchemaHints | None = None,
    tables: TableFilter | None = None,
    start: int | None = None,
    end: int | None = None,
) -> "Binlog":
    """Opens a binlog file for decoding.

    Parameters
    ----------
    path
        A binlog file of format version 4.
    hints
        What a schema snapshot knows of the columns, for values the file does not describe whole.
    tables
        Which tables' rows are wanted; all without it.
    start, end
        Physical offsets, in bytes, of a transaction's start and of a transaction's end. The whole file without them.

    Raises
    ------
    BinlogError
        One of its kinds; see `ingest.binlog.format.read_format`.
    """
    path = Path(path)
    return Binlog(path, read_format(path), hints, tables, start, end)


class Binlog:
    """A binlog file, or a range of one. Every iteration reads it anew."""

    def __init__(
        self,
        path: Path,
        format: FormatDescription,
        hints: SchemaHints | None,
        tables: TableFilter | None,
        start: int | None,
        end: int | None,
    ) -> None:
        if start is not None and start < 4:
            raise UsageError(f"{path}: position {start} lies inside the magic.", hint="The first event stands at 4.")
        self.path = path
        self.format = format
        self._hints = hints
        self._tables = tables
        self._start = 4 if start is None else start
        self._end = end
        self._names: dict[str, tuple[str, ...] | None] = {}

    def row_batches(self) -> Iterator[pa.RecordBatch]:
        """The row changes: batches of schema `ROW_EVENTS`. Raises as `batches` does."""
        for kind, batch in self.batches():
            if kind == "row_events":
                yield batch

    def column_names(self, table_map_id: str) -> tuple[str, ...] | None:
        """Names of the columns of a table map that `batches` has yielded: its own, or the snapshot's."""
        return self._names.get(table_map_id)

    def batches(self) -> Batches:
        """Everything in the file: batches of each kind in `SCHEMAS`, a table map before its first row.

        Raises
        ------
        CorruptBinlogError
            At an event with a bad checksum or an impossible size, after everything before it was yielded.
        TruncatedBinlogError
            When the file ends inside an event, likewise.
        """
        with open_file(self.path) as file:
            size = os.fstat(file.fileno()).st_size
            end = size if self._end is None else min(self._end, size)
            yield from _Decoding(self, Window(file.fileno(), self._start, end), end).batches()

    def events(self) -> Iterator[Event]:
        """The events one by one, with what their headers and bodies say. Raises as `batches` does, at the end."""
        with open_file(self.path) as file:
            size = os.fstat(file.fileno()).st_size
            end = size if self._end is None else min(self._end, size)
            window, context = Window(file.fileno(), self._start, end), Context()
            prepare(context, self.format, layout.WANT_INDEX | layout.KEEP_GOING)
            yield from list_events(window, self.format, end, context)
            check_end(self.path, window, context, end)

    def _plan_for(self, body: bytes, position: int) -> tuple[TableMap, bool]:
        """A table map with its hints at a position, and whether its rows are left out."""
        parsed = parse_table_map(body)
        known = None
        if self._hints is not None:
            known = self._hints.for_table(parsed.schema_name, parsed.table_name, self.path.name, position)
        table_map = with_hints(parsed, body, known)
        self._names[table_map.table_map_id] = table_map.column_names
        skipped = self._tables is not None and not self._tables.takes(parsed.schema_name, parsed.table_name)
        return table_map, skipped

    def _boundaries(self) -> list[int]:
        return self._hints.boundaries(self.path.name) if self._hints is not None else []


def open_file(path: Path) -> BinaryIO:
    """Opens a file for reading; `BinlogNotReadableError` when that fails."""
    try:
        return path.open("rb", buffering=0)
    except OSError as error:
        raise BinlogNotReadableError(
            f"{path} cannot be read: {error.strerror}.",
            hint="Check that it is still there and that you may read it.",
            path=str(path),
        ) from None


def prepare(context: Context, format: FormatDescription, mode: int) -> None:
    """Fills the words of a context that follow from a file's format."""
    context["MODE"] = mode
    context["CHECKSUM"] = int(format.has_checksums)
    context["HEADER_SIZE"] = format.header_size
    sizes = np.zeros(257, dtype=np.uint8)
    sizes[1 : 1 + len(format.post_header_sizes)] = np.frombuffer(format.post_header_sizes, dtype=np.uint8)[:256]
    context.point("POST_HEADERS", sizes)
    context.point("ACTIONS", actions())
    context.point("COUNTS", np.zeros(256, dtype=np.int64))
    context.point("SLOTS", np.full((SLOT_COUNT, SLOT_WORDS), -1, dtype=np.int64))
    context.point("ACTIVE", np.zeros((layout.ACTIVE_CAPACITY, 2), dtype=np.int64))
    context["FIRST_BAD"] = -1
    context["SEGMENT_BYTES"] = _WHOLE_FILE


class _Decoding:
    """One pass of the decoder over a window: the kernel's counterpart."""

    def __init__(self, log: Binlog, window: Window, end: int) -> None:
        self.log = log
        self.window = window
        self.end = end
        self.context = Context()
        prepare(self.context, log.format, layout.WANT_ROWS)
        self.slots: Int64s = np.full((SLOT_COUNT, SLOT_WORDS), -1, dtype=np.int64)
        self.context.point("SLOTS", self.slots)
        self.context["COMPLETE_END"] = window.base
        self.numbers: dict[bytes, int] = {}
        self.maps: list[TableMap] = []
        self.new_maps: list[TableMap] = []
        self.map_words: Int64s = np.zeros((64, MAP_WORDS), dtype=np.int64)
        self.kept: list[object] = []
        self.control_pool, self.row_pool = Pool(ControlBuffers), Pool(RowBuffers)
        self.control, self.rows = self.control_pool.take(), self.row_pool.take()
        self.control.attach(self.context)
        self.rows.attach(self.context)
        self.context.point("MAPS", self.map_words)
        self.dictionaries: tuple[pa.Array, pa.Array, pa.Array] | None = None

    def batches(self) -> Batches:
        context = self.context
        self.window.attach(context)
        stops = [stop for stop in self.log._boundaries() if self.window.base < stop < self.end] + [self.end]
        context["END_POS"] = stops[0]
        while True:
            status = run(context.address)
            if status == layout.NEED_BYTES:
                if not self.window.advance(context):
                    yield from self._flush()
                    yield from self._finish()
                    check_end(self.log.path, self.window, context, self.end)
                    return
            elif status == layout.FULL:
                progress = self._progress()
                yield from self._flush()
                if not progress:
                    self._grow()
            elif status == layout.NEW_TABLE_MAP:
                self._take_in()
            elif status == layout.DEFECT:
                yield from self._flush()
                yield from self._finish()
                raise defect(self.log.path, self.window, context)
            else:
                stops.pop(0)
                if not stops:
                    yield from self._flush()
                    yield from self._finish()
                    return
                # Another snapshot is in force from here on: the same table maps may read differently.
                context["END_POS"] = stops[0]
                self.slots[:] = -1
                self.numbers.clear()

    # --- table maps ---

    def _event(self) -> bytes:
        """The bytes of the event that the kernel stands at."""
        at = self.window.base + self.context["POS"]
        size = int.from_bytes(self.window.bytes_at(at + 9, 4), "little")
        return self.window.bytes_at(at, size)

    def _take_in(self) -> None:
        """Takes a table map that the kernel does not know into its slot."""
        event = self._event()
        format = self.log.format
        sizes = format.post_header_sizes
        id_size = 4 if len(sizes) >= TABLE_MAP and sizes[TABLE_MAP - 1] == 6 else 6
        start = format.header_size
        body = event[start + id_size : len(event) - (4 if format.has_checksums else 0)]
        table_id = int.from_bytes(event[start : start + id_size], "little")
        number = self.numbers.get(body)
        if number is None:
            number = self._plan(body)
        copy = np.frombuffer(body + bytes(8), dtype=np.uint8)
        self.kept.append(copy)
        self.slots[table_id & (SLOT_COUNT - 1)] = (table_id, number, copy.ctypes.data, len(body))

    def _plan(self, body: bytes) -> int:
        number = len(self.maps)
        position = self.window.base + self.context["POS"]
        try:
            table_map, skipped = self.log._plan_for(body, position)
        except MalformedTableMapError:
            # Its rows then have a map whose column count is none of theirs; the map itself is named here.
            table_map, skipped = _NO_MAP, False
            self._add_problem(position, layout.BAD_TABLE_MAP)
        else:
            if not skipped:
                self.new_maps.append(table_map)
        plan = ColumnPlan(table_map.columns)
        self.kept.append(plan)
        self.maps.append(table_map)
        self.dictionaries = None
        if number >= len(self.map_words):
            self.map_words = np.concatenate([self.map_words, np.zeros_like(self.map_words)])
            self.context.point("MAPS", self.map_words)
        width = len(table_map.columns) if table_map is not _NO_MAP else -1
        self.map_words[number] = (plan.address, width, int(skipped), 0)
        self.numbers[body] = number
        return number

    def _add_problem(self, position: int, reason: int) -> None:
        count = self.context["PROBLEM_COUNT"]
        size = int.from_bytes(self.window.bytes_at(position + 9, 4), "little")
        self.control.problems[count] = (position, position + size, TABLE_MAP, -1, -1, -1, reason, 0)
        self.context["PROBLEM_COUNT"] = count + 1

    # --- output ---

    def _progress(self) -> bool:
        """Whether anything has been written since the last flush."""
        context = self.context
        return bool(context["ROW_COUNT"] or context["TXN_COUNT"] or context["STMT_COUNT"] or context["PROBLEM_COUNT"])

    def _grow(self) -> None:
        """Makes room for a statement or a row that does not fit into empty buffers."""
        context = self.context
        if not context["RESUME"]:
            self.control_pool = Pool(partial(ControlBuffers, len(self._event()) + (1 << 20)))
            self._renew(self.control_pool.take(), self.rows)
            return
        width = int(self.map_words[context["RESUME_MAP"]][1])
        if self.rows.data_capacity >= DATA_LIMIT:
            self._leave_row_out()
            return
        values = max(self.rows.value_capacity, 16 * width)
        self.row_pool = Pool(partial(RowBuffers, values, min(4 * self.rows.data_capacity, DATA_LIMIT)))
        self._renew(self.control, self.row_pool.take())

    def _leave_row_out(self) -> None:
        """Gives up on the rest of a rows event whose next row is larger than Arrow can hold."""
        context = self.context
        position = self.window.base + context["POS"]
        self._add_problem(position, layout.VALUE_TOO_LARGE)
        problem = self.control.problems[context["PROBLEM_COUNT"] - 1]
        problem[layout.PROBLEM_MAP] = context["RESUME_MAP"]
        problem[layout.PROBLEM_ROW] = context["RESUME_ORDINAL"]
        context["RESUME_ROW"] = context["RESUME_END"]
        context["RESUME_ORDINAL"] += 1

    def _renew(self, control: ControlBuffers, rows: RowBuffers) -> None:
        """Puts fresh buffers in place; the transaction that is open goes on in the new ones."""
        context, old, count = self.context, self.control, self.context["TXN_COUNT"]
        if context["TXN_STATE"] != layout.STATE_NONE:
            control.transactions[0] = old.transactions[count]
            first, last = old.gtid_offsets[count], old.gtid_offsets[count + 1]
            control.gtid_data[: last - first] = old.gtid_data[first:last].copy()
            control.gtid_offsets[:2] = (0, last - first)
        self.control, self.rows = control, rows
        control.attach(context)
        rows.attach(context)

    def _flush(self) -> Batches:
        """Yields what has been written since the last flush, and puts fresh buffers in place."""
        if self.new_maps:
            yield "table_maps", table_map_batch(self.new_maps)
            self.new_maps = []
        if not self._progress():
            return
        context, control = self.context, self.control
        rows, transactions = context["ROW_COUNT"], context["TXN_COUNT"]
        statements, problems = context["STMT_COUNT"], context["PROBLEM_COUNT"]
        gtids = self._gtids(transactions + (context["TXN_STATE"] != layout.STATE_NONE))
        found: list[tuple[BatchKind, pa.RecordBatch]] = []
        if rows:
            found.append(("row_events", self._row_batch(rows, gtids)))
        if statements:
            found.append(("statements", statement_batch(control, statements)))
        if transactions:
            found.append(
                ("transactions", transaction_batch(control.transactions[:transactions], gtids.slice(0, transactions)))
            )
        if problems:
            found.append(("unsupported_events", self._problem_batch(control.problems[:problems])))
        self._renew(self.control_pool.take(), self.row_pool.take())
        yield from found

    def _finish(self) -> Batches:
        """The transaction that was still open when the bytes ended, with outcome `none`."""
        context = self.context
        if context["TXN_STATE"] == layout.STATE_NONE:
            return
        record = self.control.transactions[:1].copy()
        record[0, layout.TXN_END] = self.window.base + context["POS"]
        record[0, layout.TXN_COMMITTED] = NULL
        yield "transactions", transaction_batch(record, self._gtids(1))

    def _gtids(self, count: int) -> pa.Array:
        """GTIDs of the first `count` transaction records; NULL for anonymous ones."""
        has = self.control.transactions[:count, layout.TXN_HAS_GTID].astype(bool)
        offsets = self.control.gtid_offsets[: count + 1]
        data = self.control.gtid_data[: int(offsets[-1])]
        valid = None if has.all() else buffer(np.packbits(has, bitorder="little"))
        return pa.Array.from_buffers(pa.string(), count, [valid, buffer(offsets), buffer(data)])

    def _row_batch(self, count: int, gtids: pa.Array) -> pa.RecordBatch:
        rows, context = self.rows, self.context
        if self.dictionaries is None:
            self.dictionaries = (
                pa.array([table_map.table_map_id for table_map in self.maps]),
                pa.array([table_map.schema_name for table_map in self.maps]),
                pa.array([table_map.table_name for table_map in self.maps]),
            )
        map_indices = _numbers(rows.maps[:count], _INT32)
        ids, schemas, tables = (
            pa.DictionaryArray.from_arrays(map_indices, dictionary, safe=False) for dictionary in self.dictionaries
        )
        values = context["VALUE_COUNT"]
        offsets = buffer(rows.value_offsets[: count + 1])
        before, after = (
            pa.Array.from_buffers(TEXTS, count, [None, offsets], children=[image.array(values)])
            for image in (rows.images[side] for side in SIDES)
        )
        if context["PARTIAL_SEEN"]:
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
                tables,
                _numbers(rows.widths[:count], _INT32),
                before,
                after,
                *ordinals,
            ],
            schema=ROW_EVENTS,
        )

    def _problem_batch(self, records: Int64s) -> pa.RecordBatch:
        columns: dict[str, list[object]] = {name: [] for name in SCHEMAS["unsupported_events"].names}
        for start, end, code, number, row, column, reason, _ in records.tolist():
            table_map = self.maps[number] if number >= 0 else None
            columns["start_pos"].append(start)
            columns["end_pos"].append(end)
            columns["event_type"].append(event_name(code))
            columns["schema_name"].append(table_map.schema_name if table_map else None)
            columns["table_name"].append(table_map.table_name if table_map else None)
            columns["reason"].append(REASONS[reason])
            columns["detail"].append(_detail(reason, row, column, table_map))
        return pa.RecordBatch.from_pydict(columns, schema=SCHEMAS["unsupported_events"])


def defect(path: Path, window: Window, context: Context) -> CorruptBinlogError:
    """The error for the event at POS, which the kernel found broken."""
    position = window.base + context["POS"]
    reason = defect_reason(context["REASON"], int.from_bytes(window.bytes_at(position + 9, 4), "little"))
    return CorruptBinlogError(
        f"{path}: {reason}, in the event at position {position}.",
        hint="Copy the file again from the server; what stands before this position is good.",
        path=str(path),
        position=position,
        reason=reason,
    )


def check_end(path: Path, window: Window, context: Context, end: int) -> None:
    """Raises when the walk ended before `end`: at an impossible size, or in bytes that are no whole event."""
    position = window.base + context["POS"]
    if position >= end:
        return
    if context["REASON"] == layout.BAD_SIZE:
        raise defect(path, window, context)
    left = end - position
    said = window.bytes_at(position + 9, 4) if left >= HEADER_SIZE else b""
    size = f"says that it has {int.from_bytes(said, 'little')} bytes" if said else "has no whole header"
    raise TruncatedBinlogError(
        f"{path}: the event at position {position} {size}, the file ends {left} bytes behind its start.",
        hint="The file was cut off, is still being written, or is damaged there; copy it again from the server.",
        path=str(path),
        position=position,
        reason=f"the event {size}, {left} are left",
    )


def defect_reason(code: int, size: int) -> str:
    """A kernel's `layout.BAD_…` in words."""
    if code == layout.BAD_CHECKSUM:
        return "the checksum does not match"
    return f"a size of {size} bytes, which no event has"


_NO_MAP: Final = TableMap("", "", "", (), "none", None)


def _detail(reason: int, row: int, column: int, table_map: TableMap | None) -> str:
    where = f"row {row}: " if row >= 0 else ""
    if column >= 0 and table_map is not None:
        name = f" ({table_map.column_names[column]})" if table_map.column_names else ""
        described = table_map.columns[column]
        charset = f", character set {described.charset}" if described.charset else ""
        where = f"row {row}, column {column}{name} of type {described.type}{charset}: "
    return where + DETAILS[reason]


# --- arrays over buffers ---


def _numbers(values: npt.NDArray[Any], kind: pa.DataType = _INT64) -> pa.Array:
    """An Arrow array over contiguous numbers of the kind's width."""
    return pa.Array.from_buffers(kind, len(values), [None, buffer(values)])


def _nullable(values: Int64s, kind: pa.DataType = _INT64) -> pa.Array:
    """The same for a record's column: those that are `layout.NULL` become NULL."""
    known = values != NULL
    valid = None if known.all() else buffer(np.packbits(known, bitorder="little"))
    if kind == _INT32:
        values = values.astype(np.int32)
    return pa.Array.from_buffers(kind, len(values), [valid, buffer(values)])


def _dictionary_of_gtids(indices: npt.NDArray[np.int32], gtids: pa.Array) -> pa.Array:
    """GTID of each row as indices into those of its batch's transactions."""
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
    """Ordinals of partial images; NULL for full ones."""
    used = int(offsets[count])
    valid = buffer(np.packbits(is_partial[:count], bitorder="little"))
    return pa.Array.from_buffers(
        ORDINALS, count, [valid, buffer(offsets[: count + 1])], children=[_numbers(values[:used], _INT32)]
    )


def transaction_batch(records: Int64s, gtids: pa.Array) -> pa.RecordBatch:
    """Transaction records, shape (n, 16), as a batch of `TRANSACTIONS`."""
    columns = np.ascontiguousarray(records.T)
    changes = columns[layout.TXN_INSERTS : layout.TXN_DELETES + 1]
    return pa.RecordBatch.from_arrays(
        [
            _numbers(columns[layout.TXN_START]),
            _numbers(columns[layout.TXN_END]),
            gtids,
            _nullable(columns[layout.TXN_XID]),
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
        ],
        schema=SCHEMAS["transactions"],
    )


def statement_batch(control: ControlBuffers, count: int) -> pa.RecordBatch:
    """The first `count` statement records as a batch of `STATEMENTS`."""
    columns = np.ascontiguousarray(control.statements[:count].T)
    schemas = _texts(control.schema_offsets, control.schema_data, count, None)
    return pa.RecordBatch.from_arrays(
        [
            _numbers(columns[layout.STMT_START]),
            _numbers(columns[layout.STMT_END]),
            _numbers(columns[layout.STMT_PAYLOAD_ORDINAL].astype(np.int32), pa.int32()),
            _nullable(columns[layout.STMT_TXN]),
            _STATEMENT_KINDS.take(_numbers(columns[layout.STMT_KIND])),
            pc.if_else(pc.equal(schemas, ""), pa.scalar(None, pa.string()), schemas),
            _nullable(columns[layout.STMT_THREAD]),
            _nullable(columns[layout.STMT_ERROR], pa.int32()),
            _texts(control.text_offsets, control.text_data, count, columns[layout.STMT_CHARSET]),
            _numbers(columns[layout.STMT_TIME], TIMESTAMP),
        ],
        schema=SCHEMAS["statements"],
    )


def _texts(
    offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8], count: int, collations: Int64s | None
) -> pa.Array:
    """Texts of statements in the character sets of their clients, without a copy where they are UTF-8."""
    bounds = offsets[: count + 1]
    charsets = {
        int(number): charset_of(int(number)) for number in (np.unique(collations) if collations is not None else [])
    }
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
            decode_text(raw[first:last], charsets.get(number))
            for first, last, number in zip(bounds[:-1].tolist(), bounds[1:].tolist(), numbers, strict=True)
        ],
        pa.string(),
    )


def table_map_batch(maps: list[TableMap]) -> pa.RecordBatch:
    """Table maps as a batch of `TABLE_MAPS`."""
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
            }
            for table_map in maps
        ],
        schema=SCHEMAS["table_maps"],
    )
