"""The tables of a dump that a person names, and those that their foreign keys need."""

import difflib
from collections.abc import Collection, Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Final

from ingest.binlog.filters import matches
from ingest.errors import UsageError
from ingest.sources.baselines.baseline_tables import ENGINES, BaselineTable
from ingest.sources.dumps.dump import Dump
from recover.restore.refusal import RestoreRefusedError
from recover.undo.tables.table import ForeignKey, TableName

_MOST_NAMED: Final = 5


def is_pattern(text: str) -> bool:
    """Return whether a text may name several tables, also some that the dump lacks."""
    return "*" in text or "?" in text


def chosen(text: str, known: Collection[TableName]) -> list[TableName]:
    """Return the tables that a text names, `schema.table` or a pattern with `*` and `?`, in the order of `known`."""
    if "." not in text:
        raise UsageError(f"{text} has no schema.", hint=f"Write it as SCHEMA.{text}, or {text}.* for a whole schema.")
    return (
        [name for name in known if ".".join(name) == text]
        or [name for name in known if is_pattern(text) and matches(".".join(name), text)]
        or [name for name in known if ".".join(name).lower() == text.lower()]
    )


def unknown_name(text: str, known: Iterable[TableName]) -> UsageError:
    """Return the error for a text that names no table."""
    names = [".".join(name) for name in known]
    near = difflib.get_close_matches(text, names, n=3) or names[:_MOST_NAMED]
    nor_file = ", and there is no such file" if "/" in text else ""
    return UsageError(
        f"Neither the dump nor the log after it has a table {text}{nor_file}.", hint=f"There are {', '.join(near)}."
    )


def with_parents(names: Iterable[TableName], keys: Iterable[ForeignKey]) -> set[TableName]:
    """Return tables and all that their foreign keys refer to, directly or through others."""
    found, of_all = set(names), [*keys]
    while added := {key.parent for key in of_all if key.table in found} - found:
        found |= added
    return found


def parents_first(names: Iterable[TableName], keys: Iterable[ForeignKey]) -> list[TableName]:
    """Return tables in an order in which rows come after the rows that they refer to, as far as there is one."""
    left = [*names]
    edges = {name: {key.parent for key in keys if key.table == name} & {*left} - {name} for name in left}
    try:
        return [*TopologicalSorter(edges).static_order()]
    except CycleError:
        return left


def missing_parents(names: Collection[TableName], keys: Iterable[ForeignKey]) -> Iterator[str]:
    """Yield sentences on the tables that foreign keys refer to and that are not restored."""
    for table, parent in dict.fromkeys((key.table, key.parent) for key in keys if key.table in names):
        if parent not in names:
            yield (
                f"{'.'.join(table)} refers to {'.'.join(parent)}, which is not restored: its rows must exist when"
                " you load these rows. --with-parents restores it, too."
            )


def dumped_table(dump: Dump, name: TableName, *, is_locked: bool) -> BaselineTable:
    """Return a table of a dump with exact rows at its position.

    Parameters
    ----------
    is_locked
        Whether all tables were locked when the dump was written.

    Raises
    ------
    RestoreRefusedError
        The rows are not known to be of the position, or some values are not exact.
    SnapshotInputError
        The dump does not tell what the values of the table mean.
    """
    engine = dump.engines.get(name)
    if engine not in ENGINES and not is_locked:
        what = f"is of engine {engine}" if engine is not None else "has no engine in the dump"
        raise RestoreRefusedError(
            f"{'.'.join(name)} {what}: its rows may be of a later moment than the position of the dump. Only InnoDB"
            " shows all rows at one position.",
            hint="If the dump was written with --lock-all-tables, give --locked.",
        )
    table = dump.table(name)
    if not dump.has_data(table):
        raise RestoreRefusedError(
            f"The dump has no rows of {table}, and does not show that the table was empty (--no-data).",
            hint="Give a dump with the rows of the table.",
        )
    if lacking := [one for one in dump.rounded_columns(table) if one not in table.column_names]:
        raise RestoreRefusedError(
            f"The dump has only rounded values of {', '.join(lacking)} of {table}: mysqldump writes six digits of a"
            " FLOAT, and the decimals of DOUBLE(M,D).",
            hint="Give --rounded to take these values from the dump, as a restore of the dump itself would.",
        )
    return table
