"""`binloom query`: print the row changes that filters select."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from binloom.answers.changes import sums_of
from binloom.commands.open_log import report_notes, report_problems
from binloom.commands.output import Format, human, print_line, print_rows, say
from recover.selection.filters import By, Filters
from recover.sources.log import Log
from recover.timeline.logged_statements import statements_of

# More are rarely read on a terminal; JSON and CSV have no limit of their own.
_TEXT_ROWS: Final = 200
_STATEMENT_CHARACTERS: Final = 300


_UNKNOWN: Final = {
    By.DIGEST: "the log does not contain the statements of these changes. The server logs them with"
    " binlog_rows_query_log_events (MySQL) or binlog_annotate_row_events (MariaDB).",
    By.APP: "no statement of these changes is logged with a comment that names an application.",
    By.ROUTE: "no statement of these changes is logged with a comment that names a route or an action.",
}


def _named(rows: Iterable[tuple[Any, ...]], place: int) -> Iterator[tuple[Any, ...]]:
    """Yield rows of sums with a name also where there is none."""
    for row in rows:
        yield (*row[:place], "(none)" if row[place] is None else row[place], *row[place + 1 :])


def print_changes(log: Log, filters: Filters, by: By, limit: int | None, format: Format) -> int:
    """Print selected row changes, or sums of them; return the exit code."""
    most = limit if limit is not None or format is not Format.TEXT else _TEXT_ROWS
    found = sums_of(log, filters, by, most if limit is not None or most is None else most + 1)
    report_notes(found.notes)
    rows = found.read()
    first = next(rows, None)
    if first is None and limit != 0:
        return report_problems(log)
    rows = itertools.chain([first] if first is not None else [], rows)
    values = set[Any]()
    if by in _UNKNOWN:
        rows = _noted(rows, found.columns.index(by), values)
    shown = rows if most is None else itertools.islice(rows, most)
    if format is Format.TEXT and by is By.CHANGE:
        _print_paragraphs(log, (dict(zip(found.columns, row, strict=True)) for row in shown))
    else:
        if format is Format.TEXT and by in _UNKNOWN:
            shown = _named(shown, found.columns.index(by))
        print_rows(found.columns, shown, format)
    if limit is None and next(rows, None) is not None:
        say(f"these are the first {most}; --limit N prints more, --format csv and --format json print all.")
    if values == {None}:
        say(_UNKNOWN[by])
    return report_problems(log)


def _noted(rows: Iterable[tuple[Any, ...]], place: int, values: set[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield rows, and add the values of a column to a set."""
    for row in rows:
        values.add(row[place])
        yield row


def _print_paragraphs(log: Log, changes: Iterator[dict[str, Any]]) -> None:
    """Print each change with the columns that it changed; a line names each transaction and its outcome.

    Rows that ROLLBACK TO SAVEPOINT took back have another outcome than their transaction: they get a line of their own.
    """
    last: tuple[Any, ...] | None = None
    last_statement: str | None = None
    while some := list(itertools.islice(changes, _TEXT_ROWS)):
        texts = statements_of(log, {change["change_id"]: _transaction_id(change) for change in some})
        for change in some:
            transaction = (_transaction_id(change), change["outcome"])
            if transaction != last:
                if last is not None:
                    print_line()
                print_line(_head_of_transaction(change))
                last, last_statement = transaction, None
            statement = texts.get(change["change_id"])
            if statement is not None and statement != last_statement:
                print_line(f"  statement: {_in_a_line(statement)}")
                last_statement = statement
            print_line(f"  {_head_of_change(change)}")
            lines = list(_values(change))
            width = max((len(name) for name, _ in lines), default=0)
            for name, text in lines:
                print_line(f"      {name:<{width}}  {text}")


def _in_a_line(statement: str) -> str:
    """Return a statement in one line, without the end of a long one."""
    text = " ".join(statement.split())
    return human(text if len(text) <= _STATEMENT_CHARACTERS else f"{text[:_STATEMENT_CHARACTERS]}…")


def _transaction_id(change: Mapping[str, Any]) -> str:
    return "/".join(str(change[name]) for name in ("source_id", "epoch", "binlog_file", "transaction_pos"))


def _head_of_transaction(change: Mapping[str, Any]) -> str:
    parts = [human(change["committed_at"] or change["event_timestamp"])]
    parts.append(_transaction_id(change))
    if change["gtid"]:
        parts.append(f"gtid {change['gtid']}")
    if change["thread_id"] is not None:
        parts.append(f"thread {change['thread_id']}")
    if change["outcome"] != "commit":
        parts.append(f"outcome {(change['outcome'] or 'unknown').replace('_', ' ')}")
    return "  ".join(parts)


def _head_of_change(change: Mapping[str, Any]) -> str:
    key = change["pk_values"]
    if change["pk_values_after"] is not None:
        key = f"{key} → {change['pk_values_after']}"
    table = f"{change['schema_name']}.{change['table_name']}"
    head = f"{change['event_type']} {table}{f' {key}' if key is not None else ''} at {change['start_pos']}"
    changed, committed = change["event_timestamp"], change["committed_at"]
    # --since and --until compare the time of the event, which a long transaction has long before its commit.
    is_other = committed is not None and changed != committed.replace(microsecond=0)
    return f"{head}, changed at {human(changed)}" if is_other else head


def _values(change: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each value: of an UPDATE those that changed, of others all."""
    before, after = change["row_before"], change["row_after"]
    if change["event_type"] != "UPDATE":
        yield from ((human(name), _quoted(value)) for name, value in (after or before or {}).items())
        return
    # A mart that an older binloom built lacks the column until it is built again.
    unknown = set(change.get("undecoded_columns") or ())
    for name in change["changed_columns"] or ():
        old = _quoted(before[name]) if name in (before or {}) else "(not logged)"
        new = "(changed in part)" if name in unknown else _quoted((after or {}).get(name))
        yield human(name), f"{old} → {new}"


def _quoted(value: str | None) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
