"""Rows of a cluster in DuckDB: those that a question needs. Code that is more than a query then runs as usual."""

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from recover.sources.engine import in_memory, quoted
from recover.sources.home.landed_marts import STATEMENTS
from recover.sources.home.marts import MART_SCHEMA, SCHEMAS

if TYPE_CHECKING:
    from sqlglot import exp

    from recover.sources.cluster.thrift import Cluster


class Copies:
    """Tables of DuckDB with rows of a cluster's tables, under the same names.

    Attributes
    ----------
    cluster
        Where the rows are from.
    connection
        Has the tables; what does not fit into memory is in a temporary folder.
    """

    def __init__(self, cluster: "Cluster") -> None:
        self.cluster = cluster
        self._folder: Final = tempfile.TemporaryDirectory(prefix="binloom-cluster-")
        self.connection = in_memory(Path(self._folder.name))
        for schema in (*SCHEMAS, STATEMENTS[0]):
            self.connection.execute(f"create schema {schema}")

    def add(
        self,
        name: str,
        condition: "str | exp.Expr | None" = None,
        *,
        schema: str = MART_SCHEMA,
        columns: Iterable[str] = ("*",),
    ) -> None:
        """Copy the rows of a table for which a condition is true, beside those that were copied before.

        Parameters
        ----------
        name, schema
            The table.
        condition
            An expression, in Spark's SQL if it is a text; None: all rows.
        columns
            The columns of the copy, the same in each call for a table.
        """
        from sqlglot import exp

        query = exp.select(*columns).from_(exp.table_(name, db=schema))
        self.add_rows(query if condition is None else query.where(condition, dialect="spark"), name, schema=schema)

    def add_rows(self, query: "exp.Query", name: str, *, schema: str = MART_SCHEMA) -> None:
        """Copy the rows of a query into a table."""
        self.cluster.copy(query, self.connection, f"{quoted(schema)}.{quoted(name)}")
