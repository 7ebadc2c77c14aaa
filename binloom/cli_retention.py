"""The commands that drop landed rows. They are part of the same command line as those of `binloom.cli`."""

from typing import Annotated

import typer

from binloom.options import Source

commands = typer.Typer(rich_markup_mode=None)


@commands.command(short_help="Drop the rows of the oldest binlog files.")
def expire(
    source: Source,
    older_than: Annotated[
        str | None, typer.Option(metavar="TIME", help="Drop files whose last event is older than this: 30d, 12h.")
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="TIME", help="Drop files whose last event is before this time.")
    ] = None,
    before_file: Annotated[str | None, typer.Option(metavar="FILE", help="Drop files before this binlog file.")] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Drop the rows. Without it, the command only prints what would be dropped.")
    ] = False,
    drop_uncertain: Annotated[
        bool,
        typer.Option("--drop-uncertain", help="Also drop rows whose last values are uncertain."),
    ] = False,
) -> None:
    """Drop the rows of whole binlog files, oldest first. Needs no Java.

    The last known row of each key is carried into a baseline first, so `state`, `history` and typed models still know
    it. Files that open transactions or schema changes need are kept. Run `binloom build` afterwards.
    """
    from binloom.commands.expire import expire_files, limit_of

    limit = limit_of(older_than, before, before_file)
    raise typer.Exit(expire_files(source, limit, apply=apply, drop_uncertain=drop_uncertain))


@commands.command(short_help="Take the values of rows out of the landed data.")
def erase(
    source: Source,
    table: Annotated[str, typer.Option(metavar="DB.TABLE", help="Table of the rows.")],
    key: Annotated[
        list[str], typer.Option(metavar="KEY", help="Primary key of a row; | between values. May be repeated.")
    ],
    apply: Annotated[
        bool, typer.Option("--apply", help="Erase. Without it, the command only prints where the values are.")
    ] = False,
    reason: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Record this reason: the number of a ticket, not a person's name."),
    ] = None,
) -> None:
    """Erase rows by key, through changes of the key, in row events, statements, baselines and quarantine.

    The rows stay: their keys become random tokens, and their other values are unknown. Run `binloom build` afterwards.
    Needs no Java. The binlogs of the server, backups and copies elsewhere are not changed.
    """
    from binloom.commands.erase import erase_rows

    raise typer.Exit(erase_rows(source, table, key, apply=apply, reason=reason))
