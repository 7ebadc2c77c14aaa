"""The commands that investigate and recover. They are part of the same command line as those of `binloom.cli`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from binloom.commands.output import Format, ReportFormat, RestoreFormat, StateFormat
from binloom.commands.running import end_with_the_pipe
from binloom.file_options import with_files
from binloom.filter_options import with_filters, with_some_filters
from binloom.options import (
    CommandWithKey,
    FileOrAddress,
    FormatOption,
    FromDump,
    HistoryAsOf,
    OneSource,
    OutputFile,
    StateAsOf,
    TableName,
    not_empty,
)
from binloom.server_options import with_server
from ingest.errors import UsageError
from recover.questions.statistics import Unit
from recover.questions.top import Step
from recover.selection.filters import By, Filters, separated

if TYPE_CHECKING:
    from binloom.answers.opening import Inputs

commands = typer.Typer(rich_markup_mode=None)


@commands.command(short_help="Print the row changes that filters select.")
@with_filters
@with_files()
def query(
    filters: Filters,
    by: Annotated[By, typer.Option("--by", help="Print each change, or sums.", case_sensitive=False)] = By.CHANGE,
    limit: Annotated[int | None, typer.Option(min=0, metavar="N", help="Print at most N rows.")] = None,
    format: FormatOption = Format.TEXT,
    *,
    inputs: "Inputs",
) -> None:
    """Print the row changes that fit all filters, in commit order. Changes nothing. Needs no Java.

    Without --files, the answer is from all that has landed.
    """
    from binloom.commands.open_log import open_log, problems_first
    from binloom.commands.query import print_changes

    end_with_the_pipe()
    log = open_log(filters, inputs, counts_all_rows=by is By.TRANSACTION)
    with problems_first(log):
        raise typer.Exit(print_changes(log, filters, by, limit, format))


@commands.command(short_help="Print one row through time.", cls=CommandWithKey)
@with_files()
def history(
    table: TableName,
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="Primary key: VALUE, VALUE|VALUE for several columns, or COLUMN=VALUE.")
    ],
    source: OneSource = None,
    as_of: HistoryAsOf = None,
    format: FormatOption = Format.TEXT,
    *,
    inputs: "Inputs",
) -> None:
    """Print every version of a row: when, by which transaction, and which values. Needs no Java.

    A row is followed through changes of its key. With --as-of, the command prints the row as it was at that moment.
    The exit code is 1 if the row did not exist then, or if the log does not show whether it did. It is 2 if neither
    the log nor a baseline contains the key.
    """
    from binloom.commands.history import print_history
    from binloom.commands.open_log import open_full_log, problems_first

    end_with_the_pipe()
    sources = [source] if source is not None else []
    log = open_full_log(sources, inputs, table=table)
    with problems_first(log):
        raise typer.Exit(print_history(log, table, key, source, as_of, format))


@commands.command(short_help="Print the rows of a table at a moment.")
@with_files()
def state(
    table: TableName,
    source: OneSource = None,
    as_of: StateAsOf = None,
    format: Annotated[
        StateFormat, typer.Option("--format", help="Format of the rows.", case_sensitive=False)
    ] = StateFormat.CSV,
    output: OutputFile = None,
    *,
    inputs: "Inputs",
) -> None:
    """Print the rows of a table as they were at a moment. Needs no Java.

    A sentence on stderr reports whether these are all rows of the table, or only those that changed in the log.
    """
    from binloom.commands.open_log import open_full_log, problems_first
    from binloom.commands.state import print_state

    end_with_the_pipe()
    if format is StateFormat.PARQUET and output is None:
        raise UsageError("Parquet is not written to stdout.", hint="Give --output FILE.")
    sources = [source] if source is not None else []
    log = open_full_log(sources, inputs, table=table)
    with problems_first(log):
        raise typer.Exit(print_state(log, table, source, as_of, format, output))


@commands.command(short_help="Bring tables back from a dump and the log after it.")
@with_server("--compare-with", help="Write only the statements that give the tables of this server these rows.")
def restore(
    tables: Annotated[
        list[str],
        typer.Argument(metavar="TABLE ...", help="Tables as SCHEMA.TABLE; SCHEMA.* for all of a schema."),
    ],
    from_dump: FromDump,
    from_files: Annotated[
        list[Any],
        typer.Option(
            "--files",
            metavar="FILE ...",
            click_type=FileOrAddress(),
            help="Binlog files from the dump on; also compressed, in tar archives, s3://..., or -.",
        ),
    ],
    as_of: StateAsOf = None,
    format: Annotated[
        RestoreFormat, typer.Option("--format", help="Format of the tables.", case_sensitive=False)
    ] = RestoreFormat.SQL,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            readable=False,
            help="Write to this file; a new folder for several tables as CSV or Parquet.",
        ),
    ] = None,
    with_parents: Annotated[
        bool, typer.Option("--with-parents", help="Also restore the tables that foreign keys refer to.")
    ] = False,
    schema: Annotated[
        str | None, typer.Option(metavar="NAME", help="Schema of the tables in a dump that names none.")
    ] = None,
    from_position: Annotated[
        str | None,
        typer.Option(metavar="FILE:POSITION", help="Place of the dump in the log, if the dump does not name it."),
    ] = None,
    rounded: Annotated[
        bool,
        typer.Option("--rounded", help="Accept values of FLOAT and DOUBLE(M,D) as the dump rounded them."),
    ] = False,
    locked: Annotated[
        bool,
        typer.Option("--locked", help="Accept engines other than InnoDB: the dump was written with --lock-all-tables."),
    ] = False,
    compare_with: Any = None,
) -> None:
    """Write tables as they were at a moment, from a dump and the log after it. No server is needed, and no Java.

    With --compare-with, the SQL only changes the rows in which a live server differs; nothing is executed. Rows that
    did not change since the dump come from the dump. The exit code is 1, and nothing is written, if the dump
    and the log do not tell exactly which rows the tables had. Give the tables before --files.
    """
    from binloom.commands.restore import Wanted
    from binloom.commands.restore import restore as restore_tables

    end_with_the_pipe()
    names, more = _tables_and_files(tables)
    position = None if from_position is None else _position(from_position)
    wanted = Wanted(names, as_of, schema, position, with_parents, rounded, locked, compare_with)
    raise typer.Exit(restore_tables(from_dump, [*from_files, *more], wanted, format, output))


def _tables_and_files(words: list[str]) -> tuple[list[str], list[Any]]:
    """Tell tables from files: of the words that a shell makes of a pattern after --files, that takes only the first."""
    files = [word for word in words if _is_file_or_address(word)]
    tables = [word for word in words if word not in files]
    if not tables:
        raise UsageError("No table is given.", hint="Give tables as SCHEMA.TABLE, before --files.")
    return tables, [word if "://" in word else Path(word) for word in files]


def _is_file_or_address(word: str) -> bool:
    """Return whether a word is no table. Names of tables may have slashes, too, but a table has a schema."""
    is_path = word.startswith(("/", "./", "../")) or ("/" in word and ("." not in word or Path(word).exists()))
    return is_path or "://" in word or Path(word).is_file()


def _position(text: str) -> tuple[str, int]:
    file, _, pos = text.rpartition(":")
    if not file or not pos.isdecimal():
        raise UsageError(f"{text!r} is not a position.", hint="Give for example --from-position binlog.000001:1234.")
    return file, int(pos)


@commands.command(short_help="Print the biggest and longest transactions, or sums of tables.")
@with_filters
@with_files()
def transactions(
    filters: Filters,
    by: Annotated[
        Unit, typer.Option("--by", help="Transactions, or sums by table, or by hour and table.", case_sensitive=False)
    ] = Unit.TRANSACTION,
    top: Annotated[
        int, typer.Option(min=1, metavar="N", help="Print the N with the most rows, and the N longest.")
    ] = 10,
    min_rows: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Print all transactions with at least N rows, not only the top N."),
    ] = None,
    min_bytes: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Print all transactions with at least N bytes in their file.")
    ] = None,
    min_seconds: Annotated[
        float | None, typer.Option(min=0, metavar="S", help="Print all transactions that lasted at least S seconds.")
    ] = None,
    format: FormatOption = Format.TEXT,
    *,
    inputs: "Inputs",
) -> None:
    """Print the transactions with the most rows and the longest ones, among those with a selected change.

    A transaction lasts from its first event to its commit; the log does not show when its session began it. Needs no
    Java.
    """
    from binloom.commands.open_log import open_log, problems_first
    from binloom.commands.transactions import print_transactions
    from recover.questions.statistics import Least

    end_with_the_pipe()
    log = open_log(filters, inputs, counts_all_rows=by is Unit.TRANSACTION)
    least = Least(min_rows, min_bytes, min_seconds)
    with problems_first(log):
        raise typer.Exit(print_transactions(log, filters, by, top, least, format))


@commands.command(short_help="Print what changed most, and when.")
@with_some_filters("sources", "schemas", "tables", "since", "until")
@with_files()
def top(
    filters: Filters,
    by: Annotated[Step, typer.Option("--by", help="Step of the timeline.", case_sensitive=False)] = Step.MINUTE,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Length of each list.")] = 10,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="Print again after each such time, with what has landed since: 2s, 1m.",
        ),
    ] = None,
    format: Annotated[
        ReportFormat, typer.Option("--format", help="How the answer is printed.", case_sensitive=False)
    ] = ReportFormat.TEXT,
    *,
    inputs: "Inputs",
) -> None:
    """Print which tables, transactions, connections and rows changed most, and when. Needs no Java and no build.

    Rows are counted and not kept. Without --files, the answer is about all that has landed. With --every and beside
    `binloom follow`, it is about a live server. The answer tells what it lacks.
    """
    from binloom.commands.top import Wanted, print_top_of_files, print_top_of_home
    from binloom.commands.units import seconds
    from ingest.warehouse.home import binloom_home

    end_with_the_pipe()
    wanted = Wanted(filters, by, limit)
    pause = None if every is None else seconds(every, "--every")
    if inputs.files:
        if pause is not None:
            raise UsageError(
                "--every is about what lands, and files do not change.", hint="Give --files or --every, not both."
            )
        raise typer.Exit(print_top_of_files(inputs, wanted, format))
    raise typer.Exit(print_top_of_home(binloom_home(), wanted, pause, format))


SkipConflicts = Annotated[
    bool,
    typer.Option(
        "--skip-conflicts",
        help="Leave out rows in conflict with later transactions, and rows that cannot be taken back; exit code 1.",
    ),
]
WithDependents = Annotated[
    bool, typer.Option("--with-dependents", help="Also take back later transactions that changed the same rows.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite later changes of these rows.")]
RowsOnly = Annotated[
    bool, typer.Option("--rows-only", help="Take back only the selected row changes, not their whole transactions.")
]
RedoRowsOnly = Annotated[
    bool, typer.Option("--rows-only", help="Do again only the selected row changes, not their whole transactions.")
]
Columns = Annotated[
    str | None, typer.Option("--columns", metavar="A,B", help="Set only these columns.", callback=not_empty)
]
ByTransaction = Annotated[
    bool,
    typer.Option(
        "--by-transaction", help="One block for each transaction, in the exact reverse of commit order, not folded."
    ),
]
WithCascades = Annotated[
    bool,
    typer.Option("--with-cascades", help="Add rows that foreign keys changed and the server did not log."),
]
JsonAsText = Annotated[
    bool,
    typer.Option("--json-as-text", help="Write texts in JSON as texts, even where they may be dates, times or bytes."),
]
EndWith = Annotated[
    str, typer.Option("--end-with", metavar="commit|rollback", help="End each block; rollback is a rehearsal.")
]


@commands.command(short_help="Write what filters select as one file for a post-mortem.")
@with_filters
@with_files()
def incident(
    filters: Filters,
    output: OutputFile = None,
    title: Annotated[
        str | None, typer.Option("--title", metavar="TEXT", help="Title of the report.", callback=not_empty)
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, metavar="N", help="Show at most N changed rows.")] = 200,
    skip_conflicts: SkipConflicts = False,
    rows_only: RowsOnly = False,
    with_cascades: WithCascades = False,
    *,
    inputs: "Inputs",
) -> None:
    """Write a report of the selected changes: timeline, transactions, rows, undo, and what is not known.

    The report is one HTML file that loads nothing and can be sent by mail. It contains values of rows. Needs no Java,
    and executes nothing.
    """
    from binloom.answers.incident import parts_of_incident
    from binloom.commands.incident import undo_command, write_report
    from binloom.commands.open_log import problems_first, spilling_log
    from recover.undo.options import Mode, UndoOptions

    if output is None:
        raise UsageError("A report is a file.", hint="Give --output incident.html.")
    mode = Mode.of(skip_conflicts=skip_conflicts)
    options = UndoOptions(mode=mode, rows_only=rows_only, with_cascades=with_cascades)
    command = undo_command(filters, inputs, options)
    parts = parts_of_incident(filters, options)
    with spilling_log(filters.sources, inputs, parts) as log, problems_first(log):
        raise typer.Exit(write_report(log, filters, title, rows, output, command, options))


AGAINST = "Compare each row with this server; refuse rows that differ."


@commands.command(short_help="Print SQL that takes back what filters select.")
@with_filters
@with_server("--against", help=AGAINST)
@with_files(has_server=False)
def undo(
    filters: Filters,
    skip_conflicts: SkipConflicts = False,
    with_dependents: WithDependents = False,
    force: Force = False,
    rows_only: RowsOnly = False,
    columns: Columns = None,
    by_transaction: ByTransaction = False,
    with_cascades: WithCascades = False,
    json_as_text: JsonAsText = False,
    end_with: EndWith = "commit",
    output: OutputFile = None,
    *,
    inputs: "Inputs",
    against: Any = None,
) -> None:
    """Print a script for the mysql client that takes back the transactions of the selected changes. Runs nothing.

    Without a filter, all transactions of the log are selected. The script is proved before it is printed. With
    --against, each row is also compared with a live server, which is only read. The exit code is 1 if the undo is
    refused.
    """
    from binloom.answers.undo import parts_of
    from binloom.commands.open_log import spilling_log
    from binloom.commands.undo import print_script, report_selection
    from recover.undo.options import Direction, Mode, UndoOptions

    report_selection(filters, Direction.UNDO)
    options = UndoOptions(
        Direction.UNDO,
        Mode.of(skip_conflicts=skip_conflicts, with_dependents=with_dependents, force=force),
        None if columns is None else frozenset(separated([columns])),
        by_transaction,
        rows_only,
        with_cascades,
        json_as_text,
    )
    if inputs.files and not filters.sources:
        inputs = inputs.or_of_server(against)
    parts = parts_of(filters, options, inputs.given, against)
    with spilling_log(filters.sources, inputs, parts) as log:
        raise typer.Exit(print_script(log, filters, options, end_with, output, against=against))


@commands.command(short_help="Print SQL that does again what filters select.")
@with_filters
@with_server("--against", help=AGAINST)
@with_files(has_server=False)
def redo(
    filters: Filters,
    skip_conflicts: SkipConflicts = False,
    rows_only: RedoRowsOnly = False,
    with_cascades: WithCascades = False,
    json_as_text: JsonAsText = False,
    end_with: EndWith = "commit",
    output: OutputFile = None,
    *,
    inputs: "Inputs",
    against: Any = None,
) -> None:
    """Print a script for the mysql client that does the transactions of the selected changes again. Runs nothing.

    Use it on a server that does not have these changes: after an undo, or after a restore. Without a filter,
    all transactions of the log are selected.
    """
    from binloom.answers.undo import parts_of
    from binloom.commands.open_log import spilling_log
    from binloom.commands.undo import print_script, report_selection
    from recover.undo.options import Direction, Mode, UndoOptions

    report_selection(filters, Direction.REDO)
    options = UndoOptions(
        Direction.REDO,
        Mode.of(skip_conflicts=skip_conflicts),
        rows_only=rows_only,
        with_cascades=with_cascades,
        json_as_text=json_as_text,
    )
    if inputs.files and not filters.sources:
        inputs = inputs.or_of_server(against)
    parts = parts_of(filters, options, inputs.given, against)
    with spilling_log(filters.sources, inputs, parts) as log:
        raise typer.Exit(print_script(log, filters, options, end_with, output, against=against))
