"""Rows of DuckDB on a cluster."""

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ingest.warehouse.catalog import sql_literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from recover.sources.cluster import Cluster


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
