"""Columns that were renamed or dropped: the present name of each column of an older version of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Place = tuple[int, int, int]
"""Epoch, number of the file, offset."""


@dataclass(frozen=True)
class UsedVersion:
    """A version of a table that rows of the log have, and the place of its first row."""

    table_version_id: str
    first_used: Place
    names: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """A statement that gave a column another name, or dropped it."""

    place: Place
    column: str
    new_name: str | None


@dataclass(frozen=True)
class FormerNames:
    """Versions in which columns had other names than today: former name to present name."""

    table_version_ids: tuple[str, ...]
    names: dict[str, str]


def rename_steps(connection: "DuckDBPyConnection", source_id: str) -> dict[tuple[str, str], list[Step]]:
    """Return the steps of each table of a source in the order of the log."""
    rows = connection.execute(
        """
        select schema_name, table_name, changes.epoch, changes.file_sequence, start_pos, column_name, action,
            columns[1].name
        from binloom_staging.stg_binlog__ddl_actions as actions
        join (
            select source_id, epoch, binlog_file, file_sequence, start_pos, payload_ordinal
            from binloom.schema_changes where error_code = 0
        ) as changes using (source_id, epoch, binlog_file, start_pos, payload_ordinal)
        where source_id = $source
            and action in ('rename_column', 'modify_column', 'drop_column')
            and (action = 'drop_column' or columns[1].name is distinct from column_name)
        order by changes.epoch, changes.file_sequence, start_pos, payload_ordinal, action_ordinal
        """,
        {"source": source_id},
    ).fetchall()
    steps: dict[tuple[str, str], list[Step]] = {}
    for schema, table, epoch, sequence, pos, column, action, new_name in rows:
        if column is not None and (action == "drop_column" or new_name is not None):
            step = Step((epoch, sequence, pos), column, None if action == "drop_column" else new_name)
            steps.setdefault((schema, table), []).append(step)
    return steps


def former_names(used: Sequence[UsedVersion], steps: Sequence[Step], present: set[str]) -> tuple[FormerNames, ...]:
    """Return the versions whose columns have other names today, grouped by their names.

    Parameters
    ----------
    present
        Names of the present columns.
    """
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for version in used:
        renamed = _renamed(version, steps, present)
        if renamed:
            groups.setdefault(tuple(sorted(renamed.items())), []).append(version.table_version_id)
    return tuple(FormerNames(tuple(sorted(ids)), dict(names)) for names, ids in groups.items())


def _renamed(version: UsedVersion, steps: Sequence[Step], present: set[str]) -> dict[str, str]:
    """Follow the columns of a version through the steps after it; return those whose name changes."""
    names = {name: name for name in version.names}
    dropped: set[str] = set()
    for step in steps:
        if step.place <= version.first_used:
            continue
        for original, name in names.items():
            # Column names have no case.
            if original not in dropped and name.lower() == step.column.lower():
                if step.new_name is None:
                    dropped.add(original)
                else:
                    names[original] = step.new_name
                break
    as_written = {name.lower(): name for name in present}
    kept = {name.lower() for original, name in names.items() if original not in dropped}
    for original in names:
        if original in dropped and names[original].lower() in kept:
            # Another column has its name today.
            names[original] = _free(f"{names[original]}_dropped", {*kept, *as_written})
        names[original] = as_written.get(names[original].lower(), names[original])
    return {original: name for original, name in names.items() if original != name}


def _free(name: str, taken: set[str]) -> str:
    while name.lower() in taken:
        name += "_"
    return name
