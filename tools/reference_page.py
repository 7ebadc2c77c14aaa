"""The text of docs/reference.md: each command with its options, as the command itself prints them with --help."""

from collections.abc import Iterator
from typing import Any, Final

from typer.main import get_command

from binloom import filter_options, server_options
from binloom.cli import app

_INTRODUCTION: Final = """# Reference

All commands and options, as `binloom COMMAND --help` prints them. Generated from the commands by `make generate`.

Rules for all commands, such as exit codes, are in [operations.md](operations.md#rules-for-all-commands)."""


def reference_page() -> str:
    """Return the page. Options that several commands share are listed once, at its end."""
    group: Any = get_command(app)
    context = group.make_context("binloom", ["status"], resilient_parsing=True)
    commands = [group.get_command(context, name) for name in group.list_commands(context)]
    parts = [_INTRODUCTION, "\n".join(f"- [`{one.name}`](#{one.name}): {one.short_help}" for one in commands)]
    own, _ = _grouped(group, context)
    parts += ["## Without a command", "\n".join(own)]
    shared: dict[str, list[str]] = {}
    for command in commands:
        parts += _section(command, context, shared)
    for title, options in shared.items():
        parts += [f"## {title}", "\n".join(options)]
    return "\n\n".join(parts) + "\n"


def _section(command: Any, parent: Any, shared: dict[str, list[str]]) -> Iterator[str]:
    context = command.make_context(command.name, [], parent=parent, resilient_parsing=True)
    yield f"## {command.name}"
    yield f"```text\nbinloom {command.name} {' '.join(command.collect_usage_pieces(context))}\n```"
    yield from (" ".join(paragraph.split()) for paragraph in command.help.split("\n\n"))
    own, groups = _grouped(command, context)
    for title, options in groups.items():
        # A reader looks up a group once, so it must be the same for every command.
        assert shared.setdefault(title, options) == options, f"{command.name} has other {title.lower()}"
    if lines := [*own, *(f"- [{title}](#{_anchor(title)})" for title in groups)]:
        yield "\n".join(lines)


def _grouped(command: Any, context: Any) -> tuple[list[str], dict[str, list[str]]]:
    """Return the options and arguments of a command alone, and those that other commands have too, by group."""
    all_names = {parameter.name for parameter in command.params}
    has_login = server_options.OPTIONS.keys() <= all_names
    # A command with some of the filters lists them among its own options.
    has_filters = filter_options.OPTIONS.keys() <= all_names
    own: list[str] = []
    groups: dict[str, list[str]] = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None or parameter.name == "help":
            continue
        names, meaning = record
        line = f"- `{names}`: {_plain(meaning)}"
        if has_filters and parameter.name in filter_options.OPTIONS:
            groups.setdefault(filter_options.PANEL, []).append(line)
        elif has_login and parameter.name in server_options.OPTIONS:
            groups.setdefault("Login at a server", []).append(line)
        else:
            own.append(line)
    return own, groups


def _plain(text: str) -> str:
    """Return a text without what Markdown would read as its own signs."""
    return " ".join(text.replace("*", "\\*").replace("<", "&lt;").split())


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")
