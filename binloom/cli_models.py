"""The commands that write models of a dbt project. They are part of the same command line as those of `binloom.cli`."""

from pathlib import Path
from typing import Annotated

import typer

from binloom.options import Source, not_empty

commands = typer.Typer(rich_markup_mode=None)


@commands.command(short_help="Write typed models of the tables of a source.")
def generate(
    source: Source,
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--tables",
            "--table",
            metavar="DB.T",
            help="Only these tables; may be repeated or a pattern.",
            callback=not_empty,
        ),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", readable=False, help="Default: models/tables of the dbt project."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing. The exit code is 1 if a file does not fit its table.")
    ] = False,
) -> None:
    """Write models for each table: its current rows, their history, and its changes, each column with its type.

    The files are yours. A repeated run shows what changed in the tables, and writes only files that nobody edited.
    Needs no Java.
    """
    from binloom.commands.generate import generate_models

    raise typer.Exit(generate_models(source, tables or [], directory, check))


@commands.command(short_help="Begin a dbt project of your own.")
def init(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", readable=False, help="Folder of the project, which gets the same name.")
    ],
) -> None:
    """Write a dbt project of your own that uses binloom's models as a package, with one model as an example.

    Nothing is overwritten. The commands that build it are printed.
    """
    from binloom.commands.init import start_project

    raise typer.Exit(start_project(directory))
