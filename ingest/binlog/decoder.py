"""Binlog files as Arrow batches: `open_binlog` and its result."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

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
    unknown_hints,
    with_undecoded,
)
from ingest.binlog.batches import BatchKind
from ingest.binlog.buffers import ControlBuffers, Int64s, Pool, RowBuffers
from ingest.binlog.byte_files import OPEN_END, Bytes, LogPath, StoredFile, open_bytes
from ingest.binlog.events.describe import describe
from ingest.binlog.events.format import FormatDescription, read_format
from ingest.binlog.events.hints import Definition, SchemaHints
from ingest.binlog.events.old_rows import as_version_1, with_snapshot_columns
from ingest.binlog.events.reader import MalformedEventError
from ingest.binlog.events.rows_events import table_id_of
from ingest.binlog.events.table_map import TableMap, parse_table_map, with_hints
from ingest.binlog.events.types import INCIDENT, PARTIAL_UPDATE_ROWS, TABLE_MAP, TRANSACTION_PAYLOAD, counts_by_name
from ingest.binlog.filters import TableFilter
from ingest.binlog.hidden_arrays import without_arrays
from ingest.binlog.kernel import layout
from ingest.binlog.kernel.guard import address_of
from ingest.binlog.kernel.layout import (
    DATA_LIMIT,
    MAP_IS_SKIPPED,
    MAP_WIDTH,
    MAP_WORDS,
    NULL,
    PADDING,
    SLOT_COUNT,
)
from ingest.binlog.listing import Event, list_events
from ingest.binlog.rows.column_plan import ColumnPlan
from ingest.binlog.rows.patches import Problem, patch_images
from ingest.binlog.savepoints import Savepoints
from ingest.binlog.walking import Walk
from ingest.errors import (
    BinloomError,
    CorruptBinlogError,
    TruncatedBinlogError,
    UsageError,
    encrypted_binlog,
)

Batches = Iterator[tuple[BatchKind, pa.RecordBatch]]


def open_binlog(
    path: str | LogPath,
    *,
    hints: SchemaHints | None = None,
    tables: TableFilter | None = None,
    start: int | None = None,
    end: int | None = None,
    skip_bad_checksum: bool = False,
) -> "Binlog":
    """Open a binlog file for decoding.

    Parameters
    ----------
    path
        A binlog file. Files of format versions 1 and 3 have statements and no rows.
    hints
        Facts about columns from a schema snapshot, for values that the file does not describe fully.
    tables
        Filter for the tables whose rows are wanted. None: all tables.
    start, end
        Physical offsets, in bytes, of a transaction's start and of a transaction's end. None: the whole file.
    skip_bad_checksum
        Whether to skip events whose checksum is wrong and report each in `unsupported_events`, instead of
        stopping at the first.

    Raises
    ------
    BinlogError
        One of its subclasses; see `ingest.binlog.events.format.read_format`.
    """
    path = path if isinstance(path, StoredFile) else Path(path)
    return Binlog(path, read_format(path), hints, tables, start, end, skip_bad_checksum)


class Binlog:
    """A binlog file, or a range of one. Every iteration reads it anew; `json_as_bytes` is that of `ColumnPlan`.

    `has_typed_documents` tells whether a JSON document was found with a member of a type that its text does not tell.
    """

    def __init__(
        self,
        path: LogPath,
        format: FormatDescription,
        hints: SchemaHints | None,
        tables: TableFilter | None,
        start: int | None,
        end: int | None,
        skip_bad_checksum: bool,
    ) -> None:
        if start is not None and start < 4:
            raise UsageError(
                f"{path}: position {start} is inside the magic number of the file.",
                hint="The first event is at position 4.",
            )
        self.path = path
        self.format = format
        self._hints = hints
        self._tables = tables
        self._start = 4 if start is None else start
        self._end = end
        self._skip_bad_checksum = skip_bad_checksum
        self.json_as_bytes = False
        self.has_typed_documents = False
        self._maps: dict[str, TableMap] = {}
        # Those of the latest iteration over batches. The dictionary of `table_map_id` has one entry for each.
        self.table_maps: Sequence[TableMap] = ()
        # Their numbers by their bytes.
        self.bodies: Mapping[bytes, int] = {}
        self._inner_counts: Int64s = np.zeros(256, dtype=np.int64)

    @property
    def payload_event_counts(self) -> dict[str, int]:
        """Counts by name of the events inside compressed events, from the latest iteration over batches."""
        return counts_by_name(self._inner_counts)

    def row_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the row changes as batches of schema `ROW_EVENTS`. Raises the errors of `batches`."""
        yield from (batch for kind, batch in self._decode(rows_only=True) if kind == "row_events")

    def column_names(self, table_map_id: str) -> tuple[str, ...] | None:
        """Return the column names of a table map that `batches` has yielded: its own, or the snapshot's."""
        known = self._maps.get(table_map_id)
        return known.column_names if known is not None else None

    def unknown_hints(self, table_map_id: str) -> list[dict[str, object]] | None:
        """Return the columns of a yielded table map whose values depend on an unknown fact; None if there are none."""
        known = self._maps.get(table_map_id)
        return unknown_hints(known) if known is not None else None

    def batches(self) -> Batches:
        """Yield everything in the file: batches of each kind in `SCHEMAS`, a table map before its first row.

        Raises
        ------
        CorruptBinlogError
            At an event with a bad checksum or an impossible size, after everything before it was yielded.
        TruncatedBinlogError
            When the file ends inside an event, also after everything before it was yielded.
        """
        yield from self._decode(rows_only=False)

    def _decode(self, *, rows_only: bool) -> Batches:
        with open_bytes(self.path) as source:
            end = self._end_in(source)
            mode = layout.WANT_ROWS | (0 if rows_only else layout.WANT_STATEMENTS)
            if self._skip_bad_checksum:
                mode |= layout.SKIP_BAD
            walk = Walk(self.path, source, self.format, mode, self._start, end)
            self._inner_counts = walk.inner_counts
            try:
                yield from _Decoding(self, walk, end, rows_only).batches()
            finally:
                self.has_typed_documents |= bool(walk.context.scratch[layout.JSON_IS_TYPED])
                # Break the reference cycle between walk and decoding, so that their buffers are freed now.
                walk.rewrite = None

    def events(self) -> Iterator[Event]:
        """Yield the events one by one, with header and body fields. Raises the errors of `batches`, at the end."""
        with open_bytes(self.path) as source:
            end, mode = self._end_in(source), layout.WANT_INDEX | layout.KEEP_GOING
            walk = Walk(self.path, source, self.format, mode, self._start, end)
            yield from list_events(walk)
            check_end(walk, end)

    def _end_in(self, source: Bytes) -> int:
        """Return the offset to read up to; bytes that are still arriving are read to their end."""
        size, end = source.known_size, OPEN_END if self._end is None else self._end
        return end if size is None or source.damage is not None else min(end, size)

    def _plan_for(self, body: bytes, walk: Walk) -> tuple[TableMap, bool]:
        """Return a table map with its hints at the walk's position, and whether its rows are skipped."""
        parsed = parse_table_map(body, walk.format.flavor, walk.format.version)
        known: tuple[Definition, ...] = ()
        if self._hints is not None:
            known = self._hints.definitions(parsed.schema_name, parsed.table_name, self.path.name, walk.position)
        table_map = with_hints(with_snapshot_columns(parsed, known), body, known)
        self._maps[table_map.table_map_id] = table_map
        skipped = self._tables is not None and not self._tables.takes(parsed.schema_name, parsed.table_name)
        return table_map, skipped


class _Decoding:
    """One pass of the decoder over a file: the Python side that handles the kernel's statuses."""

    def __init__(self, log: Binlog, walk: Walk, end: int, rows_only: bool) -> None:
        self.log = log
        self.walk = walk
        self.end = end
        self.context = walk.context
        self.rows_only = rows_only
        self.slots = self.context.array("SLOTS")
        self.numbers: dict[bytes, int] = {}
        self.maps: list[TableMap] = []
        log.table_maps, log.bodies = self.maps, self.numbers
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
        self.left_out: list[Int64s] = []
        self.savepoints = Savepoints(walk.format)
        walk.rewrite = self._rewrite

    def batches(self) -> Batches:
        walk = self.walk
        hints = self.log._hints
        # The tables whose known definition changes, by the offset of the change.
        changes = hints.changes_in(self.log.path.name) if hints is not None else {}
        stops = [stop for stop in changes if walk.position < stop < self.end] + [self.end]
        walk.stop_at(stops[0])
        while True:
            status = walk.step()
            if status == layout.NEED_BYTES:
                if walk.advance():
                    continue
                yield from self._flush()
                yield from self._finish()
                check_end(walk, self.end)
                return
            if status == layout.FULL:
                progress = self._progress()
                yield from self._flush()
                if not progress:
                    self._grow()
            elif status == layout.NEW_TABLE_MAP:
                self._take_in()
            elif status == layout.DEFECT:
                yield from self._flush()
                yield from self._finish()
                raise defect(walk)
            else:
                changed = changes.get(stops.pop(0), set())
                if not stops:
                    yield from self._flush()
                    yield from self._finish()
                    return
                walk.stop_at(stops[0])
                self._forget(changed)

    # --- table maps ---

    def _forget(self, tables: set[tuple[str, str]]) -> None:
        """Drop the table maps of these tables. They are planned anew later: the same bytes now mean something else."""
        self.slots[:] = -1
        folds_case = self.log._hints is not None and self.log._hints.folds_case
        for body, number in list(self.numbers.items()):
            table_map = self.maps[number]
            if (table_map.schema_name, table_map.table_name) in tables or folds_case:
                del self.numbers[body]

    def _take_in(self) -> None:
        """Put a table map that is new to the kernel into its slot."""
        event = self.walk.event()
        table_id, start = table_id_of(TABLE_MAP, event, self.walk.format)
        body = event[start : len(event) - (4 if self.context["CHECKSUM"] else 0)]
        number = self.numbers.get(body)
        if number is None:
            number = self._plan(body)
        known = self.bodies[number]
        self.slots[table_id & (SLOT_COUNT - 1)] = (table_id, number, address_of(known), len(body))

    def _plan(self, body: bytes) -> int:
        number = len(self.maps)
        try:
            table_map, skipped = self.log._plan_for(body, self.walk)
        except MalformedEventError:
            # The rows of this map then fail because the column counts differ; the map itself is reported here.
            table_map, skipped = _NO_MAP, False
            self.walk.add_problem(TABLE_MAP, -1, -1, layout.BAD_TABLE_MAP)
        else:
            if not skipped:
                self.new_maps.append(table_map)
        plan = ColumnPlan(table_map.logged_columns, json_as_bytes=self.log.json_as_bytes)
        self.plans.append(plan)
        self.bodies.append(np.frombuffer(body + bytes(PADDING), dtype=np.uint8))
        self.maps.append(table_map)
        if number >= len(self.map_words):
            self.map_words = np.concatenate([self.map_words, np.zeros_like(self.map_words)])
            self.context.point("MAPS", self.map_words)
        width = len(table_map.logged_columns) if table_map.has_metadata else -1
        self.map_words[number] = (plan.address, width, int(skipped), plan.json_columns, int(table_map.lacks_digits))
        self.numbers[body] = number
        return number

    def _rewrite(self, code: int, event: bytes) -> bytes | None:
        """Return a version 0 rows event as version 1; None when it is skipped or cannot be read (which is recorded)."""
        table_id, _ = table_id_of(code, event, self.walk.format)
        active = self.context.array("ACTIVE")[: self.context["ACTIVE_COUNT"]]
        number: int = next((number for known, number in active[::-1].tolist() if known == table_id), -1)
        if number < 0:
            self.walk.add_problem(code, number, -1, layout.NO_TABLE_MAP)
            return None
        if self.map_words[number, MAP_IS_SKIPPED]:
            return None
        rewritten = as_version_1(code, event, self.walk.format, self.maps[number])
        if rewritten is None:
            self.walk.add_problem(code, number, -1, layout.ROWS_V0)
        return rewritten

    # --- output ---

    def _progress(self) -> bool:
        """Return whether anything has been written since the last flush."""
        context = self.context
        return bool(context["ROW_COUNT"] or context["TXN_COUNT"] or context["STMT_COUNT"] or context["PROBLEM_COUNT"])

    def _grow(self) -> None:
        """Make room for a statement or a row that does not fit into empty buffers."""
        context = self.context
        if not context["RESUME"]:
            text_bytes = min(len(self.walk.event()) + (1 << 20), DATA_LIMIT)
            self.control_pool = Pool(partial(ControlBuffers, text_bytes))
            self._renew(self.control_pool.take(), self.rows)
            return
        width = int(self.map_words[context["RESUME_MAP"], MAP_WIDTH])
        if self.rows.data_capacity >= DATA_LIMIT:
            self._leave_row_out()
            return
        values = max(self.rows.value_capacity, 16 * width)
        self.row_pool = Pool(partial(RowBuffers, values, min(4 * self.rows.data_capacity, DATA_LIMIT)))
        self._renew(self.control, self.row_pool.take())

    def _leave_row_out(self) -> None:
        """Skip the rest of a rows event whose next row is larger than Arrow can hold."""
        context = self.context
        code = self.walk.format.type_codes[self.walk.event()[4]]
        self.walk.add_problem(code, context["RESUME_MAP"], context["RESUME_ORDINAL"], layout.VALUE_TOO_LARGE)
        context["RESUME_ROW"] = context["RESUME_END"]
        context["RESUME_ORDINAL"] += 1

    def _renew(self, control: ControlBuffers, rows: RowBuffers) -> None:
        """Install fresh buffers. The open transaction continues in them."""
        context = self.context
        if context["TXN_STATE"] != layout.STATE_NONE:
            control.begin_with(self.control, context["TXN_COUNT"])
        self.control, self.rows = control, rows
        control.attach(context)
        rows.attach(context)

    def _flush(self) -> Batches:
        """Yield everything written since the last flush, and install fresh buffers."""
        if self.new_maps:
            yield "table_maps", table_map_batch(self.new_maps)
            self.new_maps = []
        if not self._progress():
            return
        context, control = self.context, self.control
        rows, transactions = context["ROW_COUNT"], context["TXN_COUNT"]
        found: list[tuple[BatchKind, pa.RecordBatch]] = []
        if rows:
            found.append(("row_events", without_arrays(self._row_batch(rows), self.maps)))
        if statements := context["STMT_COUNT"]:
            self.savepoints.read(control, statements)
            found.append(("statements", statement_batch(control, statements, self.walk.format)))
        if transactions and not self.rows_only:
            found.append(("transactions", transaction_batch(control, transactions, self.savepoints)))
        problems = np.concatenate([control.problems[: context["PROBLEM_COUNT"]], *self.left_out])
        if len(problems):
            self._name_types(problems)
            found.append(("unsupported_events", problem_batch(problems, self.maps, self._messages(problems))))
        self.left_out = []
        self._renew(self.control_pool.take(), self.row_pool.take())
        yield from ((kind, batch) for kind, batch in found if batch.num_rows)

    def _name_types(self, problems: Int64s) -> None:
        """Set each problem's type to the event's type in the file, even if the event was rewritten before decoding."""
        for problem in problems:
            if (code := self.walk.type_at(int(problem[layout.PROBLEM_START]))) != TRANSACTION_PAYLOAD:
                problem[layout.PROBLEM_TYPE] = code

    def _messages(self, problems: Int64s) -> dict[int, str]:
        """Return the server's messages in INCIDENT events, by physical offset."""
        incidents = problems[problems[:, layout.PROBLEM_REASON] == layout.INCIDENT, layout.PROBLEM_START]
        walk = self.walk
        details = {at: describe(INCIDENT, walk.event_at(at), walk.format_at(at)) for at in incidents.tolist()}
        return {at: detail["message"] for at, detail in details.items() if detail.get("message")}

    def _row_batch(self, count: int) -> pa.RecordBatch:
        context, rows = self.context, self.rows
        gtids = gtids_of(self.control, context["TXN_COUNT"] + (context["TXN_STATE"] != layout.STATE_NONE))
        values, patches = context["VALUE_COUNT"], context["PATCH_COUNT"]
        if not patches:
            images = {side: image.array(values) for side, image in rows.images.items()}
            return row_batch(rows, count, images, bool(context["PARTIAL_SEEN"]), gtids, self.tables)
        patched = patch_images(rows, count, values, patches, self.maps)
        batch = row_batch(rows, count, patched.images, bool(context["PARTIAL_SEEN"]), gtids, self.tables)
        if patched.undecoded:
            batch = with_undecoded(batch, patched.undecoded)
        if not patched.problems:
            return batch
        return batch.filter(pa.array(self._leave_out(patched.problems, count)))

    def _leave_out(self, problems: list[Problem], count: int) -> npt.NDArray[np.bool_]:
        """Report rows that cannot be decoded to text. Return which of the batch's `count` rows stay, shape (count,)."""
        rows, stays = self.rows, np.ones(count, dtype=bool)
        for row, column, reason in problems:
            if stays[row]:
                stays[row] = False
                self.control.transactions[rows.txns[row], layout.TXN_INSERTS + rows.kinds[row]] -= 1
                # Inside a payload only events of this type leave values to be patched.
                record = (rows.starts[row], rows.ends[row], PARTIAL_UPDATE_ROWS, rows.maps[row], rows.ordinals[row])
                self.left_out.append(np.array([(*record, column, reason)], dtype=np.int64))
        return stays

    def _finish(self) -> Batches:
        """Yield the transaction that was still open when the bytes ended, with outcome `none`."""
        context = self.context
        if self.rows_only or context["TXN_STATE"] == layout.STATE_NONE:
            return
        record = self.control.transactions[0]
        record[layout.TXN_END] = self.walk.position
        record[layout.TXN_COMMITTED] = NULL
        yield "transactions", transaction_batch(self.control, 1, self.savepoints)


def defect(walk: Walk) -> BinloomError:
    """Return the error for the event at POS, which the kernel found broken or encrypted."""
    path, position = walk.path, walk.position
    if walk.context["REASON"] == layout.ENCRYPTED:
        return encrypted_binlog(path, position)
    size_bytes = walk.window.bytes_at(position + layout.EVENT_SIZE, 4)
    reason = defect_reason(walk.context["REASON"], int.from_bytes(size_bytes, "little"))
    return CorruptBinlogError(
        f"{path}: {reason}, in the event at position {position}.",
        hint="Copy the file again from the server; the events before this position are good.",
        path=str(path),
        position=position,
        reason=reason,
    )


def check_end(walk: Walk, end: int) -> None:
    """Raise an error when the walk ended before `end`: at an impossible size, or in an incomplete event."""
    path, position, source = walk.path, walk.position, walk.window.source
    there = source.wait_for(end)
    if there < end and source.damage is not None:
        raise CorruptBinlogError(
            f"{path}: {source.damage}; the event at position {position} is the first that is missing.",
            hint="Copy the archive again; the events before this position are good.",
            path=str(path),
            position=position,
            reason=source.damage,
        )
    end = min(end, there)
    if position >= end:
        return
    if walk.context["REASON"] in (layout.BAD_SIZE, layout.ENCRYPTED):
        raise defect(walk)
    left = end - position
    size_bytes = walk.window.bytes_at(position + layout.EVENT_SIZE, 4) if left >= walk.format.header_size else b""
    size = (
        f"has {int.from_bytes(size_bytes, 'little')} bytes by its header" if size_bytes else "has an incomplete header"
    )
    raise TruncatedBinlogError(
        f"{path}: the event at position {position} {size}, but the file ends {left} bytes after its start.",
        hint="The file was cut off, is still being written, or is damaged there; copy it again from the server.",
        path=str(path),
        position=position,
        reason=f"the event {size}, {left} are left",
    )


def defect_reason(code: int, size: int) -> str:
    """Return the kernel's reason for a defect in words."""
    if code == layout.BAD_CHECKSUM:
        return "the checksum does not match"
    if code == layout.ENCRYPTED:
        return "the server encrypted the events from here on"
    return f"a size of {size} bytes, which no event has"


_NO_MAP: Final = TableMap("", "", "", (), "none", None, has_metadata=False)
