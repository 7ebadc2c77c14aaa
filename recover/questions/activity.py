"""Counts the batches of a log for `top`, without keeping rows."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingest.binlog.filters import TableFilter
from ingest.words import counted
from recover.questions.removals import Removals
from recover.questions.row_batches import Ints, changes_nothing, dictionary_of, key_texts
from recover.questions.sums import Sums
from recover.questions.top import (
    HotRow,
    Moment,
    Step,
    TableSums,
    ThreadSums,
    Top,
    TransactionSums,
    moment_of,
    spikes_of,
)

ROW_COLUMNS: Final = (
    *("start_pos", "end_pos", "payload_ordinal", "row_ordinal", "transaction_pos", "event_type", "event_timestamp"),
    *("table_map_id", "before_values", "after_values", "before_columns", "after_columns", "undecoded_columns"),
)
"""Columns of `row_events` that are counted."""
TRANSACTION_COLUMNS: Final = (
    *("start_pos", "end_pos", "gtid", "thread_id", "server_id", "started_at", "committed_at", "outcome"),
)
"""Columns of `transactions` that are counted."""

_KINDS: Final = {"INSERT": 0, "UPDATE": 1, "DELETE": 2}
_HOT_KEYS: Final = 1 << 16
_NO_THREAD: Final = -1
# A session may set its own time; a day is far longer than a transaction.
_PLAUSIBLE: Final = 86_400_000_000
# The time of the first event has no fraction of a second: a shorter duration says nothing, nor does its own fraction.
_LONG: Final = 1


@dataclass(frozen=True, slots=True)
class Place:
    """A binlog file of a source."""

    source_id: str
    epoch: int
    binlog_file: str


@dataclass(frozen=True, slots=True)
class Key:
    """Ordinals of the primary key's columns from one position of a file to another; None if it is not known."""

    first: int
    end: int
    ordinals: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class KnownMap:
    """The table of a table map, and its keys in a file."""

    schema_name: str
    table_name: str
    keys: Sequence[Key]


@dataclass(slots=True)
class _Open:
    """Changes by table of transactions whose own record has not come yet."""

    positions: Ints
    tables: Ints
    counts: Ints


class Activity:
    """Sums over what was added; add the rows of a transaction before its record.

    Parameters
    ----------
    step
        Step of the timeline.
    tables
        Tables whose rows count; None: all.
    since, until
        Only rows of events from this time on, and before this time.
    limit
        Length of each list of the answer.

    Attributes
    ----------
    tables
        Schema and name of all tables with rows, also of those that do not count.
    removals
        Statements that took something away without listing it.
    """

    def __init__(
        self,
        step: Step,
        tables: TableFilter | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 10,
    ) -> None:
        self._step = step
        self._filter = tables
        self._since = _microseconds(since)
        self._until = _microseconds(until)
        self._limit = limit
        self.tables: set[tuple[str, str]] = set()
        self.removals = Removals(tables, since, until, limit)
        self._names: list[tuple[str, str, str]] = []
        self._numbers: dict[tuple[str, str, str], int] = {}
        self._has_key: dict[int, bool | None] = {}
        self._of_table = Sums(["table"], ["changes", "inserts", "updates", "deletes", "transactions", "bytes", "idle"])
        self._of_step = Sums(["step", "table"], ["changes"])
        self._commits = Sums(["step"], ["transactions", "bytes"])
        self._of_thread = Sums(["source", "server", "thread"], ["changes", "transactions", "bytes"])
        self._sources: list[str] = []
        self._hot = Sums(["table", "key"], ["writes"], _HOT_KEYS)
        self._open: list[_Open] = []
        self._last: tuple[Place, int, set[int]] | None = None
        self._biggest: list[TransactionSums] = []
        self._longest: list[TransactionSums] = []
        self._first_at: int | None = None
        self._last_at: int | None = None
        self._changes = self._transactions = self._bytes = 0
        self._compressed = self._without_known_key = self._absurd = 0
        self._undecoded: Counter[str] = Counter()
        self._statements: Counter[str] = Counter()

    @property
    def is_filtered(self) -> bool:
        """Whether transactions without a selected row are left out."""
        return self._filter is not None or self._since is not None or self._until is not None

    # --- what is added ---

    def add_rows(self, batch: pa.RecordBatch, place: Place, known: Callable[[str], KnownMap]) -> None:
        """Count a batch of `ROW_EVENTS`; `known` tells what a table map is."""
        ids = dictionary_of(batch.column("table_map_id"))
        maps = ids.dictionary.to_pylist()
        codes = _numbers(ids.indices)
        of_map = np.full(len(maps), -1, np.int64)
        for code in np.unique(codes).tolist():
            of_map[code] = self._table(place.source_id, known(maps[code]))
        tables, times = of_map[codes], _numbers(batch.column("event_timestamp").cast(pa.int64()))
        chosen = tables >= 0
        if self._since is not None:
            chosen &= times >= self._since
        if self._until is not None:
            chosen &= times < self._until
        rows = np.flatnonzero(chosen)
        if not len(rows):
            return
        types = dictionary_of(batch.column("event_type"))
        kinds = np.array([_KINDS[name] for name in types.dictionary.to_pylist()])[_numbers(types.indices)][rows]
        idle = np.zeros(len(rows), dtype=bool)
        if (kinds == 1).any():
            idle = changes_nothing(batch)[rows] & (kinds == 1)
        self._add_counts(batch, place, rows, tables[rows], kinds, idle, times[rows])
        self._add_keys(batch, rows, codes[rows], of_map, kinds, [known(one) for one in maps])

    def add_table(self, source_id: str, known: KnownMap) -> None:
        """Note a table of which other rows are not added, because none of them counts."""
        self._table(source_id, known)

    def add_transactions(self, batch: pa.RecordBatch, place: Place) -> None:
        """Count a batch of `TRANSACTIONS`."""
        starts, ends = _numbers(batch.column("start_pos")), _numbers(batch.column("end_pos"))
        pairs = self._closed(int(starts[-1]))
        changes = np.zeros(len(starts), np.int64)
        at = np.searchsorted(starts, pairs.positions)
        np.add.at(changes, at, pairs.counts)
        chosen = np.flatnonzero(changes) if self.is_filtered else np.arange(len(starts))
        if not len(chosen):
            return
        sizes = (ends - starts)[chosen]
        started = _numbers(batch.column("started_at").cast(pa.int64()))[chosen]
        committed = _numbers(pc.fill_null(batch.column("committed_at").cast(pa.int64()), -1))[chosen]
        self._transactions += len(chosen)
        self._bytes += int(sizes.sum())
        ones = np.ones(len(chosen), np.int64)
        steps = np.where(committed >= 0, committed, started) // self._step.microseconds
        self._commits.add({"step": steps, "transactions": ones, "bytes": sizes})
        if place.source_id not in self._sources:
            self._sources.append(place.source_id)
        self._of_thread.add(
            {
                "source": np.full(len(chosen), self._sources.index(place.source_id)),
                "server": _numbers(batch.column("server_id"))[chosen],
                "thread": _numbers(pc.fill_null(batch.column("thread_id"), _NO_THREAD))[chosen],
                "changes": changes[chosen],
                "transactions": ones,
                "bytes": sizes,
            }
        )
        durations = np.where(committed >= 0, committed - started, -1)
        self._absurd += int(((committed >= 0) & ((durations < 0) | (durations >= _PLAUSIBLE))).sum())
        durations[(durations < 0) | (durations >= _PLAUSIBLE)] = -1
        candidates = np.concatenate([_largest(changes[chosen], self._limit), _largest(durations, self._limit)])
        found = [
            self._transaction(batch, place, int(chosen[one]), int(changes[chosen[one]]), int(durations[one]), at, pairs)
            for one in np.unique(candidates).tolist()
        ]
        self._biggest = sorted([*self._biggest, *found], key=lambda one: (-one.changes, -one.bytes))[: self._limit]
        timed = [one for one in found if one.seconds is not None and one.seconds >= _LONG]
        self._longest = sorted([*self._longest, *timed], key=lambda one: -(one.seconds or 0))[: self._limit]

    def add_statement_targets(self, targets: pa.Array) -> None:
        """Count the statements that changed rows without row events: column `dml_targets` of `statements`."""
        for target in targets.flatten().to_pylist():
            schema, table = target["schema_name"], target["table_name"]
            if self._filter is None or (table is not None and self._filter.takes(schema or "", table)):
                self._statements[".".join(filter(None, (schema, table))) or "an unknown table"] += 1

    def add_undecoded(self, batch: pa.RecordBatch) -> None:
        """Count events and values that could not be decoded: a batch of `UNSUPPORTED_EVENTS`."""
        for row in batch.select(["event_type", "reason"]).to_pylist():
            self._undecoded[f"{row['event_type']}: {row['reason']}"] += 1

    # --- the answer ---

    def answer(self, lacks: Sequence[str] = ()) -> Top:
        """Return the answer for all that was added; `lacks` tells what could not be added."""
        steps: dict[int, dict[int, int]] = {}
        for row in self._of_step.rows():
            steps.setdefault(row["step"], {})[row["table"]] = row["changes"]
        commits = {row["step"]: row for row in self._commits.rows()}
        middle, spikes = spikes_of(steps, self._names, self._step, self._limit)
        tables = self._of_table.largest(self._limit)
        none = {"transactions": 0, "bytes": 0}
        timeline = [
            Moment(
                moment_of(number, self._step),
                sum(steps.get(number, {}).values()),
                *(commits.get(number, none)[name] for name in ("transactions", "bytes")),
            )
            for number in sorted(steps.keys() | commits.keys())
        ]
        return Top(
            step=self._step,
            changes=self._changes,
            transactions=self._transactions,
            bytes=self._bytes,
            first_at=_moment(self._first_at),
            last_at=_moment(self._last_at),
            tables=[self._table_sums(row) for row in tables],
            tables_in_all=len(self._of_table.rows()),
            timeline=timeline,
            median_changes=middle,
            spikes=spikes,
            biggest=self._biggest,
            longest=self._longest,
            removals=self.removals.last,
            removals_in_all=self.removals.count,
            threads=[self._thread_sums(row) for row in self._of_thread.largest(self._limit)],
            hot_rows=self._hot_rows(),
            without_key=sorted(
                ".".join(self._names[table][1:]) for table, has_key in self._has_key.items() if has_key is False
            ),
            lacks=[*lacks, *self._own_lacks()],
        )

    def _own_lacks(self) -> list[str]:
        found = []
        if self._undecoded:
            told = ", ".join(f"{reason} ({times} times)" for reason, times in self._undecoded.most_common())
            found.append(f"Events or values that could not be decoded are not counted: {told}.")
        if self._statements:
            told = ", ".join(f"{table} ({times})" for table, times in self._statements.most_common(self._limit))
            found.append(f"Statements changed rows that the log does not contain, and they are not counted: {told}.")
        if self._compressed:
            found.append(
                f"The bytes by table are without {counted(self._compressed, 'row')} in compressed transactions."
            )
        if self._without_known_key:
            found.append(
                "The list of rows that were written again and again leaves out"
                f" {counted(self._without_known_key, 'change')} of tables without a known primary key."
            )
        if self._absurd:
            found.append(
                f"The longest transactions are without {counted(self._absurd, 'transaction')} whose sessions have set"
                " their own time."
            )
        return found

    def _table_sums(self, row: Mapping[str, int]) -> TableSums:
        source, schema, table = self._names[row["table"]]
        return TableSums(
            source_id=source,
            schema_name=schema,
            table_name=table,
            changes=row["changes"],
            inserts=row["inserts"],
            updates=row["updates"],
            deletes=row["deletes"],
            transactions=row["transactions"],
            event_bytes=row["bytes"],
            updates_without_change=row["idle"],
            has_key=self._has_key.get(row["table"]),
        )

    def _thread_sums(self, row: Mapping[str, int]) -> ThreadSums:
        thread = None if row["thread"] == _NO_THREAD else row["thread"]
        sums = (row["changes"], row["transactions"], row["bytes"])
        return ThreadSums(self._sources[row["source"]], row["server"], thread, *sums)

    def _hot_rows(self) -> list[HotRow]:
        found = []
        for row in self._hot.largest(self._limit):
            source, schema, table = self._names[row["table"]]
            most = row["writes"] + self._hot.error
            found.append(HotRow(source, schema, table, row["key"], row["writes"], most))
        return [row for row in found if row.writes > 1]

    # --- rows ---

    def _table(self, source_id: str, known: KnownMap) -> int:
        """Return the number of a table; -1 if its rows do not count."""
        self.tables.add((known.schema_name, known.table_name))
        if self._filter is not None and not self._filter.takes(known.schema_name, known.table_name):
            return -1
        name = (source_id, known.schema_name, known.table_name)
        if name not in self._numbers:
            self._numbers[name] = len(self._names)
            self._names.append(name)
        number = self._numbers[name]
        for key in known.keys:
            if key.ordinals is not None:
                self._has_key[number] = bool(key.ordinals)
        return number

    def _add_counts(
        self,
        batch: pa.RecordBatch,
        place: Place,
        rows: Ints,
        tables: Ints,
        kinds: Ints,
        idle: npt.NDArray[np.bool_],
        times: Ints,
    ) -> None:
        starts, ends = _numbers(batch.column("start_pos"))[rows], _numbers(batch.column("end_pos"))[rows]
        inner = _numbers(batch.column("payload_ordinal"))[rows]
        is_first = (_numbers(batch.column("row_ordinal"))[rows] == 0) & (inner == 0)
        self._compressed += int((inner > 0).sum())
        self._changes += len(rows)
        low, high = int(times.min()), int(times.max())
        self._first_at = low if self._first_at is None else min(low, self._first_at)
        self._last_at = high if self._last_at is None else max(high, self._last_at)
        pairs = _grouped(_numbers(batch.column("transaction_pos"))[rows], tables)
        self._open.append(pairs)
        count = len(self._names)
        sums = {
            "table": np.arange(count),
            "changes": np.bincount(tables, minlength=count),
            **{
                name: np.bincount(tables[kinds == kind], minlength=count)
                for name, kind in (("inserts", 0), ("updates", 1), ("deletes", 2))
            },
            "transactions": self._new_transactions(place, pairs, count),
            "bytes": np.bincount(tables, np.where(is_first, ends - starts, 0), count).astype(np.int64),
            "idle": np.bincount(tables[idle], minlength=count),
        }
        # A table that was only seen outside of the time has no row in the answer.
        seen = np.flatnonzero(sums["changes"])
        self._of_table.add({name: values[seen] for name, values in sums.items()})
        of_step = _grouped(times // self._step.microseconds, tables)
        self._of_step.add({"step": of_step.positions, "table": of_step.tables, "changes": of_step.counts})

    def _new_transactions(self, place: Place, pairs: _Open, count: int) -> Ints:
        """Return the number of transactions by table; one that goes on from the batch before counts there."""
        found = np.bincount(pairs.tables, minlength=count)
        first, last = int(pairs.positions.min()), int(pairs.positions.max())
        known: set[int] = set()
        if self._last is not None and self._last[:2] == (place, first):
            known = self._last[2]
            for table in known & set(pairs.tables[pairs.positions == first].tolist()):
                found[table] -= 1
        of_last = set(pairs.tables[pairs.positions == last].tolist())
        self._last = (place, last, of_last | known if first == last else of_last)
        return found

    def _add_keys(
        self,
        batch: pa.RecordBatch,
        rows: Ints,
        codes: Ints,
        of_map: Ints,
        kinds: Ints,
        maps: Sequence[KnownMap],
    ) -> None:
        positions = _numbers(batch.column("start_pos"))[rows]
        for code in np.unique(codes).tolist():
            of_code = codes == code
            for key in maps[code].keys:
                here = np.flatnonzero(of_code & (positions >= key.first) & (positions < key.end))
                if not key.ordinals:
                    self._without_known_key += len(here)
                    continue
                texts = key_texts(batch, rows[here], kinds[here] == 0, key.ordinals).drop_null()
                counts = texts.value_counts()
                writes = counts.field("counts")
                table = np.full(len(counts), of_map[code])
                self._hot.add({"table": table, "key": counts.field("values"), "writes": writes})

    # --- transactions ---

    def _closed(self, last: int) -> _Open:
        """Return the changes of transactions up to a position, and keep those of later ones."""
        empty = np.zeros(0, np.int64)
        parts = [*self._open, _Open(empty, empty, empty)]
        joined = [np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(_Open)]
        is_closed = joined[0] <= last
        self._open = [] if is_closed.all() else [_Open(*(array[~is_closed] for array in joined))]
        return _Open(*(array[is_closed] for array in joined))

    def _transaction(
        self, batch: pa.RecordBatch, place: Place, row: int, changes: int, duration: int, at: Ints, pairs: _Open
    ) -> TransactionSums:
        facts = {name: batch.column(name)[row].as_py() for name in TRANSACTION_COLUMNS}
        tables = {".".join(self._names[table][1:]) for table in pairs.tables[at == row].tolist()}
        return TransactionSums(
            transaction_id=f"{place.source_id}/{place.epoch}/{place.binlog_file}/{facts['start_pos']}",
            gtid=facts["gtid"],
            thread_id=facts["thread_id"],
            committed_at=facts["committed_at"],
            outcome=facts["outcome"],
            seconds=None if duration < 0 else duration // 1_000_000,
            changes=changes,
            bytes=facts["end_pos"] - facts["start_pos"],
            tables=sorted(tables),
        )


def _grouped(keys: Ints, tables: Ints) -> _Open:
    """Return the number of rows of each pair of a key and a table."""
    count = int(tables.max()) + 1
    pairs, counts = np.unique(keys * count + tables, return_counts=True)
    return _Open(pairs // count, pairs % count, counts)


def _largest(values: Ints, count: int) -> Ints:
    return np.argsort(-values, kind="stable")[:count]


def _numbers(column: Any) -> Ints:
    return np.asarray(column.to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)


def _microseconds(at: datetime | None) -> int | None:
    return None if at is None else round(at.timestamp() * 1_000_000)


def _moment(at: int | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at / 1_000_000, UTC)
