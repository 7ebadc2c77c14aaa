"""`binloom undo` and `binloom redo`: print the SQL that takes back, or does again, what was selected."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from binloom.commands.open_log import report_problems
from binloom.commands.output import say, write_script
from ingest.errors import EXIT_CHECK_FAILED, UsageError
from ingest.words import counted, sentence, subject
from recover.selection.condition import is_filtered_table
from recover.selection.filters import Filters, separated
from recover.sources.log import Log
from recover.undo.options import Direction, Mode, UndoOptions
from recover.undo.plan.classify import Refusal
from recover.undo.plan.left_rows import Group, grouped
from recover.undo.plan.planner import Plan
from recover.undo.print.script import Ending, Heading, described_baseline, script
from recover.undo.prove.against import LiveServer
from recover.undo.undoing import planned

if TYPE_CHECKING:
    from ingest.sources.address import ServerAddress

_GROUPS_SHOWN: Final = 40
_TRANSACTIONS_SHOWN: Final = 20


def undo_options(
    direction: Direction,
    skip_conflicts: bool,
    with_dependents: bool,
    force: bool,
    columns: str | None,
    by_transaction: bool,
) -> UndoOptions:
    """Return what the options ask for."""
    chosen = [
        mode
        for mode, is_chosen in (
            (Mode.SKIP, skip_conflicts),
            (Mode.DEPENDENTS, with_dependents),
            (Mode.FORCE, force),
        )
        if is_chosen
    ]
    if len(chosen) > 1:
        names = " and ".join(f"--{mode.value}" for mode in chosen)
        raise UsageError(f"{names} contradict each other.", hint="Give one of them.")
    names_of_columns = None if columns is None else frozenset(separated([columns]))
    return UndoOptions(direction, chosen[0] if chosen else Mode.REFUSE, names_of_columns, by_transaction)


def report_selection(filters: Filters, direction: Direction) -> None:
    """Tell that everything is selected, because an unset variable of the shell may be the reason."""
    if not filters.is_selective:
        say(f"no filter is given, so this {direction.value} is of all transactions of the log.")


def print_script(
    log: Log,
    filters: Filters,
    options: UndoOptions,
    rows_only: bool = False,
    end_with: str = "commit",
    output: Path | None = None,
    tell: Callable[[str], None] = say,
    against: "ServerAddress | None" = None,
    with_cascades: bool = False,
    json_as_text: bool = False,
) -> int:
    """Print a script, or write it to a file; `tell` gets its report, or why there is none.

    Parameters
    ----------
    log
        It has the marts of `table_log`.
    against
        Compare each row with this server; what differs is not printed.
    with_cascades
        Add the rows that cascading foreign keys changed without a trace in the log.
    json_as_text
        Take a text in a document for a text if the log does not tell that it is a date, a time or bytes.

    Returns
    -------
    int
        The exit code.
    """
    if end_with not in ("commit", "rollback"):
        raise UsageError(f"A script cannot end with {end_with!r}.", hint="Give --end-with commit or rollback.")
    ending: Ending = "commit" if end_with == "commit" else "rollback"
    if with_cascades and rows_only:
        raise UsageError("--with-cascades needs whole transactions.", hint="Leave out --rows-only.")
    exit_code = report_problems(log)
    with ExitStack() as opened:
        server = None
        if against is not None:
            address = replace(against, warn=lambda sentence: tell(f"warning: {sentence}"))
            server = opened.enter_context(LiveServer(address))
        planner, plan, heading = opened.enter_context(
            planned(
                log,
                filters,
                options,
                rows_only=rows_only,
                server=server,
                with_cascades=with_cascades,
                json_as_text=json_as_text,
                tell=tell,
            )
        )
        if plan.is_printable and plan.statements:
            write_script(script(planner, plan, heading, ending), output)
        # Only now is the script there.
        _report(plan, heading, tell)
        _report_other_tables(plan, filters, rows_only, tell)
        if output is not None and output.is_file() and not (plan.is_printable and plan.statements):
            tell(f"{output} is from an earlier run, and is not changed.")
        _write_left_rows(plan, output, tell)
        if not plan.is_printable or plan.left.count:
            exit_code = max(EXIT_CHECK_FAILED, exit_code)
        if plan.is_printable and not plan.statements:
            tell(
                "nothing can be done: each row that would change is left out."
                if plan.left.count
                else "nothing to do: all selected rows already have the target values."
            )
    return exit_code


def _write_left_rows(plan: Plan, output: Path | None, tell: Callable[[str], None]) -> None:
    """Write each row that is not taken back, and why, to a file beside the script; remove that of an earlier script."""
    if output is None or (output.exists() and not output.is_file()):
        return
    beside = output.with_name(f"{output.name}.left-out")
    if not plan.left.count:
        beside.unlink(missing_ok=True)
        return
    write_script(plan.left.lines(), beside)
    tell(f"{beside} has {counted(plan.left.count, 'row')} that {'is' if plan.left.count == 1 else 'are'} left out.")


def _report_other_tables(plan: Plan, filters: Filters, rows_only: bool, tell: Callable[[str], None]) -> None:
    """Tell why rows of tables are left out that the filters do not name."""
    tables = {group.first.table.name for group in plan.left.groups if not group.is_harmless}
    others = sorted(".".join(name) for name in tables if not is_filtered_table(filters, *name))
    if others and not rows_only:
        tell(
            f"{', '.join(others)} changed in the same transactions, which are taken back as a whole."
            " --rows-only takes back only the selected row changes."
        )


def _way_out(group: Group, options: UndoOptions) -> str:
    """Return the options that go on without the rows of a group."""
    if group.is_harmless or options.mode is Mode.SKIP or options.by_transaction:
        return ""
    column = group.first.column if isinstance(group.first, Refusal) else ""
    other = f", and --columns with other columns than {column}" if column else ""
    return f" (--skip-conflicts goes on without {'it' if group.rows == 1 else 'them'}{other})"


def _report(plan: Plan, heading: Heading, tell: Callable[[str], None]) -> None:
    verb = "undo" if plan.options.direction is Direction.UNDO else "redo"
    for name in plan.selected.rolled_back[:_GROUPS_SHOWN]:
        tell(f"{name} is left out: it was rolled back, and changed nothing.")
    for sequence in plan.selected.sequences:
        tell(f"{'.'.join(sequence)} is a sequence, and is left alone: it never gives a number twice.")
    for problem in grouped(plan.problems):
        tell(sentence(problem))
    groups = plan.left.groups
    for group in groups[:_GROUPS_SHOWN]:
        tell(sentence(f"{group}{_way_out(group, plan.options)}"))
    if len(groups) > _GROUPS_SHOWN:
        rows = sum(group.rows for group in groups[_GROUPS_SHOWN:])
        tell(
            f"{subject(rows, 'more row', 'has', 'have')} {counted(len(groups) - _GROUPS_SHOWN, 'other reason')}:"
            " --output writes a file with all rows."
        )
    if heading.server and not plan.problems:
        tell(
            f"{subject(plan.compared, 'row', 'was', 'were')} compared with the server at {heading.server}:"
            f" {plan.differing} differ{'s' if plan.differing == 1 else ''}."
        )
    if plan.is_printable:
        counts = ", ".join(
            f"{count} {'comparison' if kind == 'SELECT' else kind} of {table}"
            for (table, kind), count in sorted(plan.counts.items())
        )
        selected = counted(plan.selected.transactions, "transaction")
        tell(f"{verb} of {selected}: {counts or 'no statement'}; proved.")
        if plan.added:
            shown = ", ".join(plan.added[:_TRANSACTIONS_SHOWN]) + (
                ", …" if len(plan.added) > _TRANSACTIONS_SHOWN else ""
            )
            tell(f"of these, {counted(len(plan.added), 'transaction')} changed the same rows later: {shown}.")
        for (table, kind), count in plan.synthesized.items():
            tell(f"synthesized: {kind} of {counted(count, 'row')} of {table} by a cascade, from images in the log.")
        for table, baseline in plan.baselines.items():
            tell(f"values of {table} that images lack are {described_baseline(baseline)}.")
        for warning in plan.warnings:
            tell(sentence(f"not in this script: {warning}"))
    elif plan.problems:
        tell(f"the {verb} is refused, and nothing is printed.")
    elif plan.refused:
        needs = sorted({refusal.needs for refusal in plan.refusals} - {""})
        needed = f" They would need {'; '.join(needs)}." if needs else ""
        tell(f"the {verb} is refused: {counted(plan.refused, 'row')} cannot be changed.{needed}")
    elif plan.differing and not plan.conflicting:
        tell(
            f"the {verb} is refused: {plan.differing} of {subject(plan.compared, 'row', 'is', 'are')} not on the server"
            " as the log left them. --skip-conflicts leaves these out."
        )
    elif plan.options.mode is Mode.DEPENDENTS:
        tell(f"the {verb} is refused: these conflicts remain with all dependent transactions.")
    else:
        tell(
            f"the {verb} is refused: {subject(plan.conflicting, 'row', 'was', 'were')} changed by"
            " later transactions. --with-dependents"
            " takes these back, too; --skip-conflicts leaves the rows out; --force overwrites them."
        )
