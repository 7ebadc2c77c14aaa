"""Cascades that a server has logged: MySQL 9.6 and later log the rows of the second level after those of the first.

The way back begins with the parents. A row that a cascade changed after its parent therefore keeps its place in commit
order relative to other changes, but is taken back after its parent.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recover.sources.engine import literal
from recover.undo.select.selected import ORDER, Selected, is_selected
from recover.undo.tables.table import CASCADING, ForeignKey

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def find_levels(connection: "DuckDBPyConnection", selected: Selected, foreign_keys: Sequence[ForeignKey]) -> None:
    """Write the selected changes that a logged cascade made after its parent to `cascade_levels`.

    Each has its number of levels below the first change of the cascade, and the place of that change.
    """
    connection.execute(
        "create or replace temp table caused_changes (change_id varchar, caused_by varchar);"
        f"create or replace table cascade_levels as select change_id, 0::bigint as level, {ORDER}"
        " from binloom.row_changes limit 0"
    )
    for key in foreign_keys:
        if {key.delete_rule, key.update_rule} & {*CASCADING} and {key.table, key.parent} <= selected.tables.keys():
            _find_causes(connection, selected, key)
    connection.execute(
        f"""
        insert into cascade_levels by name
        with recursive above as (
            select change_id, caused_by, 1::bigint as level from caused_changes
            union all
            select above.change_id, caused_changes.caused_by, level + 1
            from above inner join caused_changes on caused_changes.change_id = above.caused_by
        ),
        deepest as (select change_id, arg_max(caused_by, level) as caused_by, max(level) as level from above group by 1)
        select deepest.change_id, level, {ORDER}
        from deepest inner join binloom.row_changes as causes on causes.change_id = deepest.caused_by
        """
    )


def _find_causes(connection: "DuckDBPyConnection", selected: Selected, key: ForeignKey) -> None:
    """Find the children that changed after their parent was deleted or got another key, in the same transaction.

    No other child can have referred to the old key by then.
    """
    connection.execute(
        f"""
        insert into caused_changes
        with chosen as (
            select *, (epoch, file_sequence, transaction_pos) as within, ({ORDER}) as place
            from binloom.row_changes as changes where {is_selected(selected.is_whole)} and outcome = 'commit'
        ),
        parents as (select * from chosen where schema_name = $parent_schema and table_name = $parent_name),
        keys as (
            select within, place, change_id, {_values("row_before", key.parent_columns)} as value, true as is_lost
            from parents where row_before is not null
            union all
            select within, place, change_id, {_values("row_after", key.parent_columns)}, false
            from parents where row_after is not null
        ),
        children as (
            select *, {_values("row_before", key.columns)} as value from chosen
            where schema_name = $schema and table_name = $name and row_before is not null
            and {_values("row_before", key.columns)} is distinct from {_values("row_after", key.columns)}
        )
        select children.change_id, arg_max(keys.change_id, (keys.place, not keys.is_lost))
        from children inner join keys using (within, value)
        where keys.place < children.place and keys.change_id != children.change_id
        group by children.change_id
        having arg_max(keys.is_lost, (keys.place, not keys.is_lost))
        """,
        {
            "parent_schema": key.parent[0], "parent_name": key.parent[1],
            "schema": key.table[0], "name": key.table[1],
        },
    )  # fmt: skip


def _values(image: str, names: Sequence[str]) -> str:
    """Return an expression of some columns of an image; NULL if one of them is NULL."""
    parts = " || ' | ' || ".join(f"replace({image}[{literal(name)}], '|', '||')" for name in names)
    return f"({parts})"
