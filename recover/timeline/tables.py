"""The table that a person names."""

import difflib
from typing import TYPE_CHECKING

from ingest.errors import UsageError
from recover.timeline.table_log import Table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class UnknownTableError(UsageError):
    """No table of that name is in the log, or several are."""


def find_table(connection: "DuckDBPyConnection", name: str, source_id: str | None) -> Table:
    """Return the table with a name.

    Parameters
    ----------
    connection
        It has the mart `table_versions`.
    name
        `schema.table`, or only the table's name if no other schema has one.
    source_id
        Name of the source; None if only one source has the table.

    Raises
    ------
    UnknownTableError
        No table has this name, or several do.
    """
    rows = connection.execute(
        "select distinct source_id, schema_name, table_name from binloom.table_versions order by all"
    ).fetchall()
    tables = [Table(*row) for row in rows]
    sources = sorted({table.source_id for table in tables})
    if source_id is not None and source_id not in sources:
        near = difflib.get_close_matches(source_id, sources, n=3) or sources
        raise UnknownTableError(f"There is no source {source_id}.", hint=f"There are {', '.join(near)}.")
    own = [table for table in tables if source_id in (None, table.source_id)]
    found = [table for table in own if name in (str(table), table.table_name)] or [
        table for table in own if name.lower() in (str(table).lower(), table.table_name.lower())
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        names = sorted({str(table) for table in own})
        plain = {table.table_name: str(table) for table in own}
        near = difflib.get_close_matches(name, names, n=3) or [
            plain[one] for one in difflib.get_close_matches(name, plain, n=3)
        ]
        hint = f"There are {', '.join(near or names[:10])}." if names else "Land a binlog, then run `binloom build`."
        raise UnknownTableError(f"The log contains no table {name}.", hint=hint)
    if len({table.source_id for table in found}) > 1:
        choices = ", ".join(sorted({table.source_id for table in found}))
        raise UnknownTableError(f"Several sources have a table {name}.", hint=f"Give --source: {choices}.")
    choices = ", ".join(str(table) for table in found)
    raise UnknownTableError(f"Several schemas have a table {name}.", hint=f"Give one of {choices}.")
