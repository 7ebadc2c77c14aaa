"""Carry the rows of all tables at the beginning of a file into a baseline, before the earlier files expire.

If a row changed only in these files, its last image would be lost. The baseline keeps it, so that everything that reads
baselines (`state`, `history`, typed models) still knows the row.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import StoreError, UsageError
from ingest.landing.expiry import OldFile
from ingest.sources.baselines.baseline_tables import BaselineTable
from ingest.warehouse.segments import FIRST_EVENT
from recover.retention.carried_masks import LandedMaps, MaskRecord, masks_of_rows
from recover.timeline.as_of import Moment
from recover.timeline.events import Effect, Place, Table
from recover.timeline.state import Row, State, state_of
from recover.timeline.table_log import events_of

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from duckdb import DuckDBPyConnection

    from ingest.ddl.shapes import Shape, Shapes
    from ingest.landing.baselines import BaselineResult
    from ingest.landing.held import StreamLanding
    from ingest.warehouse.record import SourceRecord

_ROWS_AT_ONCE: Final = 10_000


@dataclass
class CarriedTable:
    """A table whose rows are carried; the counts are final when all rows were read.

    Attributes
    ----------
    columns
        Columns that are carried: those of the table without columns that masks dropped.
    masks
        The masks that the rows have.
    rows, uncertain
        Number of rows that are carried, and of rows that are not, because their existence or values are uncertain.
    """

    table: Table
    columns: tuple[str, ...]
    primary_key: tuple[str, ...]
    data_types: tuple[str, ...]
    state: State = field(repr=False)
    masks: tuple[MaskRecord, ...] = ()
    rows: int = 0
    uncertain: int = 0

    @property
    def is_complete(self) -> bool:
        """Return whether these are all rows of the table."""
        return self.state.is_complete and not self.uncertain

    @property
    def target(self) -> BaselineTable:
        """The table in the baseline."""
        key = sorted(self.columns.index(name) for name in self.primary_key)
        return BaselineTable(
            self.table.schema_name, self.table.table_name, self.columns, self.data_types, tuple(key) or None
        )

    @property
    def masked_columns(self) -> list[dict[str, Any]] | None:
        """The masks as `baselines` records them."""
        places = {name: place for place, name in enumerate(self.columns)}
        return [{**one, "ordinal": places.get(one["column_name"])} for one in self.masks] or None

    def read(self) -> Iterator[Row]:
        """Yield the rows that are certain."""
        for row in self.state.rows():
            if row.doubts or not all(row.values.get(name) is not None for name in self.primary_key):
                self.uncertain += 1
            else:
                self.rows += 1
                yield row

    def batches(self) -> Iterator["pa.Table"]:
        """Yield the rows as `land_baseline` takes them."""
        import pyarrow as pa

        values: list[list[str | None]] = []
        known: list[list[int] | None] = []
        types = {"row_values": pa.list_(pa.string()), "known_columns": pa.list_(pa.int32())}
        for row in self.read():
            values.append([row.values.get(name) for name in self.columns])
            places = [place for place, name in enumerate(self.columns) if name in row.values]
            known.append(None if len(places) == len(self.columns) else places)
            if len(values) == _ROWS_AT_ONCE:
                yield pa.table([values, known], schema=pa.schema(types))
                values, known = [], []
        if values:
            yield pa.table([values, known], schema=pa.schema(types))


def tables_at(
    connection: "DuckDBPyConnection", record: "SourceRecord", home: "Path", first_kept: OldFile, shapes: "Shapes"
) -> list[CarriedTable]:
    """Return the tables with rows at the beginning of a file.

    Parameters
    ----------
    connection
        It has the tables of `table_log.MARTS` and the baselines.
    record, home
        The source, and the home in which it is landed.
    first_kept
        The file before which all files expire.
    shapes
        The definitions of tables at its beginning.

    Raises
    ------
    UsageError
        The definition of a table is not known there, or its rows have different masks.
    """
    moment = _beginning_of(first_kept)
    landed = LandedMaps(record, home)
    found = []
    for table, last_change in _changed_tables(connection, record.source_id, moment.place):
        if _is_dropped(connection, table, last_change, moment.place):
            continue
        shape = shapes.tables.get((table.schema_name, table.table_name))
        if shape is None:
            raise UsageError(
                f"The columns of {table} at the beginning of {first_kept.binlog_file} are not known, so its rows cannot"
                " be kept.",
                hint="Land a schema snapshot with `binloom snapshot`, run `binloom build`, and run this command again.",
            )
        state = state_of(connection, table, moment)
        names = tuple(column.name for column in shape.columns)
        masks = masks_of_rows(connection, table, names, landed, state.baseline, state.read_until)
        found.append(_carried(table, shape, state, masks))
    return found


def read_all(tables: Sequence[CarriedTable]) -> None:
    """Count the rows of tables without landing them."""
    for table in tables:
        for _ in table.read():
            pass


def _beginning_of(file: OldFile) -> Moment:
    return Moment(Place(*file.place, FIRST_EVENT), file.binlog_file, None, None)


def _carried(table: Table, shape: "Shape", state: State, masks: Sequence[MaskRecord]) -> CarriedTable:
    dropped = {one["column_name"] for one in masks if one["method"] == "drop"}
    kept = [column for column in shape.columns if column.name not in dropped]
    names = tuple(column.name for column in kept)
    types = tuple(column.data_type or "" for column in kept)
    return CarriedTable(table, names, shape.primary_key, types, state, tuple(masks))


def _changed_tables(connection: "DuckDBPyConnection", source_id: str, place: Place) -> list[tuple[Table, Place]]:
    """Return the tables with rows in the log before a place, and the place of the last one."""
    rows = connection.execute(
        """select schema_name, table_name, max([epoch, file_sequence, pos]) from (
            select schema_name, table_name, epoch, file_sequence, start_pos as pos
            from binloom.row_changes where source_id = $source
            union all
            select schema_name, table_name, epoch, file_sequence, binlog_pos as pos
            from binloom.baselines where source_id = $source and epoch is not null
        )
        where (epoch, file_sequence, pos) < ($epoch, $file_sequence, $pos) group by all order by all""",
        {"source": source_id, **place._asdict()},
    ).fetchall()
    return [(Table(source_id, schema, table), Place(*last)) for schema, table, last in rows]


def _is_dropped(connection: "DuckDBPyConnection", table: Table, last_change: Place, until: Place) -> bool:
    emptied = [event for event in events_of(connection, table, until) if event.effect is Effect.EMPTIES]
    return bool(emptied) and emptied[-1].place > last_change and emptied[-1].reason.upper().startswith("DROP")


def land_carried(
    landing: "StreamLanding",
    tables: Sequence[CarriedTable],
    files: Sequence[OldFile],
    first_kept: OldFile,
    shapes: "Shapes",
    *,
    may_lose_uncertain: bool = False,
    progress: Callable[[BaselineTable, int], None] = lambda table, rows: None,
) -> "BaselineResult":
    """Land the rows of tables, and the definitions of all tables, at the beginning of the first file that is kept.

    Parameters
    ----------
    landing
        Landing of the source, which holds its lock.
    tables, files, first_kept, shapes
        Tables of `tables_at`, the files that expire, the first one after them, and the definitions there.
    may_lose_uncertain
        Whether rows may be left out that are not certain.

    Raises
    ------
    StoreError
        A row is not certain. Nothing is landed.
    """
    from datetime import UTC, datetime

    from ingest.landing.baselines import land_baseline
    from ingest.sources.snapshots.snapshot import SchemaSnapshot

    by_target = {table.target: table for table in tables}

    def assert_certain() -> None:
        lost = [table for table in tables if table.uncertain]
        if lost and not may_lose_uncertain:
            named = ", ".join(f"{table.uncertain} of {table.table}" for table in lost)
            raise StoreError(
                f"The last values of some rows before {first_kept.binlog_file} are uncertain: {named}.",
                hint="Land a baseline with `binloom baseline`, or drop these rows with --drop-uncertain. Nothing was"
                " dropped.",
            )

    columns, defaults = _definitions(shapes)
    snapshot = SchemaSnapshot(
        origin="binlog",
        taken_at=datetime.now(UTC),
        binlog_file=first_kept.binlog_file,
        binlog_pos=FIRST_EVENT,
        columns=columns,
        defaults=defaults,
    )
    return land_baseline(
        landing.source_id,
        snapshot,
        list(by_target),
        lambda target: by_target[target].batches(),
        content=_content(files),
        epoch=first_kept.epoch,
        is_complete=lambda target: by_target[target].is_complete,
        finish=assert_certain,
        progress=progress,
        home=landing.home,
        recorded_masks=lambda target: by_target[target].masked_columns,
    )


def _definitions(shapes: "Shapes") -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return rows of `schema_columns` and `schema_defaults`."""
    columns = [
        {**row, "column_key": "PRI" if row["primary_key_ordinal"] else "", "extra": row["extra"] or ""}
        for table, shape in sorted(shapes.tables.items())
        for row in shape.column_rows(table)
    ]
    of_schemas = [(schema, None, *default) for schema, default in shapes.schemas.items()]
    of_tables = [(*table, shape.character_set, shape.collation) for table, shape in shapes.tables.items()]
    names = ("schema_name", "table_name", "character_set", "collation")
    defaults = sorted((one for one in [*of_schemas, *of_tables] if one[2]), key=lambda one: (one[0], one[1] or ""))
    return columns, [dict(zip(names, one, strict=True)) for one in defaults]


def _content(files: Sequence[OldFile]) -> str:
    """Return a hash of the segments that the rows come from: the same segments are carried once."""
    facts = [(state.key, state.segment_end, state.recorded_at.isoformat()) for file in files for state in file.states]
    return hashlib.sha256(repr(facts).encode()).hexdigest()
