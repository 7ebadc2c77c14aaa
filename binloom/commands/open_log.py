"""The log that a command asks, by its options; and what its answer lacks, on stderr."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from binloom.answers import lacks, opening
from binloom.answers.opening import Inputs, writer_of
from binloom.commands.output import say
from ingest.errors import EXIT_DONE, UsageError
from recover.notes import Kind, Note
from recover.selection.filters import Filters
from recover.sources.log import Log, Parts


def open_log(filters: Filters, inputs: Inputs, *, counts_all_rows: bool = False) -> Log:
    """Return the log of the options with the row changes that filters select."""
    return opening.open_log(inputs, filters, say, counts_all_rows=counts_all_rows)


def open_full_log(
    sources: Sequence[str],
    inputs: Inputs,
    *,
    table: str | None = None,
    parts: Parts | None = None,
    spill: Path | None = None,
) -> Log:
    """Return the log of the options with all row changes and the marts of `table_log`."""
    if inputs.files and table is not None and Path(table).is_file():
        raise UsageError(f"{table} is a file, not a table.", hint="Give the table before --files.")
    return opening.open_full_log(inputs, sources, table=table, parts=parts, spill=spill, tell=say)


@contextmanager
def spilling_log(sources: Sequence[str], inputs: Inputs, parts: Parts | None = None) -> Iterator[Log]:
    """Give the log of `open_full_log` with all that an undo needs. What does not fit into memory goes to files."""
    with tempfile.TemporaryDirectory(prefix="binloom-undo-") as spill:
        yield open_full_log(sources, inputs, parts=parts, spill=Path(spill))


def report_problems(log: Log) -> int:
    """Tell why rows of damaged files are missing; return the exit code."""
    for problem in log.problems:
        say(str(problem))
    return max((problem.exit_code for problem in log.problems), default=EXIT_DONE)


def report_notes(notes: Iterable[Note]) -> None:
    """Tell what an answer lacks; `report_problems` tells of damaged files, after the rows."""
    for note in notes:
        if note.kind is not Kind.DAMAGED:
            say(note)


@contextmanager
def problems_first(log: Log) -> Iterator[None]:
    """Report damaged files and broken landings before an error: the rows that they lack may be the reason for it."""
    try:
        yield
    except UsageError as error:
        error.exit_code = max(error.exit_code, report_problems(log))
        report_notes(lacks.unlanded(log))
        raise


def report_writer(home: Path) -> None:
    """Tell if a build of another process may be running."""
    if (note := writer_of(home)) is not None:
        say(note)
