"""The tables of a source for which models are generated: present columns, former columns and names, keys."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from binloom.typed.renames import FormerNames, Step, UsedVersion, former_names, rename_steps
from binloom.typed.types import spark_type
from recover.selection.catalog import TableVersion, read_table_versions
from recover.sources.cluster.copies import Copies
from recover.sources.cluster.thrift import Cluster
from recover.sources.home.marts import DDL_ACTIONS, open_marts
from recover.sources.landed_snapshot import newest_snapshot, newest_snapshot_on_cluster
from recover.timeline.events import Place, Table
from recover.timeline.names import Period, later_name, periods_of, renamed_tables
from recover.undo.tables.table import ForeignKey, foreign_keys_of_snapshot

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ingest.sources.snapshots.snapshot import SchemaSnapshot

_MARTS: Final = (
    *(("binloom", name) for name in ("table_versions", "row_changes", "schema_changes")),
    DDL_ACTIONS,
)


@dataclass(frozen=True)
class TypedColumn:
    """A column of a generated model.

    Attributes
    ----------
    type
        Type of Spark.
    server_type
        Type on the server, for people.
    labels
        Labels of an ENUM; empty for other columns, and if they are not known.
    is_present
        Whether the table still has the column.
    """

    name: str
    type: str
    server_type: str
    comment: str | None = None
    labels: tuple[str, ...] = ()
    is_present: bool = True


@dataclass(frozen=True)
class SourceTable:
    """A table of a source.

    Attributes
    ----------
    columns
        The present columns in their order, then those that the table had before.
    primary_key
        Names of its columns; empty without one.
    former_names
        Names of columns in older versions.
    periods
        The ranges of the log in which the table had its present name and earlier ones, the last first.
    """

    source_id: str
    schema_name: str
    table_name: str
    columns: tuple[TypedColumn, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    former_names: tuple[FormerNames, ...] = ()
    periods: tuple[Period, ...] = ()

    @property
    def name(self) -> str:
        """Schema and table."""
        return f"{self.schema_name}.{self.table_name}"

    @property
    def former_columns(self) -> tuple[TypedColumn, ...]:
        """The columns that the table does not have any more."""
        return tuple(column for column in self.columns if not column.is_present)

    @property
    def present_columns(self) -> tuple[TypedColumn, ...]:
        """The columns that the table has now."""
        return tuple(column for column in self.columns if column.is_present)


@dataclass(frozen=True)
class Catalog:
    """The marts that tell about tables, and the newest schema snapshot of each source.

    Attributes
    ----------
    connection
        Has `_MARTS`. On a cluster, `row_changes` has only the first and the last change of each version of a table.
    """

    connection: "DuckDBPyConnection"
    newest_snapshot: "Callable[[str], tuple[SchemaSnapshot, int] | None]"

    @classmethod
    def of_warehouse(cls, home: Path) -> "Catalog":
        """Return the catalog of a home."""
        return cls(open_marts(home, _MARTS), partial(newest_snapshot, home=home))

    @classmethod
    def of_cluster(cls, cluster: Cluster) -> "Catalog":
        """Return the catalog of a cluster, copied."""
        from sqlglot import exp, parse_one

        copies = Copies(cluster)
        for schema, name in _MARTS:
            if name != "row_changes":
                copies.add(name, schema=schema)
        for which in ("min", "max"):
            query = f"""
                select source_id, schema_name, table_name, table_version_id, place.epoch as epoch,
                    place.file_sequence as file_sequence, place.start_pos as start_pos
                from (
                    select source_id, schema_name, table_name, table_version_id,
                        {which}(struct(epoch, file_sequence, start_pos)) as place
                    from binloom.row_changes group by source_id, schema_name, table_name, table_version_id
                )"""
            copies.add_rows(parse_one(query, read="spark", into=exp.Select), "row_changes")
        # The copies are there as long as the catalog is.
        return cls(copies.connection, lambda source_id: newest_snapshot_on_cluster(source_id, copies.cluster))

    def table_names(self) -> dict[str, set[tuple[str, str]]]:
        """Return the schema and name of each table that exists now, by source."""
        names: dict[str, set[tuple[str, str]]] = {}
        for source_id, schema, table in self.connection.execute(_present_tables()).fetchall():
            names.setdefault(source_id, set()).add((schema, table))
        return names

    def later_name(self, source_id: str, schema: str, table: str) -> str | None:
        """Return the name that a table got from the last statement that renamed it alone; None without one."""
        found = later_name(self.connection, Table(source_id, schema, table))
        return found[0] if found else None

    def tables(self, source_id: str, is_wanted: Callable[[str, str], bool]) -> list[SourceTable]:
        """Return the tables of a source that exist at the end of its log, by name.

        Parameters
        ----------
        is_wanted
            Tells by schema and name whether a table is wanted.
        """
        versions = {one.table_version_id: one for one in read_table_versions(self.connection)}
        order = self.connection.execute(_versions_in_order(), {"source": source_id}).fetchall()
        by_table: dict[tuple[str, str], list[TableVersion]] = {}
        for version_id, schema, table in order:
            by_table.setdefault((schema, table), []).append(versions[version_id])
        present = self.table_names().get(source_id, set())
        wanted = [name for name in sorted(by_table) if name in present and is_wanted(*name)]
        renamed = renamed_tables(self.connection, source_id)
        periods = {
            name: periods_of(self.connection, Table(source_id, *name))
            for name in wanted
            if ".".join(name).lower() in renamed
        }
        altered = [name for name in wanted if len(by_table[name]) > 1 or len(periods.get(name, ())) > 1]
        facts = _Facts.of(self, source_id, altered)
        return [_table(by_table, periods.get(name) or [Period(Table(source_id, *name))], facts) for name in wanted]


@dataclass(frozen=True)
class _Facts:
    """The rest of what is known about the tables of a source."""

    comments: Mapping[tuple[str, str, str], str]
    foreign_keys: tuple[ForeignKey, ...]
    used: Mapping[tuple[str, str], list[UsedVersion]]
    steps: Mapping[tuple[str, str], list[Step]]

    @classmethod
    def of(cls, catalog: Catalog, source_id: str, altered: Iterable[tuple[str, str]]) -> "_Facts":
        found = catalog.newest_snapshot(source_id)
        snapshot = found[0] if found else None
        return cls(
            {
                (row["schema_name"], row["table_name"], row["column_name"]): row["column_comment"]
                for row in (snapshot.columns if snapshot else ())
                if row["column_comment"]
            },
            tuple(foreign_keys_of_snapshot(snapshot.foreign_keys)) if snapshot else (),
            _used_versions(catalog.connection, source_id) if [*altered] else {},
            rename_steps(catalog.connection, source_id),
        )


def _table(
    versions: Mapping[tuple[str, str], list[TableVersion]], periods: Sequence[Period], facts: _Facts
) -> SourceTable:
    name = (periods[0].table.schema_name, periods[0].table.table_name)
    present = versions[name][-1]
    names = {column.name for column in present.columns}
    used, steps = _under_all_names(periods, facts)
    former = former_names(used, steps, names)
    names_by_version = {id: one.names for one in former for id in one.table_version_ids}
    columns = {
        column.name: TypedColumn(
            column.name,
            spark_type(column),
            column.shown_type,
            facts.comments.get((*name, column.name)),
            column.labels,
        )
        for column in present.columns
    }
    by_id = {
        version.table_version_id: version
        for period in periods
        for version in versions.get((period.table.schema_name, period.table.table_name), ())
    }
    folded = {column.lower() for column in names}
    for one in reversed(used):
        version = by_id.get(one.table_version_id)
        for column in version.columns if version else ():
            known = names_by_version.get(one.table_version_id, {}).get(column.name, column.name)
            if known.lower() not in folded:
                folded.add(known.lower())
                columns[known] = TypedColumn(known, spark_type(column), column.shown_type, is_present=False)
    return SourceTable(
        present.source_id,
        *name,
        tuple(columns.values()),
        present.primary_key,
        tuple(key for key in facts.foreign_keys if key.table == name),
        former,
        tuple(periods),
    )


def _under_all_names(periods: Sequence[Period], facts: _Facts) -> tuple[list[UsedVersion], list[Step]]:
    """Return the versions that rows of a table have, and its steps, in their order."""
    used: list[UsedVersion] = []
    steps: list[Step] = []
    for period in reversed(periods):
        name = (period.table.schema_name, period.table.table_name)
        used += (one for one in facts.used.get(name, ()) if period.includes(Place(*one.first_used)))
        steps += (one for one in facts.steps.get(name, ()) if period.includes(Place(*one.place)))
    return used, steps


def _versions_in_order() -> str:
    """Return a query of the versions of a source, by table, the present one last.

    Snapshots and statements know more about types than table maps, so theirs is the present one if they have one. Table
    maps have no range, but rows.
    """
    return f"""
        with used as (
            select table_version_id, max(row(epoch, file_sequence, start_pos)) as last_used
            from binloom.row_changes where source_id = $source and table_version_id in (
                select table_version_id from binloom.table_versions where evidence = 'table_map'
            ) group by all
        )
        select table_version_id, schema_name, table_name
        from binloom.table_versions left join used using (table_version_id) where source_id = $source
        order by schema_name, table_name, evidence <> 'table_map', valid_to_epoch is null,
            coalesce(valid_from_epoch, -1), {_sequence("valid_from_binlog_file")}, coalesce(valid_from_pos, -1),
            last_used nulls first, table_version_id
    """


def _present_tables() -> str:
    """Return a query of the tables whose last known definition has no end."""
    return """
        select distinct source_id, schema_name, table_name from binloom.table_versions
        where valid_to_epoch is null and (
            evidence <> 'table_map'
            or (source_id, schema_name, table_name) not in (
                select (source_id, schema_name, table_name) from binloom.table_versions where evidence <> 'table_map'
            )
        )
    """


def _used_versions(connection: "DuckDBPyConnection", source_id: str) -> dict[tuple[str, str], list[UsedVersion]]:
    """Return the versions that rows have, each with the place of its first row, in their order."""
    rows = connection.execute(
        """
        with used as (
            select table_version_id, schema_name, table_name, min(row(epoch, file_sequence, start_pos)) as place
            from binloom.row_changes where source_id = $source group by all
        )
        select used.schema_name, used.table_name, table_version_id, used.place, column_names
        from used join binloom.table_versions using (table_version_id)
        order by used.place, table_version_id
        """,
        {"source": source_id},
    ).fetchall()
    found: dict[tuple[str, str], list[UsedVersion]] = {}
    for schema, table, version_id, place, names in rows:
        numbers = tuple(place.values()) if isinstance(place, dict) else tuple(place)
        found.setdefault((schema, table), []).append(UsedVersion(version_id, numbers, tuple(names)))
    return found


def _sequence(file: str) -> str:
    return f"coalesce(try_cast(regexp_extract({file}, '([0-9]+)$', 1) as bigint), -1)"
