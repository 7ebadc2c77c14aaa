"""The options that select row changes, in the same words for every command that has them.

A command takes them as one parameter:

>>> @app.command()
... @with_filters
... def query(filters: Filters, limit: int = 100) -> None: ...
"""

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Annotated, Any, Final

import typer

from binloom.options import not_empty, take_signature

PANEL: Final = "Filters"


def _several(option: str, metavar: str, help: str) -> Any:
    return _one(option, metavar, f"{help} May be repeated.", list[str])


def _one(option: str, metavar: str, help: str, type_: Any = str, **more: Any) -> Any:
    return Annotated[
        type_ | None,
        typer.Option(option, metavar=metavar, help=help, rich_help_panel=PANEL, callback=not_empty, **more),
    ]


OPTIONS: Final[dict[str, Any]] = {
    "sources": _several("--source", "NAME", "Only changes of this source."),
    "schemas": _several("--schema", "NAME", "Only changes in this schema (database); * and ? are wildcards."),
    "tables": _several("--table", "DB.TABLE", "Only changes of this table; * and ? are wildcards."),
    "keys": _several(
        "--key", "KEY", "Only changes of the row with this primary key: VALUE, VALUE|VALUE or COLUMN=VALUE."
    ),
    "key_from": _one("--key-from", "KEY", "First key of a range."),
    "key_to": _one("--key-to", "KEY", "Last key of a range, included."),
    "types": _several("--type", "TYPE", "Only INSERT, UPDATE or DELETE."),
    "since": _one("--since", "TIME", "Only changes from this time on, in UTC."),
    "until": _one("--until", "TIME", "Only changes before this time, in UTC."),
    "gtids": _several("--gtid", "SET", "Only transactions with these GTIDs, such as uuid:1-5 or 0-1-7."),
    "transactions": _several("--transaction", "ID", "Only this transaction: a GTID, FILE:POSITION or transaction_id."),
    "change_ids": _several("--change-id", "ID", "Only this row change, by its change_id."),
    "threads": _one(
        "--thread",
        "N",
        "Only this connection id; a server counts from 1 again when it starts. May be repeated.",
        list[int],
    ),
    "files": _several("--file", "NAME", "Only changes in this binlog file."),
    "from_pos": _one("--from-pos", "N", "Only events from this position of the file on.", int, min=0),
    "to_pos": _one("--to-pos", "N", "Only events before this position of the file.", int, min=0),
    "changed": _several("--changed", "COLUMN", "Only updates that changed this column."),
    "where": _several(
        "--where",
        "CONDITION",
        "Only changes whose row, before or after, fulfils this: \"before.status = 'paid'\". Texts compare with their"
        " case.",
    ),
    "statement": _one("--statement", "TEXT", "Only changes by statements that contain this text, if they are logged."),
    "digests": _several(
        "--digest", "DIGEST", "Only changes by statements with this digest, or its first 8 digits or more."
    ),
    "tags": _several("--tag", "KEY=VALUE", "Only changes by statements with this tag in a comment."),
}


def option_of(field: str) -> str:
    """Return the option that sets a field of `Filters`; typer calls its first name the default."""
    (settings,) = OPTIONS[field].__metadata__
    return str(settings.default)


def with_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `filters` of a command by one option for each filter."""
    return with_some_filters(*OPTIONS)(command)


def with_some_filters(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the decorator that replaces the parameter `filters` of a command by options for some filters."""
    return partial(_with_options, {name: OPTIONS[name] for name in names})


def _with_options(chosen_options: dict[str, Any], command: Callable[..., None]) -> Callable[..., None]:
    from recover.selection.filters import Filters

    signature = inspect.signature(command, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name != "filters"]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in chosen_options.items()
    ]

    @wraps(command)
    def filtered(**given: Any) -> None:
        chosen = {name: value for name in chosen_options if (value := given.pop(name)) is not None}
        if "from_pos" in chosen or "to_pos" in chosen:
            from recover.sources.files.file_log import with_only_file

            files = [*(given.get("from_files") or ()), *(given.get("more_files") or ())]
            chosen = with_only_file(chosen, files)
        command(filters=Filters.of(**chosen), **given)

    keyword_only = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    take_signature(filtered, signature.replace(parameters=[*keyword_only, *options]))
    return filtered
