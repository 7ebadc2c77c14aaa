"""The command that serves agents. It is part of the same command line as those of `binloom.cli`."""

from pathlib import Path
from typing import Any

import typer

from binloom.options import SCHEMA_FROM, Ddl, FromFiles, MoreFiles, OneSource, SnapshotDir
from binloom.server_options import with_server
from ingest.errors import UsageError

commands = typer.Typer(rich_markup_mode=None)


@commands.command(short_help="Let an agent ask the log, by the Model Context Protocol.")
@with_server("--schema-from", help=SCHEMA_FROM)
def mcp(
    source: OneSource = None,
    from_files: FromFiles = None,
    more_files: MoreFiles = None,
    snapshot_dir: SnapshotDir = None,
    ddl: Ddl = None,
    schema_from: Any = None,
) -> None:
    """Serve the questions of an agent on stdin and stdout, by the Model Context Protocol. Changes nothing.

    The agent's program starts it. The options choose the log for as long as it runs: the agent cannot name files or
    servers. Without --files, it answers from what has landed. Needs the extra `mcp`, and no Java.
    """
    from binloom.agents.server import serve
    from binloom.agents.tools import Place
    from binloom.answers.given_definitions import GivenDefinitions
    from binloom.answers.named_files import binlogs
    from binloom.commands.open_log import inputs_of
    from binloom.commands.output import say
    from binloom.commands.running import hide_pandas_from_arrow
    from ingest.sources.files.named import first_bytes

    hide_pandas_from_arrow()
    inputs = inputs_of(from_files, more_files, GivenDefinitions(snapshot_dir, ddl, schema_from))
    _assert_rereadable(inputs.files)
    where: dict[str, object] = {"snapshot_dir": snapshot_dir, "ddl": ddl, "schema_from": schema_from}
    if inputs.files:
        for file in binlogs(inputs.files, say):
            first_bytes(file, 1)
        where["files"] = inputs.files
    given: Any = {name: value for name, value in where.items() if value is not None}
    serve(Place(given, source))


def _assert_rereadable(files: Any) -> None:
    """Refuse files that can be read only once: each question reads them. stdin has the questions of the agent."""
    for file in files:
        is_pipe = isinstance(file, Path) and file.exists() and not file.is_file() and not file.is_dir()
        if str(file) == "-" or is_pipe:
            raise UsageError(
                f"{file} can be read only once, and each question reads the files.", hint="Give it as a file."
            )
