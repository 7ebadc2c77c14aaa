"""The rows of a cluster that an undo needs, copied into DuckDB."""

from collections.abc import Iterable
from typing import Final

from recover.selection.condition import Selection
from recover.sources.cluster.copies import Copies
from recover.sources.home.landed_marts import STATEMENTS
from recover.timeline.copied import copy_changes, copy_events
from recover.undo.options import Mode, UndoOptions
from recover.undo.select.cascades import cascading_tables
from recover.undo.tables.definitions import Definitions
from recover.undo.tables.table import TableName, with_neighbours

_TRANSACTION: Final = ("source_id", "epoch", "file_sequence", "transaction_pos")


def copy_selected(copies: Copies, selection: Selection, options: UndoOptions) -> str:
    """Copy all changes of the tables that an undo of a selection reads; return the condition of the selected ones.

    Parameters
    ----------
    copies
        It has `table_versions`.
    selection
        Asked on the cluster, which has the statements and all tables.
    """
    from sqlglot import exp

    copies.add_rows(selection.query("source_id", "change_id"), "selected_on_cluster")
    sources = copies.connection.execute("select distinct source_id from binloom.selected_on_cluster").fetchall()
    if len(sources) == 1:
        (source_id,) = sources[0]
        tables = _tables_of(copies, selection)
        definitions = Definitions.of_cluster(source_id, copies.cluster)
        if options.with_cascades:
            tables = cascading_tables(definitions, tables)
        groups = [*_children(definitions)]
        if options.mode is Mode.DEPENDENTS:
            # Later transactions are taken back, too.
            groups += _tables_of_transactions(copies, source_id)
        found = with_neighbours(_closure(tables, groups), definitions.foreign_keys)
        copy_changes(copies, source_id, sorted(found))
        copy_events(copies, source_id, all_transactions=False)
        schema, name = STATEMENTS
        of_source = exp.and_(exp.column("source_id").eq(source_id), "size(dml_targets) > 0", dialect="spark")
        place = ("source_id", "epoch", "binlog_file", "start_pos", "transaction_pos")
        columns = (*place, "event_timestamp", "dml_targets")
        copies.add(name, of_source, schema=schema, columns=columns)
    else:
        # No undo; the error for it needs the selected changes at most.
        copies.add("row_changes", selection.condition)
    return "change_id in (select change_id from binloom.selected_on_cluster)"


def _tables_of(copies: Copies, selection: Selection) -> set[TableName]:
    """Return the tables of the transactions that have a selected change."""
    from sqlglot import exp

    names = " and ".join(f"found.{name} = row_changes.{name}" for name in _TRANSACTION)
    found = exp.select("1").from_(selection.query(*_TRANSACTION).subquery("found")).where(names)
    query = exp.select("schema_name", "table_name").distinct().from_("binloom.row_changes")
    return {(schema, name) for schema, name in copies.cluster.rows(query.where(exp.Exists(this=found)))}


def _children(definitions: Definitions) -> Iterable[tuple[set[TableName], set[TableName]]]:
    """Yield each parent and its children: rows of a child may hold what the undo removes."""
    for key in definitions.foreign_keys:
        yield {key.parent}, {key.table}


def _tables_of_transactions(copies: Copies, source_id: str) -> Iterable[tuple[set[TableName], set[TableName]]]:
    """Yield the sets of tables that transactions of a source changed together."""
    from sqlglot import exp

    query = exp.select("array_sort(collect_set(named_struct('s', schema_name, 't', table_name))) as tables")
    together = query.from_("binloom.row_changes").where(exp.column("source_id").eq(source_id)).group_by(*_TRANSACTION)
    for (tables,) in copies.cluster.rows(exp.select("tables").distinct().from_(together.subquery("together"))):
        names = {(one["s"], one["t"]) for one in tables}
        yield names, names


def _closure(tables: set[TableName], groups: list[tuple[set[TableName], set[TableName]]]) -> set[TableName]:
    """Return tables and all that the groups add: one of the first set of a group adds the second set."""
    found = set(tables)
    while added := {name for some, others in groups if some & found for name in others} - found:
        found |= added
    return found
