"""Rows of DuckDB on a cluster, and rows that are copied as from a cluster."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ingest.warehouse.catalog import sql_literal
from recover.sources.cluster.copies import Copies
from recover.sources.engine import Answer, registered
from recover.sources.log import Log
from recover.timeline.copied import copy_row
from recover.timeline.events import Table
from recover.timeline.history import history_of
from recover.timeline.rows import Version

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from recover.sources.cluster.thrift import Cluster


def on_cluster(cluster: "Cluster", connection: "DuckDBPyConnection", query: exp.Select) -> list[tuple[Any, ...]]:
    """Return the answer of a cluster to a query on the `row_changes` of a connection."""
    described = connection.execute("describe binloom.row_changes").fetchall()
    fields = ", ".join(
        f"{name}: {exp.DataType.build(kind, dialect='duckdb').sql('spark')}" for name, kind, *_ in described
    )
    rows = connection.execute("select json_group_array(to_json(one))::varchar from binloom.row_changes as one")
    (text,) = rows.fetchone() or ("[]",)
    options = "map('timestampFormat', 'yyyy-MM-dd HH:mm:ssX')"
    cluster._run(
        "create or replace temporary view given_changes as"
        f" select inline(from_json({sql_literal(text)}, 'array<struct<{fields}>>', {options}))"
    )
    given = exp.alias_(exp.to_table("given_changes"), "row_changes", table=True)
    return list(cluster.rows(query.transform(lambda node: given.copy() if isinstance(node, exp.Table) else node)))


class LogAsCluster:
    """A log that copies are made of, as of a cluster: with DuckDB as its engine, any file can be one."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def rows(self, query: exp.Query) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a query, as `Cluster.rows` does; files that are not landed have no segments."""
        if "stg_binlog__segments" in query.sql("spark"):
            return iter(())
        return self._log.rows(query)

    def answer(self, query: exp.Query) -> Answer:
        """Return the answer to a query, as `Cluster.answer` does."""
        return self._log.answer(query)

    def without_digests(self, query: exp.Query) -> exp.Query:
        """Return a query as it is: rows of files have no digests."""
        return query

    def records(self, query: exp.Query) -> Iterator[dict[str, Any]]:
        """Return no record: files that are not landed are in no raw table."""
        assert "binlog_raw." in query.sql("spark")
        return iter(())

    def copy(self, query: exp.Query, connection: "DuckDBPyConnection", table: str) -> None:
        """Add the rows of a query to a table, as `Cluster.copy` does; files that are not landed are in no raw table."""
        if "binlog_raw." in query.sql("spark"):
            connection.execute(f"create table if not exists {table} (source_id varchar)")
            return
        lines = self._log.connection.cursor().sql(query.sql("duckdb")).to_arrow_table()
        with registered(connection, "lines", lines):
            connection.execute(f"create table if not exists {table} as select * from lines limit 0")
            connection.execute(f"insert into {table} by name select * from lines")


def copied_history(log: Log, table: Table, key: str) -> list[Version]:
    """Return the history of a row from a copy of what it needs."""
    copies = Copies(LogAsCluster(log))  # type: ignore[arg-type]
    copies.add("table_versions")
    copy_row(copies, table, key, None)
    return history_of(copies.connection, table, key)
