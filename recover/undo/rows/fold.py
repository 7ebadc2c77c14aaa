"""The changes of one row, folded: the row before the selected changes, after them, and now.

A row is followed through changes of its key. Each column is folded by itself: the selection and other transactions may
have changed different columns of one row, and then both can be kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from recover.undo.rows.literals import Text
from recover.undo.tables.table import Column, Table

UNKNOWN: Final = "\ufffd(unknown)"
"""The value of a column that the log does not contain: no server prints this text."""

Row = dict[str, Text]

_QUARTER_OF_AN_HOUR: Final = 900
_FARTHEST_TIME_ZONE: Final = 14 * 3600


@dataclass(frozen=True, slots=True)
class Change:
    """A row change of a table.

    Attributes
    ----------
    transaction
        Name of its transaction, for people.
    key, key_after
        Identity of the row before and after the change; the same text unless the change moves the row.
    before, after
        The images; None for an INSERT or a DELETE. A partial image lacks columns.
    seconds
        When its statement ran, since 1970; None if nothing needs it.
    """

    change_id: str
    transaction: str
    is_selected: bool
    event_type: str
    key: str
    key_after: str
    before: Row | None
    after: Row | None
    unknown: Sequence[str] = ()
    seconds: int | None = None

    def sets(self, table: Table, name: str, known: Mapping[str, Text]) -> bool:
        """Return whether it gives a column the value of its after image; `known` is the row before.

        A new value shows that it does. The server may also have set a column to the time that it had already.
        """
        assert self.after is not None
        value = self.after[name]
        if known.get(name, UNKNOWN) != value:
            return True
        return name in table.stamps and _is_time(table.by_name[name], value, self.seconds)


def _is_time(column: Column, value: Text, seconds: int | None) -> bool:
    """Return whether a value may be the time of a statement."""
    whole, _, fraction = (value or "").partition(".")
    if seconds is None or fraction.strip("0"):
        # No other statement runs in the same microsecond.
        return False
    try:
        distance = int(datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp()) - seconds
    except ValueError:
        return False
    # The text of a DATETIME is in the time zone of its session.
    is_offset = distance % _QUARTER_OF_AN_HOUR == 0 and abs(distance) <= _FARTHEST_TIME_ZONE
    return distance == 0 or (column.data_type == "datetime" and is_offset)


@dataclass(slots=True)
class History:
    """The changes of one row since the first selected change of its table.

    Attributes
    ----------
    row
        The row now; None if there is none.
    before
        Each column that the selection changed, with the value before its first selected change.
    after
        Each of these columns, with the value after its last selected change.
    existed, exists_after
        Whether there was a row before the selection first inserted or deleted it, and after it last did so; None if
        it did neither.
    others
        Each column that the selection changed and another transaction changed later, with these transactions.
    others_between
        Those of them that were followed by a selected change.
    times
        Each column that a server sets to the time and that another transaction set after the selection did: its last
        value of such a transaction. The row would have this value without the selection, too.
    other_existence, other_existence_between
        The same for the row as a whole: transactions that inserted or deleted it after a selected change.
    other_updates
        Transactions that updated the row after a selected change.
    last_transaction
        The last transaction that changed the row.
    broken
        Why the images do not fit together; empty if they do.
    """

    row: Row | None
    key: str
    before: Row = field(default_factory=dict)
    after: Row = field(default_factory=dict)
    first_key: Row = field(default_factory=dict)
    existed: bool | None = None
    exists_after: bool | None = None
    others: dict[str, list[str]] = field(default_factory=dict)
    others_between: set[str] = field(default_factory=set)
    times: Row = field(default_factory=dict)
    other_existence: list[str] = field(default_factory=list)
    other_existence_between: bool = False
    other_updates: list[str] = field(default_factory=list)
    changes: int = 0
    last_transaction: str = ""
    broken: str = ""

    @property
    def is_selected(self) -> bool:
        """Whether a selected change touched the row, also if it changed no value."""
        return self.changes > 0

    @property
    def row_before(self) -> Row | None:
        """The row as it would be now without the selected changes, if no other transaction touched what they did."""
        if self.existed is False:
            return None
        if self.row is None:
            return dict(self.before) if self.existed else None
        return {**self.row, **self.before, **{name: self.times[name] for name in self.times if name in self.before}}


def fold(table: Table, changes: Iterable[Change]) -> list[History]:
    """Return the histories of the rows that some changes of one table made, in the order of their first change.

    Parameters
    ----------
    changes
        All changes of these rows since the first selected one, in commit order.
    """
    rows = Rows(is_keyless=not table.row_key)
    folded: list[History] = []
    for change in changes:
        history = rows.find(change)
        if history is None:
            history = History(dict(change.before) if change.before is not None else None, change.key)
            folded.append(history)
        history.last_transaction = change.transaction
        _check_link(table, history, change)
        if change.is_selected:
            _add_selected(table, history, change)
        else:
            _add_other(table, history, change)
        displaced = rows.place(history, change)
        if displaced is not None and displaced.row is not None:
            displaced.broken = history.broken = _broken(change, "another row had this key at that time")
    return folded


class Rows:
    """The rows of a table by their keys. Rows of a table without a key are equal rows, and interchangeable."""

    def __init__(self, is_keyless: bool) -> None:
        self._is_keyless = is_keyless
        self._by_key: dict[str, list[History]] = {}

    def find(self, change: Change) -> History | None:
        """Return the history that a change continues."""
        found = self._by_key.get(change.key)
        if not found:
            return None
        wants_row = change.event_type != "INSERT"
        if not self._is_keyless:
            return found[-1]
        fitting = [history for history in found if (history.row is not None) == wants_row]
        # Among equal rows, take one that the selection touched: whatever another transaction then does is a conflict.
        return max(fitting, key=lambda history: history.changes, default=None)

    def place(self, history: History, change: Change) -> History | None:
        """Put a history at the key after a change, and return the one that loses this place."""
        if self._is_keyless:
            here = self._by_key.get(history.key)
            if here and any(one is history for one in here):
                self._by_key[history.key] = [one for one in here if one is not history]
            history.key = change.key_after
            self._by_key.setdefault(change.key_after, []).append(history)
            return None
        displaced = None
        if (here := self._by_key.get(change.key_after)) and here[-1] is not history:
            displaced = here[-1]
        if change.key_after != change.key:
            self._by_key.pop(change.key, None)
        history.key = change.key_after
        self._by_key[change.key_after] = [history]
        return displaced


def _check_link(table: Table, history: History, change: Change) -> None:
    """Compare a before image with the row as the log left it, and adopt the image."""
    if change.before is None:
        if history.row is not None:
            history.broken = history.broken or _broken(change, "it inserts a row that was already there")
            history.row = None
        return
    if history.row is None:
        history.broken = history.broken or _broken(change, "it changes a row that had been deleted")
        history.row = {}
    if history.row == change.before:
        return
    for name, value in change.before.items():
        known = history.row.get(name, UNKNOWN)
        if known == value:
            continue
        column = table.by_name.get(name)
        if known is not UNKNOWN and column is not None and not column.is_generated:
            history.broken = history.broken or _broken(change, f"its image before differs in column {name}")
        history.row[name] = value


def _broken(change: Change, reason: str) -> str:
    return f"the images do not link at change {change.change_id}: {reason}, so a change is missing in the log"


def _add_selected(table: Table, history: History, change: Change) -> None:
    if not history.first_key and history.row is not None:
        history.first_key = {name: history.row.get(name, UNKNOWN) for name in table.row_key or table.stored_names}
    history.changes += 1
    history.others_between |= history.others.keys()
    if history.other_existence:
        history.other_existence_between = True
    row = history.row
    if change.event_type == "INSERT":
        assert change.after is not None
        if history.existed is None:
            history.existed = False
        history.exists_after = True
        history.row = _with_unknown(dict(change.after), change)
        history.after = dict(history.row)
    elif change.event_type == "DELETE":
        assert row is not None
        if history.existed is None:
            history.existed = True
        if history.existed:
            for name, value in row.items():
                history.before.setdefault(name, value)
        history.exists_after = False
        history.row = None
        history.after = {}
    else:
        assert row is not None
        for name, value in _changed(table, row, change):
            if history.existed is not False:
                history.before.setdefault(name, row.get(name, UNKNOWN))
            history.after[name] = value
            row[name] = value


def _add_other(table: Table, history: History, change: Change) -> None:
    is_touched = history.is_selected
    row = history.row
    if change.event_type == "INSERT":
        assert change.after is not None
        history.row = _with_unknown(dict(change.after), change)
    elif change.event_type == "DELETE":
        history.row = None
    else:
        assert row is not None
        if is_touched:
            history.other_updates.append(change.transaction)
        for name, value in _changed(table, row, change):
            if is_touched and (name in history.before or history.existed is False):
                history.others.setdefault(name, []).append(change.transaction)
                if name in table.stamps:
                    history.times[name] = value
            row[name] = value
        return
    if is_touched:
        history.other_existence.append(change.transaction)


def _changed(table: Table, row: Row, change: Change) -> list[tuple[str, Text]]:
    assert change.after is not None
    changed = [(name, value) for name, value in change.after.items() if change.sets(table, name, row)]
    return [*changed, *((name, UNKNOWN) for name in change.unknown)]


def _with_unknown(row: Row, change: Change) -> Row:
    for name in change.unknown:
        row[name] = UNKNOWN
    return row


def rows_without_selection(table: Table, changes: Iterable[Change]) -> list[Row | None]:
    """Return what each row of `fold` would be if the selected changes had never happened.

    Other transactions are run again: an UPDATE sets the columns that it changed. This is the definition of an undo, and
    the way to it shares only the identity of rows with `fold`.
    """
    rows = Rows(is_keyless=not table.row_key)
    by_history: dict[int, int] = {}
    keep: list[History] = []
    wanted: list[Row | None] = []
    for change in changes:
        history = rows.find(change)
        if history is None:
            history = History(change.before, change.key)
            by_history[id(history)] = len(wanted)
            keep.append(history)
            wanted.append(dict(change.before) if change.before is not None else None)
        place = by_history[id(history)]
        row = wanted[place]
        known = {**(history.row or {}), **(change.before or {})}
        history.row = None if change.after is None else {**known, **change.after}
        history.changes += change.is_selected
        rows.place(history, change)
        if row is not None and change.before is not None:
            for name, value in change.before.items():
                row.setdefault(name, value)
        if change.is_selected:
            continue
        if change.after is None:
            wanted[place] = None
        elif change.before is None:
            wanted[place] = dict(change.after)
        elif row is not None:
            for name, value in change.after.items():
                if change.sets(table, name, known):
                    row[name] = value
            row.update(dict.fromkeys(change.unknown, UNKNOWN))
    return wanted
