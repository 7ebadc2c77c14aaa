"""The names that a table had: RENAME TABLE keeps the rows and gives them another name.

A statement that renames several tables is not followed: tools that change a schema online swap two tables with it, and
most rows of the new one were never logged under a name of their own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ingest.ddl.verbs import phrase
from recover.sources.engine import literal
from recover.timeline.events import Place, Table, TableEvent
from recover.timeline.table_log import events_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_CONDITIONAL: Final = phrase("if", "exists")


@dataclass(frozen=True)
class Period:
    """A range of the log in which a table had a name.

    Attributes
    ----------
    since, until
        Places of the statements that gave the table this name and the next one; None if there is none.
    binlog_file
        File of `until`.
    """

    table: Table
    since: Place | None = None
    until: Place | None = None
    binlog_file: str | None = None

    def contains(self, event: TableEvent) -> bool:
        """Return whether an event is in the range; the statements at its ends are not."""
        return self.includes(event.place)

    def includes(self, place: Place) -> bool:
        """Return whether a place is in the range."""
        return (self.since is None or self.since < place) and (self.until is None or place < self.until)

    @property
    def condition(self) -> str:
        """The range as a condition on `row_changes`."""
        bounds = [(">", self.since), ("<", self.until)]
        return " and ".join(_is_beyond(sign, place) for sign, place in bounds if place is not None) or "true"


def periods_of(connection: "DuckDBPyConnection", table: Table) -> list[Period]:
    """Return the periods of a table under its name and earlier ones, the last first.

    A name is followed only if the log has no earlier rows of another table with the same name.
    """
    periods = [Period(table)]
    while (former := _former(connection, periods[-1])) is not None:
        assert former.until is not None
        periods[-1] = replace(periods[-1], since=former.until)
        periods.append(former)
    return periods


def renamed_tables(connection: "DuckDBPyConnection", source_id: str) -> set[str]:
    """Return the tables of a source that a statement renamed, under both names, in lower case."""
    rows = connection.execute(
        """select distinct lower(unnest(tables)) from binloom.schema_changes
        where source_id = $source and len(list_filter(actions, lambda one: starts_with(one, 'rename_table '))) > 0""",
        {"source": source_id},
    ).fetchall()
    return {name for (name,) in rows}


def later_name(connection: "DuckDBPyConnection", table: Table) -> tuple[str, str] | None:
    """Return the name that the last RENAME TABLE gave to a table, and the position of the statement; None without."""
    for rename in _renames(connection, table):
        if str(rename.former).lower() == str(table).lower():
            return rename.name, f"{rename.binlog_file}:{rename.place.pos}"
    return None


def events_in(connection: "DuckDBPyConnection", periods: Sequence[Period], until: Place | None) -> list[TableEvent]:
    """Return the events of a table under all of its names, in commit order."""
    found = [
        event for period in periods for event in events_of(connection, period.table, until) if period.contains(event)
    ]
    return sorted(found, key=lambda event: (event.place, event.reason))


def with_last_name(periods: Sequence[Period], rows: str) -> str:
    """Return a query of the rows of a table under all of its names, each with the last name.

    Parameters
    ----------
    rows
        A query of rows of `row_changes`.
    """
    if len(periods) == 1:
        return rows
    last = periods[0].table
    return " union all ".join(
        f"select * replace ({literal(last.schema_name)} as schema_name, {literal(last.table_name)} as table_name)"
        f" from ({rows}) where source_id = {literal(last.source_id)}"
        f" and schema_name = {literal(period.table.schema_name)} and table_name = {literal(period.table.table_name)}"
        f" and {period.condition}"
        for period in periods
    )


@dataclass(frozen=True)
class _Rename:
    """A statement that gives one table another name."""

    former: Table
    name: str
    place: Place
    binlog_file: str
    is_conditional: bool


def _renames(connection: "DuckDBPyConnection", table: Table) -> Iterator[_Rename]:
    """Yield the statements that rename only one table, from or to the name of a table, the last first."""
    rows = connection.execute(
        """select schema_name, table_name, actions, epoch, file_sequence, start_pos, binlog_file, sql_text
        from binloom.schema_changes
        where source_id = $source and error_code = 0
            and list_contains(list_transform(tables, lambda one: lower(one)), lower($name))
        order by epoch desc, file_sequence desc, start_pos desc""",
        {"source": table.source_id, "name": str(table)},
    ).fetchall()
    for schema, name, actions, epoch, file_sequence, pos, file, text in rows:
        if len(actions) == 1 and actions[0].startswith("rename_table "):
            yield _Rename(
                Table(table.source_id, schema or "", name or ""),
                actions[0].removeprefix("rename_table "),
                Place(epoch, file_sequence, pos),
                file,
                _CONDITIONAL.search(text or "") is not None,
            )


def _former(connection: "DuckDBPyConnection", period: Period) -> Period | None:
    """Return the period before another one, under the name from which the table was renamed."""
    name = str(period.table)
    for rename in _renames(connection, period.table):
        is_in_time = period.until is None or rename.place < period.until
        if is_in_time and rename.name.lower() == name.lower():
            # Names with a dot cannot be told apart in the list of tables, and IF EXISTS may have done nothing.
            is_doubtful = rename.is_conditional or str(rename.former).count(".") + name.count(".") != 2
            if is_doubtful or _has_changes(connection, period.table, rename.place):
                return None
            return Period(rename.former, None, rename.place, rename.binlog_file)
    return None


def _has_changes(connection: "DuckDBPyConnection", table: Table, until: Place) -> bool:
    """Return whether the log has changes of a table before a place."""
    row = connection.execute(
        f"""select count(*) from (
            select 1 from binloom.row_changes
            where source_id = $source and schema_name = $schema and table_name = $table
                and {Period(table, None, until).condition} limit 1
        )""",
        table.parameters,
    ).fetchone()
    return row is not None and row[0] > 0


def _is_beyond(sign: str, place: Place) -> str:
    """Return the condition that a change is after (`>`) or before (`<`) a place. DuckDB has no BETWEEN for tuples."""
    return (
        f"(epoch {sign} {place.epoch} or (epoch = {place.epoch} and (file_sequence {sign} {place.file_sequence}"
        f" or (file_sequence = {place.file_sequence} and start_pos {sign} {place.pos}))))"
    )
