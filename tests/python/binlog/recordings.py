"""The workload as a real server logged it, with what the server and its own tool say of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ingest.binlog import SchemaHints, open_binlog
from tests.python.binlog import binlogtool_output, workload
from tests.python.binlog.workload import Flavor, Table
from tests.servers import Distribution, Server

Values = tuple[str | None, ...]


@dataclass(frozen=True)
class Setting:
    """How a server logs."""

    flavor: Flavor
    metadata: str
    checksum: str

    def __str__(self) -> str:
        return f"{self.flavor}-{self.metadata}-{self.checksum}"

    def apply(self, server: Server) -> None:
        server.execute(
            f"set global binlog_row_metadata = '{self.metadata}'", f"set global binlog_checksum = '{self.checksum}'"
        )


DEFAULTS: dict[str, Setting] = {
    "mysql": Setting("mysql", "MINIMAL", "CRC32"),
    "mariadb": Setting("mariadb", "NO_LOG", "CRC32"),
}
MATRIX = [
    *DEFAULTS.values(),
    Setting("mysql", "FULL", "CRC32"),
    Setting("mysql", "MINIMAL", "NONE"),
    Setting("mysql", "FULL", "NONE"),
    Setting("mariadb", "MINIMAL", "CRC32"),
    Setting("mariadb", "FULL", "CRC32"),
    Setting("mariadb", "NO_LOG", "NONE"),
    Setting("mariadb", "FULL", "NONE"),
]


@dataclass(frozen=True)
class Change:
    """One changed row."""

    event_type: str
    table: str
    before: Values | None
    after: Values | None


@dataclass
class Recording:
    """A closed binlog of the workload, the schema, and the rows that were there at its end."""

    setting: Setting
    distribution: Distribution
    tables: list[Table]
    binlog: Path
    schema_dir: Path
    final_rows: dict[str, list[Values]]

    def table(self, name: str) -> Table:
        return next(table for table in self.tables if table.name == name)

    @cached_property
    def tool_output(self) -> binlogtool_output.Output:
        """What the server's own tool prints of the file."""
        done = self.distribution.binlogtool("-vv", "--base64-output=decode-rows", str(self.binlog))
        return binlogtool_output.parse(done.stdout)

    def hints(self) -> SchemaHints:
        return SchemaHints.from_columns(snapshot_rows(self.schema_dir))

    def changes(self, *, with_hints: bool = True) -> list[Change]:
        """Decode the file; nothing in it may be unsupported."""
        return list(decoded_changes(self.binlog, self.hints() if with_hints else None))


def record(server: Server, setting: Setting, tables: list[Table], directory: Path) -> Recording:
    """Run tables on a server under a setting; leaves the server under its defaults."""
    setting.apply(server)
    server.flush()
    workload.run(server, tables)
    binlog = server.flush()
    DEFAULTS[server.flavor].apply(server)
    final_rows = {table.name: workload.final_rows(server, table) for table in tables}
    return Recording(
        setting, server.distribution, tables, binlog, server.snapshot_dir(directory / "schema"), final_rows
    )


def snapshot_rows(directory: Path) -> Iterator[dict[str, Any]]:
    """Read a folder of information_schema views as rows of `schema_columns`."""
    keys = {
        (row["TABLE_SCHEMA"], row["TABLE_NAME"], row["COLUMN_NAME"]): row["ORDINAL_POSITION"]
        for row in json.loads((directory / "key_column_usage.json").read_text())
        if row["CONSTRAINT_NAME"] == "PRIMARY"
    }
    for row in json.loads((directory / "columns.json").read_text()):
        yield {
            "schema_name": row["TABLE_SCHEMA"],
            "table_name": row["TABLE_NAME"],
            "column_name": row["COLUMN_NAME"],
            "ordinal_position": row["ORDINAL_POSITION"],
            "column_key": row["COLUMN_KEY"],
            "primary_key_ordinal": keys.get((row["TABLE_SCHEMA"], row["TABLE_NAME"], row["COLUMN_NAME"])),
            "data_type": row["DATA_TYPE"],
            "column_type": row["COLUMN_TYPE"],
            "character_set": row["CHARACTER_SET_NAME"],
            "is_nullable": row["IS_NULLABLE"] == "YES",
            "is_generated": "GENERATED" in row["EXTRA"],
            "extra": row["EXTRA"],
        }


def decoded_changes(path: Path, hints: SchemaHints | None) -> Iterator[Change]:
    """Decode a file through the Python interface."""
    for kind, batch in open_binlog(path, hints=hints).batches():
        if kind == "unsupported_events":
            assert batch.num_rows == 0, batch.to_pylist()[:5]
        if kind == "row_events":
            for row in batch.to_pylist():
                assert row["schema_name"] == workload.SCHEMA
                assert len(row["before_values"]) == len(row["after_values"]) == row["column_count"]
                yield _change(row["event_type"], row["table_name"], row["before_values"], row["after_values"])


def changes_of_lines(lines: Iterable[str]) -> Iterator[Change]:
    """Read what `binloom decode` prints."""
    for line in lines:
        row = json.loads(line)
        yield _change(row["event_type"], row["table_name"], row["before"], row["after"])


def _change(event_type: str, table: str, before: list[str | None] | None, after: list[str | None] | None) -> Change:
    return Change(
        event_type,
        table,
        None if event_type == "INSERT" or before is None else tuple(before),
        None if event_type == "DELETE" or after is None else tuple(after),
    )


def replay(table: Table, changes: Iterable[Change]) -> list[Values]:
    """Apply the changes of a table to no rows at all; each before image must be a row that is there."""
    rows: dict[Values, int] = {}
    for change in changes:
        if change.before is not None:
            assert rows.get(change.before), (
                f"{table.name}: {change.event_type} of a row that is not there: {change.before}"
            )
            rows[change.before] -= 1
        if change.after is not None:
            rows[change.after] = rows.get(change.after, 0) + 1
    return [row for row, count in rows.items() for _ in range(count)]
