"""The rows of a table at a place in the log."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ingest.ddl.sequences import SEQUENCE_COLUMNS
from ingest.words import counted
from recover.timeline.as_of import Moment
from recover.timeline.baselines import Baseline, baseline_of
from recover.timeline.cascades import NO_CASCADES, Cascades
from recover.timeline.columns import Columns
from recover.timeline.engines import SERVER_START
from recover.timeline.events import Effect, Image, Place, Table, TableEvent
from recover.timeline.rows import Version
from recover.timeline.table_log import columns_of, events_of, events_since, versions_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class Row:
    """A row at the place.

    Attributes
    ----------
    values
        The known values.
    unknown_columns
        Columns whose values the log does not contain.
    doubts
        Events before the place that may have changed or deleted the row.
    """

    values: Image
    unknown_columns: tuple[str, ...]
    doubts: tuple[TableEvent, ...]


@dataclass
class State:
    """The rows of a table at a place; the counts are final when all rows were read.

    Attributes
    ----------
    columns
        Columns of the table at the place, in their order.
    table_version_id
        The version of the table that has them.
    gaps_in_knowledge
        Sentences on why further rows may exist, or some of these rows may not. Empty if the state is complete.
    baseline
        The rows that the changes begin with; None if they begin with the log.
    rows_read, rows_unknown, rows_doubtful
        Rows so far, those of them with an unknown value, and those with a doubt.
    chain_breaks
        Changes before the place whose image does not link to the previous one.
    """

    table: Table
    moment: Moment
    columns: tuple[str, ...]
    table_version_id: str | None
    gaps_in_knowledge: tuple[str, ...]
    baseline: Baseline | None
    _connection: "DuckDBPyConnection"
    _events: Sequence[TableEvent]
    _versions: Mapping[str, Columns]
    _cascades: Cascades
    rows_read: int = field(default=0, init=False)
    rows_unknown: int = field(default=0, init=False)
    rows_doubtful: int = field(default=0, init=False)
    chain_breaks: int = field(default=0, init=False)

    @property
    def is_complete(self) -> bool:
        """Return whether these are all rows of the table, as far as they were read."""
        return not (self.gaps_in_knowledge or self.rows_doubtful or self.chain_breaks)

    @property
    def read_until(self) -> Place | None:
        """Place up to which changes are read; None: all of them."""
        # Without the beginning of the table, the next change of a row shows how it was before.
        return None if self.gaps_in_knowledge else self.moment.place

    def events(self, until: Place | None) -> list[TableEvent]:
        """Return the events of the table before a place, and behind the baseline if there is one."""
        return events_since(self._connection, self.table, self._events, self.baseline, until)

    def rows(self) -> Iterator[Row]:
        """Yield the rows in no particular order; a table without a primary key may have equal rows."""
        until, place = self.read_until, self.moment.place
        events = self.events(until)
        versions = versions_of(self._connection, self.table, events, self._versions, self.baseline, until)
        # A server logs each refill of a sequence as one more row; the sequence has one.
        is_sequence, last = {*self.columns} == SEQUENCE_COLUMNS, None
        for version in self._cascades.mark(versions):
            if version.defect is not None and version.place is not None and version.place < place:
                self.chain_breaks += 1
            if version.row is not None and version.is_at(place):
                if is_sequence:
                    last = version if last is None else max(last, version, key=_order)
                    continue
                for _ in range(version.copies):
                    yield self._row(version.row, version.doubts)
        if last is not None and last.row is not None:
            yield self._row(last.row, last.doubts)

    def _row(self, image: Image, doubts: Sequence[TableEvent]) -> Row:
        values = {column: image[column] for column in self.columns if column in image}
        row = Row(
            values,
            tuple(column for column in self.columns if column not in image),
            tuple(doubt for doubt in doubts if _is_before(doubt, self.moment)),
        )
        self.rows_read += 1
        self.rows_unknown += bool(row.unknown_columns)
        self.rows_doubtful += bool(row.doubts)
        return row


def state_of(connection: "DuckDBPyConnection", table: Table, moment: Moment, cascades: Cascades = NO_CASCADES) -> State:
    """Return the state of a table at a moment; its rows are read while they are used.

    Parameters
    ----------
    connection
        It has the tables of `table_log.MARTS`.
    table
        The table.
    moment
        Transactions before it are included.
    cascades
        What foreign keys may have done to the rows without the log.
    """
    baseline = baseline_of(connection, table, moment.place)
    whole, known = events_of(connection, table), columns_of(connection, table)
    events = events_since(connection, table, whole, baseline, moment.place)
    started = [event for event in whole if event.place >= moment.place and _is_before(event, moment)]
    gaps = (*_gaps([*events, *started], whole), *cascades.remarks)
    version_id, columns = _columns_at(connection, table, moment.place, known)
    return State(table, moment, columns, version_id, gaps, baseline, connection, whole, known, cascades)


def _is_before(event: TableEvent, moment: Moment) -> bool:
    """Return whether an event counts at a moment. A log ends with its last transaction, and a server may start then."""
    return event.place < moment.place or (moment.is_end and event.reason == SERVER_START)


def _order(version: Version) -> tuple[Place, int, list[int]]:
    """Return what sorts the versions of rows in commit order."""
    change = version.change
    if change is None:
        return version.place or Place(0, 0, 0), 0, []
    # One event may have several rows: a change_id ends with the ordinals inside a payload and inside its event.
    return change.place, change.start_pos, [int(part) for part in change.change_id.split("/")[-2:] if part.isdecimal()]


def _gaps(events: Sequence[TableEvent], whole: Sequence[TableEvent]) -> Iterator[str]:
    """Yield why events before a moment leave rows unknown; `whole` are all events of the log."""
    emptied = max((place for place, event in enumerate(events) if event.effect is Effect.EMPTIES), default=None)
    if emptied is None:
        log = "The log before this moment" if any(event.effect is Effect.EMPTIES for event in whole) else "The log"
        yield (
            f"{log} contains neither the CREATE TABLE nor a TRUNCATE TABLE, and there is no earlier baseline: rows that"
            " never changed are missing."
        )
    since = events[emptied + 1 :] if emptied is not None else events
    # One missing definition may put the rows of thousands of transactions in quarantine.
    alike: dict[tuple[Effect, str], list[TableEvent]] = {}
    for event in since:
        alike.setdefault((event.effect, event.reason), []).append(event)
    for (effect, _), (first, *others) in alike.items():
        places = f"{first} and at {counted(len(others), 'later place')}" if others else str(first)
        if effect is Effect.REPLACES:
            yield f"After {places}, the table has rows that were logged under another name, or not at all."
        elif effect is Effect.OBSCURES:
            yield f"After {places}, rows may be missing or have other values."


def _columns_at(
    connection: "DuckDBPyConnection", table: Table, place: Place, known: Mapping[str, Columns]
) -> tuple[str | None, tuple[str, ...]]:
    """Return the version of a table at a place, and its columns.

    It is that of the latest change before the place, or of a definition since. Without both, it is that of the next
    change. A definition without a position holds from the begin of the log.
    """
    position = {"epoch": place.epoch, "sequence": place.file_sequence, "pos": place.pos}
    changed = _row(
        connection,
        """select table_version_id, epoch, file_sequence, start_pos from binloom.row_changes
        where source_id = $source and schema_name = $schema and table_name = $table
        order by (epoch, file_sequence, start_pos) < ($epoch, $sequence, $pos) desc,
            case when (epoch, file_sequence, start_pos) < ($epoch, $sequence, $pos) then -epoch else epoch end,
            case when (epoch, file_sequence, start_pos) < ($epoch, $sequence, $pos) then -file_sequence
                else file_sequence end,
            case when (epoch, file_sequence, start_pos) < ($epoch, $sequence, $pos) then -start_pos else start_pos end
        limit 1""",
        **table.parameters,
        **position,
    )
    defined = defined_at(connection, table, place)
    latest = defined or changed
    if changed is not None and changed[1:] < tuple(place):
        is_newer = defined is not None and defined[3] is not None and changed[1:] < defined[1:]
        latest = defined if is_newer else changed
    version_id = latest[0] if latest is not None else next(iter(known), None)
    version = known.get(version_id or "")
    return version_id, tuple(version.types) if version is not None else ()


def defined_at(connection: "DuckDBPyConnection", table: Table, place: Place) -> tuple[Any, ...] | None:
    """Return the last version of a table that a statement or a snapshot defines at a place, and its own place."""
    return _row(
        connection,
        r"""select table_version_id, valid_from_epoch,
            try_cast(regexp_extract(valid_from_binlog_file, '([0-9]+)$', 1) as bigint) as file_sequence, valid_from_pos
        from binloom.table_versions
        where source_id = $source and schema_name = $schema and table_name = $table
            and evidence != 'table_map'
            and (valid_from_pos is null
                or (valid_from_epoch, file_sequence, valid_from_pos) <= ($epoch, $sequence, $pos))
        order by valid_from_epoch desc nulls last, file_sequence desc, valid_from_pos desc limit 1""",
        **table.parameters,
        epoch=place.epoch,
        sequence=place.file_sequence,
        pos=place.pos,
    )


def _row(connection: "DuckDBPyConnection", query: str, **parameters: Any) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = connection.execute(query, parameters).fetchone()
    return row
