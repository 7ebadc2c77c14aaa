"""An undo or a redo: its proved script, or why there is none."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from binloom.answers import lacks
from binloom.answers.answer import NoteList
from binloom.answers.connections import reused_ids
from binloom.answers.given_definitions import NO_POSITION, GivenDefinitions
from binloom.answers.opening import NOTHING_GIVEN
from ingest.errors import UsageError
from ingest.words import counted, sentence, subject
from recover.notes import Kind, Note
from recover.selection.condition import is_filtered_table
from recover.selection.filters import Filters
from recover.sources.log import Log, Parts
from recover.undo.options import Direction, Mode, UndoOptions
from recover.undo.plan.classify import SAME_COLUMNS, Refusal
from recover.undo.plan.left_rows import Group, Treatment, grouped
from recover.undo.plan.planner import Plan, Planner
from recover.undo.print.script import Ending, Heading, described_baseline, script
from recover.undo.prove.against import LiveServer
from recover.undo.select.parts import parts_of_undo
from recover.undo.tables.definitions import OF_SERVER
from recover.undo.undoing import planned

if TYPE_CHECKING:
    from ingest.sources.servers.address import ServerAddress

_GROUPS_SHOWN: Final = 40
_TRANSACTIONS_SHOWN: Final = 20


@dataclass(frozen=True)
class PlannedUndo:
    """A plan of an undo, while its statements are there.

    Attributes
    ----------
    plan
        Counts of statements, and the rows and reasons that are in the way.
    notes
        The report: what the script does, what it leaves out, or why there is none.
    left
        Those of them that tell of the first groups of rows without a statement, in the order of the groups.
    """

    planner: Planner
    plan: Plan
    heading: Heading
    notes: tuple[Note, ...]
    left: tuple[Note, ...]

    @property
    def is_possible(self) -> bool:
        """Whether there is a script. It is proved."""
        return self.plan.is_printable and self.plan.statements > 0

    @property
    def leaves_rows_out(self) -> bool:
        """Whether the script, or the refusal, leaves a selected row as it is."""
        return not self.plan.is_printable or self.plan.left.count > 0 or _is_in_vain(self.plan)

    def lines(self, ending: Ending = "commit") -> Iterator[str]:
        """Yield the lines of the script.

        Raises
        ------
        UsageError
            The undo is refused.
        """
        if not self.is_possible:
            raise UsageError("There is no script.", hint=self.notes[-1] if self.notes else "")
        return script(self.planner, self.plan, self.heading, ending)


def parts_of(
    filters: Filters,
    options: UndoOptions,
    given: GivenDefinitions = NOTHING_GIVEN,
    against: "ServerAddress | None" = None,
) -> Parts | None:
    """Return the parts of indexed files that an undo of a selection reads; None: all of them.

    Parameters
    ----------
    given
        What defines the tables of the files.
    against
        The server that rows are compared with. It may have other foreign keys than what defines the tables.
    """
    if against is not None and given.server != against:
        return None
    return parts_of_undo(filters, options)


@contextmanager
def planned_undo(
    log: Log, filters: Filters, options: UndoOptions, *, server: LiveServer | None = None
) -> Iterator[PlannedUndo]:
    """Give the undo of what filters select; parameters and errors are those of `planned`."""
    of_whole = {"--with-cascades": options.with_cascades, "--with-dependents": options.mode is Mode.DEPENDENTS}
    for option, is_given in of_whole.items():
        if options.rows_only and is_given:
            raise UsageError(f"{option} needs whole transactions.", hint="Leave out --rows-only.")
    # A selection by keys asks the index of a home, so it is made once more only for this note.
    heard = NoteList(reused_ids(log, log.select(filters)) if filters.threads else ())
    with planned(log, filters, options, server=server, tell=heard) as (planner, plan, heading):
        left = tuple(_on_left_rows(plan))
        report = (*_report(plan, heading, left), *_on_other_tables(plan, filters))
        yield PlannedUndo(planner, plan, heading, (*heard, *lacks.damage(log), *report), left)


def _on_left_rows(plan: Plan) -> Iterator[Note]:
    for group in plan.left.groups[:_GROUPS_SHOWN]:
        kind = Kind.REFUSED if group.treatment is Treatment.LEFT else Kind.FACT
        yield Note(sentence(f"{group}{_way_out(group, plan.options)}"), kind, quotes_values=True)


def _report(plan: Plan, heading: Heading, left: Iterable[Note]) -> Iterator[Note]:
    for name in plan.selected.rolled_back[:_GROUPS_SHOWN]:
        yield Note(f"{name} is left out: it was rolled back, and changed nothing.")
    for sequence in plan.selected.sequences:
        yield Note(f"{'.'.join(sequence)} is a sequence, and is left alone: it never gives a number twice.")
    yield from _on_definitions(heading)
    for problem in grouped(plan.problems):
        yield Note(sentence(problem), Kind.REFUSED, quotes_values=True)
    yield from left
    groups = plan.left.groups
    if len(groups) > _GROUPS_SHOWN:
        rows = sum(group.rows for group in groups[_GROUPS_SHOWN:])
        yield Note(
            f"{subject(rows, 'more row', 'has', 'have')} {counted(len(groups) - _GROUPS_SHOWN, 'other reason')}:"
            " --output writes a file with all rows.",
            Kind.REFUSED,
        )
    if heading.server and not plan.problems:
        done = sum(one.is_done for one in plan.differences)
        least = "at least " if len(plan.differences) < plan.differing else ""
        already = f", and {least}{done:,} of these are already as the script would leave them" if done else ""
        yield Note(
            f"{subject(plan.compared, 'row', 'was', 'were')} compared with the server at {heading.server}:"
            f" {plan.differing:,} differ{'s' if plan.differing == 1 else ''}{already}."
        )
    if plan.is_printable:
        yield from _on_script(plan)
    else:
        # The last one is that the log goes on, which is no reason here.
        for warning in plan.warnings if plan.goes_on_after is None else plan.warnings[:-1]:
            yield Note(sentence(f"a script would not contain: {warning}"), Kind.UNCERTAIN)
        yield Note(_refusal(plan), Kind.REFUSED)
        if heading.server and plan.differing and plan.goes_on_after is not None:
            yield Note(f"the log that was given ends with {plan.goes_on_after}, and the server has written more since.")


def _on_definitions(heading: Heading) -> Iterator[Note]:
    """Yield which definitions of tables are those of a server."""
    of_server = OF_SERVER.format(heading.server)
    for origin in sorted({one for one in heading.definitions.values() if one.startswith(of_server)}):
        tables = [table for table, one in heading.definitions.items() if one == origin]
        shown = ", ".join(tables[:_GROUPS_SHOWN]) + (", …" if len(tables) > _GROUPS_SHOWN else "")
        definitions = "definition" if len(tables) == 1 else "definitions"
        doubt = f" now; {NO_POSITION}" if origin == of_server else ""
        verb = "is that" if len(tables) == 1 else "are those"
        yield Note(f"the {definitions} of {shown} {verb} of {origin}{doubt}.")


def _on_script(plan: Plan) -> Iterator[Note]:
    counts = ", ".join(
        f"{count} {'comparison' if kind == 'SELECT' else kind} of {table}"
        for (table, kind), count in sorted(plan.counts.items())
    )
    selected = counted(plan.selected.transactions, "transaction")
    if plan.selected.is_whole and plan.selected.filtered < plan.selected.changes and not plan.added:
        whole = "their whole transactions have" if plan.selected.transactions > 1 else "the whole transaction has"
        verb = "takes back" if plan.options.direction is Direction.UNDO else "does again"
        with_only = f" With --rows-only it {verb} only the selected row changes."
        yield Note(
            f"the filters select {counted(plan.selected.filtered, 'row change')}; {whole}"
            f" {plan.selected.changes:,}, and the {plan.options.direction.value} {verb} all of them."
            # An undo of single rows cannot follow cascades.
            f"{'' if plan.options.with_cascades else with_only}"
        )
    if counts:
        yield Note(f"the {plan.options.direction.value} of {selected} is proved: {counts}.")
    if plan.disjoint:
        yield Note(
            f"later transactions changed other columns of {plan.disjoint:,} of these rows; the script keeps these"
            " changes."
        )
    if plan.added:
        shown = ", ".join(plan.added[:_TRANSACTIONS_SHOWN]) + (", …" if len(plan.added) > _TRANSACTIONS_SHOWN else "")
        yield Note(f"{len(plan.added):,} of these transactions changed the same rows later: {shown}.")
    for (table, kind), count in plan.synthesized.items():
        yield Note(
            f"the log does not contain the {kind} of {counted(count, 'row')} of {table} by a cascade; it was computed"
            " from earlier images of these rows."
        )
    for table, baseline in plan.baselines.items():
        yield Note(f"values of {table} that images lack are {described_baseline(baseline)}.")
    for warning in plan.warnings:
        yield Note(sentence(f"the script does not contain: {warning}"), Kind.UNCERTAIN)
    if plan.statements:
        return
    if _is_in_vain(plan):
        yield Note("nothing can be done: the columns whose values would come back were dropped.", Kind.REFUSED)
    elif plan.left.count:
        yield Note("nothing can be done: each row that would change is left out.")
    else:
        yield Note("nothing to do: all selected rows already have the target values.")


def _is_in_vain(plan: Plan) -> bool:
    """Return whether the selection changed nothing but columns that are gone."""
    return plan.is_printable and plan.drops_values and not plan.statements and not plan.left.count


def _refusal(plan: Plan) -> str:
    verb = plan.options.direction.value
    if plan.problems:
        return f"the {verb} is refused, and there is no script."
    if plan.refused:
        needs = sorted({refusal.needs for refusal in plan.refusals} - {""})
        needed = f" They would need {'; '.join(needs)}." if needs else ""
        others = subject(plan.conflicting, "other row", "was", "were") if plan.conflicting else ""
        changed = f", and {others} changed by {_later(plan)}" if others else ""
        return f"the {verb} is refused: {counted(plan.refused, 'row')} cannot be changed{changed}.{needed}"
    if plan.differing and not plan.conflicting:
        return (
            f"the {verb} is refused: {plan.differing:,} of {counted(plan.compared, 'row')} differ between the server"
            " and the log. --skip-conflicts leaves these rows out."
        )
    if plan.options.direction is Direction.REDO:
        changed = subject(plan.conflicting, "row", "was", "were")
        return f"the redo is refused: {changed} changed by other transactions. --skip-conflicts leaves the rows out."
    if plan.options.mode is Mode.DEPENDENTS:
        return f"the {verb} is refused: these conflicts remain also if all later transactions are taken back."
    dependents = "--with-dependents takes these back, too; " if plan.selected.is_whole else ""
    of_columns = [one for one in plan.conflicts if one.reason == SAME_COLUMNS]
    columns = sorted({column for conflict in of_columns for column in conflict.columns})
    others = f"; --columns A,B takes back columns other than {', '.join(columns)}" if columns else ""
    return (
        f"the {verb} is refused: {subject(plan.conflicting, 'row', 'was', 'were')} changed by"
        f" {_later(plan)}. {dependents}--skip-conflicts leaves the rows out; --force overwrites them{others}."
    )


def _later(plan: Plan) -> str:
    # The rest of a transaction may be in the way of its selected changes.
    return "later transactions" if plan.selected.is_whole else "later changes"


def _on_other_tables(plan: Plan, filters: Filters) -> Iterator[Note]:
    """Yield why rows of tables are left out that the filters do not name."""
    tables = {group.first.table.name for group in plan.left.groups if group.treatment is Treatment.LEFT}
    others = sorted(".".join(name) for name in tables if not is_filtered_table(filters, *name))
    if others and not plan.options.rows_only:
        yield Note(
            f"{', '.join(others)} changed in the same transactions, which are taken back as a whole."
            " --rows-only takes back only the selected row changes.",
            Kind.REFUSED,
        )


def _way_out(group: Group, options: UndoOptions) -> str:
    """Return the options that go on without the rows of a group."""
    if group.treatment is Treatment.OVERWRITTEN:
        return "; the script overwrites the later changes"
    if group.treatment is Treatment.DONE or options.mode is Mode.SKIP or options.by_transaction:
        return ""
    column = group.first.column if isinstance(group.first, Refusal) else ""
    other = f", and --columns A,B with columns other than {column}" if column else ""
    return f" (--skip-conflicts goes on without {'it' if group.rows == 1 else 'them'}{other})"
