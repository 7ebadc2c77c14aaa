"""The one table that a person names."""

from ingest.errors import UsageError
from recover.selection.catalog import UnknownNameError, unknown_source, unknown_table
from recover.selection.filters import Filters
from recover.sources.log import Log
from recover.timeline.events import Table


class AmbiguousTableError(UsageError):
    """Several tables have a name."""


def find_table(log: Log, name: str, source_id: str | None = None) -> Table:
    """Return the table with a name.

    Parameters
    ----------
    log
        A log with the rows of the table.
    name
        `schema.table`, or only the table's name if no other schema has one; in any case if no other name differs.
    source_id
        Name of the source; None if only one source has the table.

    Raises
    ------
    UnknownNameError
        No table has this name.
    AmbiguousTableError
        Several tables have it.
    UsageError
        All rows of the table are in quarantine.
    """
    tables = {Table(one.source_id, one.schema_name, one.table_name) for one in log.versions}
    sources = {table.source_id for table in tables}
    if source_id is not None and source_id not in sources and not log.tables:
        raise unknown_source(source_id, sources)
    own = [table for table in tables if source_id in (None, table.source_id)]
    found = [table for table in own if name in (str(table), table.table_name)] or [
        table for table in own if name.lower() in (str(table).lower(), table.table_name.lower())
    ]
    if not found:
        raise _unknown(log, name, own)
    if len({table.source_id for table in found}) > 1:
        choices = ", ".join(sorted({table.source_id for table in found}))
        raise AmbiguousTableError(f"Several sources have a table {name}.", hint=f"Give --source: {choices}.")
    if len(found) > 1:
        choices = ", ".join(sorted(map(str, found)))
        raise AmbiguousTableError(f"Several schemas have a table {name}.", hint=f"Give one of {choices}.")
    return found[0]


def _unknown(log: Log, name: str, own: list[Table]) -> UnknownNameError:
    """Return the error for a table that no version has; the files may have its rows, without names."""
    log.assert_not_quarantined(Filters(tables=(name,)))
    return log.unknown(unknown_table(name, log.tables or ((table.schema_name, table.table_name) for table in own)))
