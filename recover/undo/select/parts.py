"""The parts of indexed files that an undo reads: those with selected rows, and those with rows of its tables."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial

from ingest.errors import BinloomError, UsageError
from recover.selection.filters import Filters
from recover.sources.files.more_rows import Rest
from recover.sources.files.needed_tables import renames as renames_of
from recover.sources.log import Log, Parts
from recover.undo.options import Mode, UndoOptions
from recover.undo.select.cascades import cascading_tables
from recover.undo.tables.definitions import Definitions, history_of
from recover.undo.tables.table import ForeignKey, TableName, with_neighbours


def parts_of_undo(filters: Filters, options: UndoOptions) -> Parts | None:
    """Return the parts that an undo of a selection reads; None: all of them."""
    if options.mode is Mode.DEPENDENTS:
        # Later transactions, which are taken back too, may have changed any table.
        return None
    return Parts(filters, partial(rest_of_undo, filters, options))


def assert_read(log: Log, tables: Iterable[TableName], definitions: Definitions) -> None:
    """Refuse an undo if a server has got a foreign key since its definitions decided what was read.

    Raises
    ------
    UsageError
        The log lacks rows of a table that a foreign key connects with the tables of the undo.
    """
    if log.read_tables is None:
        return
    needed = with_neighbours(map(_lower, tables), _keys(definitions))
    if missing := sorted({_text(name) for name in needed} - log.read_tables):
        raise UsageError(
            f"The foreign keys changed while the files were read: rows of {missing[0]} are needed, too.",
            hint="Run the command again.",
        )


def rest_of_undo(filters: Filters, options: UndoOptions, log: Log) -> list[Rest]:
    """Return the rows that an undo of a selection needs besides the selected ones.

    Parameters
    ----------
    log
        It has all rows of the transactions that the filters select from, and perhaps no others.
    """
    try:
        condition = log.select(filters).condition.sql("duckdb")
        rows = log.connection.execute(
            f"""select distinct source_id, schema_name, table_name from binloom.row_changes
            semi join (select epoch, binlog_file, transaction_pos from binloom.row_changes where {condition})
                using (epoch, binlog_file, transaction_pos)"""
        ).fetchall()
        if not rows:
            return [Rest()]
        source_id = rows[0][0]
        definitions = Definitions.of_log(log, source_id)
    except BinloomError:
        # All files are read, and then tell the error.
        return [Rest()]
    names = {_lower(name) for _, *name in rows}
    renames = renames_of(history_of(log, source_id).evidence())
    keys = _keys(definitions)
    names = _with_other_names(names, renames)
    if options.with_cascades:
        names = cascading_tables(replace(definitions, foreign_keys=keys), names)
    return [Rest(frozenset(map(_text, _with_other_names(with_neighbours(names, keys), renames))))]


def _with_other_names(names: Iterable[TableName], renames: Collection[tuple[TableName, TableName]]) -> set[TableName]:
    """Return names of tables with all that the tables had before or after."""
    found = {*names}
    while more := {name for pair in renames if found & {*pair} for name in pair} - found:
        found |= more
    return found


def _keys(definitions: Definitions) -> tuple[ForeignKey, ...]:
    """Return the foreign keys, with the names of tables in small letters, as not every statement spells them alike."""
    return tuple(replace(key, table=_lower(key.table), parent=_lower(key.parent)) for key in definitions.foreign_keys)


def _lower(name: Iterable[str]) -> TableName:
    schema, table = name
    return schema.lower(), table.lower()


def _text(name: TableName) -> str:
    return ".".join(name)
