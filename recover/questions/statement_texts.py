"""The texts of the statements that made row changes, on whatever log they are."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recover.selection.condition import STATEMENT_KINDS, place_condition
from recover.selection.filters import Filters

if TYPE_CHECKING:
    from recover.sources.log import Log

_TRANSACTION = ("source_id", "epoch", "binlog_file", "transaction_pos")
_PLACE = ("start_pos", "payload_ordinal")


def texts_of_statements(log: "Log", changes: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Return the text of the statement of each change, None where the server logged none.

    Parameters
    ----------
    changes
        Rows of `row_changes`: few, such as those that a person reads.
    """
    from sqlglot import exp

    transactions = dict.fromkeys("/".join(str(one[name]) for name in _TRANSACTION) for one in changes)
    if not transactions:
        return []
    query = (
        exp.select(*_TRANSACTION, *_PLACE, "sql_text")
        .from_("binloom_staging.stg_binlog__statements")
        .where(exp.column("kind").isin(*STATEMENT_KINDS), place_condition(Filters(transactions=tuple(transactions))))
        .order_by(*_PLACE)
    )
    found: dict[tuple[Any, ...], list[tuple[tuple[int, int], str | None]]] = {}
    for *transaction, start, ordinal, text in log.rows(query):
        found.setdefault(tuple(transaction), []).append(((start, ordinal), text))
    return [_last_before(found.get(tuple(one[name] for name in _TRANSACTION), []), one) for one in changes]


def _last_before(statements: Sequence[tuple[tuple[int, int], str | None]], change: Mapping[str, Any]) -> str | None:
    """Return the last statement before a change: it has written the rows of all events up to the next one."""
    at = bisect_left(statements, tuple(change[name] for name in _PLACE), key=lambda one: one[0])
    return statements[at - 1][1] if at else None
