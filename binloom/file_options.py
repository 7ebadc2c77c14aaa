"""The options that name binlog files and what defines their tables, for a command that else asks what has landed.

A command takes them as one keyword parameter, `inputs`:

>>> @app.command()
... @with_files()
... def query(limit: int = 100, *, inputs: "Inputs") -> None: ...
"""

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from binloom.options import (
    SCHEMA_FROM,
    Ddl,
    FromFiles,
    IndexDir,
    MoreFiles,
    SnapshotDir,
    take_signature,
    with_options,
)
from binloom.server_options import with_server
from ingest.errors import UsageError

if TYPE_CHECKING:
    from binloom.answers.given_definitions import GivenDefinitions
    from binloom.answers.opening import Inputs

_FILES: Final[dict[str, Any]] = {
    "from_files": FromFiles,
    "more_files": MoreFiles,
    "snapshot_dir": SnapshotDir,
    "ddl": Ddl,
}
_INDEX: Final[dict[str, Any]] = {"index_dir": IndexDir}
_SERVER: Final[dict[str, Any]] = {"schema_from": Any}

Decorator = Callable[[Callable[..., None]], Callable[..., None]]


def with_files(*, uses_index: bool = True, has_server: bool = True, has_port: bool = True) -> Decorator:
    """Return the decorator that replaces the parameter `inputs` of a command by the options for files.

    Parameters
    ----------
    uses_index
        Whether the command finds rows by the index of the files, and has --index-dir.
    has_server
        Whether a server may have the definitions: --schema-from.
    has_port
        Whether --port is that of this server.
    """
    options = _FILES | (_INDEX if uses_index else {}) | (_SERVER if has_server else {})
    of_server = with_server("--schema-from", help=SCHEMA_FROM, has_port=has_port)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def reading(**given: Any) -> None:
            inputs = _inputs(uses_index=uses_index, **{name: given.pop(name, None) for name in options})
            command(inputs=inputs, **given)

        without_value = {name: (annotation, None) for name, annotation in options.items()}
        take_signature(reading, with_options(inspect.signature(command), "inputs", without_value))
        return of_server(reading) if has_server else reading

    return decorate


def _inputs(
    from_files: list[Any] | None,
    more_files: list[Any] | None,
    snapshot_dir: Path | None,
    ddl: Path | None,
    index_dir: Path | None = None,
    schema_from: Any = None,
    *,
    uses_index: bool,
) -> "Inputs":
    """Return what the options name. `more_files` are words that are no options: a shell makes them of a pattern."""
    from binloom.answers.given_definitions import GivenDefinitions
    from binloom.answers.opening import Inputs
    from binloom.commands.build_record import has_built_everything
    from recover.index.opened import Index

    given = GivenDefinitions(snapshot_dir, ddl, schema_from)
    if not from_files:
        _refuse_without_files(more_files, given, index_dir)
    return Inputs(
        [*(from_files or ()), *(more_files or ())],
        given,
        has_built_everything=has_built_everything,
        index=Index(index_dir) if uses_index else None,
    )


def _refuse_without_files(more: list[Any] | None, given: "GivenDefinitions", index_dir: Path | None) -> None:
    if more:
        raise UsageError(f"{more[0]} is not an option of this command.", hint="Give binlog files with --files.")
    if given.options:
        raise UsageError(f"{given.options[0]} is for the tables of files.", hint="Give it with --files.")
    if index_dir is not None:
        raise UsageError("--index-dir is for files.", hint="Give it with --files.")
