"""`binloom incident`: selected changes as one file for a post-mortem."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from binloom.answers.incident import incident_of
from binloom.answers.opening import Inputs
from binloom.commands.open_log import report_problems
from binloom.commands.output import human_bytes, say, write_script
from binloom.filter_options import option_of
from ingest.errors import UsageError
from ingest.words import counted
from recover.notes import Kind
from recover.selection.filters import Filters, in_words, texts_of
from recover.sources.log import Log
from recover.undo.options import NO_OPTIONS, Mode, UndoOptions

SHOWN_ROWS: Final = 200
"""Number of changed rows that a report shows, unless told another."""


def undo_command(filters: Filters, inputs: Inputs, options: UndoOptions = NO_OPTIONS) -> list[str]:
    """Return the words of the command that prints the undo of the same selection."""
    words = ["binloom", "undo"]
    for one in fields(filters):
        value = getattr(filters, one.name)
        if isinstance(value, datetime):
            words += [option_of(one.name), f"{value:%Y-%m-%d %H:%M:%S.%f}"]
        elif value is not None:
            words += [word for text in texts_of(value) for word in (option_of(one.name), text)]
    if inputs.files:
        words += ["--files", *map(str, inputs.files)]
    given = inputs.given
    places = (("--snapshot-dir", given.folder), ("--ddl", given.ddl), ("--against", given.server))
    words += [word for option, place in places if place is not None for word in (option, str(place))]
    switches = {
        f"--{options.mode.value}": options.mode is not Mode.REFUSE,
        "--rows-only": options.rows_only,
        "--with-cascades": options.with_cascades,
    }
    words += [switch for switch, is_given in switches.items() if is_given]
    return [*words, "--output", "undo.sql"]


def write_report(
    log: Log,
    filters: Filters,
    title: str | None,
    rows: int,
    output: Path,
    undo: Sequence[str],
    options: UndoOptions = NO_OPTIONS,
    tell: Callable[[str], None] = say,
) -> int:
    """Write the report; return the exit code.

    Parameters
    ----------
    log
        It has the marts of `table_log`.
    title
        None: one made of the filters.
    rows
        Number of changed rows that are shown.
    undo
        Words of the command that prints the undo.
    options
        Those of the undo in the report.
    tell
        Is told what the report lacks, and that it is there.
    """
    from binloom.pages.incident import report

    found = incident_of(log, filters, rows, options)
    if not found.timeline.changes:
        reasons = " ".join(map(str, found.notes))
        raise UsageError("No row change is selected, so there is no report.", hint=reasons)
    selection = in_words(filters)
    page = report(
        found,
        title=title or (f"Changes: {selection}" if selection else "All changes of the log"),
        selection=selection,
        command=shlex.join(undo),
        version=version("binloom"),
        written_at=datetime.now(UTC).replace(microsecond=0),
    )
    write_script(page.splitlines(), output)
    for note in found.notes:
        if note.kind not in (Kind.DAMAGED, Kind.CUT):
            tell(note)
    shown = f"; it shows {counted(found.rows_shown, 'row')}" if found.rows_shown < found.timeline.changes else ""
    tell(
        f"{output} has {counted(found.timeline.changes, 'row change')}{shown}"
        f" ({human_bytes(len(page.encode()))}). It contains values of rows."
    )
    return report_problems(log)
