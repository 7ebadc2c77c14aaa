"""The commands that investigate and recover. They are part of the same command line as those of `binloom.cli`."""

from pathlib import Path
from typing import Annotated

import typer

from binloom.commands.output import Format, StateFormat
from binloom.commands.running import end_with_the_pipe
from binloom.filter_options import with_filters
from binloom.options import AsOf, FormatOption, FromFiles, MoreFiles, OneSource, SnapshotDir, TableName
from recover.filters import By, Filters

commands = typer.Typer(rich_markup_mode=None)


@commands.command(short_help="Print the row changes that filters select.")
@with_filters
def query(
    filters: Filters,
    by: Annotated[By, typer.Option("--by", help="Print each change, or sums.", case_sensitive=False)] = By.CHANGE,
    limit: Annotated[int | None, typer.Option(min=0, metavar="N", help="Print at most N rows.")] = None,
    format: FormatOption = Format.TEXT,
    from_files: FromFiles = None,
    more_files: MoreFiles = None,
    snapshot_dir: SnapshotDir = None,
) -> None:
    """Print the row changes that fit all filters, in commit order. Changes nothing. Needs no Java.

    Without --files, the answer is from the last build of the warehouse.
    """
    from binloom.commands.asked_log import asked_log
    from binloom.commands.query import print_changes

    end_with_the_pipe()
    log = asked_log(filters, from_files, more_files, snapshot_dir)
    raise typer.Exit(print_changes(log, filters, by, limit, format))


@commands.command(short_help="Print one row through time.")
def history(
    table: TableName,
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="Primary key: VALUE, VALUE|VALUE for several columns, or COLUMN=VALUE.")
    ],
    source: OneSource = None,
    as_of: AsOf = None,
    format: FormatOption = Format.TEXT,
) -> None:
    """Print every version of a row: when, by which transaction, and which values. Needs no Java.

    A row is followed through changes of its key. With --as-of, the row as it was at that moment; the exit code is 1
    if the row did not exist then, or the log does not show it.
    """
    from binloom.commands.history import print_history

    end_with_the_pipe()
    raise typer.Exit(print_history(table, key, source, as_of, format))


@commands.command(short_help="Print the rows of a table at a moment.")
def state(
    table: TableName,
    source: OneSource = None,
    as_of: AsOf = None,
    format: Annotated[
        StateFormat, typer.Option("--format", help="Format of the rows.", case_sensitive=False)
    ] = StateFormat.CSV,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the rows to this file.")
    ] = None,
) -> None:
    """Print the rows of a table as they were at a moment. Needs no Java.

    A sentence on stderr reports whether these are all rows of the table, or only those that changed in the log.
    """
    from binloom.commands.state import print_state

    end_with_the_pipe()
    raise typer.Exit(print_state(table, source, as_of, format, output))
