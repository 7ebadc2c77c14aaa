"""A question in Spark's SQL, answered by DuckDB or by a cluster.

DuckDB has other names and sometimes other rules for functions. sqlglot translates, and a function is accepted only if a
test compares its results with Spark's.
"""

import contextlib
import difflib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import UsageError
from recover.questions.listing import columns_of, described, shown, tables_of_cluster
from recover.sources.cluster.thrift import Cluster, ClusterRefusedError
from recover.sources.engine import Answer, answer
from recover.sources.home.kept_files import ignored
from recover.sources.home.marts import MART_SCHEMA, open_marts, tables_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from sqlglot import exp

FUNCTIONS: Final = frozenset(
    {
        *("Count", "CountIf", "Sum", "Avg", "Min", "Max", "AnyValue", "ArgMax", "ArgMin"),
        *("ArrayAgg", "ArrayUniqueAgg", "RowNumber", "Rank", "DenseRank", "Lag", "Lead", "FirstValue", "LastValue"),
        *("Coalesce", "Nullif", "If", "Case", "Greatest", "Least", "Abs"),
        *("Concat", "ConcatWs", "Lower", "Upper", "Length", "Replace", "Trim", "StartsWith", "EndsWith", "Contains"),
        *("RegexpLike", "ArrayContains", "ArraySize", "ArrayToString", "ArrayFilter", "Transform", "Explode"),
        *("TimestampTrunc", "TimeToStr", "Hour", "Minute", "TimeStrToTime", "And", "Or", "Cast", "TryCast"),
    }
)
"""Names of sqlglot's classes of the functions that give the same results in DuckDB and Spark."""


class QuestionError(UsageError):
    """A question cannot be understood or answered."""


def ask(question: str, home: Path, tell: Callable[[str], None] = ignored, *, is_current: bool = False) -> Answer:
    """Return the answer to a query on the marts of a home.

    Parameters
    ----------
    question
        One query in Spark's SQL, `show tables` or `describe`. Tables without a schema are those of schema `binloom`.
    home
        Folder of all data of binloom.
    tell
        Is told when a build must be waited for.
    is_current
        Whether it is known that the last build had all that has landed; see `open_marts`.

    Raises
    ------
    QuestionError
        The text is not a query, uses a function that is not supported, or a column that no table has.
    NoMartError
        A table is not a mart, or was not built yet.
    """
    if (wanted := shown(question)) is not None:
        return wanted.answer(tables_of(home))
    table = described(question)
    query = _query(table or question)
    tables = _named_tables(query)
    if table is not None:
        return columns_of(home, query.sql("duckdb"), tables, tell)
    connection = open_marts(home, tables, tell=tell, is_current=is_current)
    with _explained(connection):
        found = answer(connection, query.sql("duckdb"))
    return Answer(found.columns, _explained_rows(connection, found.rows))


def _explained_rows(connection: "DuckDBPyConnection", rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows. DuckDB may raise an error only in a late row, in which an expression has no value."""
    with _explained(connection):
        yield from rows


@contextlib.contextmanager
def _explained(connection: "DuckDBPyConnection") -> Iterator[None]:
    """Turn an error of DuckDB into one of the question."""
    import duckdb

    try:
        yield
    except duckdb.IOException as error:
        if "No files found" not in str(error):
            raise
        raise QuestionError("A mart of this query has no rows yet.", hint="Run `binloom build`.") from None
    except duckdb.Error as error:
        raise QuestionError(
            f"The query cannot be answered: {_first_line(error)}.", hint=_hint(connection, str(error))
        ) from None


def ask_cluster(question: str, cluster: Cluster) -> Answer:
    """Return the answer of a cluster to a query on its marts.

    Raises
    ------
    QuestionError
        See `ask`; a value that the query cannot read may be found only while the rows are read.
    NoClusterTableError
        The cluster does not have a table.
    ClusterLostError
        The server does not answer any more.
    """
    if (wanted := shown(question)) is not None:
        return wanted.answer(tables_of_cluster(cluster))
    table = described(question)
    query = _query(table or question)
    _named_tables(query)
    if table is not None:
        with _as_question():
            columns = cluster.plain_rows(f"describe query {query.sql('spark')}")
        return Answer(["column_name", "data_type"], ((name, kind) for name, kind, *_ in columns))
    # sqlglot reads the query by these rules, so that DuckDB answers with NULL where there is no value.
    cluster.set("spark.sql.ansi.enabled", "false")
    with _as_question():
        found = cluster.answer(query)
    return Answer(found.columns, _as_questions(found.rows))


def _as_questions(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    with _as_question():
        yield from rows


@contextlib.contextmanager
def _as_question() -> Iterator[None]:
    """Turn the error of a cluster into one of the question, if the question is its cause."""
    try:
        yield
    except ClusterRefusedError as error:
        # The classes of SQLSTATE for a query that is wrong, and for data that it cannot read.
        if error.state[:2] not in ("42", "22"):
            raise
        raise QuestionError(f"The query cannot be answered: {error.reason}.", hint="Correct the query.") from None


def _query(question: str) -> "exp.Query":
    import sqlglot
    from sqlglot import exp

    try:
        statements = [one for one in sqlglot.parse(question, read="spark") if one is not None]
    except sqlglot.errors.SqlglotError as error:
        raise QuestionError(
            f"The query cannot be read: {_first_line(error)}.", hint="It must be one query in Spark's SQL."
        ) from None
    query = statements[0] if len(statements) == 1 else None
    if not isinstance(query, exp.Query):
        raise QuestionError(
            "binloom sql answers one query, and changes nothing.",
            hint="Give one statement that begins with SELECT, WITH, SHOW TABLES or DESCRIBE.",
        )
    for function in query.find_all(exp.Func):
        _assert_supported(function)
    _name_columns(query)
    return query


def _name_columns(query: "exp.Query") -> None:
    """Name columns that are expressions by their text: each engine has names of its own for them."""
    from sqlglot import exp

    for column in query.selects:
        if not (isinstance(column, exp.Column | exp.Alias | exp.Aliases) or column.is_star):
            text = column.sql("spark", normalize_functions="lower")
            column.replace(exp.alias_(column.copy(), text, quoted=True))


def _assert_supported(function: "exp.Func") -> None:
    from sqlglot import exp

    kind = type(function).__name__
    if isinstance(function, exp.Exists) and isinstance(function.this, exp.Query):
        return
    if kind not in FUNCTIONS:
        name = function.name if isinstance(function, exp.Anonymous) else function.sql_name()
        raise QuestionError(
            f"binloom sql does not support the function {name.lower()}.",
            hint="Use another function, or ask Spark: docs/questions.md says how.",
        )


def _named_tables(query: "exp.Query") -> list[tuple[str, str]]:
    """Return schema and name of each table that is read, and write the schema to names that have none."""
    from sqlglot import exp

    common = {table.alias_or_name.lower() for table in query.find_all(exp.CTE)}
    found: dict[tuple[str, str], None] = {}
    for table in query.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or table.catalog:
            raise QuestionError(
                f"binloom sql cannot read {table.sql('spark')}.",
                hint="`binloom sql 'show tables'` lists the tables that it reads.",
            )
        if not table.db and table.name.lower() in common:
            continue
        schema, name = (table.db or MART_SCHEMA).lower(), table.name.lower()
        table.set("db", exp.to_identifier(schema, quoted=True))
        table.set("this", exp.to_identifier(name, quoted=True))
        found[schema, name] = None
    return list(found)


def _hint(connection: "DuckDBPyConnection", message: str) -> str:
    """Return what to do about DuckDB's error: for an unknown column, the names of those that are nearest."""
    unknown = re.search(r'column "([^"]+)" not found', message)
    if unknown is None:
        return "Correct the query, or ask Spark."
    known = "select distinct column_name from information_schema.columns order by 1"
    columns = [row[0] for row in connection.execute(known).fetchall()]
    near = difflib.get_close_matches(unknown[1], columns, n=3)
    if len(near) == 1:
        return f"The nearest name of a column is {near[0]}."
    return f"There are the columns {', '.join(near or columns)}."


def _first_line(error: Exception) -> str:
    line = str(error).strip().splitlines()[0].rstrip(".!")
    return re.sub(r"^(Binder|Conversion|Invalid Input|Parser) Error: ", "", line)
