"""Foreign keys that made the server change rows together with those that the log shows."""

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

from ingest.ddl.letter_case import lowered
from recover.notes import Kind, Note
from recover.selection.filters import Filters
from recover.sources.log import Log
from recover.undo.select.cascade_rules import UNLESS_LOGGED, Changed, rows_of_cascade
from recover.undo.tables.definitions import keys_in_time
from recover.undo.tables.table import ForeignKey

if TYPE_CHECKING:
    from ingest.ddl.foreign_keys import KeyInTime

_PLACE: Final = ("source_id", "epoch", "file_sequence", "transaction_pos")
_CHANGE: Final = ("outcome", "schema_name", "table_name", "event_type", "changed_columns")


def unlogged_cascades(log: Log, filters: Filters) -> Iterator[Note]:
    """Yield which foreign keys may have changed rows in a transaction without the log.

    Parameters
    ----------
    filters
        They select the row changes of one transaction.
    """
    if log.logs_cascades:
        return
    rows = [*log.rows(log.select(filters).query(*_PLACE, *_CHANGE).distinct())]
    changed = Changed()
    for *_, outcome, schema, table, event_type, columns in rows:
        if outcome != "rollback":
            changed.add((lowered(schema), lowered(table)), event_type, columns or ())
    if not (changed.deleted or changed.updated):
        return
    source_id, *place = rows[0][: len(_PLACE)]
    keys = [
        one
        for key in keys_in_time(log, source_id)
        if key.is_cascading and _is_there(key, tuple(place))
        for one in _by_each_name(key)
    ]
    for key, rules in changed.through(keys).items():
        yield Note(f"{rows_of_cascade(key, rules)} are not shown{UNLESS_LOGGED}.", Kind.UNCERTAIN)


def _is_there(key: "KeyInTime", place: tuple[int, ...]) -> bool:
    return (key.since is None or tuple(key.since) <= place) and (key.until is None or place < tuple(key.until))


def _by_each_name(key: "KeyInTime") -> Iterator[ForeignKey]:
    """Yield a key under each name that its tables have had, with all names of its columns."""
    for table in key.table:
        for parent in key.parent:
            yield ForeignKey(
                key.name,
                table,
                tuple(chain.from_iterable(key.columns)),
                parent,
                tuple(chain.from_iterable(key.parent_columns)),
                key.update_rule,
                key.delete_rule,
            )
