"""Foreign keys that made the server change rows together with those that the log shows."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ingest.ddl.actions import INACTIVE_RULES
from ingest.ddl.letter_case import lowered
from recover.notes import Kind, Note
from recover.selection.filters import Filters
from recover.sources.log import Log
from recover.undo.tables.definitions import keys_in_time

if TYPE_CHECKING:
    from ingest.ddl.foreign_keys import KeyInTime

_COLUMNS = (
    *("source_id", "epoch", "file_sequence", "transaction_pos", "schema_name", "table_name", "event_type"),
    *("changed_columns", "outcome"),
)


def unlogged_cascades(log: Log, filters: Filters) -> Iterator[Note]:
    """Yield which foreign keys may have changed rows in a transaction without the log.

    Parameters
    ----------
    filters
        They select the row changes of one transaction.
    """
    rows = [
        row
        for row in log.rows(log.select(filters).query(*_COLUMNS).distinct())
        if row[-1] != "rollback" and row[6] != "INSERT"
    ]
    if not rows:
        return
    source_id, *place = rows[0][:4]
    keys = [one for one in keys_in_time(log, source_id) if one.is_cascading and _is_there(one, tuple(place))]
    found = {key: rules for key in keys if (rules := _rules_that_ran(key, rows))}
    # The rows of a child are changed, and so may be those of its own children.
    waiting = [*found]
    while waiting:
        above = waiting.pop()
        for key in keys:
            if key not in found and not set(key.parent).isdisjoint(above.table):
                found[key] = {key.delete_rule, key.update_rule} - INACTIVE_RULES
                waiting.append(key)
    for key, rules in found.items():
        did = "deleted or changed" if "CASCADE" in rules else "changed"
        yield Note(
            f"rows of {'.'.join(key.table[-1])} that foreign key {key.name} {did} together with these rows"
            f" ({' and '.join(sorted(rules))}) are not shown, unless the server logged them.",
            Kind.UNCERTAIN,
        )


def _is_there(key: "KeyInTime", place: tuple[int, ...]) -> bool:
    return (key.since is None or tuple(key.since) <= place) and (key.until is None or place < tuple(key.until))


def _rules_that_ran(key: "KeyInTime", rows: Sequence[tuple[Any, ...]]) -> set[str]:
    """Return the rules by which a key changed rows of its table, if its parents were deleted or got another key."""
    columns = {name for names in key.parent_columns for name in names}
    rules: set[str] = set()
    for *_, schema, table, event_type, changed, _ in rows:
        if (lowered(schema), lowered(table)) not in key.parent:
            continue
        if event_type == "DELETE":
            rules.add(key.delete_rule)
        # Without the names of the columns, any of them may be in the key.
        elif not columns or not columns.isdisjoint(map(lowered, changed or ())):
            rules.add(key.update_rule)
    return rules - INACTIVE_RULES
