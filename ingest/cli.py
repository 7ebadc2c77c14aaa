"""The commands of `binloom`, nothing else: options in, one call, exit code out.

What a command needs is imported inside it, so that `binloom --help` is there at once and `inspect` and `decode`
never load Spark.
"""

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from ingest.commands.output import Format
from ingest.commands.running import run_app

app = typer.Typer(
    name="binloom",
    help="Turns MySQL and MariaDB binary logs into queryable Spark tables: who changed which row, when, from what"
    " to what.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-?", "--help"]},
    epilog="Everything that binloom keeps lies under $BINLOOM_HOME (default: .binloom/ in the project).",
)

Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="Binlog files, in the order they were written.")]
FormatOption = Annotated[Format, typer.Option("--format", help="How rows are printed.", case_sensitive=False)]
Source = Annotated[str, typer.Option("--source", "-s", metavar="NAME", help="The stream of changes this belongs to.")]
Schemas = Annotated[str | None, typer.Option(metavar="A,B", help="Only these schemas (databases).")]
Tables = Annotated[str | None, typer.Option(metavar="A.X,Y", help="Only these tables; without a schema: in any.")]
ExcludeTables = Annotated[str | None, typer.Option(metavar="A.X,Y", help="Not these tables.")]


@app.command(short_help="What binlog files are, and whether they are whole.")
def inspect(
    files: Files,
    events: Annotated[bool, typer.Option("--events", help="List the events instead of the report.")] = False,
    filter_type: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE", help="List only events of these types, such as QUERY,XID; may be repeated."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, metavar="N", help="List at most N events.")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Columns of each table; with --events what is in each event.")
    ] = False,
    format: FormatOption = Format.TEXT,
) -> None:
    """Say what binlog files are, what is in them and whether they are whole. Needs no Java.

    Exit code 1 when a file is damaged.
    """
    from ingest.commands.inspect import inspect_files, list_events

    _end_with_the_pipe()
    if events or filter_type or limit is not None:
        raise typer.Exit(list_events(files, format, limit, filter_type or [], verbose))
    raise typer.Exit(inspect_files(files, format, verbose))


@app.command(short_help="Print the row changes of binlog files.")
def decode(
    files: Files,
    snapshot_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Schema snapshot (columns.json ...) that has the names the log lacks."),
    ] = None,
    schemas: Schemas = None,
    tables: Tables = None,
    exclude_tables: ExcludeTables = None,
    start_position: Annotated[
        int | None, typer.Option("--start-position", "-j", min=0, metavar="N", help="Begin there in the first file.")
    ] = None,
    stop_position: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Stop before the event there in the last file.")
    ] = None,
    format: FormatOption = Format.JSON,
) -> None:
    """Print the row changes of binlog files, one JSON object a line. Needs no Java.

    What cannot be decoded is said on stderr; exit code 3 when a file is damaged.
    """
    from ingest.commands.decode import decode_files

    _end_with_the_pipe()
    filter, hints = _table_filter(schemas, tables, exclude_tables), _hints(snapshot_dir)
    raise typer.Exit(decode_files(files, format, hints, filter, start_position, stop_position))


def _end_with_the_pipe() -> None:
    """Let `| head` end the process at once and without a word, as it ends any other filter."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run_app(app, sys.argv[1:]))


if __name__ == "__main__":
    main()
