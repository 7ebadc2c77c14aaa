"""Keeps the record of the tables that a run of dbt builds: see `ingest.warehouse.built`."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dbt.adapters.contracts.connection import Connection
from dbt.adapters.spark.session import SessionConnectionWrapper
from dbt.flags import get_flags

from binloom.commands.lost_connections import COMMENTS
from ingest.warehouse.built import Columns, TableRecord
from ingest.warehouse.home import warehouse_dir

_TABLES: Final = ("table", "incremental", "parts", "snapshot")
# Readers see a table that is dropped file by file, or made from nothing.
_HIDES: Final = re.compile(
    rf"{COMMENTS}(?:(?:drop|truncate)\s+table|create\s+(?:or\s+replace\s+)?table|alter\s+table\s+\S+\s+drop)\b",
    re.I | re.S,
)
_REPLACES: Final = re.compile(rf"{COMMENTS}(?:insert|merge)\b", re.I | re.S)


class BuiltTables:
    """The records of the tables of one run.

    Attributes
    ----------
    is_in_this_process
        Whether a session of this process builds them. Nobody reads the files of a Thrift server.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self.is_in_this_process = False
        self._records: dict[str, TableRecord] = {}

    def see(self, event: Any) -> None:
        """Follow the nodes of the run by dbt's events. The table of a good node is whole, also if nothing was built."""
        if not self.is_in_this_process:
            return
        if event.info.name == "NodeStart":
            node = event.data.node_info
            if node.materialized in _TABLES:
                place = node.node_relation
                self._records[node.unique_id] = TableRecord(self._home, place.schema, place.alias)
        elif event.info.name == "NodeFinished":
            record = self._records.pop(event.data.node_info.unique_id, None)
            if record is not None:
                is_good = event.data.run_result.status == "success" and not leaves_rows_out()
                record.end(is_whole=is_good, columns_if_empty=lambda: self._columns_if_empty(event.data.node_info))

    @contextlib.contextmanager
    def running(self, node: str | None, statement: str) -> Iterator[None]:
        """Record what a statement of a node does to the node's table while it runs."""
        record = self._records.get(node or "")
        hides = _HIDES.match(statement) is not None
        if record is None or not (hides or _REPLACES.match(statement)):
            yield
            return
        with record.changing(hides=hides):
            yield

    def _columns_if_empty(self, node: Any) -> Columns:
        from pyspark.sql import SparkSession

        place = node.node_relation
        folder = warehouse_dir(self._home) / f"{place.schema}.db" / place.alias
        if any(folder.rglob("*.parquet")):
            return ()
        table = SparkSession.builder.getOrCreate().table(f"`{place.schema}`.`{place.alias}`")
        return tuple((column.name, column.dataType.simpleString()) for column in table.schema)


def leaves_rows_out() -> bool:
    """Return whether --empty or --sample gives the models of the last run of dbt fewer rows than there are."""
    flags = get_flags()
    return bool(getattr(flags, "EMPTY", False) or getattr(flags, "SAMPLE", None))


class RecordingConnection(SessionConnectionWrapper):  # type: ignore[misc]
    """A connection to the session of this process.

    Parameters
    ----------
    connection
        The open connection; dbt names it after the node that uses it.
    tables
        The records of the run.
    """

    def __init__(self, connection: Connection, tables: BuiltTables) -> None:
        super().__init__(connection.handle.handle)
        self._connection = connection
        self._tables = tables
        tables.is_in_this_process = True

    def execute(self, sql: str, bindings: list[Any] | None = None) -> None:
        """Run a statement."""
        with self._tables.running(self._connection.name, sql):
            super().execute(sql, bindings)
