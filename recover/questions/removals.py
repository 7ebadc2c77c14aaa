"""Statements that took tables, rows or columns away without listing them, for `top`."""

from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ingest.binlog.filters import TableFilter, matches
from recover.questions.top import Removal

ACTION_COLUMNS: Final = (
    *("start_pos", "payload_ordinal", "action_ordinal", "action", "statement_type"),
    *("schema_name", "table_name", "column_name"),
)
"""Columns of `ddl_actions` that tell what a statement took away."""
STATEMENT_COLUMNS: Final = ("start_pos", "payload_ordinal", "transaction_pos", "event_timestamp", "thread_id")
"""Columns of `statements` that tell when, and which connection."""

_REMOVING: Final = pa.array(
    ["drop_table", "drop_database", "drop_column", "drop_partition", "truncate_table", "truncate_partition"]
)


class Removals:
    """Keeps the last statements that took something away.

    Parameters
    ----------
    tables
        Only what was taken from these tables; None: from all.
    since, until
        Only statements from this time on, and before this time.
    limit
        Number of statements that are kept.

    Attributes
    ----------
    count
        Number of all such statements.
    tables
        Schema and name of all tables that something was taken from.
    """

    def __init__(self, tables: TableFilter | None, since: datetime | None, until: datetime | None, limit: int) -> None:
        self._tables = tables
        self._since = since
        self._until = until
        self._last: deque[Removal] = deque(maxlen=limit)
        self.count = 0
        self.tables: set[tuple[str, str]] = set()

    @property
    def last(self) -> list[Removal]:
        """The last ones, in the order in which they were added."""
        return [*self._last]

    def add(self, source_id: str, file: str, statements: pa.Table, actions: pa.Table) -> None:
        """Add those among the statements of a file.

        Parameters
        ----------
        file
            The file as `--as-of` names it.
        statements, actions
            `STATEMENT_COLUMNS` and `ACTION_COLUMNS`; actions of other statements are not added.
        """
        found: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
        is_removing = pc.and_(
            pc.is_in(actions["action"], value_set=_REMOVING), pc.not_equal(actions["statement_type"], "DROP SEQUENCE")
        )
        for action in actions.filter(is_removing).sort_by("action_ordinal").to_pylist():
            if action["table_name"] is not None:
                self.tables.add((action["schema_name"] or "", action["table_name"]))
            found.setdefault((action["start_pos"], action["payload_ordinal"]), []).append(action)
        if not found:
            return
        is_known = pc.is_in(statements["start_pos"], value_set=pa.array([place for place, _ in found]))
        for row in statements.filter(is_known).to_pylist():
            steps = [*filter(self._takes, found.get((row["start_pos"], row["payload_ordinal"]), ()))]
            if steps and self._is_in_time(row["event_timestamp"]):
                self.count += 1
                begin = row["transaction_pos"]
                self._last.append(
                    Removal(
                        source_id=source_id,
                        position=f"{file}:{begin if begin is not None else row['start_pos']}",
                        at=row["event_timestamp"],
                        thread_id=row["thread_id"],
                        statement=steps[0]["statement_type"],
                        removed=list(dict.fromkeys(map(_name, steps))),
                    )
                )

    def _takes(self, action: Mapping[str, Any]) -> bool:
        """Return whether a table that is wanted is concerned; a database has tables of any name."""
        schema, table = action["schema_name"] or "", action["table_name"]
        if self._tables is None:
            return True
        if table is not None:
            return self._tables.takes(schema, table)
        patterns = (*self._tables.schemas, *(one.rpartition(".")[0] or "*" for one in self._tables.tables))
        return any(matches(schema, pattern) for pattern in patterns)

    def _is_in_time(self, at: datetime | None) -> bool:
        if at is None:
            return True
        return (self._since is None or at >= self._since) and (self._until is None or at < self._until)


def _name(action: Mapping[str, Any]) -> str:
    return ".".join(_parts(action))


def _parts(action: Mapping[str, Any]) -> Iterator[str]:
    for name in ("schema_name", "table_name"):
        if action[name] is not None:
            yield action[name]
    if action["action"] == "drop_column":
        yield action["column_name"] or ""
