"""The log that a command asks, by its options; and what its answer lacks, on stderr."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from binloom.answers import lacks, opening
from binloom.answers.given_definitions import GivenDefinitions
from binloom.answers.opening import NOTHING_GIVEN, Inputs, writer_of
from binloom.commands.build_record import has_built_everything
from binloom.commands.output import say
from ingest.errors import EXIT_DONE, UsageError
from recover.index.opened import Index
from recover.notes import Kind, Note
from recover.selection.filters import Filters
from recover.sources.log import Log, Parts


def inputs_of(files: Sequence[Path] | None, more: Sequence[Path] | None, given: GivenDefinitions) -> Inputs:
    """Return what the options of a command name.

    Parameters
    ----------
    files, more
        Files of `--files`, and the words after it that are not options: a shell puts them there for a pattern.
    given
        Definitions that the files do not contain.

    Raises
    ------
    UsageError
        Options that do not fit each other.
    """
    if not files:
        assert_files(more, given)
        return Inputs(has_built_everything=has_built_everything)
    return Inputs([*files, *(more or ())], given)


def indexed_inputs_of(
    files: Sequence[Path] | None, more: Sequence[Path] | None, given: GivenDefinitions, index_dir: Path | None
) -> Inputs:
    """Return what the options of a command name that uses the index of files, in a folder or beside them."""
    if not files:
        assert_files(more, given, index_dir)
    return replace(inputs_of(files, more, given), index=Index(index_dir))


def open_log(
    filters: Filters,
    files: Sequence[Path] | None,
    more: Sequence[Path] | None,
    given: GivenDefinitions,
    index_dir: Path | None = None,
    *,
    counts_all_rows: bool = False,
) -> Log:
    """Return the log of the options with the row changes that filters select."""
    inputs = indexed_inputs_of(files, more, given, index_dir)
    return opening.open_log(inputs, filters, say, counts_all_rows=counts_all_rows)


def open_full_log(
    sources: Sequence[str],
    files: Sequence[Path] | None,
    more: Sequence[Path] | None,
    given: GivenDefinitions,
    *,
    table: str | None = None,
    parts: Parts | None = None,
    spill: Path | None = None,
    index_dir: Path | None = None,
) -> Log:
    """Return the log of the options with all row changes and the marts of `table_log`."""
    if files and table is not None and Path(table).is_file():
        raise UsageError(f"{table} is a file, not a table.", hint="Give the table before --files.")
    inputs = indexed_inputs_of(files, more, given, index_dir)
    return opening.open_full_log(inputs, sources, table=table, parts=parts, spill=spill, tell=say)


@contextmanager
def spilling_log(
    sources: Sequence[str],
    files: Sequence[Path] | None = None,
    more: Sequence[Path] | None = None,
    given: GivenDefinitions = NOTHING_GIVEN,
    index_dir: Path | None = None,
    parts: Parts | None = None,
) -> Iterator[Log]:
    """Give the log of `open_full_log` with all that an undo needs. What does not fit into memory goes to files."""
    with tempfile.TemporaryDirectory(prefix="binloom-undo-") as spill:
        yield open_full_log(sources, files, more, given, parts=parts, spill=Path(spill), index_dir=index_dir)


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


def assert_files(more: Sequence[Path] | None, given: GivenDefinitions, index_dir: Path | None = None) -> None:
    """Refuse options that belong to --files, and words that are no options."""
    if more:
        raise UsageError(f"{more[0]} is not an option of this command.", hint="Give binlog files with --files.")
    if given.options:
        raise UsageError(f"{given.options[0]} is for the tables of files.", hint="Give it with --files.")
    if index_dir is not None:
        raise UsageError("--index-dir is for files.", hint="Give it with --files.")
