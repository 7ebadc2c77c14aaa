"""The names that a table had before it was renamed, by the statements in files."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingest.binlog import Scan


def with_former_names(tables: Collection[str], scans: "Iterable[Scan]") -> frozenset[str] | None:
    """Return names of tables and those that they had before a RENAME TABLE, in lower case; None for all tables."""
    from ingest.ddl.batches import ddl_batch

    if not tables:
        return None
    renames: list[tuple[str, str]] = []
    for scan in scans:
        for statements in scan.ddl_statements:
            batch = ddl_batch(statements, scan.format.flavor, scan.format.server_version)
            for row in batch.to_pylist() if batch is not None else ():
                if row["action"] == "rename_table":
                    former = f"{row['schema_name']}.{row['table_name']}".lower()
                    renames.append((former, f"{row['other_schema_name']}.{row['other_table_name']}".lower()))
    names = {table.lower() for table in tables}
    for former, name in reversed(renames):
        if names & {name, name.partition(".")[2]}:
            names.add(former)
    return frozenset(names)
