"""Statements as text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recover.undo.rows.fold import Row
from recover.undo.rows.literals import (
    Printer,
    Text,
    UnprintableValueError,
    comparison,
    finder,
    guard,
    has_finder,
    is_floating,
    literal,
    printer_of,
    quoted,
)
from recover.undo.rows.operations import Operation, Signature, signature
from recover.undo.tables.table import Column


def statement(operation: Operation) -> str:
    """Return the SQL of a statement, without its end.

    Raises
    ------
    UnprintableValueError
        A value cannot be written as SQL.
    """
    return StatementWriter().text(operation)


def unprintable_column(operations: Iterable[Operation]) -> str:
    """Return the first column that an UPDATE sets or compares, and that cannot be written; empty if there is none."""
    for operation in operations:
        if operation.verb == "UPDATE":
            written = [*((literal, one) for one in operation.values.items())]
            written += [(guard, one) for one in operation.guard.items()]
            for write, (name, value) in written:
                try:
                    write(operation.table.by_name[name], value)
                except UnprintableValueError:
                    return name
    return ""


class StatementWriter:
    """Writes statements, and remembers what those have in common that differ in their values only."""

    def __init__(self) -> None:
        self._templates: dict[Signature, _Template] = {}

    def text(self, operation: Operation) -> str:
        """Return the SQL of a statement, as `statement` does."""
        common = signature(operation)
        template = self._templates.get(common)
        if template is None:
            template = self._templates[common] = _Template(operation)
        return template.text(operation)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a statement that ends with a value of a row; without a column it is only text."""

    before: str
    column: Column | None = None
    write: Printer = literal

    def text(self, row: Row) -> str:
        value = None if self.column is None else row[self.column.name]
        return self.before if self.column is None or value is None else self.before + self.write(self.column, value)


class _Template:
    """The text of a statement, with a place for each value."""

    def __init__(self, operation: Operation) -> None:
        table = operation.table
        self._format = ""
        self._slots: list[tuple[bool, str, Column, Printer]] = []
        name = ".".join(map(quoted, table.name))
        if operation.verb == "INSERT":
            self._add(f"INSERT INTO {name} ({', '.join(map(quoted, operation.values))}) VALUES (")
            self._add_all(", ", [_value(operation, column, "") for column in operation.values], is_set=True)
            self._add(")")
            return
        if operation.verb == "DELETE":
            self._add(f"DELETE FROM {name}")
        elif operation.verb == "SELECT":
            self._add(f"SELECT COUNT(*) FROM {name}")
        else:
            self._add(f"UPDATE {name} SET ")
            sets = [_value(operation, column, f"{quoted(column)} = ") for column in operation.values]
            sets += [_Piece(f"{quoted(column)} = {quoted(column)}") for column in operation.kept]
            self._add_all(", ", sets, is_set=True)
        self._add(" WHERE ")
        self._add_all(" AND ", _conditions(operation), is_set=False)
        self._add("" if table.row_key else " LIMIT 1")

    def _add(self, text: str) -> None:
        self._format += text.replace("%", "%%")

    def _add_all(self, sign: str, pieces: Sequence[_Piece], is_set: bool) -> None:
        for number, piece in enumerate(pieces):
            self._add((sign if number else "") + piece.before)
            if piece.column is not None:
                self._format += "%s"
                self._slots.append((is_set, piece.column.name, piece.column, piece.write))

    def text(self, operation: Operation) -> str:
        """Return the statement of an operation with the same signature."""
        values, row = operation.values, operation.key | operation.guard
        return self._format % tuple(
            [
                write(column, values[name] if is_set else row[name])  # type: ignore[arg-type]
                for is_set, name, column, write in self._slots
            ]
        )


def _value(operation: Operation, name: str, before: str) -> _Piece:
    if operation.values[name] is None:
        return _Piece(f"{before}NULL")
    column = operation.table.by_name[name]
    return _Piece(before, column, printer_of(column))


def conditions(operation: Operation) -> list[str]:
    """Return conditions: for each key column one that the index answers, then those that hold for these bytes only."""
    row = operation.key | operation.guard
    return [piece.text(row) for piece in _conditions(operation)]


def _conditions(operation: Operation) -> list[_Piece]:
    found: list[_Piece] = []
    exact: list[_Piece] = []
    for name, value in operation.key.items():
        column = operation.table.by_name[name]
        equal = f"{quoted(name)} = "
        if value is None:
            exact.append(_guard(column, value))
        elif is_floating(column):
            found.append(_Piece("", column, _floating_key))
        elif comparison(column)[0] == f"{quoted(name)} <=> ":
            found.append(_Piece(equal, column, printer_of(column)))
        else:
            if has_finder(column):
                found.append(_Piece(equal, column, printer_of(column)))
            exact.append(_guard(column, value))
    exact += [_guard(operation.table.by_name[name], value) for name, value in operation.guard.items()]
    return [*found, *exact]


def _guard(column: Column, value: Text) -> _Piece:
    if value is None:
        return _Piece(guard(column, None))
    # A zero has another condition than other numbers.
    return (
        _Piece("", column, guard)
        if is_floating(column)
        else _Piece(comparison(column)[0], column, comparison(column)[1])
    )


def _floating_key(column: Column, value: str) -> str:
    return guard(column, value) if float(value) == 0 else f"{quoted(column.name)} = {literal(column, value)}"


def locator(column: Column, value: Text) -> str:
    """Return a condition that is true for every value that the server itself takes for equal, if there is one.

    It is the condition by which a unique key refuses a second row.
    """
    condition = guard(column, value)
    if value is not None and condition == f"{quoted(column.name)} <=> {literal(column, value)}":
        return f"{quoted(column.name)} = {literal(column, value)}"
    return finder(column, value) or condition
