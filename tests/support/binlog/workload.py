"""Tables for a real server, and the statements that change them.

A `Column` knows its declaration and the SQL literals to store in it. `run(server, tables)` makes the tables and
changes them, in one kind of transactions. `workload_tables` defines the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tests.servers import Server
from tests.servers.names import quoted

SCHEMA = "workload"
# Zero dates, invalid dates and characters outside of a column's character set are stored as far as possible.
SQL_MODE = "ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO"

Kind = Literal[
    "integer", "decimal", "float", "double", "bit", "year", "date", "time", "datetime", "timestamp", "text", "binary",
    "enum", "set", "json",
]  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column, and the values to store in it.

    Attributes
    ----------
    name, ddl
        Name and declaration: `int unsigned not null`.
    kind
        The family of its type, which determines the text form.
    literals
        SQL expressions, stored in turn.
    charset
        Character set of a text column.
    members
        Labels of an ENUM or SET.
    """

    name: str
    ddl: str
    kind: Kind
    literals: tuple[str, ...]
    charset: str | None = None
    members: tuple[str, ...] = ()

    @property
    def is_nullable(self) -> bool:
        return "not null" not in self.ddl and "generated" not in self.ddl

    @property
    def is_generated(self) -> bool:
        return "generated" in self.ddl

    @property
    def is_unsigned(self) -> bool:
        return "unsigned" in self.ddl


@dataclass(frozen=True)
class Table:
    """A table with an `id` column that numbers its rows from 1, unless `key` names other columns."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ("id",)
    engine: str = "InnoDB"
    options: str = "row_format=dynamic"
    is_versioned: bool = False
    extra_statements: tuple[str, ...] = field(default=())

    @property
    def rows(self) -> int:
        return max(len(column.literals) for column in self.columns)

    @property
    def identity(self) -> tuple[Column, ...]:
        """The columns before the workload's own, when the key is the default one."""
        return (Column("id", "int not null", "integer", ()),) if self.key == ("id",) else ()

    @property
    def all_columns(self) -> tuple[Column, ...]:
        # A versioned table of MariaDB has two columns that were not declared.
        versions = ("row_start", "row_end") if self.is_versioned else ()
        ends = (Column(name, "timestamp(6) generated", "timestamp", ()) for name in versions)
        return (*self.identity, *self.columns, *ends)

    @property
    def quoted_name(self) -> str:
        return f"{SCHEMA}.{quoted(self.name)}"

    def ddl(self) -> str:
        lines = [f"{quoted(column.name)} {column.ddl}" for column in (*self.identity, *self.columns)]
        if self.key:
            lines.append(f"primary key ({', '.join(quoted(name) for name in self.key)})")
        versioning = "with system versioning" if self.is_versioned else ""
        return f"create table {self.quoted_name} ({', '.join(lines)}) engine={self.engine} {self.options} {versioning}"

    def statements(self) -> Iterator[str]:
        """Yield the changes: inserts, updates to NULL and to the next row's values, a copy of the rows, deletions."""
        written = [column for column in self.all_columns if not column.is_generated]
        names = ", ".join(quoted(column.name) for column in written)
        for first in range(0, self.rows, 7):
            values = [self._row(index) for index in range(first, min(first + 7, self.rows))]
            yield f"insert into {self.quoted_name} ({names}) values {', '.join(values)}"
        if self.key == ("id",):
            yield from self._changes(written, names)
        yield from self.extra_statements

    def _row(self, index: int, shift: int = 0) -> str:
        values = [str(index + 1)] if self.identity else []
        values += [_pick(column, index + shift) for column in self.columns if not column.is_generated]
        return f"({', '.join(values)})"

    def _changes(self, written: Sequence[Column], names: str) -> Iterator[str]:
        nullable = [quoted(column.name) for column in written if column.is_nullable]
        if nullable:
            yield f"update {self.quoted_name} set {', '.join(f'{name} = null' for name in nullable)} where id % 2 = 0"
        for index in range(self.rows):
            changes = [
                f"{quoted(column.name)} = {_pick(column, index + 1)}"
                for column in self.columns
                if not column.is_generated
            ]
            yield f"update {self.quoted_name} set {', '.join(changes)} where id = {index + 1}"
        others = ", ".join(quoted(column.name) for column in written[1:])
        yield f"insert into {self.quoted_name} ({names}) select id + 100000, {others} from {self.quoted_name}"
        if nullable:
            moved = "id > 100000 and id % 3 = 0"
            yield f"update {self.quoted_name} set {nullable[0]} = null, id = id + 100000 where {moved}"
        yield f"delete from {self.quoted_name} where id > 100000 and id % 5 <> 0"


def literal(text: str) -> str:
    """Write text as a literal that means the same under every SQL mode and character set."""
    return f"_utf8mb4 x'{text.encode().hex()}'" if text else "''"


def binary(value: bytes) -> str:
    """Write bytes as a literal."""
    return f"x'{value.hex()}'"


def _pick(column: Column, index: int) -> str:
    return column.literals[index % len(column.literals)]


def make_column(name: str, ddl: str, kind: Kind, literals: Sequence[object], **more: object) -> Column:
    """Return a column with these literals as values, and NULL where it is nullable."""
    texts = tuple(str(each) for each in literals)
    if "not null" not in ddl:
        texts = (*texts, "null")
    return Column(name, ddl, kind, texts, **more)  # type: ignore[arg-type]


def text_column(name: str, ddl: str, texts: Sequence[str], charset: str) -> Column:
    """Return a column of texts in a character set."""
    return make_column(name, ddl, "text", [literal(text) for text in texts], charset=charset)


# --- transactions ---

Wrapping = Callable[[int, list[str]], list[str]]


def _plain(number: int, statements: list[str]) -> list[str]:
    return [*statements, "commit"]


def _tagged(number: int, statements: list[str]) -> list[str]:
    """Use GTIDs that the server numbers itself, without a tag and with short and long tags."""
    tag = ("", ":a", ":nightly_load", ":" + "t" * 32)[number % 4]
    return [f"set session gtid_next = 'AUTOMATIC{tag}'", *statements, "commit"]


def _xa(number: int, statements: list[str]) -> list[str]:
    """Use XA transactions: committed in two phases or one, or rolled back before or after XA PREPARE."""
    xid = ("'plain'", "'with','branch',7", "x'00ff27'", "'it''s'")[number % 4]
    ends: list[list[str]] = [
        [f"xa prepare {xid}", f"xa commit {xid}"],
        [f"xa commit {xid} one phase"],
        [f"xa prepare {xid}", f"xa commit {xid}"],
        [f"xa prepare {xid}", f"xa rollback {xid}"],
        [f"xa rollback {xid}"],
    ]
    return [f"xa start {xid}", *statements, f"xa end {xid}", *ends[number % 5]]


BINLOG_FORMATS = ("ROW", "STATEMENT", "MIXED")


def _mixed(number: int, statements: list[str]) -> list[str]:
    """Log changes as rows, as statements, and as the server chooses."""
    return [f"set session binlog_format = '{BINLOG_FORMATS[number % 3]}'", *statements, "commit"]


TRANSACTIONS: dict[str, Wrapping] = {"plain": _plain, "tagged": _tagged, "xa": _xa, "mixed": _mixed}


def groups(table: Table) -> list[list[str]]:
    """Return the changes of a table, three statements in each transaction."""
    statements = list(table.statements())
    return [statements[first : first + 3] for first in range(0, len(statements), 3)]


def run(server: Server, workload: Sequence[Table], transactions: str = "plain") -> None:
    """Make the tables in a new schema and change them."""
    wrapped = TRANSACTIONS[transactions]
    server.execute(f"drop database if exists {SCHEMA}", f"create database {SCHEMA} character set utf8mb4")
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(f"set session sql_mode = '{SQL_MODE}', time_zone = '+00:00', group_concat_max_len = 10000000")
        for table in workload:
            changes = (each for number, group in enumerate(groups(table)) for each in wrapped(number, group))
            for statement in (table.ddl(), *changes):
                try:
                    cursor.execute(statement)
                except Exception as error:
                    raise RuntimeError(f"{table.name}: {statement[:300]}") from error
