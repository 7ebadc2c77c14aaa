"""Statements as text."""

from recover.undo.literals import Text, finder, guard, literal, quoted
from recover.undo.operations import Operation
from recover.undo.tables import Column


def statement(operation: Operation) -> str:
    """Return the SQL of a statement, without its end.

    Raises
    ------
    UnprintableValueError
        A value cannot be written as SQL.
    """
    table = operation.table
    name = ".".join(map(quoted, table.name))
    if operation.verb == "INSERT":
        columns = ", ".join(map(quoted, operation.values))
        values = ", ".join(literal(table.by_name[column], value) for column, value in operation.values.items())
        return f"INSERT INTO {name} ({columns}) VALUES ({values})"
    where = " AND ".join(conditions(operation))
    limit = "" if table.row_key else " LIMIT 1"
    if operation.verb == "DELETE":
        return f"DELETE FROM {name} WHERE {where}{limit}"
    sets = [f"{quoted(column)} = {literal(table.by_name[column], value)}" for column, value in operation.values.items()]
    sets += [f"{quoted(column)} = {quoted(column)}" for column in operation.kept]
    return f"UPDATE {name} SET {', '.join(sets)} WHERE {where}{limit}"


def conditions(operation: Operation) -> list[str]:
    """Return conditions: for each key column one that the index answers, then those that hold for these bytes only."""
    columns = operation.table.by_name
    found: list[str] = []
    exact: list[str] = []
    for name, value in operation.key.items():
        condition, finds = guard(columns[name], value), finder(columns[name], value)
        if condition == f"{quoted(name)} <=> {literal(columns[name], value)}":
            found.append(f"{quoted(name)} = {literal(columns[name], value)}")
            continue
        if finds:
            found.append(finds)
        exact.append(condition)
    exact += [guard(columns[name], value) for name, value in operation.guard.items()]
    return [*found, *exact]


def locator(column: Column, value: Text) -> str:
    """Return a condition that is true for every value that the server itself takes for equal, if there is one.

    It is the condition by which a unique key refuses a second row.
    """
    condition = guard(column, value)
    if value is not None and condition == f"{quoted(column.name)} <=> {literal(column, value)}":
        return f"{quoted(column.name)} = {literal(column, value)}"
    return finder(column, value) or condition
