"""Output: rows to stdout as text, JSON lines or CSV; sentences and progress to stderr.

All text that a command prints for a person goes through this module. It escapes control characters in names, so that
they cannot affect the terminal.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Protocol

from binloom.commands.whole_output import replaced
from ingest.escapes import csv_cell, json_visible, visible

# A table is drawn when its cells fit into columns of this many characters.
_FOLDED_CELL: Final = 16
_COLUMN_GAP: Final = 2


class Format(StrEnum):
    """Output format of rows."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


class ReportFormat(StrEnum):
    """Output format of an answer that is more than rows of one kind."""

    TEXT = "text"
    JSON = "json"


class StateFormat(StrEnum):
    """Output format of the rows of a table."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    SQL = "sql"


class RestoreFormat(StrEnum):
    """Output format of restored tables."""

    SQL = "sql"
    CSV = "csv"
    PARQUET = "parquet"


class Advance(Protocol):
    """Progress callback of a long step."""

    def __call__(self, done: int, total: int | None = None) -> None: ...


def say(sentence: str) -> None:
    """Print a sentence to stderr, so that it does not mix with the rows."""
    print(f"binloom: {visible(sentence)}", file=sys.stderr, flush=True)  # noqa: T201


def print_line(line: str = "") -> None:
    """Print a line for a person to stdout."""
    sys.stdout.write(f"{visible(line)}\n")


def write_script(lines: Iterable[str], output: Path | None) -> None:
    """Print the lines of a script, or write them to a file, which exists only when it has all of them."""
    texts = (f"{line}\n" for line in lines)
    if output is None:
        sys.stdout.writelines(texts)
        sys.stdout.flush()
        return
    with replaced(output) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(texts)


def iso(moment: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC with a Z; a fraction is included only if it is not zero."""
    if moment is None:
        return None
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat(sep="T") + "Z"


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], format: Format, title: str | None = None) -> None:
    """Print rows with named columns.

    Parameters
    ----------
    columns
        Column names: the header of text and CSV, the keys of JSON lines.
    rows
        One sequence for each row, in the order of `columns`.
    format
        `text` is aligned for people; `json` has one object in each line; `csv` has a header line.
    title
        A line above a text table; not printed in JSON and CSV.
    """
    if format is Format.JSON:
        for row in rows:
            sys.stdout.write(json_text(dict(zip(columns, map(_plain, row), strict=True))) + "\n")
    elif format is Format.CSV:
        sys.stdout.write(",".join(map(csv_cell, columns)) + "\n")
        for row in rows:
            sys.stdout.write(",".join(map(_cell, row)) + "\n")
    else:
        print_table(columns, rows, title)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None, width: int | None = None
) -> None:
    """Print an aligned table, with numbers aligned to the right.

    A table that does not fit into the terminal is printed row by row, one cell in each line, without empty cells.

    Parameters
    ----------
    columns, rows, title
        As in `print_rows`.
    width
        Characters in a line. The default is the width of the terminal, or the full length of the lines without one.
    """
    body = [list(row) for row in rows]
    names = [column.replace("_", " ") for column in columns]
    cells = [list(map(human, row)) for row in body]
    screen = console()
    if width is not None and not screen.is_terminal:
        screen.width = width
    if title:
        print_line(title)
    if _least_width(names, cells) > screen.width:
        _print_records(names, cells)
    else:
        numeric = [name for name, values in zip(names, zip(*body, strict=True), strict=False) if _are_numbers(values)]
        _print_columns(screen, names, cells, numeric)


def _least_width(names: Sequence[str], cells: Sequence[Sequence[str]]) -> int:
    """Return the width of the narrowest table that is easy to read: a longer cell continues in the next line."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(names, *cells, strict=True)]
    return sum(min(width, _FOLDED_CELL) + _COLUMN_GAP for width in widths) - _COLUMN_GAP


def _print_columns(screen: Any, names: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[str]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True, header_style="bold")
    for name in names:
        table.add_column(Text(name), justify="right" if name in numeric else "left", overflow="fold")
    for row in cells:
        table.add_row(*map(Text, row))
    with screen.capture() as lines:
        screen.print(table)
    sys.stdout.writelines(line.rstrip() + "\n" for line in lines.get().splitlines())


def _print_records(names: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """Print one cell in each line; the terminal itself breaks a line that is too long."""
    longest = max(map(len, names))
    for number, row in enumerate(cells, start=1):
        print_line(f"row {number}")
        for name, cell in zip(names, row, strict=True):
            if cell:
                print_line(f"  {name:<{longest}}  {cell}")


def console(stderr: bool = False) -> Any:
    """Return a rich console that neither wraps lines in a pipe nor interprets square brackets as markup."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 4096
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def human(value: Any) -> str:
    """Return a value as text for a table that a person reads, with invisible characters escaped."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return (iso(value) or "").replace("T", " ").removesuffix("Z")
        case Mapping():
            return ", ".join(f"{human(key)} {human(item)}" for key, item in value.items())
        case list() | tuple():
            return ", ".join(human(item) for item in value)
        case _:
            return visible(str(value))


def json_text(value: Any) -> str:
    """Return a value as JSON in one line: invisible characters are escaped, letters of all languages are not."""
    return json_visible(json.dumps(value, ensure_ascii=False))


def human_bytes(size: int) -> str:
    """Return a size with the unit that leaves at most four digits."""
    amount = float(size)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{int(amount)} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.2f} GiB"


def waiting(label: str) -> AbstractContextManager[Any]:
    """Show a spinner on stderr if it is a terminal."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.text import Text

    # A Text, because the spinner would interpret a string as markup.
    status: AbstractContextManager[Any] = console(stderr=True).status(Text(visible(label)))
    return status


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Advance]:
    """Show a progress bar on stderr if it is a terminal; yield the function that advances it.

    Nothing is shown when stderr is not a terminal. Callers that print rows to a terminal should not show a bar.
    """
    if not sys.stderr.isatty():
        yield lambda done, total=None: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        console=console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task(visible(label), total=total)

        def advance(done: int, total: int | None = None) -> None:
            bar.update(task, completed=done, total=total)

        yield advance


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return iso(value)
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def _cell(value: Any) -> str:
    match _plain(value):
        case None:
            return ""
        case str() as text:
            return csv_cell(text)
        case dict() | list() as nested:
            return csv_cell(json_text(nested))
        case number:
            return str(number)


def _are_numbers(values: Sequence[Any]) -> bool:
    """Whether a column has numbers and nothing else."""
    known = [value for value in values if value is not None]
    return bool(known) and all(map(_is_number, known))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
