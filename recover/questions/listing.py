"""`show tables` and `describe`, beside the queries that `binloom sql` answers."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

from recover.sources.engine import Answer
from recover.sources.home.marts import open_marts

if TYPE_CHECKING:
    from recover.sources.cluster.thrift import Cluster

_NAME: Final = r"(`[^`]+`|\w+)"
_SHOW: Final = re.compile(rf"\s*show\s+tables(?:\s+(?:in|from)\s+{_NAME})?(?:\s+like\s+'([^']*)')?\s*;?\s*", re.I)
_DESCRIBE: Final = re.compile(rf"\s*desc(?:ribe)?\s+(?:table\s+)?({_NAME}(?:\s*\.\s*{_NAME})?)\s*;?\s*", re.I)


@dataclass(frozen=True)
class Shown:
    """The tables that `show tables` asks for.

    Attributes
    ----------
    schema
        Only tables of this schema; None: of all schemas.
    pattern
        Only tables with such a name.
    """

    schema: str | None
    pattern: str

    def answer(self, tables: list[tuple[str, str]]) -> Answer:
        """Return the answer: those of some tables that the question asks for."""
        rows = (one for one in sorted(tables) if self.schema in (None, one[0]) and fnmatchcase(one[1], self.pattern))
        return Answer(["schema_name", "table_name"], rows)


def shown(question: str) -> Shown | None:
    """Return the tables that `show tables` asks for; None for any other question."""
    found = _SHOW.fullmatch(question)
    if found is None:
        return None
    schema, pattern = found.groups()
    # Spark has * in its patterns, and everybody else has %.
    return Shown(schema and schema.strip("`").lower(), (pattern or "*").replace("%", "*").lower())


def described(question: str) -> str | None:
    """Return a query of the table that `describe` names; None for any other question."""
    found = _DESCRIBE.fullmatch(question)
    return None if found is None else f"select * from {found[1]} limit 0"


def columns_of(home: Path, query: str, tables: list[tuple[str, str]], tell: Callable[[str], None]) -> Answer:
    """Return the answer to `describe`: the columns of a query of DuckDB, with their types in Spark's words."""
    rows = open_marts(home, tables, tell=tell, is_current=True).execute(f"describe {query}").fetchall()
    return Answer(["column_name", "data_type"], ((name, _type_of_spark(kind)) for name, kind, *_ in rows))


def _type_of_spark(kind: str) -> str:
    from sqlglot import exp

    # Spark itself writes no spaces.
    return exp.DataType.build(kind, dialect="duckdb").sql("spark").lower().replace(" ", "")


def tables_of_cluster(cluster: "Cluster") -> list[tuple[str, str]]:
    """Return schema and name of all tables of a cluster."""
    schemas = [row[0] for row in cluster.plain_rows("show schemas")]
    return [
        (schema, row[1]) for schema in schemas for row in cluster.plain_rows(f"show tables in `{schema}`") if row[0]
    ]
