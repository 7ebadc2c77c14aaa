"""The command `binloom baseline`. It is part of the same command line as those of `binloom.cli`."""

from typing import Annotated, Any

import typer

from binloom.commands.units import size
from binloom.options import ExcludeTables, FromDump, MasksFile, Schemas, Source, Tables
from binloom.server_options import with_server
from ingest.errors import UsageError

commands = typer.Typer(rich_markup_mode=None)


@commands.command(short_help="Land all rows of tables at one position of the binlog.")
@with_server("--server", "--host", "-h", help="Server whose rows are read.", may_be_in_defaults=True)
def baseline(
    source: Source,
    server: Any,
    from_dump: FromDump = None,
    schema: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Schema of the tables in --from-dump whose names contain no schema."),
    ] = None,
    schemas: Schemas = None,
    tables: Tables = None,
    exclude_tables: ExcludeTables = None,
    max_rate: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Read at most this number of bytes in a second, such as 20M.")
    ] = None,
    no_lock: Annotated[
        bool, typer.Option("--no-lock", help="Ask MySQL for no read lock, and prove the position from its log.")
    ] = False,
    masks: MasksFile = None,
) -> None:
    """Land all rows of InnoDB tables as they are at one position of the binlog. Needs no Java.

    With a baseline, `binloom state` and `binloom history` know the rows that never changed in the log. If the command
    is ended, nothing is landed; the next one begins again, at a new position.

    MySQL gives the position under a read lock, which is released before the first row is read. Where it refuses the
    lock, as managed servers do, the position is proved from its log.
    """
    from binloom.commands.baseline import baseline_from_dump, baseline_from_server
    from ingest.binlog import TableFilter

    wanted = TableFilter.parse(schemas, tables, exclude_tables)
    if (server is None) == (from_dump is None):
        given = "None of --server and --from-dump is" if server is None else "Both --server and --from-dump are"
        raise UsageError(f"{given} given.", hint="Give one of them.")
    if from_dump is not None:
        if max_rate is not None:
            raise UsageError("--max-rate goes with --server.", hint="Leave it out.")
        if no_lock:
            raise UsageError("--no-lock goes with --server.", hint="Leave it out.")
        raise typer.Exit(baseline_from_dump(source, from_dump, schema, wanted, masks))
    if schema is not None:
        raise UsageError("--schema goes with --from-dump.", hint="Give --schemas, which selects tables.")
    most_bytes = size(max_rate, "--max-rate") if max_rate is not None else None
    if most_bytes == 0:
        raise UsageError("--max-rate is 0.", hint="Give --max-rate such as 20M, or leave it out.")
    raise typer.Exit(baseline_from_server(source, server, wanted, most_bytes, masks, without_lock=no_lock))
