"""The chains of a table as proved statements: planned, written, read back; the rows that get none are counted.

A chain does not depend on any other, so that processes may share the chains of a table.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from recover.undo.options import UndoOptions
from recover.undo.plan.carried import CarriedRows, CarryError, of_rows
from recover.undo.plan.classify import ChainPlan, Conflict, ProofError, Refusal, inverse_of, plan_chain
from recover.undo.plan.loops import LoopError, parted
from recover.undo.prove.expected import Expected, expected_rows
from recover.undo.prove.reading import StatementReader
from recover.undo.prove.writing import StatementWriter, unprintable_column
from recover.undo.rows.fold import Change, Row
from recover.undo.rows.literals import UnprintableValueError
from recover.undo.rows.operations import MissingValueError, Operation, Verb, verb_between
from recover.undo.tables.table import ForeignKey, Table

END: Final = b"\0"
"""Ends each statement of `Findings.texts`: a statement may contain a line break in a name, but no NUL."""

Effect = tuple[int, Verb, str, Row | None, Row | None]
"""Place of a statement, verb of those that it is printed with, key of its row, the row as it is and as it will be."""


class ProvedStatements:
    """Writes statements, and reads each one back."""

    def __init__(self) -> None:
        self._writer, self._reader = StatementWriter(), StatementReader()

    def text(self, operation: Operation) -> str:
        """Return the text of a statement.

        Raises
        ------
        UnprintableValueError
            A value cannot be written as SQL.
        UnprovedStatementError
            The text, read back, is another statement.
        """
        text = self._writer.text(operation)
        self._reader.prove(text, operation)
        return text


@dataclass(frozen=True)
class Task:
    """A request for chains of a table.

    Attributes
    ----------
    keeps_effects
        Whether the rows before and after each statement are needed.
    is_compared
        Whether the rows that the statements expect are needed, for a comparison with a server.
    carried
        What statements on other tables do to the rows of this one.
    loops
        Foreign keys of the table to itself that keep a row which refers to itself.
    left_out
        Why the server would refuse some rows, by their keys: they are conflicts.
    """

    table: Table
    options: UndoOptions
    keeps_effects: bool
    is_compared: bool
    carried: CarriedRows = field(default_factory=CarriedRows)
    loops: tuple[ForeignKey, ...] = ()
    left_out: Mapping[str, Conflict] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedChain:
    """Statements for the rows of one chain, with their texts, that may still differ from a server.

    Attributes
    ----------
    effects
        The row that each statement changes: its place, its key, the row as it is and as it will be.
    """

    changes: list[Change]
    plan: ChainPlan
    texts: list[tuple[Verb, str]]
    effects: list[tuple[int, str, Row | None, Row | None]]
    expected: list[Expected]


@dataclass(slots=True)
class Findings:
    """The result of following some chains.

    Attributes
    ----------
    texts
        Statements by the verb of the others that they are printed with, each with its `END`.
    counts
        Number of statements by their own verb.
    conflicts, refusals, already, problems, done, disjoint
        As in `Plan`, all of them.
    effects
        Rows that statements change, if they are needed.
    """

    texts: dict[Verb, bytearray] = field(default_factory=dict)
    counts: Counter[Verb] = field(default_factory=Counter)
    conflicts: list[Conflict] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    already: list[Conflict] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    done: int = 0
    disjoint: int = 0
    effects: list[Effect] = field(default_factory=list)

    def take(self, chain: PlannedChain, task: Task) -> None:
        """Take the statements of a chain."""
        self.disjoint += chain.plan.disjoint
        # Rows that exchanged keys keep the order of their statements.
        together: Verb | None = "UPDATE" if len(chain.plan.operations) > 1 and task.table.row_key else None
        for verb, text in chain.texts:
            texts = self.texts.setdefault(together or ("UPDATE" if verb == "SELECT" else verb), bytearray())
            texts += text.encode()
            texts += END
            self.counts[verb] += 1
        if task.keeps_effects:
            self.effects += [
                (place, together or verb_between(now, wanted), key, now, wanted)
                for place, key, now, wanted in chain.effects
            ]


class ChainPlanner:
    """Plans the chains of a table."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._statements = ProvedStatements()

    def findings(self, first: int, chains: Iterable[list[Change]]) -> Findings:
        """Return the findings on chains, the first of which has the place `first`.

        Raises
        ------
        UnprovedStatementError
            A statement, read back, is another one.
        """
        found = Findings()
        for chain in self.planned(first, chains, found):
            found.take(chain, self._task)
        return found

    def planned(self, first: int, chains: Iterable[list[Change]], found: Findings) -> Iterator[PlannedChain]:
        """Yield the proved statements of each chain; count what is left alone, in conflict or refused in `found`."""
        table, options = self._task.table, self._task.options
        following = first
        for chain in chains:
            # A place for each statement: a chain has no more of them than changes.
            place, following = following, following + len(chain)
            try:
                plan = plan_chain(table, chain, options)
                if left_out := [*filter(None, (self._task.left_out.get(key) for key, _, _ in plan.effects))]:
                    # Rows that took each other's keys are taken back together, or not at all.
                    found.conflicts += [*plan.conflicts, *left_out]
                    continue
                operations = _steps(table, chain, plan) if options.by_transaction else plan.operations
                parts = [parted(one, self._task.loops) for one in self._adjusted(plan)]
                effects = self._effects(place, plan, parts)
            except LoopError as error:
                found.refusals.append(Refusal(table, chain[0].key_after if table.row_key else "", str(error)))
                continue
            except CarryError as error:
                found.problems.append(str(error))
                continue
            except ProofError as error:
                found.problems.append(f"the plan for row {chain[0].key} of {table.text} is not proved: {error}")
                continue
            except MissingValueError as missing:
                reason = f"the image of a change lacks column {missing.column}: leave out --by-transaction"
                found.refusals.append(Refusal(table, chain[0].key if table.row_key else "", reason))
                continue
            found.conflicts += plan.conflicts
            found.refusals += plan.refusals
            found.already += plan.already
            found.done += plan.done
            adjusted = [one for some in parts for one in some]
            try:
                texts = [] if options.by_transaction else [(one.verb, self._statements.text(one)) for one in adjusted]
                expected = expected_rows(operations, are_steps=options.by_transaction) if self._task.is_compared else []
            except UnprintableValueError as error:
                key, reason = chain[0].key if table.row_key else "", str(error).removesuffix(".")
                found.refusals.append(Refusal(table, key, reason, unprintable_column(adjusted)))
                continue
            yield PlannedChain(chain, plan, texts, effects, expected)

    def _effects(
        self, first: int, plan: ChainPlan, parts: Sequence[Sequence[Operation]]
    ) -> list[tuple[int, str, Row | None, Row | None]]:
        """Return what the statements do to rows, of which some need two of them."""
        effects: list[tuple[int, str, Row | None, Row | None]] = []
        for number, (key, now, wanted) in enumerate(plan.effects):
            place = first + number
            if not self._task.options.by_transaction and now is not None and len(parts[number]) > 1:
                if self._task.carried:
                    raise CarryError(
                        f"row {key} of {self._task.table.text} refers to itself, and the server changes rows of its"
                        " table with their parents: leave it out, and delete it by hand"
                    )
                free = {**now, **parts[number][0].values}
                effects.append((place, key, now, free))
                now = free
            effects.append((place, key, now, wanted))
        return effects

    def _adjusted(self, plan: ChainPlan) -> list[Operation]:
        """Return the statements for the rows as the server has left them when each of them runs."""
        table, carried = self._task.table, self._task.carried
        if not carried:
            return plan.operations
        carried.assert_left_alone(table, plan.left_alone)
        rows = of_rows(plan.effects, table)
        return [
            one
            if one.verb == "INSERT"
            else carried.adjusted(one, rows.get(tuple(one.key.values()), {**one.key, **one.guard}))
            for one in plan.operations
        ]


def _steps(table: Table, chain: Sequence[Change], plan: ChainPlan) -> list[Operation]:
    """Return a statement for each selected change of a chain, in the reverse of commit order."""
    if plan.refusals or plan.conflicts:
        return []
    steps = (inverse_of(table, change) for change in reversed(chain) if change.is_selected)
    return [step for step in steps if step is not None]
