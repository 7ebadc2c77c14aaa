"""Answers of a log of the recorded shop: histories of rows, states of tables, and a script that undoes the damage."""

from typing import Any

from recover.selection.filters import Filters
from recover.sources.log import Log
from recover.timeline.as_of import moment_of
from recover.timeline.history import history_of
from recover.timeline.named_table import find_table
from recover.timeline.state import state_of
from recover.undo.options import UndoOptions
from recover.undo.print.script import script
from recover.undo.undoing import planned

_MOMENTS = (None, "binlog.000001:40000", "2026-11-17T10:17:00")
_KEYS = {"shop.orders": ("1042", "1001"), "Order_Items": ("1042|1", "1042|9"), "customers": ("7",)}


def answers(log: Log, source: str) -> dict[object, Any]:
    """Return the answers to some questions about a source."""
    found: dict[object, Any] = {}
    for name, keys in _KEYS.items():
        table = find_table(log, name, source)
        for key in keys:
            found[name, key] = history_of(log.connection, table, key)
        for text in _MOMENTS:
            state = state_of(log.connection, table, moment_of(log.connection, source, text))
            rows = sorted(map(str, state.rows()))
            facts = (state.moment, state.columns, state.gaps_in_knowledge, state.rows_doubtful, state.chain_breaks)
            found[name, text] = (rows, *facts)
    return found


def undo_of_the_damage(log: Log, source: str) -> list[str]:
    """Return the lines of a script for the transaction that cancelled the orders."""
    damage = Filters.of(sources=[source], tables=["shop.orders"], where=["after.status = 'cancelled'"])
    with planned(log, damage, UndoOptions()) as (planner, plan, heading):
        assert plan.is_printable, plan.problems
        return list(script(planner, plan, heading))
