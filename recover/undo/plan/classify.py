"""The class of each row: taken back, left alone, in conflict with other transactions, or refused."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Final

from recover.undo.options import Direction, Mode, UndoOptions
from recover.undo.rows.fold import UNKNOWN, Change, History, Row, fold, rows_without_selection
from recover.undo.rows.literals import Text
from recover.undo.rows.operations import (
    MissingValueError,
    Operation,
    apply,
    in_order,
    inverse,
    operation_between,
    redo_of,
    undo_of,
)
from recover.undo.tables.table import Table

SAME_COLUMNS: Final = "the same columns were changed since"
"""Reason of a conflict in which other columns of the row can be taken back."""


@dataclass(frozen=True)
class Conflict:
    """A row that the selection changed, and other transactions later.

    Attributes
    ----------
    key
        Display form of the row's key.
    columns
        The columns that both changed; empty if it is about the row as a whole.
    """

    table: Table
    key: str
    reason: str
    columns: tuple[str, ...] = ()
    transactions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refusal:
    """A row that cannot be taken back, and why.

    Attributes
    ----------
    column
        The column without which its statement is possible, if there is one.
    needs
        What the log would have to contain.
    """

    table: Table
    key: str
    reason: str
    column: str = ""
    needs: str = ""

    @classmethod
    def of_missing(cls, table: Table, key: str, column: str, now: Row | None, wanted: Row | None) -> "Refusal":
        """Return the refusal of a statement between two rows for which the log lacks a value."""
        # An UPDATE may leave a column out.
        way_out = "" if now is None or wanted is None else column
        needs = "an earlier image of the row, or a baseline before the change"
        return cls(table, key, f"the log does not contain the value of column {column}", way_out, needs)


class ProofError(Exception):
    """A plan does not lead to the rows that it should lead to."""


@dataclass
class ChainPlan:
    """The statements for a row, or for rows that took each other's keys.

    Attributes
    ----------
    effects
        Each row that a statement changes: its last key in the log, the row as it is and as it will be. They have the
        order of the statements.
    already
        Rows that other transactions have already brought back.
    done
        Number of rows that need nothing.
    left_alone
        Rows that no statement changes.
    """

    operations: list[Operation] = field(default_factory=list)
    effects: list[tuple[str, Row | None, Row | None]] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    already: list[Conflict] = field(default_factory=list)
    done: int = 0
    disjoint: int = 0
    left_alone: list[Row] = field(default_factory=list)


def plan_chain(table: Table, chain: Sequence[Change], options: UndoOptions) -> ChainPlan:
    """Return the proved statements for the rows of one chain.

    Raises
    ------
    ProofError
        The statements do not lead to the rows that they should lead to.
    """
    if len(chain) == 1 and options.is_plain and _has_whole_images(chain[0]):
        return _plan_change(table, chain[0])
    histories = fold(table, chain)
    of_equal_rows = _changes_of_equal_rows(table, histories)
    plan = ChainPlan()
    planned: list[History] = []
    forced: set[int] = set()
    for history in histories:
        if not history.is_selected:
            continue
        if history.broken:
            needs = "the changes that are missing in the log"
            plan.refusals.append(Refusal(table, _key_text(table, history), history.broken, needs=needs))
            continue
        if options.columns is not None:
            if history.existed is not None:
                reason = "the selection inserted or deleted the row, and --columns only takes back updates"
                plan.refusals.append(Refusal(table, _key_text(table, history), reason))
                continue
            history.before = {name: value for name, value in history.before.items() if name in options.columns}
            history.after = {name: value for name, value in history.after.items() if name in options.columns}
        if of_equal_rows:
            reason = "the table has no key, and an equal row was changed since"
            _leave(Conflict(table, _key_text(table, history), reason, (), of_equal_rows), options, plan)
            continue
        if _is_done(table, history, options):
            plan.done += 1
            if options.direction is Direction.UNDO and (by := _touched_by(history)):
                reason = f"the row needs no statement: {_why_done(history)}"
                plan.already.append(Conflict(table, _key_text(table, history), reason, (), by))
            continue
        if options.direction is Direction.REDO and history.existed is not False and history.row_before is None:
            by = _distinct(history.other_existence)
            _leave(Conflict(table, _key_text(table, history), "the row is gone now", (), by), options, plan)
            continue
        conflict = _conflict(table, history, options)
        if conflict is not None:
            if options.mode is not Mode.FORCE:
                plan.conflicts.append(conflict)
                continue
            plan.conflicts.append(conflict)
            forced.add(id(history))
        planned.append(history)
    _leave_taken_keys(table, histories, planned, options, plan)
    _add_operations(table, planned, forced, options, plan)
    plan.left_alone = _left_alone(histories, planned, options)
    # Change by change, a transaction with a conflict is not taken back at all.
    is_refused = (options.by_transaction and plan.conflicts) or (plan.refusals and not plan.operations)
    if not is_refused:
        _prove(table, chain, histories, planned, forced, options, plan)
    return plan


def _left_alone(histories: Sequence[History], planned: Sequence[History], options: UndoOptions) -> list[Row]:
    chosen = {id(history) for history in planned}
    left = (history for history in histories if id(history) not in chosen)
    rows = (history.row if options.direction is Direction.UNDO else history.row_before for history in left)
    return [row for row in rows if row is not None]


def _has_whole_images(change: Change) -> bool:
    if change.unknown:
        return False
    return change.before is None or change.after is None or change.before.keys() == change.after.keys()


def _plan_change(table: Table, change: Change) -> ChainPlan:
    """Return the statement for a row with one change, which is most of them: the row before is its image."""
    plan = ChainPlan()
    now, wanted = change.after, change.before
    plan.left_alone = [] if now is None else [now]
    try:
        operation = operation_between(table, now, wanted)
    except MissingValueError as missing:
        plan.refusals.append(Refusal.of_missing(table, change.key, missing.column, now, wanted))
        return plan
    if operation is None:
        plan.done = 1
        return plan
    try:
        result = apply([operation], [] if now is None else [now])
    except ValueError as error:
        raise ProofError(str(error)) from None
    if not _are_equal(table, result, [wanted]):
        raise ProofError(f"the statement for {table.text} does not give the row before")
    plan.operations.append(operation)
    plan.effects.append((change.key_after, now, wanted))
    plan.left_alone.clear()
    return plan


def _changes_of_equal_rows(table: Table, histories: Iterable[History]) -> tuple[str, ...]:
    """Return the transactions that changed a row which may be a selected one, if the table has no key.

    Only its image tells such a row, and a row from before the log may have the same. Which of them another transaction
    changed is unknown, and with it the row of every later change in the chain.
    """
    if table.row_key:
        return ()
    return _distinct(name for one in histories for name in (*one.other_existence, *one.other_updates))


def _is_done(table: Table, history: History, options: UndoOptions) -> bool:
    """Return whether there is nothing to take back or to do again."""
    if options.direction is Direction.REDO:
        if history.existed is None or (history.existed and history.exists_after):
            return all(history.after.get(name) == value for name, value in history.before.items())
        return history.existed == history.exists_after
    wanted, now = history.row_before, history.row
    if history.existed is None and (now is None or history.other_existence):
        return not history.before or _is_lost_without_selection(table, history, options)
    if wanted is None or now is None:
        return wanted is None and now is None
    return all(table.by_name[name].is_generated or now.get(name, UNKNOWN) == wanted[name] for name in history.before)


def _is_lost_without_selection(table: Table, history: History, options: UndoOptions) -> bool:
    """Return whether other transactions would have deleted an updated row as well if the selection had never been."""
    # A statement that deletes a row finds it by its key. Dependent transactions are taken back with the selection, and
    # change by change its statements need the row.
    is_same_key = bool(table.row_key) and history.before.keys().isdisjoint(table.row_key)
    is_own_way = options.mode is Mode.DEPENDENTS or options.by_transaction
    return bool(history.other_existence) and is_same_key and not history.other_existence_between and not is_own_way


def _why_done(history: History) -> str:
    if history.existed is None and history.other_existence:
        return "it was deleted since" if history.row is None else "another row has replaced it since"
    if any(history.before.get(name) != value for name, value in history.times.items()):
        return "the changed columns have their former values again, only the time of update is newer"
    return "its former values were set again"


def _conflict(table: Table, history: History, options: UndoOptions) -> Conflict | None:
    """Return the conflict of a row with other transactions, if there is one."""
    key = _key_text(table, history)
    if options.direction is Direction.REDO:
        if history.other_existence_between:
            reason = "other transactions inserted or deleted the row between the selected changes"
            return Conflict(table, key, reason, (), _distinct(history.other_existence))
        between = [name for name in history.others if name in history.others_between and name in history.before]
        if between:
            reason = "other transactions changed the same columns between the selected changes"
            return Conflict(table, key, reason, tuple(between), _transactions(history, between))
        return None
    if history.other_existence:
        gone = "is gone now" if history.row is None else "was inserted or deleted again since"
        return Conflict(table, key, f"the row {gone}", (), _distinct(history.other_existence))
    if history.existed is None and history.row is None:
        return Conflict(table, key, "the row is gone now", (), ())
    if history.existed is False:
        if history.others:
            reason = "the selection inserted the row, and it was changed since"
            return Conflict(table, key, reason, tuple(history.others), _transactions(history, history.others))
        return None
    if history.row is None:
        return None
    both = [
        name
        for name in history.others
        if name in history.before
        and not table.by_name[name].is_generated
        and name not in table.stamps
        and history.row.get(name, UNKNOWN) != history.before[name]
    ]
    if both:
        return Conflict(table, key, SAME_COLUMNS, tuple(both), _transactions(history, both))
    if options.by_transaction and history.times:
        reason = "the row was updated since, and its time of update cannot be taken back change by change"
        return Conflict(table, key, reason, tuple(history.times), _transactions(history, history.times))
    return None


def _leave_taken_keys(
    table: Table, histories: Sequence[History], planned: list[History], options: UndoOptions, plan: ChainPlan
) -> None:
    """Turn planned rows whose key another row has now into conflicts, until no two rows share a key."""
    if not table.row_key or options.direction is Direction.REDO or len(histories) == 1:
        return
    while True:
        by_key: dict[tuple[Text, ...], list[History]] = {}
        chosen = {id(history) for history in planned}
        for history in histories:
            row = history.row_before if id(history) in chosen else history.row
            if row is not None:
                by_key.setdefault(tuple(row.get(name) for name in table.row_key), []).append(history)
        taken = [history for group in by_key.values() if len(group) > 1 for history in group if id(history) in chosen]
        if not taken:
            return
        for history in taken:
            planned.remove(history)
            holders = [
                one.last_transaction
                for group in by_key.values()
                if any(one is history for one in group)
                for one in group
                if one is not history
            ]
            reason = "another row has its key now"
            key = _key_text(table, history, history.row_before)
            _leave(Conflict(table, key, reason, (), _distinct(holders)), options, plan)


def _leave(conflict: Conflict, options: UndoOptions, plan: ChainPlan) -> None:
    """Leave out a row that cannot be overwritten either."""
    if options.mode is Mode.FORCE:
        plan.refusals.append(Refusal(conflict.table, conflict.key, conflict.reason))
    else:
        plan.conflicts.append(conflict)


def _add_operations(
    table: Table, planned: list[History], forced: Set[int], options: UndoOptions, plan: ChainPlan
) -> None:
    make = undo_of if options.direction is Direction.UNDO else redo_of
    operations: list[Operation] = []
    for history in [*planned]:
        try:
            operation = make(table, history)
        except MissingValueError as missing:
            key = _key_text(table, history)
            plan.refusals.append(Refusal.of_missing(table, key, missing.column, history.row, history.row_before))
            planned.remove(history)
            continue
        if operation is None:
            plan.done += 1
            planned.remove(history)
            continue
        operations.append(operation)
        plan.disjoint += bool(history.other_updates) and id(history) not in forced
        before = history.row_before
        rows = (history.row, before) if options.direction is Direction.UNDO else (before, _redone(history))
        plan.effects.append((history.key, *rows))
    ordered = in_order(operations)
    if ordered is None and not options.by_transaction:
        for history in planned:
            way = options.direction.way_in_steps
            reason = f"rows exchanged their keys, so that no order of statements is possible: {way}"
            plan.refusals.append(Refusal(table, _key_text(table, history), reason))
        planned.clear()
        plan.effects.clear()
    elif ordered is not None:
        effects = dict(zip(map(id, operations), plan.effects, strict=True))
        plan.effects = [effects[id(operation)] for operation in ordered]
    plan.operations = ordered or (operations if options.by_transaction else [])


def _redone(history: History) -> Row | None:
    if history.exists_after is False:
        return None
    start = {} if history.existed is False else (history.row_before or {**history.first_key, **history.before})
    return {**start, **history.after}


def _prove(
    table: Table,
    chain: Sequence[Change],
    histories: Sequence[History],
    planned: Sequence[History],
    forced: set[int],
    options: UndoOptions,
    plan: ChainPlan,
) -> None:
    """Run the statements on the rows: they must give the rows without the selection, and the way back the rows now."""
    chosen = {id(history) for history in planned}
    if options.direction is Direction.REDO:
        now = [row for _, row, _ in plan.effects]
        wanted = [row for _, _, row in plan.effects]
    else:
        now = [history.row for history in histories]
        without = rows_without_selection(table, chain)
        wanted = []
        for history, row in zip(histories, without, strict=True):
            if id(history) in forced or options.columns is not None:
                wanted.append(history.row_before if id(history) in chosen else history.row)
            else:
                wanted.append(row if id(history) in chosen or not history.is_selected else history.row)
    steps = plan.operations
    if options.by_transaction:
        steps = [step for change in reversed(chain) if change.is_selected and (step := inverse_of(table, change))]
    try:
        result = apply(steps, [row for row in now if row is not None])
    except ValueError as error:
        if not options.by_transaction:
            raise ProofError(str(error)) from None
        plan.refusals.append(
            Refusal(table, _key_text(table, planned[0]) if planned else "", f"{error}: leave out --by-transaction")
        )
        return
    if not _are_equal(table, result, wanted):
        raise ProofError(f"the statements for {table.text} do not give the rows without the selection")
    back = [step for here, there in zip(wanted, now, strict=True) if (step := _step(table, here, there))]
    ordered = in_order(back)
    if ordered is not None and not _are_equal(table, apply(ordered, result), now):
        raise ProofError(f"doing the statements for {table.text} again does not give the rows now")


def _step(table: Table, now: Row | None, wanted: Row | None) -> Operation | None:
    try:
        return operation_between(table, now, wanted)
    except MissingValueError as error:
        raise ProofError(f"column {error.column} of {table.text} is unknown") from None


def inverse_of(table: Table, change: Change) -> Operation | None:
    """Return the statement that takes back one change."""
    return inverse(table, change.before, change.after)


def _are_equal(table: Table, rows: Iterable[Row | None], others: Iterable[Row | None]) -> bool:
    """Return whether rows are the same, in any order, without their generated columns."""
    ones, twos = [row for row in rows if row is not None], [row for row in others if row is not None]
    if len(ones) != len(twos):
        return False
    if len(ones) == 1:
        one, two = ones[0], twos[0]
        return one == two or all(
            (name in one) == (name in two) and one.get(name) == two.get(name) for name in table.stored_names
        )
    return _sorted(table, ones) == _sorted(table, twos)


def _sorted(table: Table, rows: Iterable[Row]) -> list[list[tuple[str, str]]]:
    return sorted([(name, repr(row[name])) for name in table.stored_names if name in row] for row in rows)


def _key_text(table: Table, history: History, row: Row | None = None) -> str:
    row = row or history.row or history.row_before or {**history.first_key, **history.before}
    # The selection inserted the row, and another transaction deleted it.
    return key_text(table, row) if row.keys() >= set(table.row_key) else history.key


def key_text(table: Table, row: Row) -> str:
    """Return the display form of the key of a row."""
    if not table.row_key:
        return "(a table without a key)"
    return "|".join(str(row.get(name)) for name in table.row_key)


def _touched_by(history: History) -> tuple[str, ...]:
    return _distinct((*history.other_existence, *(name for names in history.others.values() for name in names)))


def _transactions(history: History, columns: Iterable[str]) -> tuple[str, ...]:
    return _distinct(name for column in columns for name in history.others[column])


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
