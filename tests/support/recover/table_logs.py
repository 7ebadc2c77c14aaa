"""Changes of one table, written as short as a test can read them."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

from ingest.ddl.statements import actions_of
from recover.timeline.events import Change, Effect, Hiding, Image, JsonChange, Place, TableEvent
from recover.timeline.readings import recorded_step


class Log:
    """A log of one table, which numbers its changes and events."""

    def __init__(self, has_key: bool = True) -> None:
        self.changes: list[Change] = []
        self.events: list[TableEvent] = []
        self._has_key = has_key
        self._positions: Iterator[int] = itertools.count(100, 100)

    def insert(self, key: str, **row: str | None) -> None:
        """Add an INSERT of a row with column `id` and others."""
        self._add("INSERT", None, key, None, {"id": key, **row})

    def update(
        self,
        key: str,
        before: Image,
        after: Image,
        key_after: str | None = None,
        json_changes: tuple[JsonChange, ...] = (),
        unchanged_documents: tuple[str, ...] = (),
    ) -> None:
        """Add an UPDATE with the images that the log contains."""
        self._add("UPDATE", key, key_after or key, before, after, json_changes, unchanged_documents)

    def delete(self, key: str, **row: str | None) -> None:
        """Add a DELETE of a row with column `id` and others."""
        self._add("DELETE", key, None, {"id": key, **row}, None)

    def event(self, effect: Effect, *actions: str, hiding: Hiding | None = None) -> TableEvent:
        """Add an event that lists no rows."""
        place = Place(0, 1, next(self._positions))
        event = TableEvent(place, effect, effect.upper(), "binlog.000001", actions, hiding=hiding)
        self.events.append(event)
        return event

    def alter(self, clauses: str) -> TableEvent:
        """Add an ALTER TABLE, of which only its clauses are given."""
        event = self.event(Effect.ALTERS)
        text = f"alter table t {clauses}"
        recorded = tuple(map(recorded_step, actions_of(text, "shop")))
        self.events[-1] = replace(event, statement=text, default_schema="shop", actions=recorded)
        return self.events[-1]

    def _add(
        self,
        event_type: str,
        key: str | None,
        key_after: str | None,
        before: Image | None,
        after: Image | None,
        json_changes: tuple[JsonChange, ...] = (),
        unchanged_documents: tuple[str, ...] = (),
    ) -> None:
        pos = next(self._positions)
        undecoded = tuple(dict.fromkeys((*(one.column_name for one in json_changes), *unchanged_documents)))
        self.changes.append(
            Change(
                change_id=f"s/0/binlog.000001/{pos}/0/0",
                place=Place(0, 1, pos),
                binlog_file="binlog.000001",
                start_pos=pos,
                transaction_id=f"s/0/binlog.000001/{pos}",
                group=1,
                event_type=event_type,
                key=key,
                key_after=key_after,
                has_key=self._has_key,
                before=before,
                after=after,
                undecoded_columns=undecoded,
                json_changes=json_changes,
                table_version_id="v",
                gtid=None,
                committed_at=None,
                event_timestamp=None,
                thread_id=None,
            )
        )
