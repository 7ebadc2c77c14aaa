"""Binlog files as Arrow batches: what `open_binlog` gives."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingest.binlog.assembly import (
    TableDictionaries,
    gtids_of,
    problem_batch,
    row_batch,
    statement_batch,
    table_map_batch,
    transaction_batch,
)
from ingest.binlog.batches import BatchKind
from ingest.binlog.buffers import (
    DATA_LIMIT,
    Context,
    ControlBuffers,
    Int64s,
    Pool,
    RowBuffers,
    Window,
)
from ingest.binlog.events import TABLE_MAP, actions
from ingest.binlog.filters import TableFilter
from ingest.binlog.format import HEADER_SIZE, FormatDescription, read_format
from ingest.binlog.hints import SchemaHints
from ingest.binlog.kernel import layout, run
from ingest.binlog.kernel.layout import MAP_WORDS, NULL, SLOT_COUNT, SLOT_WORDS
from ingest.binlog.kernel.memory import PADDING
from ingest.binlog.listing import Event, list_events
from ingest.binlog.plan import ColumnPlan
from ingest.binlog.table_map import MalformedTableMapError, TableMap, parse_table_map, with_hints
from ingest.errors import BinlogNotReadableError, CorruptBinlogError, TruncatedBinlogError, UsageError

Batches = Iterator[tuple[BatchKind, pa.RecordBatch]]

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
        for kind, batch in self._decode(rows_only=True):
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
        yield from self._decode(rows_only=False)

    def _decode(self, *, rows_only: bool) -> Batches:
        with open_file(self.path) as file:
            size = os.fstat(file.fileno()).st_size
            end = size if self._end is None else min(self._end, size)
            window = Window(file.fileno(), self._start, end)
            yield from _Decoding(self, window, end, rows_only).batches()

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

    def __init__(self, log: Binlog, window: Window, end: int, rows_only: bool) -> None:
        self.log = log
        self.window = window
        self.end = end
        self.context = Context()
        self.rows_only = rows_only
        prepare(self.context, log.format, layout.WANT_ROWS | (0 if rows_only else layout.WANT_STATEMENTS))
        self.slots: Int64s = np.full((SLOT_COUNT, SLOT_WORDS), -1, dtype=np.int64)
        self.context.point("SLOTS", self.slots)
        self.context["COMPLETE_END"] = window.base
        self.numbers: dict[bytes, int] = {}
        self.maps: list[TableMap] = []
        self.new_maps: list[TableMap] = []
        self.map_words: Int64s = np.zeros((64, MAP_WORDS), dtype=np.int64)
        self.plans: list[ColumnPlan] = []
        self.bodies: list[npt.NDArray[np.uint8]] = []
        self.control_pool, self.row_pool = Pool(ControlBuffers), Pool(RowBuffers)
        self.control, self.rows = self.control_pool.take(), self.row_pool.take()
        self.control.attach(self.context)
        self.rows.attach(self.context)
        self.context.point("MAPS", self.map_words)
        self.tables = TableDictionaries(self.maps)

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
        known = self.bodies[number]
        self.slots[table_id & (SLOT_COUNT - 1)] = (table_id, number, known.ctypes.data, len(body))

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
        self.plans.append(plan)
        self.bodies.append(np.frombuffer(body + bytes(PADDING), dtype=np.uint8))
        self.maps.append(table_map)
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
        gtids = gtids_of(control, transactions + (context["TXN_STATE"] != layout.STATE_NONE))
        found: list[tuple[BatchKind, pa.RecordBatch]] = []
        if rows:
            found.append(
                (
                    "row_events",
                    row_batch(
                        self.rows, rows, context["VALUE_COUNT"], bool(context["PARTIAL_SEEN"]), gtids, self.tables
                    ),
                )
            )
        if statements:
            found.append(("statements", statement_batch(control, statements)))
        if transactions and not self.rows_only:
            found.append(
                ("transactions", transaction_batch(control.transactions[:transactions], gtids.slice(0, transactions)))
            )
        if problems:
            found.append(("unsupported_events", problem_batch(control.problems[:problems], self.maps)))
        self._renew(self.control_pool.take(), self.row_pool.take())
        yield from found

    def _finish(self) -> Batches:
        """The transaction that was still open when the bytes ended, with outcome `none`."""
        context = self.context
        if self.rows_only or context["TXN_STATE"] == layout.STATE_NONE:
            return
        record = self.control.transactions[:1].copy()
        record[0, layout.TXN_END] = self.window.base + context["POS"]
        record[0, layout.TXN_COMMITTED] = NULL
        yield "transactions", transaction_batch(record, gtids_of(self.control, 1))


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
