"""`binloom undo` and `binloom redo`: print the SQL that takes back, or does again, what was selected."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from binloom.answers.undo import planned_undo
from binloom.commands.open_log import report_problems
from binloom.commands.output import say, write_script
from ingest.errors import EXIT_CHECK_FAILED, UsageError
from ingest.words import counted
from recover.notes import Kind
from recover.selection.filters import Filters
from recover.sources.log import Log
from recover.undo.options import Direction, UndoOptions
from recover.undo.plan.planner import Plan
from recover.undo.print.script import Ending
from recover.undo.prove.against import LiveServer

if TYPE_CHECKING:
    from ingest.sources.servers.address import ServerAddress


def report_selection(filters: Filters, direction: Direction) -> None:
    """Tell that everything is selected, because an unset variable of the shell may be the reason."""
    if not filters.is_selective:
        say(f"no filter is given, so this {direction.value} is of all transactions of the log.")


def print_script(
    log: Log,
    filters: Filters,
    options: UndoOptions,
    end_with: str = "commit",
    output: Path | None = None,
    tell: Callable[[str], None] = say,
    against: "ServerAddress | None" = None,
) -> int:
    """Print a script, or write it to a file; `tell` gets its report, or why there is none.

    Parameters
    ----------
    log
        It has the marts of `table_log`.
    against
        Compare each row with this server; what differs is not printed.

    Returns
    -------
    int
        The exit code.
    """
    if end_with not in ("commit", "rollback"):
        raise UsageError(f"A script cannot end with {end_with!r}.", hint="Give --end-with commit or rollback.")
    ending: Ending = "commit" if end_with == "commit" else "rollback"
    exit_code = report_problems(log)
    with ExitStack() as opened:
        server = None
        if against is not None:
            address = replace(against, warn=lambda sentence: tell(f"warning: {sentence}"))
            server = opened.enter_context(LiveServer(address))
        found = opened.enter_context(planned_undo(log, filters, options, server=server))
        if found.is_possible:
            write_script(found.lines(ending), output)
        # Only now is the script there.
        for note in found.notes:
            if note.kind is not Kind.DAMAGED:
                tell(note)
        if output is not None and output.is_file() and not found.is_possible:
            tell(f"{output} is from an earlier run, and is not changed.")
        _write_left_rows(found.plan, output, tell)
        return max(EXIT_CHECK_FAILED, exit_code) if found.leaves_rows_out else exit_code


def _write_left_rows(plan: Plan, output: Path | None, tell: Callable[[str], None]) -> None:
    """Write each row that is not taken back, and why, to a file beside the script; remove that of an earlier script."""
    if output is None or (output.exists() and not output.is_file()):
        return
    beside = output.with_name(f"{output.name}.left-out")
    if not plan.left.count:
        beside.unlink(missing_ok=True)
        return
    write_script(plan.left.lines(), beside)
    rows = counted(plan.left.count, "row")
    are = "is" if plan.left.count == 1 else "are"
    tell(f"{beside} has {rows} that {f'{are} left out' if plan.is_printable else f'{are} not taken back'}.")
