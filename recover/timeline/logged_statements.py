"""The statements that made row changes, if the server logged them."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from recover.selection.condition import STATEMENT_KINDS

if TYPE_CHECKING:
    from sqlglot import exp

    from recover.sources.log import Log

# A query names each of them: the text of one for all changes of a row could be megabytes.
_TRANSACTIONS_AT_ONCE = 10_000
_TRANSACTION = ("source_id", "epoch", "binlog_file", "transaction_pos")


def statements_of(log: "Log", changes: Mapping[str, str]) -> dict[str, str]:
    """Return the text of the statement of each change, by `change_id`; a change without a logged text is missing.

    Parameters
    ----------
    changes
        By `change_id`, the `transaction_id` of changes, such as those of one row, or those that a person reads.
    """
    found = defaultdict[str, list[tuple[int, int, str | None]]](list)
    transactions = sorted({*changes.values()})
    for first in range(0, len(transactions), _TRANSACTIONS_AT_ONCE):
        some = dict.fromkeys(transactions[first : first + _TRANSACTIONS_AT_ONCE])
        for *transaction, start, ordinal, text in log.rows(_query([*some])):
            # Another one with the same position is part of its own query.
            if (name := "/".join(map(str, transaction))) in some:
                found[name].append((start, ordinal, text))
    texts = {}
    for change_id, transaction_id in changes.items():
        _, start, ordinal, _ = change_id.rsplit("/", 3)
        own = found[transaction_id]
        # A statement has written the rows of all events up to the next statement.
        at = bisect_left(own, (int(start), int(ordinal)), key=lambda one: one[:2])
        if at and (text := own[at - 1][2]) is not None:
            texts[change_id] = text
    return texts


def _query(transactions: Sequence[str]) -> "exp.Query":
    """Return the query of the statements of transactions, and perhaps of others with the same positions."""
    from sqlglot import exp

    sources, epochs, files, positions = zip(*(one.rsplit("/", 3) for one in transactions), strict=True)
    places = (sources, map(int, epochs), files, map(int, positions))
    return (
        exp.select(*_TRANSACTION, "start_pos", "payload_ordinal", "sql_text")
        .from_("binloom_staging.stg_binlog__statements")
        .where(
            exp.column("kind").isin(*STATEMENT_KINDS),
            *(exp.column(name).isin(*{*some}) for name, some in zip(_TRANSACTION, places, strict=True)),
        )
        .order_by("start_pos", "payload_ordinal")
    )
