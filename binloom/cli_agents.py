"""The command that serves agents. It is part of the same command line as those of `binloom.cli`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from binloom.file_options import with_files
from binloom.options import OneSource
from ingest.errors import UsageError

if TYPE_CHECKING:
    from binloom.answers.opening import Inputs

commands = typer.Typer(rich_markup_mode=None)


@commands.command(short_help="Let an agent ask the log, by the Model Context Protocol.")
@with_files(uses_index=False)
def mcp(source: OneSource = None, *, inputs: "Inputs") -> None:
    """Serve the questions of an agent on stdin and stdout, by the Model Context Protocol. Changes nothing.

    The agent's program starts it. The options choose the log for as long as it runs: the agent cannot name files or
    servers. Without --files, it answers from what has landed. Needs the extra `mcp`, and no Java.
    """
    from binloom.agents.server import serve
    from binloom.agents.tools import Place
    from binloom.answers.named_files import binlogs
    from binloom.commands.output import say
    from ingest.sources.files.named import first_bytes

    _assert_rereadable(inputs.files)
    given = inputs.given
    where: dict[str, Any] = {"snapshot_dir": given.folder, "ddl": given.ddl, "schema_from": given.server}
    if inputs.files:
        for file in binlogs(inputs.files, say):
            first_bytes(file, 1)
        where["files"] = inputs.files
    named: Any = {name: value for name, value in where.items() if value is not None}
    serve(Place(named, source))


def _assert_rereadable(files: Any) -> None:
    """Refuse files that can be read only once: each question reads them. stdin has the questions of the agent."""
    for file in files:
        is_pipe = isinstance(file, Path) and file.exists() and not file.is_file() and not file.is_dir()
        if str(file) == "-" or is_pipe:
            raise UsageError(
                f"{file} can be read only once, and each question reads the files.", hint="Give it as a file."
            )
