"""The definitions of a table through the log, each beside the one before it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from recover.selection.catalog import Column, TableVersion
from recover.sources.log import Log
from recover.timeline.baselines import sequence_of_file
from recover.timeline.events import Table


@dataclass(frozen=True, slots=True)
class DefinedColumn:
    """A column in a definition, and in the one before it.

    Attributes
    ----------
    before, now
        Its type; None if the definition does not have it.
    """

    name: str
    before: str | None
    now: str | None

    @property
    def is_changed(self) -> bool:
        """Whether the two definitions differ in it."""
        return self.before != self.now


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of a table.

    Attributes
    ----------
    position
        `file:position` from which on it holds; None: from the beginning of the log.
    evidence
        What defines the table: a snapshot, a statement of the log, or the log's own metadata.
    is_first
        Whether there is none before it.
    columns
        The columns in their order, then those that only the definition before had.
    primary_key
        Names of the columns of the primary key.
    """

    position: str | None
    evidence: str
    is_first: bool
    columns: tuple[DefinedColumn, ...]
    primary_key: tuple[str, ...]


def definitions_of(log: Log, table: Table) -> tuple[Definition, ...]:
    """Return the definitions of a table in the order of the log; equal ones in a row are one."""
    return tuple(_changed(log, table))


def _changed(log: Log, table: Table) -> Iterator[Definition]:
    versions = {one.table_version_id: one for one in log.versions}
    before: TableVersion | None = None
    for version_id, position, evidence in _places(log, table):
        version = versions[version_id]
        if before is not None and (before.columns, before.primary_key) == (version.columns, version.primary_key):
            continue
        columns = tuple(_columns(before.columns if before else version.columns, version.columns))
        yield Definition(position, evidence, before is None, columns, version.primary_key)
        before = version


def _places(log: Log, table: Table) -> list[tuple[str, str | None, str]]:
    """Return version, beginning and evidence of each definition, in the order of the log."""
    from sqlglot import exp

    columns = ("table_version_id", "evidence", "valid_from_epoch", "valid_from_binlog_file", "valid_from_pos")
    query = exp.select(*columns).from_("binloom.table_versions")
    for name, value in (
        ("source_id", table.source_id),
        ("schema_name", table.schema_name),
        ("table_name", table.table_name),
    ):
        query = query.where(exp.column(name).eq(value))
    found = [
        ((epoch or 0, sequence_of_file(file) if file else -1, position or 0), version_id, file, position, evidence)
        for version_id, evidence, epoch, file, position in log.rows(query)
    ]
    return [
        (version_id, f"{file}:{position}" if file else None, evidence)
        for _, version_id, file, position, evidence in sorted(found, key=lambda one: one[:2])
    ]


def _columns(before: Sequence[Column], now: Sequence[Column]) -> Iterator[DefinedColumn]:
    earlier, later = ({one.name: _type(one) for one in columns} for columns in (before, now))
    for name in {**later, **earlier}:
        yield DefinedColumn(name, earlier.get(name), later.get(name))


def _type(column: Column) -> str:
    parts = [column.shown_type, column.character_set or ""]
    parts += [] if column.is_nullable is None else ["NULL" if column.is_nullable else "NOT NULL"]
    return " ".join(filter(None, parts))
