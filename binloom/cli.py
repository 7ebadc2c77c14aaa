"""The commands of `binloom`: each one parses options, makes one call and returns an exit code.

Commands import their modules inside the function, so that `binloom --help` starts at once, and `inspect` and
`decode` never load Spark.
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from binloom.cli_agents import commands as agents
from binloom.cli_baseline import commands as baselines
from binloom.cli_models import commands as models
from binloom.cli_recover import commands as recovery
from binloom.cli_retention import commands as retention
from binloom.cli_ui import commands as pages
from binloom.commands.output import Format, say
from binloom.commands.running import end_with_the_pipe, run_app
from binloom.general_options import InstallCompletion, ShowCompletion, Version
from binloom.options import (
    SCHEMA_FROM,
    Ddl,
    ExcludeTables,
    FileOrAddress,
    Files,
    FormatOption,
    MasksFile,
    MetricsAddress,
    MetricsPort,
    Schemas,
    SkipBadChecksum,
    SnapshotDir,
    Source,
    Tables,
)
from binloom.server_options import with_server
from ingest.errors import UsageError

if TYPE_CHECKING:
    from ingest.binlog import TableFilter

app = typer.Typer(
    name="binloom",
    help="Reads the binary logs of MySQL and MariaDB: shows who changed which row, when, from what to what; prints SQL"
    " that takes a mistake back; builds Spark tables.",
    no_args_is_help=True,
    # typer would guess the shell from the parents of the process: see `binloom.commands.completion`.
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-?", "--help"]},
    epilog="binloom keeps all of its data under $BINLOOM_HOME (default: .binloom/ in the current folder).",
)


@app.callback()
def general(version: Version = False, install: InstallCompletion = False, show: ShowCompletion = False) -> None:
    """Options that need no command."""


@app.command(short_help="Describe binlog files and check that they are complete.")
def inspect(
    files: Files,
    events: Annotated[bool, typer.Option("--events", help="List the events instead of printing a report.")] = False,
    filter_type: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE", help="List only events of these types, such as QUERY,XID; may be repeated."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=0, metavar="N", help="List at most N events.")] = None,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Show the columns of each table; with --events, the contents of each event."
        ),
    ] = False,
    format: FormatOption = Format.TEXT,
) -> None:
    """Describe binlog files and their contents, and check that they are complete. Needs no Java.

    The exit code is 1 if a file is damaged. It is 2 if a file is empty or not a binlog. Without --events, it is 3
    if a file is encrypted or ends inside its first event.
    """
    from binloom.answers.named_files import binlogs
    from binloom.commands.inspect import inspect_files, list_events

    end_with_the_pipe()
    found = binlogs(files, say)
    if events or filter_type or limit is not None:
        raise typer.Exit(list_events(found, format, limit, filter_type or [], verbose))
    raise typer.Exit(inspect_files(found, format, verbose))


@app.command(short_help="Write an index beside binlog files, so that questions read less of them.")
def index(
    locations: Annotated[
        list[Any],
        typer.Argument(
            metavar="LOCATION ...",
            click_type=FileOrAddress(),
            help="Folders, binlog files, also compressed, or addresses such as s3://bucket/folder/.",
        ),
    ],
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Write into this folder, not beside the files.")
    ] = None,
) -> None:
    """Write an index of each binlog file: its segments with their times, tables, GTIDs, and a filter of their keys.

    Commands with --files then read only the parts that can have the answer. Files that have an index are skipped. Needs
    no Java. The exit code is 1 if a file cannot have an index.
    """
    from binloom.commands.index import index_files

    end_with_the_pipe()
    raise typer.Exit(index_files(locations, to))


@app.command(short_help="Print the row changes of binlog files.")
@with_server("--schema-from", help=SCHEMA_FROM)
def decode(
    files: Files,
    snapshot_dir: SnapshotDir = None,
    ddl: Ddl = None,
    schema_from: Any = None,
    schemas: Schemas = None,
    tables: Tables = None,
    exclude_tables: ExcludeTables = None,
    start_position: Annotated[
        int | None,
        typer.Option("--start-position", "-j", min=0, metavar="N", help="Start at this position of the first file."),
    ] = None,
    stop_position: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Stop before the event at this position of the last file.")
    ] = None,
    skip_bad_checksum: SkipBadChecksum = False,
    format: FormatOption = Format.JSON,
) -> None:
    """Print the row changes of binlog files, one JSON object a line. Needs no Java.

    Events and values that cannot be decoded are reported on stderr. The exit code is then 3, as for a damaged file.
    """
    from binloom.answers.given_definitions import GivenDefinitions
    from binloom.answers.named_files import binlogs
    from binloom.commands.decode import decode_files

    end_with_the_pipe()
    filter, files = _table_filter(schemas, tables, exclude_tables), binlogs(files, say)
    snapshot = GivenDefinitions(snapshot_dir, ddl, schema_from).snapshot(files, say)
    raise typer.Exit(decode_files(files, format, snapshot, filter, start_position, stop_position, skip_bad_checksum))


@app.command(short_help="Land a schema snapshot, for names that a binlog does not contain.")
@with_server("--server", "--host", "-h", help="Server whose schema is read.", may_be_in_defaults=True)
def snapshot(
    source: Source,
    server: Any = None,
    from_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            readable=False,
            help="Folder with columns, key_column_usage, referential_constraints, tables, statistics (.json ...).",
        ),
    ] = None,
    from_ddl: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", readable=False, help="File of DDL statements, such as the output of mysqldump --no-data."
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Schema of the tables in --from-ddl whose names contain no schema."),
    ] = None,
    at_file: Annotated[
        str | None,
        typer.Option(metavar="F", help="Binlog file at which the definitions in --from-ddl apply; needs --at-pos."),
    ] = None,
    at_pos: Annotated[int | None, typer.Option(min=4, metavar="N", help="Position in --at-file.")] = None,
    masks: MasksFile = None,
) -> None:
    """Land the definitions of tables, from a live server or from files.

    Landing the same snapshot again changes nothing.
    """
    from binloom.commands.snapshot import snapshot_from_ddl, snapshot_from_files, snapshot_from_server

    given = {"--server": server, "--from-dir": from_dir, "--from-ddl": from_ddl}
    chosen = [option for option, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise UsageError(f"Both {chosen[0]} and {chosen[1]} are given.", hint="Give one of them.")
    if from_ddl is None and not (schema is None and at_file is None and at_pos is None):
        raise UsageError(
            "--schema, --at-file and --at-pos go with --from-ddl.", hint="Give --from-ddl, or leave them out."
        )
    if (at_file is None) != (at_pos is None):
        raise UsageError("--at-file and --at-pos go together.", hint="Give both, or neither.")
    if from_ddl is not None:
        raise typer.Exit(snapshot_from_ddl(source, from_ddl, schema, at_file, at_pos, masks))
    if from_dir is not None:
        raise typer.Exit(snapshot_from_files(source, from_dir, masks))
    if server is None:
        raise UsageError("None of --server, --from-dir and --from-ddl is given.", hint="Give one of them.")
    raise typer.Exit(snapshot_from_server(source, server, masks))


@app.command(short_help="Land binlog files; skip everything that is already landed.")
def ingest(
    source: Source,
    binlog_dir: Annotated[
        Any, typer.Option(metavar="DIR", click_type=FileOrAddress(), help="Folder with the binlog files, or s3://...")
    ],
    all_files: Annotated[
        bool, typer.Option("--all", help="All binlog files in the folder, in the order of their numbers.")
    ] = False,
    files: Annotated[str | None, typer.Option(metavar="A,B", help="Only these files in the folder.")] = None,
    schemas: Schemas = None,
    tables: Tables = None,
    exclude_tables: ExcludeTables = None,
    new_epoch: Annotated[
        bool,
        typer.Option(
            "--new-epoch", help="Confirm that the files start over: after a RESET, a restore, or a change of server."
        ),
    ] = False,
    skip_bad_checksum: SkipBadChecksum = False,
    again: Annotated[
        bool, typer.Option("--again", help="Land only the segments that dbt lists in segments_to_land_again.")
    ] = False,
    masks: MasksFile = None,
) -> None:
    """Land binlog files under a source. A repeated run skips everything that is already landed.

    A damaged file is landed up to its last complete transaction, and the files after it are landed too. The exit code
    is then 3.
    """
    from binloom.commands.ingest import ingest_files

    if all_files == (files is not None):
        raise UsageError(
            "No files are named, or both --all and --files are given.", hint="Give either --all or --files a,b."
        )
    names = None if files is None else files.split(",")
    filter = _table_filter(schemas, tables, exclude_tables)
    raise typer.Exit(ingest_files(source, binlog_dir, names, filter, new_epoch, skip_bad_checksum, again, masks))


@app.command(short_help="Follow a live server.")
@with_server("--server", "--host", "-h", help="Server to follow.", may_be_in_defaults=True)
def follow(
    source: Source,
    server: Any = None,
    start_gtid: Annotated[
        str | None,
        typer.Option(
            metavar="SET", help="Start after these GTIDs. The options for the start apply only to a new source."
        ),
    ] = None,
    start_file: Annotated[str | None, typer.Option(metavar="FILE", help="Start with this file of the server.")] = None,
    start_pos: Annotated[
        int | None, typer.Option(min=4, metavar="N", help="Start at this position of --start-file.")
    ] = None,
    from_oldest: Annotated[
        bool, typer.Option("--from-oldest", help="Start with the oldest file of the server (default).")
    ] = False,
    from_now: Annotated[
        bool, typer.Option("--from-now", help="Start with the events that the server logs from now on.")
    ] = False,
    interval: Annotated[
        str, typer.Option(metavar="TIME", help="Time between two landings, such as 5s, 30s or 2m.")
    ] = "30s",
    once: Annotated[
        bool, typer.Option("--once", help="Land everything up to the server's present position, then end.")
    ] = False,
    accept_gap: Annotated[
        bool, typer.Option("--accept-gap", help="Continue after a gap that cannot be filled.")
    ] = False,
    server_id: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=4294967295,
            metavar="N",
            help="server_id of binloom as a replica; default: a random number that is kept.",
        ),
    ] = None,
    metrics_port: MetricsPort = None,
    metrics_address: MetricsAddress = "127.0.0.1",
    spool_max_age: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Delete files of the spool that are landed, closed and older than this; default 7d, with masks 0s.",
        ),
    ] = None,
    spool_max_size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Delete the oldest of these files when the spool is larger than this, such as 20G."
        ),
    ] = None,
    masks: MasksFile = None,
) -> None:
    """Follow a live server: read its binlog as a replica does, store it, and land it every --interval.

    SIGINT or SIGTERM ends it cleanly, and the next start continues at the same position. Needs no Java.
    The exit code is 3 if a part of the log is lost (see --accept-gap), or if the server cannot be used.
    """
    from binloom.commands.follow import follow_server
    from binloom.commands.units import seconds, size
    from ingest.follow.follower import FollowOptions
    from ingest.follow.handover import Start

    if server is None:
        raise UsageError("No server is given.", hint="Give --server, or a --defaults-file that names its host.")
    ways = {
        "--start-gtid": start_gtid,
        "--start-file": start_file,
        "--from-oldest": from_oldest,
        "--from-now": from_now,
    }
    if len(given := [name for name, value in ways.items() if value]) > 1:
        raise UsageError(f"{' and '.join(given)} give different starts.", hint="Give one of them.")
    if start_pos is not None and start_file is None:
        raise UsageError("--start-pos needs --start-file.", hint="Give both.")
    options = FollowOptions(
        start=Start(start_gtid, start_file, start_pos, from_now),
        interval=seconds(interval, "--interval"),
        once=once,
        accept_gap=accept_gap,
        replica_id=server_id,
        spool_max_age=None if spool_max_age is None else seconds(spool_max_age, "--spool-max-age"),
        spool_max_size=None if spool_max_size is None else size(spool_max_size, "--spool-max-size"),
        masks=masks,
    )
    raise typer.Exit(follow_server(source, server, options, metrics_port, metrics_address))


@app.command(short_help="Merge the small segments of closed files.")
def compact(
    source: Source,
    keep: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0, help="Keep the old files this long, for processes that still read them."
        ),
    ] = 0.0,
) -> None:
    """Merge the many segments of a followed file into one: the same rows in fewer files. Needs no Java.

    `binloom follow` does this by itself when the server has closed a file.
    """
    from binloom.commands.compact import compact_source

    raise typer.Exit(compact_source(source, keep))


@app.command(short_help="Show sources, files, segments, lag and quarantine.")
def status(
    source: Annotated[str | None, typer.Option("--source", "-s", metavar="NAME", help="Only this source.")] = None,
    sources: Annotated[
        bool, typer.Option("--sources", help="Print one row for each source instead of one for each file.")
    ] = False,
    format: FormatOption = Format.TEXT,
) -> None:
    """Show what is landed of each source, and how far it is behind its server. Needs no Java.

    The exit code is 1 if a part of a file failed, or if binloom stopped following a server at a gap.
    """
    from binloom.commands.status import print_status

    raise typer.Exit(print_status(source, format, sources))


@app.command(
    short_help="Build the models if something new has landed.",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def build(
    context: typer.Context,
    every: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Check again every 60s, 5m, ... until a signal ends it."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Build even if nothing new has landed.")] = False,
    metrics_port: MetricsPort = None,
    metrics_address: MetricsAddress = "127.0.0.1",
) -> None:
    """Run `dbt build` without unit tests, if something has landed since the last good build. Otherwise needs no Java.

    All other options go to dbt, such as --select or --full-refresh. The exit code is 1 if a model or a test failed.
    """
    from binloom.commands.build import build_models
    from binloom.commands.units import seconds

    pause = None if every is None else seconds(every, "--every")
    raise typer.Exit(build_models(context.args, pause, force, metrics_port, metrics_address))


@app.command(short_help="Answer a query on the marts.")
def sql(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="One query in Spark's SQL; - reads it from stdin.")],
    format: FormatOption = Format.TEXT,
) -> None:
    """Answer a query on the marts of the last build, such as binloom.row_changes. Changes nothing. Needs no Java."""
    from binloom.commands.sql import print_answer

    end_with_the_pipe()
    raise typer.Exit(print_answer(query, format))


@app.command(short_help="Check the landed rows and print the proofs.")
def quality(
    source: Annotated[str | None, typer.Option("--source", "-s", metavar="NAME", help="Only this source.")] = None,
    format: FormatOption = Format.TEXT,
) -> None:
    """Check the raw tables, write Data Docs, and print what the models of the last build prove.

    The exit code is 1 if an expectation does not hold, or if a proof fails that is more than a warning.
    """
    from binloom.commands.quality import check

    raise typer.Exit(check(source, format))


@app.command(short_help="Run all steps on the recorded sample of a shop, in two minutes.")
def demo() -> None:
    """Land a recorded sample, check it, build the models, and print answers and the path of the lineage site.

    Needs Spark (the extra `spark`) and Java.
    The demo uses only $BINLOOM_HOME/demo, and empties this folder first.
    """
    from binloom.commands.demo import run_demo

    raise typer.Exit(run_demo())


@app.command(short_help="Check the machine, the data and a server before anything runs.")
@with_server("--server", help="Also check this server as a source.")
def doctor(server: Any, format: FormatOption = Format.TEXT) -> None:
    """Check what commands need: packages, Java, memory, space, permissions, locks; with target thrift the cluster.

    Nothing is changed. The exit code is 1 if something will not work.
    """
    from binloom.commands.doctor import print_findings

    raise typer.Exit(print_findings(server, format))


@app.command(short_help="Build the lineage site in site/.")
def docs(
    directory: Annotated[
        Path | None, typer.Option("--site-dir", metavar="DIR", readable=False, help="Default: site/.")
    ] = None,
) -> None:
    """Build the lineage site: one page that opens from the disk and needs no network."""
    from binloom.commands.docs import print_site

    raise typer.Exit(print_site(directory))


def _table_filter(schemas: str | None, tables: str | None, exclude_tables: str | None) -> "TableFilter | None":
    if not (schemas or tables or exclude_tables):
        return None
    from ingest.binlog import TableFilter

    return TableFilter.parse(schemas, tables, exclude_tables)


app.add_typer(baselines)
app.add_typer(models)
app.add_typer(retention)
app.add_typer(recovery)
app.add_typer(agents)
app.add_typer(pages)


def main() -> None:
    """Entry point of the console script."""
    if "_BINLOOM_COMPLETE" in os.environ:
        from binloom.commands.completion import answer_shells

        answer_shells()
    sys.exit(run_app(app, sys.argv[1:]))


if __name__ == "__main__":
    main()
