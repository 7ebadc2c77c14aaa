"""Statements that took tables, rows or columns away without listing them, for `top`."""

from collections import deque
from collections.abc import Iterable
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ingest.binlog.filters import TableFilter, matches
from ingest.ddl.actions import TAKES_ROWS, Action
from recover.questions.top import Removal

STATEMENT_COLUMNS: Final = ("start_pos", "payload_ordinal", "transaction_pos", "event_timestamp", "thread_id")
"""Columns of `statements` that tell when, and which connection."""

_REMOVING: Final = frozenset({*TAKES_ROWS, "drop_column"})


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

    def add(
        self,
        source_id: str,
        file: str,
        statements: Iterable[pa.RecordBatch],
        actions: Iterable[tuple[tuple[int, int], Action]],
    ) -> None:
        """Add those among the statements of a file.

        Parameters
        ----------
        file
            The file as `--as-of` names it.
        statements
            Batches with `STATEMENT_COLUMNS`; they are read only if an action takes something away.
        actions
            The actions of statements in their order, with the position of each statement and its ordinal in the
            payload.
        """
        found: dict[tuple[int, int], list[Action]] = {}
        for place, action in actions:
            if action.action in _REMOVING and action.statement_type != "DROP SEQUENCE":
                found.setdefault(place, []).append(action)
                if action.table_name is not None:
                    self.tables.add((action.schema_name or "", action.table_name))
        if not found:
            return
        positions = pa.array([start for start, _ in found])
        for batch in statements:
            is_known = pc.is_in(batch.column("start_pos"), value_set=positions)
            for row in batch.select(list(STATEMENT_COLUMNS)).filter(is_known).to_pylist():
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
                            statement=steps[0].statement_type,
                            removed=list(dict.fromkeys(map(_name, steps))),
                        )
                    )

    def _takes(self, action: Action) -> bool:
        """Return whether a table that is wanted is concerned; a database has tables of any name."""
        if self._tables is None:
            return True
        schema = action.schema_name or ""
        if action.table_name is not None:
            return self._tables.takes(schema, action.table_name)
        patterns = (*self._tables.schemas, *(one.rpartition(".")[0] or "*" for one in self._tables.tables))
        return any(matches(schema, pattern) for pattern in patterns)

    def _is_in_time(self, at: datetime | None) -> bool:
        if at is None:
            return True
        return (self._since is None or at >= self._since) and (self._until is None or at < self._until)


def _name(action: Action) -> str:
    column = action.column_name if action.action == "drop_column" else None
    return ".".join(filter(None, (action.schema_name, action.table_name, column)))
