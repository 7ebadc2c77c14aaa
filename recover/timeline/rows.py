"""The rows of a table through time.

A log contains changes. This module links them: the last known values are carried forward where an image is partial,
a row is followed through changes of its key, and each image is compared with the previous one.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from recover.timeline import hiding
from recover.timeline.alterations import Alteration, Alterations, key_of_image
from recover.timeline.columns import LEFT_OUT, Columns
from recover.timeline.events import Change, Effect, Image, Place, TableEvent
from recover.timeline.partial_images import Latest

NOT_INSERTED: Final = "not_inserted"
"""The row did not exist according to the log, and the change has an image of it."""
NOT_DELETED: Final = "not_deleted"
"""The row existed according to the log, and the change creates it."""
VALUES_DIFFER: Final = "values_differ"
"""The image before the change is not the image after the previous change."""


@dataclass(slots=True)
class Version:
    """A row from one change to the next.

    Attributes
    ----------
    line
        Equal for all versions of one row, different for all others. A row that is deleted and inserted again with the
        same key keeps it.
    number
        1 for the first version of a line.
    key
        Key of the row in this version; see `Change`.
    row
        All known values, or None if the row does not exist in this version. A column without an entry is unknown.
    before
        All known values immediately before, or None if the row did not exist. For the first version of a line: the
        image before its change.
    change
        The change that made this version. None for the values of a row that existed before the log, and for a
        version that `event` made.
    event
        The event that made this version, such as a TRUNCATE, if no change did.
    defect
        `not_inserted`, `not_deleted` or `values_differ`: the log does not contain how the previous version became the
        image before this change (a chain break). None if the images link.
    differing
        Columns with another value, for `values_differ`.
    doubts
        Events after which the values of this version are not certain any more, and that no later image has refuted.
    copies
        Rows with exactly these values, for a table without a primary key; otherwise 1, or 0 if the row does not exist.
    joins
        The line of equal rows that the row is one of afterwards, in a table without a primary key. The row then has no
        line of its own any more.
    ended_by
        The change or the event that ended this version; None for the last one.
    since
        For the first version of a line: the last event before its first change that may have changed the row, or after
        which the row may have existed. None if there is none.
    """

    line: int
    number: int
    key: str
    row: Image | None
    before: Image | None
    change: Change | None
    event: TableEvent | None = None
    defect: str | None = None
    differing: tuple[str, ...] = ()
    doubts: tuple[TableEvent, ...] = ()
    copies: int = 1
    joins: int | None = None
    ended_by: Change | TableEvent | None = None
    since: TableEvent | None = None

    @property
    def place(self) -> Place | None:
        """Where this version begins; None if before the log."""
        maker = self.change or self.event or self.since
        return maker.place if maker is not None else None

    def is_at(self, place: Place) -> bool:
        """Return whether this is the version between the transactions before a place and those after it."""
        begins_before = self.place is None or self.place < place
        return begins_before and (self.ended_by is None or self.ended_by.place >= place)


def versions(
    changes: Iterable[Change],
    events: Sequence[TableEvent] = (),
    columns: Mapping[str, Columns] | None = None,
) -> Iterator[Version]:
    """Yield the versions of all rows of a table, each one when its end is known.

    Only the rows of one group are in memory. The versions of a line come in their order.

    Parameters
    ----------
    changes
        The changes of the table up to some place, sorted by `group`, then in commit order. They are of one group if an
        event gives rows other keys; see `alterations.moves_keys`.
    events
        All other events of the table up to the same place, in commit order.
    columns
        Columns of each `table_version_id`. Without them, each column that an ALTER TABLE modifies becomes unknown.
    """
    lines = itertools.count(1)
    alterations = Alterations([*(columns or {}).values()])
    for _, group in itertools.groupby(changes, key=lambda change: change.group):
        rows = _Rows(events, columns or {}, alterations, lines)
        for change in group:
            yield from rows.follow(change)
        yield from rows.end()


@dataclass(slots=True)
class _Rows:
    """The rows of one group at a place that moves forward."""

    events: Sequence[TableEvent]
    versions: Mapping[str, Columns]
    alterations: Alterations
    lines: Iterator[int]
    has_key: bool = True
    # The columns of the table, if they are known.
    columns: Columns | None = None
    # The latest version of each key.
    latest: Latest[Version] = field(default_factory=Latest)
    # Rows whose keys are not known any more.
    lost: list[Version] = field(default_factory=list)
    # Keys that a row had before its key was changed.
    left: set[str] = field(default_factory=set)
    # Up to here the events have been applied.
    applied: int = 0
    # Whether a key without a version is known to have no row.
    others_are_absent: bool = False
    # The last event after which a row without a version may be another.
    horizon: TableEvent | None = None
    # The event that makes the rows uncertain that are written now.
    hidden: TableEvent | None = None

    def follow(self, change: Change) -> Iterator[Version]:
        """Apply a change; yield the versions that end."""
        yield from self._apply_events(change.place)
        self.has_key = change.has_key
        self.columns = self.versions.get(change.table_version_id, self.columns)
        if not change.has_key:
            yield from self._follow_copy(change)
        elif change.event_type == "INSERT":
            yield from self._insert(change)
        else:
            yield from self._update_or_delete(change)

    def end(self) -> Iterator[Version]:
        """Apply the remaining events and yield the last versions."""
        yield from self._apply_events(None)
        yield from self.latest.values()
        yield from self.lost

    def _after(self, before: Image, change: Change, is_certain: bool) -> Image:
        return _after(before, change, self._generated(change), is_certain)

    def _generated(self, change: Change) -> list[str]:
        """Return the columns that an update lacks and the server computed, as far as that is known.

        MariaDB 11 logs none of them. In images with more than the key, all others are left out only with NOBLOB.
        """
        before, after = (change.before or {}).keys(), (change.after or {}).keys()
        # Most images have all columns.
        if self.columns is None or len(after) >= len(self.columns.columns):
            return []
        is_whole = change.has_key and before == after and not before <= {*self.columns.key}
        return [
            one.name
            for one in self.columns.columns
            if one.name not in after and (one.is_generated or (is_whole and one.data_type not in LEFT_OUT))
        ]

    # --- tables with a primary key ---

    def _insert(self, change: Change) -> Iterator[Version]:
        assert change.key_after is not None
        previous = self.latest.get(change.key_after)
        is_break = previous is not None and previous.row is not None
        version = self._version(previous, change, change.key_after, None, dict(change.after or {}))
        version.defect = NOT_DELETED if is_break else None
        yield from self._replace(previous, version)

    def _update_or_delete(self, change: Change) -> Iterator[Version]:
        assert change.key is not None
        previous = self.latest.get(change.key)
        if previous is None and not self.others_are_absent and change.key not in self.left:
            # The first change of a row that existed before: its image before is its first known version.
            previous = Version(
                next(self.lines), 1, change.key, dict(change.before or {}), None, None, since=self.horizon
            )
        before, defect, differing = _linked(previous, change)
        doubts = () if defect or previous is None else _remaining_doubts(previous, change)
        if previous is not None and not defect:
            previous.doubts = doubts or self._hidden_by
        target = change.key if change.key_after is None else change.key_after
        row = None if change.event_type == "DELETE" else self._after(before, change, is_certain=not doubts)
        version = self._version(previous, change, target, before, row)
        version.defect, version.differing = defect, differing
        version.doubts = self._hidden_by if row is None or _covers(change.after, row) else doubts or self._hidden_by
        if target != change.key:
            occupant = self.latest.get(target)
            if occupant is not None:
                if occupant.row is not None:
                    version.defect = version.defect or NOT_DELETED
                occupant.ended_by = change
                yield occupant
            self.latest.pop(change.key, None)
            self.left.add(change.key)
        yield from self._replace(previous, version)

    def _version(
        self, previous: Version | None, change: Change, key: str, before: Image | None, row: Image | None
    ) -> Version:
        line, number = (previous.line, previous.number + 1) if previous else (next(self.lines), 1)
        since = self.horizon if previous is None else None
        copies = int(row is not None)
        return Version(line, number, key, row, before, change, doubts=self._hidden_by, copies=copies, since=since)

    @property
    def _hidden_by(self) -> tuple[TableEvent, ...]:
        return () if self.hidden is None else (self.hidden,)

    def _replace(self, previous: Version | None, version: Version) -> Iterator[Version]:
        if previous is not None:
            previous.ended_by = version.change or version.event
            yield previous
        self.latest[version.key] = version

    # --- tables without one ---

    def _follow_copy(self, change: Change) -> Iterator[Version]:
        """Count rows with equal values: one fewer of the image before, one more of the image after."""
        change = self._whole(change)
        if change.key == change.key_after:
            return
        row = change.after
        if change.before is not None and row is not None:
            row = self._after(change.before, change, is_certain=True)
        if self._moves_one_row(change):
            yield from self._move(change, row)
            return
        if change.key is not None:
            yield from self._count(change, change.key, change.before, -1)
        if change.key_after is not None:
            yield from self._count(change, change.key_after, row, +1)
        if change.key is not None and change.key_after is not None and self.latest[change.key].row is None:
            self.latest[change.key].joins = self.latest[change.key_after].line

    def _whole(self, change: Change) -> Change:
        """Return a change with the row that it is of, if one of the images lacks columns.

        Rows that may be the one, and may not, are in doubt.
        """
        image = change.before
        if not image or self.columns is None:
            return change
        is_whole = len(image) >= len(self.columns.types)
        same = self.latest.get(change.key or "") if is_whole else None
        if same is not None and same.row is not None:
            return change
        found = self.latest.fitting(image)
        if is_whole and len(found) == 1:
            # Earlier images of this row lacked columns. Others that were equal to it may have other values there.
            whole = None if change.after is None else {**image, **change.after}
            key_after = None if whole is None else key_of_image(whole)
            return replace(change, key=found[0].key, key_after=key_after, before=found[0].row, after=whole)
        if len(found) != 1 or not _covers(found[0].row, image):
            doubt = TableEvent(change.place, Effect.OBSCURES, "image that lacks columns", change.binlog_file)
            for version in found:
                version.doubts = (*version.doubts, doubt)
            return change
        version = found[0]
        if version.row is not None and version.row.keys() == image.keys():
            return change
        before = {**(version.row or {}), **image}
        after = None if change.after is None else {**before, **change.after}
        return replace(
            change,
            key=version.key,
            key_after=None if after is None else key_of_image(after),
            before=before,
            after=after,
        )

    def _moves_one_row(self, change: Change) -> bool:
        """Return whether a change gives values that no other row has to the only row with the values before."""
        if change.key is None or change.key_after is None:
            return False
        previous, occupant = self.latest.get(change.key), self.latest.get(change.key_after)
        return previous is not None and previous.copies == 1 and (occupant is None or occupant.row is None)

    def _move(self, change: Change, row: Image | None) -> Iterator[Version]:
        assert change.key is not None and change.key_after is not None
        previous, occupant = self.latest.pop(change.key), self.latest.get(change.key_after)
        if occupant is not None:
            occupant.ended_by = change
            yield occupant
        version = self._version(previous, change, change.key_after, change.before, row)
        version.doubts = previous.doubts
        yield from self._replace(previous, version)

    def _count(self, change: Change, key: str, image: Image | None, step: int) -> Iterator[Version]:
        previous = self.latest.get(key)
        if previous is None and step < 0 and not self.others_are_absent:
            previous = Version(next(self.lines), 1, key, image, None, None, since=self.horizon)
            previous.doubts = self._hidden_by
        known = previous.copies if previous is not None else 0
        version = self._version(
            previous, change, key, image if known > 0 else None, image if known + step > 0 else None
        )
        version.copies = max(known + step, 0)
        version.defect = NOT_INSERTED if known + step < 0 and self.others_are_absent else None
        version.doubts = previous.doubts if previous is not None else self._hidden_by
        yield from self._replace(previous, version)

    # --- events that list no rows ---

    def _apply_events(self, until: Place | None) -> Iterator[Version]:
        while self.applied < len(self.events) and (until is None or self.events[self.applied].place < until):
            yield from self._apply(self.events[self.applied])
            self.applied += 1

    def _apply(self, event: TableEvent) -> Iterator[Version]:
        self.horizon = event
        self.hidden = hiding.after(self.hidden, event)
        if event.effect is Effect.ALTERS:
            yield from self._alter(event)
        elif event.effect is Effect.OBSCURES:
            self._doubt_others()
            for version in (*self.latest.values(), *self.lost):
                version.doubts = (*version.doubts, event)
        else:
            yield from self._remove_all(event)

    def _doubt_others(self) -> None:
        self.others_are_absent = False
        self.left.clear()

    def _remove_all(self, event: TableEvent) -> Iterator[Version]:
        self.others_are_absent = event.effect is Effect.EMPTIES
        self.left.clear()
        for version in list(self.latest.values()):
            if version.row is not None:
                yield from self._replace(version, _removed(version, event))
        for version in self.lost:
            version.ended_by = event
            yield from (version, _removed(version, event))
        self.lost.clear()
        if event.effect is Effect.REPLACES:
            yield from self.latest.values()
            self.latest.clear()

    def _alter(self, event: TableEvent) -> Iterator[Version]:
        """Give all rows the columns and keys that they have after an ALTER TABLE."""
        if not (self.latest or self.lost):
            return
        names = next((version.row for version in self.latest.values() if version.row is not None), {})
        found = self.alterations.of(event, self.columns, tuple(names), self.has_key)
        versions, lost = [*self.latest.values()], self.lost
        self.latest, self.lost = Latest(), []
        for version in versions:
            if version.row is not None:
                yield from self._alter_row(version, found, event)
            elif found.keeps_other_keys:
                self.latest[version.key] = version
            else:
                yield version
        for version in lost:
            yield from self._lose(version, found.row(version.row or {}), event)
        self.columns = found.after
        self.has_key = bool(found.after.key) if found.after is not None else self.has_key
        if self.lost:
            self.others_are_absent = False
        if self.lost or not found.keeps_other_keys:
            self.left.clear()

    def _alter_row(self, version: Version, found: Alteration, event: TableEvent) -> Iterator[Version]:
        assert version.row is not None
        row = found.row(version.row)
        key = version.key if found.keeps_key_of(version.row, row) else found.key(row)
        # Equal rows cannot have one primary key.
        if key is None or (version.copies > 1 and found.has_new_key):
            yield from self._lose(version, row, event)
        elif row == version.row and key == version.key:
            self.latest[key] = version
        else:
            version.ended_by = event
            yield version
            yield from self._merge(_altered(version, key, row, event))

    def _lose(self, version: Version, row: Image, event: TableEvent) -> Iterator[Version]:
        """Keep a row whose key is not known any more: later changes of it cannot be recognized."""
        version.ended_by = event
        yield version
        lost = _altered(version, version.key, row, event)
        lost.doubts = (*version.doubts, event)
        self.lost.append(lost)

    def _merge(self, version: Version) -> Iterator[Version]:
        """Add a row; rows of a table without a primary key may be equal afterwards."""
        equal = self.latest.get(version.key)
        if equal is not None:
            version.copies += equal.copies
            assert version.event is not None
            equal.ended_by = version.event
            gone = _removed(equal, version.event)
            gone.joins = version.line
            yield from (equal, gone)
        self.latest[version.key] = version


def _removed(version: Version, event: TableEvent) -> Version:
    return Version(version.line, version.number + 1, version.key, None, version.row, None, event, copies=0)


def _altered(version: Version, key: str, row: Image, event: TableEvent) -> Version:
    return Version(
        version.line,
        version.number + 1,
        key,
        row,
        version.row,
        None,
        event,
        doubts=version.doubts,
        copies=version.copies,
    )


def _linked(previous: Version | None, change: Change) -> tuple[Image, str | None, tuple[str, ...]]:
    """Return the row before a change as far as it is known, the defect of the chain, and the differing columns."""
    image = change.before or {}
    if previous is None or previous.row is None:
        return dict(image), NOT_INSERTED, ()
    known = previous.row
    differing = tuple(column for column, value in image.items() if column in known and known[column] != value)
    if differing:
        # Another write came between. It may also have changed columns that this image lacks.
        return dict(image), VALUES_DIFFER, differing
    return {**known, **image}, None, ()


def _remaining_doubts(previous: Version, change: Change) -> tuple[TableEvent, ...]:
    """Return the doubts that the image before a change does not refute. It refutes them if it has all columns."""
    return () if previous.row is not None and _covers(change.before, previous.row) else previous.doubts


def _covers(image: Image | None, row: Image) -> bool:
    return image is not None and image.keys() >= row.keys()


def _after(before: Image, change: Change, generated: Sequence[str], is_certain: bool) -> Image:
    """Return the row after a change: columns that its image lacks keep their values.

    MariaDB does not log generated columns in partial images, although the server has computed them again.
    """
    after = change.after or {}
    row = {**before, **after}
    if generated and any(name not in before or before[name] != value for name, value in after.items()):
        for column in generated:
            row.pop(column, None)
    for column in change.undecoded_columns:
        document = row.pop(column, None)
        changed = _changed_document(document, change, column) if document is not None and is_certain else None
        if changed is not None:
            row[column] = changed
    return row


def _changed_document(document: str, change: Change, column: str) -> str | None:
    """Return a JSON document after the changes in the log, or None if they do not fit the document."""
    from ingest.binlog.rows.json_diff import JsonDiffError, apply_changes, parse_change

    try:
        changes = [
            parse_change(one.operation, one.path, one.value) for one in change.json_changes if one.column_name == column
        ]
        # An update that leaves the document as it was has no changes.
        return apply_changes(document, changes)
    except JsonDiffError:
        return None
