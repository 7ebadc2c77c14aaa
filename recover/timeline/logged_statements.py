"""The statements that made row changes, if the server logged them."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from recover.selection.condition import STATEMENT_KINDS

if TYPE_CHECKING:
    from recover.sources.log import Log

_TRANSACTION = ("source_id", "epoch", "binlog_file", "transaction_pos")


def statements_of(log: "Log", changes: Mapping[str, str]) -> dict[str, str]:
    """Return the text of the statement of each change, by `change_id`; a change without a logged text is missing.

    Parameters
    ----------
    changes
        By `change_id`, the `transaction_id` of few changes, such as those of one row, or those that a person reads.
    """
    from sqlglot import exp

    if not changes:
        return {}
    sources, epochs, files, positions = zip(*(one.rsplit("/", 3) for one in {*changes.values()}), strict=True)
    places = (sources, map(int, epochs), files, map(int, positions))
    query = (
        exp.select(*_TRANSACTION, "start_pos", "payload_ordinal", "sql_text")
        .from_("binloom_staging.stg_binlog__statements")
        .where(
            exp.column("kind").isin(*STATEMENT_KINDS),
            *(exp.column(name).isin(*{*some}) for name, some in zip(_TRANSACTION, places, strict=True)),
        )
        .order_by("start_pos", "payload_ordinal")
    )
    found = defaultdict[str, list[tuple[int, int, str | None]]](list)
    for *transaction, start, ordinal, text in log.rows(query):
        found["/".join(map(str, transaction))].append((start, ordinal, text))
    texts = {}
    for change_id, transaction_id in changes.items():
        _, start, ordinal, _ = change_id.rsplit("/", 3)
        own = found[transaction_id]
        # A statement has written the rows of all events up to the next statement.
        at = bisect_left(own, (int(start), int(ordinal)), key=lambda one: one[:2])
        if at and (text := own[at - 1][2]) is not None:
            texts[change_id] = text
    return texts
