"""The plan of an undo: read, fold, classify, prove, order. Statements wait in files until everything is proved."""

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice, takewhile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Literal, Self

from ingest.errors import UsageError
from recover.timeline.baselines import Baseline
from recover.undo.options import Direction, Mode, UndoOptions
from recover.undo.plan.carried import CarriedRows, CarryError, RunningRows, Turn
from recover.undo.plan.chains import END, ChainPlanner, Effect, Findings, PlannedChain, ProvedStatements, Task
from recover.undo.plan.classify import Conflict, Refusal, inverse_of, key_text
from recover.undo.plan.left_rows import LeftRows, Treatment
from recover.undo.plan.loops import LoopError, loops, parted
from recover.undo.plan.order import ORDERS, ORDERS_THAT_CARRY, Claims, Obstacle, Step
from recover.undo.plan.processes import PlanningProcesses, number_of_processes
from recover.undo.prove.against import Difference, LiveServer, OtherTableError
from recover.undo.rows.fold import Change, Row
from recover.undo.rows.literals import UnprintableValueError
from recover.undo.rows.operations import Verb
from recover.undo.select.beginnings import Beginnings, columns_of_cascades
from recover.undo.select.changes import TableChanges, chains_of, selected_changes_backwards
from recover.undo.select.levels import find_levels
from recover.undo.select.selected import Selected, SelectionError, add_transactions, selected_names
from recover.undo.tables.definitions import Definitions
from recover.undo.tables.table import Table, TableName

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

_SHOWN: Final = 1000
_CHAINS_COMPARED_AT_ONCE: Final = 1000

_Part = tuple[TableName, Verb] | Literal["blocks"]
"""Statements that are in one file: those of a table and verb, or all of them, change by change."""


@dataclass
class Plan:
    """A proved plan, or the reasons why there is none.

    Attributes
    ----------
    counts
        Number of statements by table and verb.
    conflicts, refusals
        Rows that are not as the selection left them, and rows that cannot be taken back; the first thousand of each.
    already
        Rows that other transactions have already brought back; the first thousand.
    in_the_way
        Rows outside the plan because of which the server would refuse rows of the plan.
    conflicting, refused
        How many conflicts and refusals there are.
    differences, differing
        Rows that are not on the server as the log left them, the first thousand, and how many there are.
    synthesized
        Number of selected changes by table and type that the server did not log.
    compared
        How many rows were compared with the server.
    done, disjoint
        Number of rows that need nothing, and of rows with later changes in other columns.
    problems
        Reasons that concern the plan as a whole.
    warnings
        What the plan does not contain.
    goes_on_after
        The last file, if the server went on in files that were not given.
    drops_values
        Whether the selection changed columns that the tables do not have any more.
    baselines
        The baseline of each table that supplies values which the images of the selection lack.
    left
        All rows that get no statement, in groups.
    order
        Verbs in the order of the statements; None if the statements are in the reverse of commit order.
    """

    selected: Selected
    options: UndoOptions
    counts: Counter[tuple[str, Verb]] = field(default_factory=Counter)
    conflicts: list[Conflict] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    already: list[Conflict] = field(default_factory=list)
    conflicting: int = 0
    refused: int = 0
    differences: list[Difference] = field(default_factory=list)
    differing: int = 0
    synthesized: dict[tuple[str, str], int] = field(default_factory=dict)
    compared: int = 0
    done: int = 0
    disjoint: int = 0
    problems: list[str] = field(default_factory=list)
    in_the_way: list[Obstacle] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    goes_on_after: str | None = None
    drops_values: bool = False
    left: LeftRows = field(default_factory=LeftRows, repr=False, compare=False)
    order: tuple[Verb, ...] | None = None
    added: tuple[str, ...] = ()
    baselines: dict[str, Baseline] = field(default_factory=dict)
    transactions_in_conflict: set[str] = field(default_factory=set)

    @property
    def statements(self) -> int:
        """Number of statements."""
        return sum(self.counts.values())

    @property
    def is_printable(self) -> bool:
        """Whether the plan may be printed."""
        if self.problems or ((self.refused or self.differing) and self.options.mode is not Mode.SKIP):
            return False
        return not self.conflicting or self.options.mode in (Mode.SKIP, Mode.FORCE)

    def take(self, table: Table, found: Findings) -> None:
        """Add the findings on some chains of a table."""
        for verb, count in found.counts.items():
            self.counts[table.text, verb] += count
        self.conflicting += len(found.conflicts)
        self.refused += len(found.refusals)
        self.conflicts += found.conflicts[: max(0, _SHOWN - len(self.conflicts))]
        self.refusals += found.refusals[: max(0, _SHOWN - len(self.refusals))]
        self.already += found.already[: max(0, _SHOWN - len(self.already))]
        self.problems += found.problems
        self.done += found.done
        self.disjoint += found.disjoint
        treatment = Treatment.OVERWRITTEN if self.options.mode is Mode.FORCE else Treatment.LEFT
        for conflict in found.conflicts:
            self.left.add(conflict, treatment)
            self.transactions_in_conflict.update(conflict.transactions)
        for refusal in found.refusals:
            self.left.add(refusal)
        for done in found.already:
            self.left.add(done, Treatment.DONE)


class Planner:
    """Makes the plan of one selection. The statements are in files of a temporary folder until it is closed.

    Parameters
    ----------
    connection
        It has `row_changes` and the other marts, and the selection of `changes.select`.
    definitions
        Tables and foreign keys, from a schema snapshot.
    server
        The server that the rows of the plan are compared with, if there is one.
    beginnings
        Where values that images lack are looked up; None: in the whole log.
    """

    def __init__(
        self,
        connection: "DuckDBPyConnection",
        definitions: Definitions,
        server: LiveServer | None = None,
        beginnings: Beginnings | None = None,
    ) -> None:
        self._connection = connection
        self._tables = definitions.tables
        self._foreign_keys = definitions.foreign_keys
        self._folder = tempfile.TemporaryDirectory(prefix="binloom-undo-")
        self._spools: dict[_Part, IO[bytes]] = {}
        self._statements = ProvedStatements()
        self._server = server
        self._beginnings = beginnings

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()
        self._folder.cleanup()

    def _clear(self) -> None:
        for spool in self._spools.values():
            spool.close()
            Path(spool.name).unlink()
        self._spools.clear()

    def plan(self, selected: Selected, options: UndoOptions) -> Plan:
        """Return the plan for a selection; with `Mode.DEPENDENTS` for the transactions that depend on it, too.

        Raises
        ------
        SelectionError
            The selection cannot be undone at all.
        UnprovedStatementError
            A statement, read back, is another one.
        """
        if options.by_transaction and (
            options.mode in (Mode.SKIP, Mode.FORCE) or options.columns or not selected.is_whole
        ):
            raise UsageError(
                "--by-transaction takes back whole transactions, change by change.",
                hint="Leave out --skip-conflicts, --force, --columns and --rows-only.",
            )
        added: list[str] = []
        self._left_out: dict[TableName, dict[str, Conflict]] = defaultdict(dict)
        while True:
            plan = self._plan_once(selected, options)
            plan.added = tuple(added)
            if options.mode is Mode.SKIP and self._leave_out(plan.in_the_way):
                continue
            further = sorted(
                plan.transactions_in_conflict | {*filter(None, (one.holder.transaction for one in plan.in_the_way))}
            )
            if options.mode is Mode.DEPENDENTS and further and not plan.problems:
                grown = add_transactions(self._connection, further)
                if grown.transactions != selected.transactions:
                    added += further
                    selected = grown
                    continue
            if plan.in_the_way:
                names = selected_names(self._connection)
                plan.problems += [one.problem(options, names, selected.is_whole) for one in plan.in_the_way]
                for one in plan.in_the_way:
                    plan.left.add_told(one.as_conflict)
            return plan

    def _leave_out(self, obstacles: Iterable[Obstacle]) -> bool:
        """Make conflicts of the rows that the server would refuse; return whether there is one more."""
        is_more = False
        for one in obstacles:
            left_out, key = self._left_out[one.table.name], one.holder.claimant
            is_more |= key not in left_out
            left_out[key] = one.as_conflict
        return is_more

    def _plan_once(self, selected: Selected, options: UndoOptions) -> Plan:
        self._clear()
        plan = Plan(selected, options)
        tables = [self._table(name) for name in selected.tables]
        claims = Claims(self._connection, tables, self._foreign_keys, self._tables, selected.source_id)
        self._carried = CarriedRows.of(self._foreign_keys)
        if any({key.table, key.parent} <= selected.tables.keys() for key in self._carried.keys):
            # The fate of children is known when their parents are planned.
            tables.sort(key=claims.rank)
        for table in tables:
            self._plan_table(table, selected, options, claims, plan)
        # Transactions that are still to be added may change the rows that stand in the way.
        if options.mode is not Mode.DEPENDENTS or not plan.transactions_in_conflict:
            try:
                plan.in_the_way = [*claims.outside(options.direction, self._server)]
            except OtherTableError as error:
                plan.problems.append(str(error))
            if self._server is None:
                plan.problems += claims.unseen()
        if not options.by_transaction:
            self._choose_order(claims, plan, options.direction)
        elif plan.is_printable:
            self._write_blocks(plan)
        return plan

    def _table(self, name: TableName) -> Table:
        table = self._tables.get(name)
        if table is None:
            raise SelectionError(
                f"Nothing describes {'.'.join(name)} as it is now: its generated columns and keys are unknown.",
                hint="Name the server with --against, or land a snapshot with `binloom snapshot`.",
            )
        return table

    def _plan_table(self, table: Table, selected: Selected, options: UndoOptions, claims: Claims, plan: Plan) -> None:
        uncertain = columns_of_cascades(table, self._foreign_keys)
        changes = TableChanges(self._connection, selected, table, self._beginnings, uncertain)
        if changes.baseline is not None:
            plan.baselines[table.text] = changes.baseline
        carried = self._carried.of_child(table.name)
        left_out = self._left_out.get(table.name, {})
        to_itself = loops(table.name, self._foreign_keys)
        task = Task(table, options, claims.is_needed(table), self._server is not None, carried, to_itself, left_out)
        for found in self._findings(task, changes, plan):
            plan.take(table, found)
            for verb, texts in found.texts.items():
                self._spool((table.name, verb)).write(texts)
            for effect in found.effects:
                try:
                    self._claim(claims, task, effect)
                except CarryError as error:
                    if str(error) not in plan.problems:
                        plan.problems.append(str(error))
        if options.by_transaction:
            for verb_, count in changes.selected_by_type().items():
                inverse: Verb = {"INSERT": "DELETE", "DELETE": "INSERT"}.get(verb_, "UPDATE")  # type: ignore[assignment]
                plan.counts[table.text, inverse] += count

    def _claim(self, claims: Claims, task: Task, effect: Effect) -> None:
        """Record what a statement does to keys, after those statements of other tables that change the row, too."""
        place, verb, key, now, wanted = effect
        table, row = task.table, now
        for turn, then in task.carried.steps(table, now) if now is not None else ():
            assert row is not None
            claims.add(table, Step(key, "UPDATE", *turn), row, then)
            self._carry(claims, table, turn, row, then)
            row = then
        claims.add(table, Step(key, verb, claims.rank(table), place), row, wanted)
        if row is not None and wanted is not None:
            self._carry(claims, table, (claims.rank(table), place), row, {**row, **wanted})

    def _carry(self, claims: Claims, table: Table, turn: Turn, now: Row, then: Row) -> None:
        for key in self._carried.add(table, turn, now, then):
            child = self._tables.get(key.table)
            if child is not None and claims.has(child) and claims.rank(child) < claims.rank(table):
                raise CarryError(
                    f"the foreign keys of {table.text} and {child.text} form a circle, so that what the server itself"
                    " changes is unknown"
                )

    def _findings(self, task: Task, changes: TableChanges, plan: Plan) -> Iterator[Findings]:
        """Yield the findings on the chains of a table, some chains at a time."""
        batches = _placed(changes.batches())
        number = number_of_processes(plan.selected.tables[task.table.name])
        if number and self._server is None:
            with PlanningProcesses(task, number) as processes:
                yield from processes.findings(batches)
            return
        planner = ChainPlanner(task)
        for first, rows in batches:
            if self._server is None:
                yield planner.findings(first, chains_of(rows))
                continue
            found = Findings()
            differing = plan.differing
            for chain in self._as_on_server(self._server, planner.planned(first, chains_of(rows), found), plan):
                found.take(chain, task)
            if plan.differing > differing and task.carried:
                found.problems.append(
                    f"rows of {task.table.text} differ on the server, which itself changes rows of this table with"
                    " their parents"
                )
            yield found

    def _as_on_server(self, server: LiveServer, chains: Iterator[PlannedChain], plan: Plan) -> Iterator[PlannedChain]:
        """Yield the chains whose rows are on the server as the log left them; count the others."""
        while some := [*islice(chains, _CHAINS_COMPARED_AT_ONCE)]:
            rows = [(chain, expected) for chain in some for expected in chain.expected]
            try:
                found = server.differences([expected for _, expected in rows])
            except OtherTableError as error:
                plan.problems.append(str(error))
                return
            plan.compared += len(rows)
            plan.differing += len(found)
            for difference in found.values():
                plan.left.add(difference)
            plan.differences += [*found.values()][: max(0, _SHOWN - len(plan.differences))]
            different = {id(rows[number][0]) for number in found}
            yield from (chain for chain in some if id(chain) not in different)

    def _spool(self, part: _Part) -> IO[bytes]:
        if part not in self._spools:
            path = Path(self._folder.name) / str(len(self._spools))
            self._spools[part] = path.open("w+b")
        return self._spools[part]

    def _choose_order(self, claims: Claims, plan: Plan, direction: Direction) -> None:
        """Choose the first order of verbs in which every statement can run, or report that there is none."""
        orders = ORDERS if claims.foreign_keys else ORDERS[::-1]
        if self._carried:
            orders = ORDERS_THAT_CARRY
        problems = []
        for order in orders:
            problem = claims.problem(order)
            if not problem:
                plan.order = order
                self._ranks = {name: claims.rank(self._tables[name]) for name in plan.selected.tables}
                return
            problems.append(problem)
        plan.problems.append(f"no order of folded statements is possible ({problems[0]}): {direction.way_in_steps}")

    def statements(self, plan: Plan) -> Iterator[list[str]]:
        """Yield the statements of a printable plan in their order, many at a time; a list is never across blocks."""
        assert plan.order is not None
        for verb in plan.order:
            backwards = verb == "DELETE"
            for name in sorted(self._ranks, key=lambda one: -self._ranks[one] if backwards else self._ranks[one]):
                spool = self._spools.get((name, verb))
                if spool is not None:
                    yield from _read(spool)

    def blocks(self) -> Iterator[tuple[str, Iterator[str]]]:
        """Yield each transaction of a plan change by change with its statements, in their order."""
        texts = (text for some in _read(self._spool("blocks")) for text in some)
        for transaction in texts:
            yield transaction, takewhile(bool, texts)

    def _write_blocks(self, plan: Plan) -> None:
        """Write each transaction with its statements, the newest first, each in the reverse of commit order.

        Only these statements show whether every one of them can be written: nothing may be printed before.
        """
        find_levels(self._connection, plan.selected, self._foreign_keys)
        changes = selected_changes_backwards(self._connection, plan.selected)
        spool = self._spool("blocks")
        for transaction, group in groupby(changes, key=lambda one: one[1].transaction):
            spool.write(transaction.encode() + END)
            for text in self._inverses(group, plan):
                spool.write(text.encode() + END)
            spool.write(END)  # An empty text ends the block.
            if plan.problems:
                return

    def _inverses(self, changes: Iterator[tuple[TableName, Change]], plan: Plan) -> Iterator[str]:
        running = RunningRows(self._foreign_keys)
        for name, change in changes:
            table = self._tables[name]
            operation = inverse_of(table, change)
            if operation is None:
                continue
            refused = key_text(table, change.after or change.before or {})
            try:
                parts = parted(
                    running.adjusted(operation, change.after, change.before), loops(name, self._foreign_keys)
                )
                texts = [*map(self._statements.text, parts)]
            except CarryError as error:
                plan.problems.append(f"the undo is impossible change by change: {error}")
                return
            except UnprintableValueError as error:
                reason = str(error).removesuffix(".")
                plan.take(table, Findings(refusals=[Refusal(table, refused, reason)]))
                continue
            except LoopError as error:
                plan.take(table, Findings(refusals=[Refusal(table, refused, str(error))]))
                continue
            if len(parts) > 1:
                plan.counts[table.text, "UPDATE"] += len(parts) - 1
            yield from texts


def _placed(batches: "Iterable[pa.RecordBatch]") -> "Iterator[tuple[int, pa.RecordBatch]]":
    """Yield batches with the place of their first chain: places grow, and no two chains have the same."""
    place = 0
    for batch in batches:
        yield place, batch
        place += batch.num_rows


def _read(spool: IO[bytes]) -> Iterator[list[str]]:
    spool.seek(0)
    rest: list[bytes] = []
    while block := spool.read(1 << 20):
        first, *others = block.split(END)
        rest.append(first)
        if others:
            *whole, last = b"".join(rest), *others
            rest = [last]
            yield [text.decode() for text in whole]
    assert not any(rest)
