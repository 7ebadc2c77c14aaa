"""Rows in columns as files: SQL, CSV, Parquet.

Literals are those of `recover.undo.rows.literals`, but DuckDB writes them for thousands of rows at once. A value that
is none of its column's type is refused with the same words.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ingest.ahead import ahead
from ingest.words import counted
from recover.restore.refusal import RestoreRefusedError
from recover.restore.rows import RestoredTable
from recover.sources.engine import literal, quoted, registered
from recover.undo.print.script import closing, comment, opening
from recover.undo.rows import literals
from recover.undo.rows.literals import UnprintableValueError
from recover.undo.tables.table import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

# Servers take packets of a few megabytes.
_BYTES_OF_STATEMENT: Final = 1 << 19
_ROWS_OF_TRANSACTION: Final = 20_000


def sql_lines(tables: list[RestoredTable], notes: list[str]) -> Iterator[str]:
    """Yield the lines of a script that inserts the rows of tables, of parents first."""
    for note in notes:
        yield comment(note)
    for table in tables:
        for warning in table.table.zone_warnings:
            yield comment(f"not in this script: {warning}")
    yield ""
    names = [table.table.name for table in tables]
    # Rows of tables that refer to each other, or to themselves, come before the rows that they refer to.
    is_circular = any(
        key.parent in names[names.index(key.table) :]
        for table in tables
        for key in table.foreign_keys
        if key.table == table.table.name
    )
    yield from opening({"foreign_key_checks": "0"} if is_circular else {})
    for table in tables:
        yield ""
        yield from _inserts(table)
    yield ""
    yield from closing()
    for table in tables:
        yield comment(f"{table.table.text}: {counted(table.rows, 'row')}")


def _inserts(table: RestoredTable) -> Iterator[str]:
    # The next rows are read while these are written.
    cursor = table.source.log.connection.cursor()
    columns = table.table.stored
    names = ", ".join(literals.quoted(column.name) for column in columns)
    owner, name = map(literals.quoted, table.table.name)
    head = f"INSERT INTO {owner}.{name} ({names}) VALUES"
    if not columns:
        raise RestoreRefusedError(f"{table.table.text} has no column that a statement may set.", hint="Restore others.")
    since = 0
    for rows, is_typed in _ahead(table):
        for count, text in _statements(cursor, table.table, rows, head, with_documents=is_typed):
            if since == 0:
                yield "START TRANSACTION;"
            yield text
            since += count
            if since >= _ROWS_OF_TRANSACTION:
                yield "COMMIT;"
                since = 0
    if since:
        yield "COMMIT;"


def _ahead(table: RestoredTable) -> Iterator[tuple["pa.Table", bool]]:
    return ahead(table.batches(), stop=table.source.log.connection.interrupt)


def _statements(
    connection: "DuckDBPyConnection", table: Table, rows: "pa.Table", head: str, *, with_documents: bool
) -> Iterator[tuple[int, str]]:
    if not rows.num_rows:
        return iter(())
    import pyarrow as pa

    written: dict[str, str] = {}
    for column in table.stored:
        if column.data_type == "json" and with_documents:
            # The log has the types of what is in a document; the text alone has not.
            texts = rows.column(column.name).to_pylist()
            printed = pa.array([_printed(column, text) for text in texts], pa.string())
            rows = rows.set_column(rows.column_names.index(column.name), column.name, printed)
            written[column.name] = quoted(column.name)
        else:
            written[column.name] = f"coalesce({literal_expression(column, quoted(column.name))}, 'NULL')"
    values = " || ', ' || ".join(written.values())
    with registered(connection, "batch", rows):
        _assert_values(connection, table, rows, with_documents)
        lines = connection.sql(f"select '(' || {values} || ')' as line from batch").to_arrow_table().column("line")
    return _joined(lines.combine_chunks(), head)


def _joined(lines: "pa.Array", head: str) -> Iterator[tuple[int, str]]:
    """Yield statements of some length, each with the number of its rows."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = np.cumsum(pc.binary_length(lines).to_numpy()) // _BYTES_OF_STATEMENT
    starts = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(lines)]
    # Arrow joins no texts of large arrays. The rows are few enough for another one.
    lists = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), lines.cast(pa.string()))
    rows = pc.binary_join(lists, ",\n")
    for (first, end), text in zip(pairwise(starts), rows, strict=True):
        yield end - first, f"{head}\n{text};"


def _printed(column: Column, text: str | None) -> str:
    try:
        return literals.literal(column, text)
    except UnprintableValueError as error:
        raise _refused(error) from None


def _assert_values(connection: "DuckDBPyConnection", table: Table, rows: "pa.Table", with_documents: bool) -> None:
    """Refuse values that are none of their columns' types."""
    columns = [one for one in table.stored if not (one.data_type == "json" and with_documents)]
    checks = ", ".join(
        f"min(case when not ({condition_expression(one, quoted(one.name))}) then {quoted(one.name)} end)"
        for one in columns
    )
    if not checks:
        return
    (found,) = connection.execute(f"select {checks} from batch").fetchall()
    for column, value in zip(columns, found, strict=True):
        if value is not None:
            _printed(column, value)
            raise _refused(
                UnprintableValueError(f"A value of column {column.name} of {table.text} cannot be written as SQL.")
            )


def _refused(error: UnprintableValueError) -> RestoreRefusedError:
    return RestoreRefusedError(error.message, hint="Restore the table to --format csv or parquet, as texts.")


# --- literals as expressions ---


def literal_expression(column: Column, value: str) -> str:
    """Return an expression of DuckDB that writes the literal of a value of a column; NULL for NULL."""
    kind = column.data_type
    if kind in literals.INTEGERS | literals.BITS | literals.DECIMALS:
        return value
    if kind in literals.FLOATS:
        # The DOUBLE that equals the 32 bits: a server refuses the shortest digits of the largest FLOAT.
        return _with_exponent(f"replace({value}::float::double::varchar, 'e+', 'e')")
    if kind in literals.DOUBLES:
        return _with_exponent(value)
    if kind in literals.TEXTS | literals.LABELS or kind == "json":
        return (
            f"case when regexp_full_match({value}, '[ -\\[\\]-~]*') then '''' || replace({value}, '''', '''''') || ''''"
            f" else '_utf8mb4 X''' || hex({value}) || '''' end"
        )
    if kind in literals.PRINTED:
        return f"'''' || {value} || ''''"
    if kind in literals.BINARIES | literals.OPAQUE:
        return f"'X''' || substr({value}, 3) || ''''"
    literals.printer_of(column)
    raise AssertionError(kind)


def _with_exponent(number: str) -> str:
    """Return an expression of a number with an exponent; without one it would be a DECIMAL."""
    return f"{number} || case when contains({number}, 'e') then '' else 'e0' end"


def condition_expression(column: Column, value: str) -> str:
    """Return an expression of DuckDB that is true if a value can be one of a column; NULL for NULL."""
    kind = column.data_type
    if kind in literals.INTEGERS | literals.BITS:
        return f"regexp_full_match({value}, '-?[0-9]{{1,20}}')"
    if kind in literals.DECIMALS:
        return f"regexp_full_match({value}, '-?[0-9]{{1,65}}(\\.[0-9]{{1,38}})?')"
    if kind in literals.FLOATS | literals.DOUBLES:
        return f"regexp_full_match({value}, '-?[0-9]+(\\.[0-9]+)?(e[+-]?[0-9]+)?')"
    if kind in literals.PRINTED:
        return f"regexp_full_match({value}, '[0-9A-Za-z:. -]+')"
    if kind in literals.BINARIES | literals.OPAQUE:
        return f"regexp_full_match({value}, '0x([0-9A-F][0-9A-F])*')"
    if kind in literals.LABELS:
        labels = f"[{', '.join(map(literal, column.labels or ()))}]::varchar[]"
        if kind == "enum":
            return f"list_contains({labels}, {value})"
        unknown = f"list_filter(string_split({value}, ','), lambda one: not list_contains({labels}, one))"
        return f"{value} = '' or len({unknown}) = 0"
    if kind in literals.TEXTS and column.character_set in (None, "binary"):
        return "false"
    return f"not contains({value}, chr(65533))"


# --- files ---


def write_csv(table: RestoredTable, path: Path) -> None:
    """Write the rows as CSV: each text in quotes, and nothing for NULL."""
    import pyarrow as pa
    from pyarrow import csv

    schema = pa.schema([(name, pa.string()) for name in table.columns])
    with path.open("wb") as file, csv.CSVWriter(file, schema) as writer:
        _write_batches(table, schema, writer.write_table)


def write_parquet(table: RestoredTable, path: Path) -> None:
    """Write the rows as Parquet, each column as texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.string()) for name in table.columns])
    with path.open("wb") as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        _write_batches(table, schema, writer.write_table)


def _write_batches(table: RestoredTable, schema: "pa.Schema", write: Callable[[Any], None]) -> None:
    for rows, _ in _ahead(table):
        if rows.num_rows:
            write(rows.cast(schema))
