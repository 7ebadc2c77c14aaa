"""Schema history: the definitions of a source's tables at every position of its log, as hints for the decoder.

The evidence is schema snapshots and the DDL statements after them: landed snapshots, the DDL of completed segments,
and statements that a scan found in files that are about to be landed. Needs no Spark.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from ingest.binlog.events.hints import BEFORE_ALL, Definition, SchemaHints, definition_of, place_of
from ingest.ddl.actions import Action, Key
from ingest.ddl.batches import statement_actions
from ingest.ddl.hashed_keys import may_be_hash
from ingest.ddl.history import (
    BEGINNING,
    Certainty,
    Event,
    Handover,
    Hole,
    Observation,
    Place,
    Version,
    shapes_after,
    versions_of,
)
from ingest.ddl.last_shown import last_shown
from ingest.ddl.letter_case import lowered
from ingest.ddl.shapes import Shapes, TableId
from ingest.ddl.spelling import distinguishes_case, folded
from ingest.ddl.temporary_tables import without_hidden
from ingest.ddl.verbs import may_be_ddl
from ingest.landing.epochs import epoch_of_snapshot
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from ingest.versions import Flavor, version_of
from ingest.warehouse.files import data_files, read_part, read_rows, read_table, segment_folder
from ingest.warehouse.record import Row, SourceRecord
from ingest.warehouse.segments import FIRST_EVENT, Segment, log_place
from ingest.warehouse.tables import (
    DDL_ACTIONS,
    FOREIGN_KEYS,
    SCHEMA_COLUMNS,
    SCHEMA_DEFAULTS,
    SCHEMA_KEYS,
    SCHEMA_SNAPSHOTS,
    STATEMENTS,
    RawTable,
)

if TYPE_CHECKING:
    from ingest.binlog.scan import Scan

# Sort order of evidence at the same position: a hole, then the statement that ends there, then a snapshot taken there.
_LOST: Final = -1
_STATEMENT: Final = 0
_SNAPSHOT: Final = 1


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """A snapshot: its row, its columns by table, its default character sets, and all its keys if they were read."""

    row: Row
    tables: Mapping[TableId, Sequence[Row]]
    defaults: Sequence[Row]
    keys: Mapping[TableId, Sequence[Key]] | None = None

    def place(self, epoch: int) -> Place | None:
        """Return the place of the snapshot, None if unknown; a snapshot of unknown epoch counts in every epoch."""
        name, position, own = self.row["binlog_file"], self.row["binlog_pos"], self.row["epoch"]
        if not name or position is None:
            return None
        return (epoch if own is None else own, *log_place(name, position), _SNAPSHOT)

    def observation(self) -> Observation:
        """Return what the snapshot shows."""
        head, has_place = self.row, self.place(0) is not None
        return Observation(self.tables, self.defaults, self.keys, head["snapshot_id"], has_place, head["origin"])


class SchemaHistory:
    """The schema evidence of one source, and the hints derived from it.

    Parameters
    ----------
    record
        Record of the source. For a file that is not recorded, only its scan is known.
    """

    def __init__(self, record: SourceRecord) -> None:
        self._record = record
        self._snapshots: list[_Snapshot] = []
        # By epoch and file: DDL actions by position in the file, and the ranges that were searched for statements.
        self._actions: dict[tuple[int, str], dict[tuple[int, int, int], tuple[int, Action]]] = {}
        self._ranges: dict[tuple[int, str], list[tuple[int, int]]] = {}
        self._scanned: dict[tuple[int, str], int] = {}
        # Batches of a scan's statements, and how many are already parsed: the scan of a growing file adds batches.
        self._parsed: dict[tuple[int, str], tuple[list[pa.RecordBatch], int]] = {}
        self._logged_names: set[TableId] = set()
        self._made: dict[int, tuple[object, SchemaHints | None]] = {}

    @classmethod
    def load(cls, record: SourceRecord, home: Path, *, with_keys: bool = False) -> "SchemaHistory":
        """Load the landed evidence of a source; columns depend on keys only if some keys have hidden columns."""
        history = cls(record)
        history.reload_snapshots(home, with_keys=with_keys)
        for (epoch, name), states in record.states.items():
            # The statements of an expired segment are gone, so its range counts as not landed.
            done = [state for state in states if state.is_done and state.status != "expired"]
            if done:
                history._ranges[epoch, name] = [(state.first_byte, state.segment_end) for state in done]
            segments = [state.segment for state in done if state.status == "completed"]
            # Few files contain DDL.
            if segments and segment_folder(DDL_ACTIONS, segments[0], home).parent.is_dir():
                row = record.files.get((epoch, name)) or {}
                server = cast(Flavor, row.get("flavor") or "mysql"), row.get("server_version")
                for segment in segments:
                    history._add_statements(epoch, name, _ddl_statements(segment, home), *server)
        return history

    @classmethod
    def of_snapshot(cls, snapshot: SchemaSnapshot | None) -> "SchemaHistory":
        """Create a history from a snapshot that is not landed, or without a snapshot."""
        history = cls(SourceRecord(""))
        if snapshot is None:
            return history
        row: dict[str, Any] = {"epoch": None, "snapshot_id": "", "taken_at": snapshot.taken_at}
        row |= {name: getattr(snapshot, name) for name in ("origin", "binlog_file", "binlog_pos")}
        keys = keys_of(snapshot.keys, snapshot.foreign_keys)
        history._snapshots.append(_Snapshot(row, _by_table(snapshot.columns), snapshot.defaults, keys))
        return history

    def reload_snapshots(self, home: Path, *, with_keys: bool = False) -> None:
        """Read the landed snapshots again."""
        heads = read_rows(SCHEMA_SNAPSHOTS, home, source_id=self._record.source_id)
        columns, defaults = (read_table(table, home) for table in (SCHEMA_COLUMNS, SCHEMA_DEFAULTS))
        with_keys = with_keys or any(map(may_be_hash, pc.unique(columns["column_name"]).to_pylist()))
        keys = [read_table(table, home) for table in (SCHEMA_KEYS, FOREIGN_KEYS)] if with_keys else []
        self._snapshots = [
            _Snapshot(
                head,
                _by_table(_of_snapshot(columns, head["snapshot_id"])),
                _of_snapshot(defaults, head["snapshot_id"]),
                # A snapshot that was made of the log, when files expired, does not have all keys.
                keys_of(*(_of_snapshot(table, head["snapshot_id"]) for table in keys))
                if keys and head["origin"] != "binlog"
                else None,
            )
            for head in heads
        ]

    def add_scan(self, epoch: int, binlog_file: str, scan: "Scan") -> None:
        """Add the statements that a scan found in a file, whether the file is landed or not."""
        flavor = scan.format.flavor
        batches, parsed = self._parsed.get((epoch, binlog_file), ([], 0))
        if batches is not scan.ddl_statements:
            parsed = 0
        for batch in scan.ddl_statements[parsed:]:
            self._add_statements(epoch, binlog_file, batch.to_pylist(), flavor, scan.format.server_version)
        self._parsed[epoch, binlog_file] = scan.ddl_statements, len(scan.ddl_statements)
        # A growing file is scanned repeatedly: the new range replaces the ranges inside it.
        others = [found for found in self._ranges.get((epoch, binlog_file), []) if found[1] > scan.complete_end]
        self._ranges[epoch, binlog_file] = [*others, (FIRST_EVENT, scan.complete_end)]
        self._scanned[epoch, binlog_file] = scan.complete_end

    def _add_statements(
        self, epoch: int, binlog_file: str, statements: Iterable[Row], flavor: Flavor, server_version: str | None
    ) -> None:
        actions = self._actions.setdefault((epoch, binlog_file), {})
        for row in statements:
            if row["kind"] != "QUERY" or not may_be_ddl(row["sql_text"] or ""):
                continue
            # A statement inside a payload takes effect at the start of the payload, which is the position of its rows.
            end = row["start_pos"] if row["payload_ordinal"] > 0 else row["end_pos"]
            for ordinal, action in enumerate(statement_actions(row, flavor, version_of(flavor, server_version))):
                actions[row["start_pos"], row["payload_ordinal"], ordinal] = end, action

    def actions_in(self, epoch: int, binlog_file: str) -> Iterator[tuple[tuple[int, int], Action]]:
        """Yield the actions of a file, with the position of their statement and its ordinal in the payload."""
        for (start, payload_ordinal, _), (_, action) in sorted(self._actions.get((epoch, binlog_file), {}).items()):
            yield (start, payload_ordinal), action

    def note_names(self, tables: Iterable[TableId]) -> bool:
        """Take the names of tables as row events have them; return whether definitions have other names now."""
        folds = self._folds_case()
        self._logged_names.update(tables)
        actions = [action for of_file in self._actions.values() for _, action in of_file.values()]
        return folds != self._folds_case() and any(folded(action) != action for action in actions)

    def sequences_of_snapshots(self, epoch: int) -> list[int]:
        """Return the sequence numbers of the files in which snapshots of an epoch were taken."""
        return [place[1] for place in self.places_of_snapshots(epoch) if place[0] == epoch]

    def looks_ahead(self, epoch: int, binlog_file: str) -> bool:
        """Return whether a snapshot was taken in a later file, or at an unknown position."""
        places = [snapshot.place(epoch) for snapshot in self._snapshots]
        return any(place is None or place[:2] > (epoch, _sequence(binlog_file)) for place in places)

    # --- derived hints ---

    def hints(self, epoch: int) -> SchemaHints | None:
        """Return the decoder's hints for an epoch; None when there is no evidence at all.

        Returns the same object as the last call when no evidence was added.
        """
        state = (
            [snapshot.row["snapshot_id"] for snapshot in self._snapshots],
            {file: len(actions) for file, actions in self._actions.items()},
            list(self._holes(list(self.places_of_snapshots(epoch)))),
            len(self._logged_names),
        )
        if epoch not in self._made or self._made[epoch][0] != state:
            self._made[epoch] = state, self._hints(epoch)
        return self._made[epoch][1]

    def versions(self, epoch: int) -> dict[TableId, list[Version]]:
        """Return the definitions of each table as the evidence that counts in an epoch gives them, oldest first."""
        return self._versions(epoch, self._folds_case(), self._snapshots)

    def named_versions(self) -> dict[TableId, list[Version]]:
        """Return the definitions by which rows of files that are not landed are named."""
        return self._versions(0, self._folds_case(), self._snapshots, breaks_before=True)

    def placed_versions(self, names: Iterable[TableId] = ()) -> dict[TableId, list[Version]]:
        """Return the definitions of each table in all epochs, each snapshot in the epoch that it was taken in.

        Parameters
        ----------
        names
            Tables as the log names them, beside those of snapshots.
        """
        snapshots = [self._in_its_epoch(snapshot) for snapshot in self._snapshots]
        return self._versions(self._last_epoch(), self._folds_case(names), snapshots, breaks_before=True)

    def _versions(
        self, epoch: int, folds_case: bool, snapshots: Sequence[_Snapshot], *, breaks_before: bool = False
    ) -> dict[TableId, list[Version]]:
        events = self._events(epoch, folds_case, snapshots)
        return versions_of(_with_open_nulls(events), breaks_before=breaks_before)

    def begin_of(self, epoch: int) -> tuple[int, int]:
        """Return the number of the file and the offset at which the landed log of an epoch begins."""
        of_epoch = ((_sequence(name), found) for (of, name), found in self._ranges.items() if of == epoch)
        return min(((number, start) for number, found in of_epoch for start, _ in found), default=(-1, -1))

    def snapshot_epochs(self) -> dict[str, int]:
        """Return the epoch in which each snapshot with a position was taken, by the key of the snapshot."""
        epochs = {one.row["snapshot_id"]: epoch_of_snapshot(one.row, self._record) for one in self._snapshots}
        return {key: epoch for key, epoch in epochs.items() if epoch is not None}

    def _in_its_epoch(self, snapshot: _Snapshot) -> _Snapshot:
        return replace(snapshot, row={**snapshot.row, "epoch": epoch_of_snapshot(snapshot.row, self._record)})

    def _last_epoch(self) -> int:
        return max((epoch for epoch, _ in self._ranges), default=0)

    def shapes_before(self, epoch: int, binlog_file: str) -> Shapes:
        """Return the tables and defaults of schemas that are known at the beginning of a file."""
        begin = (epoch, _sequence(binlog_file), FIRST_EVENT)
        return shapes_after(one for one in self._events(epoch, self._folds_case()) if one[0] < begin)

    def evidence(self) -> list[tuple[Place, Event]]:
        """Return all evidence in the order of the log, as it counts in the last epoch."""
        return self._events(self._last_epoch(), self._folds_case())

    def file_at(self, place: Place) -> str:
        """Return the name of the file that a place of the evidence is in."""
        names = {(place[0], _sequence(name)): name for name in self._files_of_snapshots(place[0])}
        names |= {(epoch, _sequence(name)): name for epoch, name in self._ranges}
        return names.get((place[0], place[1]), f"file {place[1]}")

    def _hints(self, epoch: int) -> SchemaHints | None:
        folds_case = self._folds_case()
        versions = self.versions(epoch)
        if not versions:
            return None
        files = {(file_epoch, _sequence(name)): name for file_epoch, name in {*self._ranges, *self._actions}}
        files |= {(epoch, _sequence(name)): name for name in self._files_of_snapshots(epoch)}
        hints = SchemaHints(folds_case=folds_case)
        for table, of_table in versions.items():
            known = list(_alternatives(of_table))
            before = [one for place, one in known if place < (epoch,)]
            entries = [(BEFORE_ALL, before[-1])] if before else []
            for place, one in known:
                if place[:1] == (epoch,):
                    name = files.get((epoch, place[1])) if len(place) > 1 else None
                    at = place_of(name, max(place[2], 0)) if name else BEFORE_ALL
                    entries = [entry for entry in entries if entry[0] != at] + [(at, one)]
            hints.tables[table] = sorted(entries, key=itemgetter(0)) or [(BEFORE_ALL, ())]
        return hints

    def _files_of_snapshots(self, epoch: int) -> Iterator[str]:
        for snapshot in self._snapshots:
            if snapshot.row["binlog_file"] and snapshot.row["epoch"] in (None, epoch):
                yield snapshot.row["binlog_file"]

    def places_of_snapshots(self, epoch: int) -> Iterator[Place]:
        """Yield the places of the snapshots that have a position."""
        for snapshot in self._snapshots:
            if (place := snapshot.place(epoch)) is not None:
                yield place

    def _events(
        self, epoch: int, folds_case: bool, snapshots: Sequence[_Snapshot] | None = None
    ) -> list[tuple[Place, Event]]:
        """Return the evidence that counts in an epoch, in the order of the log."""
        snapshots = self._snapshots if snapshots is None else snapshots
        actions = [*without_hidden(sorted(self._placed_actions(folds_case), key=lambda one: one[0]))]
        events: list[tuple[Place, int, Event]] = [(place, 0, action) for place, action in actions]
        epochs = {file_epoch for file_epoch, _ in self._ranges} | {
            snapshot.row["epoch"] for snapshot in snapshots if snapshot.row["epoch"] is not None
        }
        events += [((one,), 0, Handover()) for one in sorted(epochs | {epoch})[1:]]
        by_age = sorted(snapshots, key=lambda one: one.row["taken_at"] or _NEVER)
        places = [place for snapshot in snapshots if (place := snapshot.place(epoch)) is not None]
        for number, snapshot in enumerate(by_age):
            if (place := snapshot.place(epoch)) is not None:
                events.append((place, number, snapshot.observation()))
        events += [(place, 0, hole) for place, hole in self._holes(places)]
        unplaced = [snapshot for snapshot in by_age if snapshot.place(epoch) is None]
        latest = {table: (snapshot, rows) for snapshot in unplaced for table, rows in snapshot.tables.items()}
        for table, (snapshot, rows) in latest.items():
            shown = last_shown(table, snapshot.tables, actions, _reads_the_same)
            place = (*shown[:3], _SNAPSHOT) if shown else BEGINNING
            defaults = [row for row in snapshot.defaults if row["table_name"] in (None, table[1])]
            defaults = [row for row in defaults if row["schema_name"] == table[0]]
            events.append((place, 0, replace(snapshot.observation(), tables={table: rows}, defaults=defaults)))
        events.sort(key=lambda one: one[:2])
        return [(place, event) for place, _, event in events]

    def _placed_actions(self, folds_case: bool) -> Iterator[tuple[Place, Action]]:
        for (epoch, name), actions in self._actions.items():
            for (start, payload_ordinal, ordinal), (end, action) in actions.items():
                place = (epoch, _sequence(name), end, _STATEMENT, start, payload_ordinal, ordinal)
                yield place, folded(action) if folds_case else action

    def _holes(self, observed: Sequence[Place]) -> Iterator[tuple[Place, Hole]]:
        """Yield the start of each range that does not directly continue the previous range or the last snapshot."""
        ranges = sorted(
            (epoch, _sequence(name), start, end, self._end_of(epoch, name))
            for (epoch, name), of_file in self._ranges.items()
            for start, end in of_file
        )
        last: tuple[int, int, int, int] | None = None
        for epoch, sequence, start, end, file_end in ranges:
            if last is not None and last[0] == epoch:
                goes_on = (last[1] == sequence and last[2] >= start) or (
                    last[1] == sequence - 1 and last[2] >= last[3] and start <= FIRST_EVENT
                )
                if not goes_on:
                    yield (epoch, sequence, start, _LOST), Hole()
            elif any(place[0] == epoch and place[1:3] < (sequence, start) for place in observed):
                yield (epoch, sequence, start, _LOST), Hole()
            if last is None or last[:3] < (epoch, sequence, end):
                last = (epoch, sequence, end, file_end)
        if last is not None and any(place[0] == last[0] and place[1:3] > last[1:3] for place in observed):
            yield (*last[:3], _SNAPSHOT + 1), Hole(ends_log=True)

    def _end_of(self, epoch: int, binlog_file: str) -> int:
        """Return the offset at which the events of a file end, as far as known."""
        row = self._record.files.get((epoch, binlog_file))
        return self._scanned.get((epoch, binlog_file)) or (row["file_size"] if row else 0)

    def _folds_case(self, others: Iterable[TableId] = ()) -> bool:
        """Return whether no known name has a capital: the server may store all names in lower case."""
        names = {name for snapshot in self._snapshots for table in snapshot.tables for name in table}
        names |= {name for table in (*others, *self._logged_names) for name in table}
        if not names or any(name != lowered(name) for name in names):
            return False
        return not distinguishes_case(action for _, action in sorted(self._placed_actions(False), key=itemgetter(0)))


_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _with_open_nulls(events: Iterable[tuple[Place, Event]]) -> Iterator[tuple[Place, Event]]:
    """Yield events. A setting of the server decides whether a TIMESTAMP without NULL or NOT NULL takes NULL."""
    for place, event in events:
        if isinstance(event, Action) and event.columns:
            columns = (
                replace(column, is_nullable=None) if column.data_type == "timestamp" and column.is_nullable else column
                for column in event.columns
            )
            yield place, replace(event, columns=tuple(columns))
        else:
            yield place, event


def _alternatives(versions: Sequence[Version]) -> Iterator[tuple[Place, tuple[Definition, ...]]]:
    """Yield each place with the possible definitions of the table from there on.

    A snapshot shows the definition since the last statement before it. If the statements lead to another definition,
    an unlogged change happened at an unknown time.
    """
    for number, version in enumerate(versions):
        following = versions[number + 1] if number + 1 < len(versions) else None
        shown = following.columns or () if following is not None and following.is_observed else None
        later = _carried(version) if shown is None else definition_of(shown)
        is_lost = version.columns is None or version.certainty is Certainty.LOST
        own = None if is_lost else definition_of(version.columns or ())
        if own is None or (version.is_handed_over and later is not None):
            yield version.place, () if later is None else (later,)
        elif later is None:
            yield version.place, (own,)
        else:
            own, later = _filled(own, later), _filled(later, own)
            yield version.place, (own,) if own == later else (own, later)


def _carried(version: Version) -> Definition | None:
    """Return the definition that was carried back, without the types of columns that later statements changed."""
    columns = version.carried.columns if version.carried is not None else None
    return definition_of(columns) if columns else None


def _filled(definition: Definition, other: Definition) -> Definition:
    """Return a definition with missing character sets and labels filled in from another definition of its columns."""
    if [column.name for column in definition] != [column.name for column in other]:
        return definition
    return tuple(
        replace(
            column,
            charset=same.charset if column.charset is None else column.charset,
            members=same.members if column.members is None else column.members,
        )
        for column, same in zip(definition, other, strict=True)
    )


def _reads_the_same(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    (one,), (two,) = definition_of([row]), definition_of([other])
    charsets = {one.charset, two.charset} - {None}
    facts = [(column.data_type, column.is_unsigned, column.members, column.fraction_digits) for column in (one, two)]
    return facts[0] == facts[1] and len(charsets) < 2


def _ddl_statements(segment: Segment, home: Path) -> list[dict[str, Any]]:
    """Return the segment's rows of `statements` that are DDL; their text contains more than `ddl_actions`."""
    actions = [read_part(DDL_ACTIONS, path, ["start_pos"]) for path in _files(DDL_ACTIONS, segment, home)]
    if not actions:
        return []
    places = pa.concat_tables(actions)["start_pos"]
    found: list[dict[str, Any]] = []
    for path in _files(STATEMENTS, segment, home):
        statements = read_part(STATEMENTS, path, STATEMENTS.file_schema.names)
        found += statements.filter(pc.is_in(statements["start_pos"], value_set=places)).to_pylist()
    return found


def _files(table: RawTable, segment: Segment, home: Path) -> Iterable[Path]:
    return data_files(segment_folder(table, segment, home))


def keys_of(keys: Iterable[Row], foreign_keys: Iterable[Row]) -> dict[TableId, list[Key]]:
    """Return the unique and foreign keys that rows of `schema_keys` and `foreign_keys` describe."""
    parts: dict[tuple[str, str, str], list[Row]] = {}
    for row in (*keys, *foreign_keys):
        if lowered(row["constraint_name"]) != "primary":
            parts.setdefault((row["schema_name"], row["table_name"], row["constraint_name"]), []).append(row)
    found: dict[TableId, list[Key]] = {}
    for (schema, table, name), rows in parts.items():
        rows.sort(key=itemgetter("ordinal_position"))
        parts_of_key = ((row["column_name"], row.get("prefix_length"), row.get("expression")) for row in rows)
        key = Key.of_parts(name, parts_of_key)
        if rows[0].get("referenced_table_name") is not None:
            key = replace(
                key,
                referenced_schema_name=rows[0]["referenced_schema_name"],
                referenced_table_name=rows[0]["referenced_table_name"],
                referenced_columns=tuple(row["referenced_column_name"] for row in rows),
                update_rule=rows[0]["update_rule"] or "UNKNOWN",
                delete_rule=rows[0]["delete_rule"] or "UNKNOWN",
            )
        found.setdefault((schema, table), []).append(key)
    return found


def _sequence(binlog_file: str) -> int:
    return log_place(binlog_file, 0)[0]


def _by_table(rows: Iterable[Row]) -> dict[TableId, list[Row]]:
    tables: dict[TableId, list[Row]] = {}
    for row in rows:
        tables.setdefault((row["schema_name"], row["table_name"]), []).append(row)
    return tables


def _of_snapshot(table: pa.Table, snapshot_id: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.filter(pc.equal(table["snapshot_id"], snapshot_id)).to_pylist()
    return rows
