"""Statements in a selected part of the log that an undo of its rows does not take back."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ingest.words import counted
from recover.selection.condition import is_filtered_table, statement_condition
from recover.selection.filters import Filters

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SHOWN: Final = 10
# Filters of a part of the log. With any other, a person has chosen rows or transactions, and no statements.
_OF_PARTS: Final = ("sources", "schemas", "tables", "since", "until", "files", "from_pos", "to_pos")

_STATEMENTS: Final = """
    select statement_type as kind, unnest(if(len(tables) > 0, tables, [schema_name])) as name, epoch, binlog_file,
        start_pos
    from binloom.schema_changes
    where ({is_within}) and (len(tables) > 0 or list_contains(actions, 'drop_database'))
    union all
    select target.verb, concat_ws('.', target.schema_name, target.table_name), epoch, binlog_file, start_pos
    from (
        select *, unnest(dml_targets) as target from binloom_staging.stg_binlog__statements where {is_within}
    )"""


def statements_within(connection: "DuckDBPyConnection", source_id: str, filters: Filters) -> Iterator[str]:
    """Yield what a script does not contain: the statements in the part of the log that the filters select."""
    if filters != Filters(**{name: getattr(filters, name) for name in _OF_PARTS}):
        return
    is_within = statement_condition(replace(filters, sources=(source_id,))).sql("duckdb")
    rows = connection.execute(
        f"""select kind, name, arg_min(binlog_file || ':' || start_pos, (epoch, binlog_file, start_pos)), count(*)
        from ({_STATEMENTS.format(is_within=is_within)}) group by kind, name
        order by min((epoch, binlog_file, start_pos))"""
    ).fetchall()
    selected = [row for row in rows if row[1] is None or _is_selected(filters, row[1])]
    for kind, name, first, count in selected[:_SHOWN]:
        later = f" and at {counted(count - 1, 'later place')}" if count > 1 else ""
        yield (
            f"{kind or 'a statement'} of {name or 'unknown tables'} at {first}{later}, because an undo takes back only"
            " rows that the log lists"
        )
    if len(selected) > _SHOWN:
        yield f"{counted(len(selected) - _SHOWN, 'more kind')} of statements, for the same reason"


def _is_selected(filters: Filters, name: str) -> bool:
    schema, _, table = name.rpartition(".")
    return is_filtered_table(filters, schema, table) if schema else is_filtered_table(filters, name, "")
