"""Storage engines with which a table has other rows than the log shows: BLACKHOLE and MERGE.

A BLACKHOLE table logs rows and keeps none. A MERGE table has the rows of others, and is logged under its own name.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from ingest.ddl.actions import ROWS_ARE_IN_ANOTHER
from recover.timeline.engines import HIDING, OTHERS, Turn
from recover.timeline.events import Effect, Hiding, Place, TableEvent

_MEMBER: Final = f"other {ROWS_ARE_IN_ANOTHER}"
_NEW_TABLES: Final = ("drop_table", "drop_database", "create_table", "create_like", "create_select", "rename_table")


def makes_members(actions: Iterable[str]) -> bool:
    """Return whether a statement makes tables those of a MERGE table."""
    return _MEMBER in actions


def of_member(event: TableEvent) -> TableEvent:
    """Return what a statement on a MERGE table says of a table whose rows it has."""
    reason = f"{event.reason} of a MERGE table that has its rows"
    return replace(event, effect=Effect.OBSCURES, reason=reason, actions=(_MEMBER,), hiding=Hiding.LASTS)


def with_engine(event: TableEvent, effect: Effect | None, turn: Turn | None = None) -> Iterator[TableEvent]:
    """Yield a statement on a table with its effect, and what it says by the engine that the table has afterwards.

    `turn` is that engine if it may be the one of another table.
    """
    has_other_rows = effect in (Effect.EMPTIES, Effect.REPLACES)
    is_new = has_other_rows and any(action.startswith(_NEW_TABLES) for action in event.actions)
    if effect is not None:
        yield replace(event, effect=effect, hiding=Hiding.ENDS if is_new else None)
    engine = next((name for action, name in HIDING.items() if action in event.actions), None)
    if engine is not None:
        reason = f"{event.reason} with ENGINE={engine}"
        yield replace(event, effect=Effect.OBSCURES, reason=reason, hiding=Hiding.BEGINS)
    elif turn is not None and turn.is_carried and turn.engine in HIDING.values():
        reason = f"{event.reason} from a table with ENGINE={turn.engine}"
        yield replace(event, effect=Effect.OBSCURES, reason=reason, hiding=Hiding.BEGINS)
    elif not {*OTHERS}.isdisjoint(event.actions):
        yield replace(event, effect=Effect.OBSCURES, reason=f"{event.reason} to another engine", hiding=Hiding.ENDS)


def after(hidden: TableEvent | None, event: TableEvent) -> TableEvent | None:
    """Return the event that hides rows after an event; `hidden` is the one before it."""
    if event.hiding is None or (hidden is not None and hidden.hiding is Hiding.LASTS):
        return hidden
    return None if event.hiding is Hiding.ENDS else event


def without_idle_ends(events: Iterable[TableEvent]) -> Iterator[TableEvent]:
    """Yield events in their order, without changes of the engine that say nothing."""
    hidden: TableEvent | None = None
    for event in events:
        is_end = event.hiding is Hiding.ENDS and event.effect is Effect.OBSCURES
        if not is_end or (hidden is not None and hidden.hiding is Hiding.BEGINS):
            yield event
        hidden = after(hidden, event)


def since(events: Iterable[TableEvent], place: Place) -> list[TableEvent]:
    """Return the events since a place, and an earlier one that still hides the rows that are written after it."""
    hidden: TableEvent | None = None
    found: list[TableEvent] = []
    for event in events:
        if event.place >= place:
            found.append(event)
        else:
            hidden = after(hidden, event)
    return found if hidden is None else [hidden, *found]
