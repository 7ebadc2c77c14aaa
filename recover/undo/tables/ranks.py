"""Tables in the order of their foreign keys."""

from collections.abc import Iterable, Sequence

from recover.undo.tables.table import ForeignKey, TableName


def table_ranks(tables: Iterable[TableName], foreign_keys: Sequence[ForeignKey]) -> dict[TableName, int]:
    """Return a rank for each table: parents before their children, as far as foreign keys have no circles."""
    left = sorted(tables)
    parents = {table: {key.parent for key in foreign_keys if key.table == table} - {table} for table in left}
    ranks: dict[TableName, int] = {}
    while left:
        free = [table for table in left if not parents[table] & {*left}] or left[:1]
        for table in free:
            ranks[table] = len(ranks)
        left = [table for table in left if table not in ranks]
    return ranks
