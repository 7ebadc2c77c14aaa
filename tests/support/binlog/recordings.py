"""The workload as a real server logged it, with the output of the server and of its own tool."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ingest.binlog import SchemaHints
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from tests.servers import Distribution, Server, mariadb, mariadb118, mysql
from tests.servers.rows import table_rows
from tests.support.binlog import binlogtool_output, workload
from tests.support.binlog.replay import Decoded, Values
from tests.support.binlog.workload import Table
from tests.support.depth import is_full

V1_ROWS = "log_bin_use_v1_row_events"
# Names of variables that do not begin with `binlog_`.
OTHER_NAMES = {V1_ROWS, "log_bin_compress", "log_bin_compress_min_len", "mysql56_temporal_format"}


@dataclass(frozen=True)
class Setting:
    """The logging configuration of a server: global variables with other values than the default, and transactions.

    Attributes
    ----------
    server
        The server's marker: `mysql56`.
    variables
        Names and values; names without `binlog_`.
    transactions
        One of `workload.TRANSACTIONS`.
    """

    server: str
    variables: tuple[tuple[str, str], ...] = ()
    transactions: str = "plain"

    @classmethod
    def of(cls, server: str, transactions: str = "plain", **variables: str) -> Setting:
        return cls(server, tuple(variables.items()), transactions)

    def __str__(self) -> str:
        kinds = [] if self.transactions == "plain" else [self.transactions]
        return "-".join([self.server, *kinds, *(f"{name}={value}" for name, value in self.variables)])

    def __getitem__(self, variable: str) -> str | None:
        """Return the value of a variable, None when it is at its default."""
        return dict(self.variables).get(variable)

    @property
    def flavor(self) -> str:
        return "mariadb" if self.server.startswith("mariadb") else "mysql"

    @property
    def has_full_images(self) -> bool:
        return self["row_image"] in (None, "FULL")

    @property
    def tool(self) -> Distribution:
        """The server whose tool reads the logs: mysqlbinlog 9.7 refuses row events of version 1."""
        if self.server == "mariadb118":
            return mariadb118
        return mariadb if self.flavor == "mariadb" or self[V1_ROWS] else mysql

    @contextmanager
    def applied(self, server: Server) -> Iterator[None]:
        """Apply this configuration to a server while the block runs."""
        names = [name if name in OTHER_NAMES else f"binlog_{name}" for name, _ in self.variables]
        before = [server.execute(f"select @@global.{name}")[0][0] for name in names]
        try:
            for name, (_, value) in zip(names, self.variables, strict=True):
                server.execute(f"set global {name} = {value if value.isdigit() else repr(value)}")
            yield
        finally:
            for name, value in zip(names, before, strict=True):
                server.execute(f"set global {name} = {value!r}")


SERVERS = ("mysql", "mysql56", "mariadb", "mariadb118")
FULL = {"row_metadata": "FULL"}
NO_CHECKSUM = {"checksum": "NONE"}
COMPRESSED = {"transaction_compression": "ON"}
PARTIAL_JSON = {"row_value_options": "PARTIAL_JSON"}
COMPRESSED_EVENTS = {"log_bin_compress": "ON", "log_bin_compress_min_len": "10"}

DEFAULTS = [Setting(server) for server in SERVERS]
# Each value of each variable, on each server that has it.
COMBINED = [
    Setting.of("mysql", **NO_CHECKSUM, row_image="MINIMAL"),
    Setting.of("mysql", **FULL, row_image="NOBLOB"),
    Setting.of("mysql", "xa", **COMPRESSED, **FULL, **NO_CHECKSUM),
    Setting.of("mysql", **PARTIAL_JSON),
    Setting.of("mysql", "tagged", **PARTIAL_JSON, **COMPRESSED, **FULL),
    Setting.of("mysql56", **{V1_ROWS: "1"}, **NO_CHECKSUM, row_image="MINIMAL"),
    Setting.of("mysql56", row_image="NOBLOB"),
    *(
        setting
        for server in ("mariadb", "mariadb118")
        for setting in (
            Setting.of(server, row_metadata="MINIMAL", row_image="MINIMAL"),
            Setting.of(server, **FULL, row_image="NOBLOB"),
            Setting.of(server, "xa", **COMPRESSED_EVENTS, **FULL, **NO_CHECKSUM),
        )
    ),
    Setting.of("mariadb118", **FULL, row_image="FULL_NODUP"),
]
# The same values alone, or with others.
FURTHER = [
    Setting.of("mysql", **FULL),
    Setting.of("mysql", **FULL, **NO_CHECKSUM),
    Setting.of("mysql", "xa"),
    Setting.of("mysql", "tagged"),
    Setting.of("mysql", **COMPRESSED),
    Setting.of("mysql", **PARTIAL_JSON, row_image="NOBLOB"),
    Setting.of("mysql56", **{V1_ROWS: "1"}),
    Setting.of("mysql56", **NO_CHECKSUM, row_image="NOBLOB"),
    *(
        setting
        for server in ("mariadb", "mariadb118")
        for setting in (
            Setting.of(server, **FULL),
            Setting.of(server, **FULL, **NO_CHECKSUM),
            Setting.of(server, "xa"),
            Setting.of(server, **COMPRESSED_EVENTS),
        )
    ),
]
MATRIX = [*DEFAULTS, *COMBINED, *(FURTHER if is_full() else ())]
# MariaDB's own tool stops at temporal values in the format before MySQL 5.6 that have a fraction.
OLD_TEMPORALS = [Setting.of(server, mysql56_temporal_format="OFF") for server in ("mariadb", "mariadb118")]
# Partial JSON updates, without the document that they change.
WITHOUT_DOCUMENTS = Setting.of("mysql", **PARTIAL_JSON, row_image="MINIMAL")
# Types that only some servers have.
OWN = [
    *DEFAULTS,
    Setting.of("mysql", **FULL, **COMPRESSED),
    Setting.of("mariadb", **FULL, **COMPRESSED_EVENTS),
    Setting.of("mariadb118", **FULL, **COMPRESSED_EVENTS),
]
# These cannot be replayed: statements have no images.
MIXED = [Setting.of(server, "mixed") for server in SERVERS]


@dataclass
class Recording:
    """A closed binlog of the workload, the schema, and the final rows."""

    setting: Setting
    tables: list[Table]
    binlog: Path
    schema_dir: Path
    final_rows: dict[str, list[Values]]

    def table(self, name: str) -> Table:
        return next(table for table in self.tables if table.name == name)

    @cached_property
    def tool_output(self) -> binlogtool_output.Output:
        """The output of mysqlbinlog or mariadb-binlog for the file."""
        done = self.setting.tool.binlogtool("-vv", "--base64-output=decode-rows", str(self.binlog))
        return binlogtool_output.parse(done.stdout)

    def hints(self) -> SchemaHints:
        return SchemaHints.from_columns(read_snapshot_dir(self.schema_dir).columns)

    def decoded(self, *, with_hints: bool = True) -> Decoded:
        """Decode the file; nothing in it may be unsupported."""
        decoded = Decoded.of(self.binlog, self.hints() if with_hints else None)
        assert decoded.unsupported_events == [], decoded.unsupported_events[:5]
        return decoded


def record(server: Server, setting: Setting, tables: Sequence[Table], directory: Path) -> Recording:
    """Record tables on a server under a setting; the server keeps its defaults afterwards."""
    with setting.applied(server):
        server.flush()
        workload.run(server, tables, setting.transactions)
        binlog = server.flush()
    final_rows = {table.name: table_rows(server, workload.SCHEMA, table.name)[1] for table in tables}
    return Recording(setting, list(tables), binlog, server.snapshot_dir(directory / "schema"), final_rows)
