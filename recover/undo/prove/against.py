"""A live server, compared with the rows that the statements of an undo expect. It is only read.

The server itself compares, by the conditions of the statements: a row that fits here is a row that the script changes.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from ingest.errors import SourceError
from ingest.words import counted
from recover.undo.prove.expected import Expected
from recover.undo.prove.long_values import in_parts
from recover.undo.prove.session import MEANING
from recover.undo.prove.writing import conditions, locator
from recover.undo.rows import literals as kinds
from recover.undo.rows.fold import Row
from recover.undo.rows.literals import Text, guard, quoted
from recover.undo.tables.table import Column, Table, TableName

if TYPE_CHECKING:
    from ingest.sources.servers.address import ServerAddress
    from ingest.sources.servers.server import Row as AnswerRow
    from ingest.sources.snapshots.snapshot import SchemaSnapshot

_ROWS_AT_ONCE: Final = 200
_BYTES_AT_ONCE: Final = 1 << 19
_KEYS_SHOWN: Final = 10
_SHOWN: Final = 60
"""Most characters of a value that a message shows."""

_UNKNOWN_SCHEMA, _UNKNOWN_COLUMN, _NO_TABLE = 1049, 1054, 1146
_IS_ANOTHER: Final = {
    _UNKNOWN_SCHEMA: "there is no schema of this name",
    _NO_TABLE: "there is no table of this name",
    _UNKNOWN_COLUMN: "the table has other columns there",
}


@dataclass(frozen=True)
class Found:
    """A column of a row that is not as the log left it."""

    column: str
    expected: str
    found: str


@dataclass(frozen=True)
class Difference:
    """A row on the server that is not as a statement expects it.

    Attributes
    ----------
    reason
        What is different about the row as a whole.
    columns
        The columns that differ.
    is_done
        Whether the row is already as the script would leave it.
    """

    table: Table
    key: str
    reason: str
    columns: tuple[Found, ...] = ()
    is_done: bool = False


class OtherTableError(Exception):
    """The server does not have a table, or has another one under its name. The message is a sentence without end."""


class LiveServer:
    """One transaction on a server that reads only; all rows are seen as they were when it began.

    Raises
    ------
    SourceError
        The server cannot be reached, or refuses the user.
    """

    def __init__(self, address: "ServerAddress") -> None:
        from ingest.sources.servers.server import Server

        self._address = address
        self._server = Server(address)
        try:
            for name, value in MEANING.items():
                self._server.rows(f"set session {name} = {value}")
            self._server.rows("set session transaction isolation level repeatable read")
            # Servers before 5.6.5 have no transactions that only read.
            self._server.rows("start transaction with consistent snapshot /*!50605 , read only */")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return str(self._address)

    def snapshot(self) -> "SchemaSnapshot":
        """Return the definitions of the tables of the server, with its position if the user may ask for it."""
        from ingest.sources.servers.information_schema import read_definitions

        return read_definitions(self._server)

    def close(self) -> None:
        """End the connection, and the transaction with it."""
        self._server.close()

    def tables_with_triggers(self, tables: Collection[TableName]) -> set[TableName] | None:
        """Return which of some tables have triggers; None if the user may not see them.

        Raises
        ------
        SourceError
            The server refuses to answer.
        """
        from ingest.sources.dumps.triggers import tables_with_triggers

        return tables_with_triggers(self._server, tables)

    def keys_of(self, table: Table, conditions: Sequence[str]) -> list[list[Row]]:
        """Return the keys of some of the rows that fulfil each condition; all values, if the table has no key.

        Raises
        ------
        OtherTableError
            The server has no such table, or one with other columns.
        SourceError
            The server refuses to answer.
        """
        found: list[list[Row]] = [[] for _ in conditions]
        names = table.row_key or table.stored_names
        columns = [table.by_name[name] for name in names]
        shown = "".join(f", {_text(column, is_whole=True)} as k{place}" for place, column in enumerate(columns))
        selects = (
            f"(select {number} as n{shown} from {_name(table)} where {condition} limit {_KEYS_SHOWN})"
            for number, condition in enumerate(conditions)
        )
        for batch in _batches(selects):
            for answer in self._rows(table, " union all ".join(batch)):
                row = {column.name: _value(column, answer[f"k{place}"]) for place, column in enumerate(columns)}
                found[answer.number("n")].append(row)
        return found

    def differences(self, expected: Sequence[Expected]) -> dict[int, Difference]:
        """Compare rows of one table with the server; return the differences by the numbers of the rows.

        Raises
        ------
        OtherTableError
            The server has no such table, or one with other columns.
        SourceError
            The server refuses to answer.
        """
        different: dict[int, Difference] = {}
        selects = (
            f"select {number} as n, count(*) as found from {_name(one.table)} where {_condition(one)}"
            for number, one in enumerate(expected)
        )
        for batch in _batches(selects):
            different |= self._different(batch, expected)
        return different

    def _different(self, selects: Sequence[str], expected: Sequence[Expected]) -> dict[int, Difference]:
        table = expected[0].table
        answers = self._rows(table, " union all ".join(selects))
        if len(answers) != len(selects):
            raise SourceError(
                f"The server at {self} answers {len(answers)} of {len(selects)} questions.",
                hint="Check which program listens there.",
            )
        different: dict[int, Difference] = {}
        for answer in answers:
            one, count = expected[answer.number("n")], answer.number("found")
            fits = count >= one.count if not one.key else count == one.count
            if not fits:
                found = self._described(one, count)
                if found is not None:
                    different[answer.number("n")] = found
        return different

    def _described(self, one: Expected, count: int) -> Difference | None:
        """Return what is different about a row; None if the server finds one whose key is only equal to it."""
        table = one.table
        if not one.key:
            reason = f"the server has {counted(count, 'equal row')}, and the log {one.count}"
            return Difference(table, "(a table without a key)", reason)
        shown = "|".join(map(str, one.key.values()))
        further = one.wanted if one.is_absent else one.guard
        columns = [*one.key, *(name for name in further if name not in one.key)]
        expected = {**one.wanted, **one.key, **one.guard}
        asked = []
        for place, name in enumerate(columns):
            column = table.by_name[name]
            asked += [f"{_text(column)} as t{place}", f"{guard(column, expected[name])} as f{place}"]
            if name in one.wanted and not one.is_absent:
                asked.append(f"{guard(column, one.wanted[name])} as w{place}")
        if one.own_key:
            asked.append(f"({' and '.join(_exact(table, one.own_key))}) as own")
        where = " and ".join(locator(table.by_name[name], value) for name, value in one.key.items())
        answers = self._rows(table, f"select {', '.join(asked)} from {_name(table)} where {where} limit 2")
        if not answers:
            return Difference(table, shown, "the row is missing on the server", is_done=one.verb == "DELETE")
        row = answers[0]
        has_same_key = all(row[f"f{place}"] for place, _ in enumerate(one.key))
        # The claims of a plan know each row of another key that the server takes for this one, and which of them leave.
        if (one.own_key and row["own"]) or (one.is_absent and not one.is_passing and not has_same_key):
            return None
        differing = tuple(
            Found(name, _shown(expected[name]), _shown(_value(table.by_name[name], row[f"t{place}"])))
            for place, name in enumerate(columns)
            if not row[f"f{place}"]
        )
        if one.is_absent:
            reason = "the server has a row with this key, and none is expected"
            return Difference(table, shown, reason, differing, is_done=one.verb == "INSERT" and not differing)
        is_done = bool(one.wanted) and all(row[f"w{place}"] for place, name in enumerate(columns) if name in one.wanted)
        return Difference(table, shown, "the row differs on the server", differing, is_done)

    def _rows(self, table: Table, sql: str) -> "list[AnswerRow]":
        parts = in_parts(sql)
        try:
            for line in parts.before:
                self._server.rows(line)
            return self._server.rows(parts.statement)
        except SourceError as error:
            reason = _IS_ANOTHER.get(error.context.get("number", 0))
            if reason is None:
                raise
            detail = re.search(r"column '([^']*)'", error.message)
            column = f" ({detail[1].rpartition('.')[2]})" if detail else ""
            raise OtherTableError(
                f"{table.text} cannot be compared with the server at {self}: {reason}{column}"
            ) from None


def equals(column: Column, length: int | None, value: str) -> str:
    """Return the condition that a part of a key equals a value, as the server compares it.

    Raises
    ------
    UnprintableValueError
        The value cannot be written as SQL.
    """
    name, wanted = quoted(column.name), kinds.literal(column, value)
    return f"{name} = {wanted}" if length is None else f"left({name}, {length}) = left({wanted}, {length})"


def in_words(difference: Difference) -> str:
    """Return a difference in one line."""
    columns = "; ".join(f"{one.column} should be {one.expected} and is {one.found}" for one in difference.columns[:5])
    more = f"; and {counted(len(difference.columns) - 5, 'more column')}" if len(difference.columns) > 5 else ""
    done = " (the row is already as the script would leave it)" if difference.is_done else ""
    listed = f": {columns}{more}" if columns else ""
    return f"{difference.table.text} {difference.key}: {difference.reason}{listed}{done}"


def _batches(selects: Iterable[str]) -> Iterator[list[str]]:
    """Yield as many queries as one question may have, by their number and by their length."""
    batch: list[str] = []
    size = 0
    for text in selects:
        if batch and (len(batch) >= _ROWS_AT_ONCE or size + len(text) > _BYTES_AT_ONCE):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _name(table: Table) -> str:
    return ".".join(map(quoted, table.name))


def _condition(one: Expected) -> str:
    if one.is_absent:
        return " and ".join(locator(one.table.by_name[name], value) for name, value in one.key.items())
    return " and ".join(conditions(one.as_operation()))


def _exact(table: Table, key: dict[str, Text]) -> Iterable[str]:
    return (guard(table.by_name[name], value) for name, value in key.items())


def _text(column: Column, *, is_whole: bool = False) -> str:
    """Return an expression for a value in the form that binloom prints, or for its beginning."""
    name, kind = quoted(column.name), column.data_type
    if kind in kinds.BITS:
        return f"cast({name} + 0 as char)"
    if kind in kinds.FLOATS:
        # As text, a FLOAT loses digits.
        return f"cast({name} + 0e0 as char)"
    if kind in kinds.BINARIES:
        return f"concat('0x', hex({name if is_whole else f'left({name}, {_SHOWN})'}))"
    if kind in kinds.OPAQUE:
        return f"concat('0x', {f'hex({name})' if is_whole else f'left(hex({name}), {_SHOWN})'})"
    is_text = kind in kinds.TEXTS | kinds.LABELS
    text = f"convert({name} using utf8mb4)" if is_text else f"cast({name} as char)"
    return text if is_whole else f"left({text}, {_SHOWN + 1})"


def _value(column: Column, answer: Any) -> Text:
    if answer is not None and column.data_type in kinds.FLOATS:
        import pyarrow as pa

        from ingest.binlog.rows.text_rows import single_texts

        return str(single_texts(pa.array([str(answer)]))[0].as_py())
    return answer if answer is None or isinstance(answer, str) else str(answer)


def _shown(value: Text) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if len(value) <= _SHOWN else f"'{value[:_SHOWN]}…'"
