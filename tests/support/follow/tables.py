"""Reads the raw tables of a home without Spark, and compares them with the server's decoded files."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingest.binlog import open_binlog
from ingest.landing.schema_history import SchemaHistory
from ingest.warehouse.files import data_files, read_table, segment_folder
from ingest.warehouse.landed import LANDED_SCHEMAS, LandedKind, landed_batches
from ingest.warehouse.record import SourceRecord, read_states
from ingest.warehouse.segments import latest_states
from ingest.warehouse.tables import SEGMENT_TABLES, TABLE_MAPS

# Natural keys of the rows, in addition to the epoch and the file.
KEYS: Final[dict[str, list[str]]] = {
    "row_events": ["start_pos", "payload_ordinal", "row_ordinal"],
    "transactions": ["start_pos"],
    "statements": ["start_pos", "payload_ordinal"],
    "ddl_actions": ["start_pos", "payload_ordinal", "action_ordinal"],
    "unsupported_events": ["start_pos", "end_pos", "event_type", "schema_name", "table_name", "reason", "detail"],
}
PLACE = ["epoch", "binlog_file"]
SHOWN_DIFFERENCES = 5


class Tables:
    """The raw tables of one source, as seen by a reader that uses `segments`.

    Columns that depend on the landing and not on the log are absent: the source, and the start of the segment.
    """

    def __init__(self, home: Path, source: str) -> None:
        self.home = home
        self.source = source

    def __getitem__(self, kind: LandedKind) -> pa.Table:
        """Return the rows of a segment table, sorted by their natural key, with `epoch` and `binlog_file`."""
        parts = []
        for (epoch, name), states in latest_states(read_states(self.home, self.source)).items():
            for state in states:
                if state.status != "completed":
                    continue
                for path in data_files(segment_folder(SEGMENT_TABLES[kind], state.segment, self.home)):
                    parts.append(_placed(pq.ParquetFile(path).read(), epoch, name))
        return _sorted(kind, parts)

    @property
    def table_maps(self) -> dict[str, Any]:
        """The distinct table maps by their id."""
        rows = read_table(TABLE_MAPS, self.home, source_id=self.source).drop_columns("source_id").to_pylist()
        maps = _by_id(rows)
        assert len(maps) == len(rows), "a table map is there twice"
        return maps


class Decoded:
    """The same tables from a server's files, by the decoder alone.

    Parameters
    ----------
    files
        Pairs of epoch and file.
    hints_of
        The decoder uses the schema snapshots of these tables' source, so that both sides are decoded alike.
    """

    def __init__(self, files: Iterable[tuple[int, Path]], hints_of: Tables) -> None:
        parts: dict[LandedKind, list[pa.Table]] = {kind: [] for kind in SEGMENT_TABLES}
        self.table_maps: dict[str, Any] = {}
        history = SchemaHistory.load(SourceRecord.load(hints_of.source, hints_of.home), hints_of.home)
        for epoch, path in files:
            hints = history.hints(epoch)
            for kind, batch in landed_batches(open_binlog(path, hints=hints)):
                if kind == "table_maps":
                    self.table_maps |= _by_id(batch.to_pylist())
                else:
                    parts[kind].append(_placed(pa.Table.from_batches([batch]), epoch, path.name))
        self._tables = {kind: _sorted(kind, each) for kind, each in parts.items()}

    def __getitem__(self, kind: LandedKind) -> pa.Table:
        return self._tables[kind]


def assert_same_tables(ours: Tables, expected: "Tables | Decoded") -> dict[str, int]:
    """Compare all raw tables that the log fills: same rows, each once; return the numbers of rows."""
    counts = {}
    for kind in SEGMENT_TABLES:
        mine, theirs = ours[kind], expected[kind]
        assert_keys_are_unique(kind, mine)
        if not mine.equals(theirs):
            raise AssertionError(_differences(kind, mine, theirs))
        counts[kind] = mine.num_rows
    mine_by_id, theirs_by_id = ours.table_maps, expected.table_maps
    differing = [
        (mine_by_id.get(key), theirs_by_id.get(key))
        for key in sorted(mine_by_id.keys() | theirs_by_id.keys())
        if mine_by_id.get(key) != theirs_by_id.get(key)
    ]
    assert not differing, f"table_maps: {_shown(differing)}"
    return counts


def assert_keys_are_unique(kind: LandedKind, rows: pa.Table) -> None:
    """Fail when two rows have the same natural key."""
    counted = rows.group_by([*PLACE, *KEYS[kind]]).aggregate([([], "count_all")])
    twice = counted.filter(pc.greater(counted["count_all"], 1))
    assert not twice.num_rows, f"{kind} has {twice.num_rows} keys more than once: {_shown(twice.to_pylist())}"


def _by_id(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {row["table_map_id"]: row for row in rows}


def _placed(rows: pa.Table, epoch: int, name: str) -> pa.Table:
    """Return rows with their epoch and file; dictionary columns become plain values, so that they can be compared."""
    for at, column in enumerate(rows.schema):
        if pa.types.is_dictionary(column.type):
            rows = rows.set_column(at, column.name, rows[column.name].cast(column.type.value_type))
    rows = rows.append_column("epoch", pa.array([epoch] * rows.num_rows, pa.int32()))
    return rows.append_column("binlog_file", pa.array([name] * rows.num_rows, pa.string()))


def _sorted(kind: LandedKind, parts: Sequence[pa.Table]) -> pa.Table:
    empty = _placed(LANDED_SCHEMAS[kind].empty_table(), 0, "")
    # Parquet does not keep the decoder's nullability.
    loose = pa.schema([field.with_nullable(True) for field in empty.schema])
    rows = pa.concat_tables([part.cast(loose) for part in parts]) if parts else empty.cast(loose)
    return rows.sort_by([(name, "ascending") for name in [*PLACE, *KEYS[kind]]]).combine_chunks()


def _differences(kind: LandedKind, mine: pa.Table, theirs: pa.Table) -> str:
    """Describe the missing, surplus and different rows by their keys."""
    names = [*PLACE, *KEYS[kind]]

    def by_key(rows: pa.Table) -> dict[tuple[Any, ...], dict[str, Any]]:
        return {tuple(row[name] for name in names): row for row in rows.to_pylist()}

    ours, expected = by_key(mine), by_key(theirs)
    missing = sorted(expected.keys() - ours.keys(), key=repr)
    extra = sorted(ours.keys() - expected.keys(), key=repr)
    changed = [
        {name: (row[name], expected[key].get(name)) for name in row if row[name] != expected[key].get(name)} | {"": key}
        for key, row in ours.items()
        if key in expected and row != expected[key]
    ]
    said = [f"{kind} has {mine.num_rows} rows for {theirs.num_rows}"]
    for what, found in (("missing", missing), ("too many", extra), ("different", changed)):
        if found:
            said.append(f"{len(found)} {what}: {_shown(found)}")
    return "\n".join(said)


def _shown(found: Sequence[Any]) -> str:
    return ", ".join(str(each)[:400] for each in found[:SHOWN_DIFFERENCES])
