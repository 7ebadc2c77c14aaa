"""One row through time, followed through changes of its key and of its table's name."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from ingest.ddl.actions import Column
from ingest.errors import UsageError
from ingest.masking.methods import HASH_DIGITS
from ingest.warehouse.tokens import TOKEN
from ingest.words import counted
from recover.selection.catalog import Column as OfVersion
from recover.selection.catalog import Kind
from recover.selection.comparison import MismatchError, canonical
from recover.selection.filters import key_parts, key_text
from recover.timeline.baselines import baseline_of
from recover.timeline.events import Change, Image, Place, Table
from recover.timeline.names import events_in, periods_of, with_last_name
from recover.timeline.rows import Version, versions
from recover.timeline.table_log import Rows, changes_of, columns_of, events_of, events_since, has_moved_keys

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

WHOLE_NUMBER: Final = re.compile(r"-?[0-9]+")
# A masked key; no integer of a server has as many digits.
_HASH: Final = re.compile(rf"[0-9a-f]{{{HASH_DIGITS}}}")
_WRITTEN_IN_SEVERAL_WAYS: Final = (Kind.NUMBER, Kind.YEAR, Kind.MOMENT, Kind.ADDRESS)


class UnknownRowError(UsageError):
    """The log contains no row with this key, or the key does not fit the table."""


class UnchangedRowError(UnknownRowError):
    """The key fits the table, but the log contains no change of a row with it."""


def history_of(connection: "DuckDBPyConnection", table: Table, key: str, until: Place | None = None) -> list[Version]:
    """Return the versions of all rows that had a key at some time, in their order.

    Parameters
    ----------
    connection
        It has the tables of `table_log.MARTS`.
    table
        The table.
    key
        Values of the primary key, as `pk_values` has them, or as `column=value`, joined by `|`.
    until
        Only changes that took effect before this place.

    Raises
    ------
    UnknownRowError
        The table has no primary key, the key does not fit, or the log has no change of the row.
    """
    names, key = asked_key(connection, table, key)
    periods = periods_of(connection, table)
    renamed = partial(with_last_name, periods)
    events = events_in(connection, periods, until)
    columns = {version: one for each in periods for version, one in columns_of(connection, each.table).items()}
    rows = Rows(renamed=renamed)
    if has_moved_keys(connection, table, events, columns, rows):
        # A statement gave rows other keys, so that only the whole table shows which changes are of one row.
        changes = changes_of(connection, table, until, rows, in_one_group=True)
        found = [*versions(changes, events, columns)]
        if lines := _lines_with(key, found) or _lines_with_values(names, key, found):
            return lines
    path = _Path(connection, table, until, renamed)
    path.follow(key)
    if not path.found and (unchanged := _unchanged(connection, table, key, until)):
        return unchanged
    if not path.found:
        raise UnchangedRowError(
            f"The log contains no change of row {key} in {table} that took effect"
            f"{'' if until is None else ' up to then'}.",
            hint=_nearest(connection, table, key),
        )
    changes = (change for change in path.changes(*sorted(path.keys)) if change.change_id in path.found)
    return _lines_with(key, versions(changes, events, columns))


def _lines_with(key: str, found: Iterable[Version]) -> list[Version]:
    """Return all versions of the rows that had a key at some time, in their order."""
    all_versions = list(found)
    lines = {version.line for version in all_versions if version.key == key}
    return sorted((one for one in all_versions if one.line in lines), key=_in_order)


def _lines_with_values(names: Sequence[str], key: str, found: Sequence[Version]) -> list[Version]:
    """Return all versions of the rows with these values in the columns of a key that the table had at another time."""
    lines = {version.line for version in found if version.row is not None and _values(names, version.row) == key}
    return sorted((one for one in found if one.line in lines), key=_in_order)


def _values(names: Sequence[str], row: Image) -> str | None:
    values = [row.get(name) for name in names]
    return None if None in values else key_text(value for value in values if value is not None)


def _unchanged(connection: "DuckDBPyConnection", table: Table, key: str, until: Place | None) -> list[Version]:
    """Return the versions of a row that the log never changed, from a baseline; none if no baseline has it."""
    baseline = baseline_of(connection, table, until)
    if baseline is None:
        return []
    events = events_since(connection, table, events_of(connection, table), baseline, until)
    rows = changes_of(connection, table, until, Rows([key], beginning=baseline))
    found = list(versions(rows, events, columns_of(connection, table)))
    for version in found:
        # It is not known when the row was inserted.
        version.change = None
    return sorted(found, key=_in_order)


def _in_order(version: Version) -> tuple[Place, int, int]:
    return (version.place or Place(-1, 0, 0), version.line, version.number)


@dataclass
class _Path:
    """The changes of the rows that had a key: those under the key itself, and those under other keys of its rows."""

    connection: "DuckDBPyConnection"
    table: Table
    until: Place | None
    renamed: Callable[[str], str]
    found: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    _read: dict[tuple[str, ...], list[Change]] = field(default_factory=dict)

    def follow(self, key: str) -> None:
        """Find the changes of all rows that had a key."""
        changes = self.changes(key)
        self._add(key, changes)
        open_ends: list[tuple[Change, bool]] = [
            *((change, True) for change in changes if change.key == key and _moves(change)),
            *((change, False) for change in changes if change.key_after == key and _moves(change)),
        ]
        while open_ends:
            change, is_forward = open_ends.pop()
            other = change.key_after if is_forward else change.key
            assert other is not None
            changes = self.changes(other)
            place = next(place for place, one in enumerate(changes) if one.change_id == change.change_id)
            part = _until_left(changes[place + 1 :], other) if is_forward else _since_came(changes[:place], other)
            self._add(other, part)
            open_ends += [(one, is_forward) for one in (part[-1:] if is_forward else part[:1]) if _moves(one)]

    def changes(self, *keys: str) -> list[Change]:
        """Return all changes under some keys; they are read once."""
        if keys not in self._read:
            self._read[keys] = [*changes_of(self.connection, self.table, self.until, Rows(keys, self.renamed))]
        return self._read[keys]

    def _add(self, key: str, changes: Sequence[Change]) -> None:
        self.keys.add(key)
        self.found.update(change.change_id for change in changes)


def _moves(change: Change) -> bool:
    return change.key is not None and change.key_after is not None and change.key != change.key_after


def _until_left(changes: Sequence[Change], key: str) -> Sequence[Change]:
    """Return the changes up to the first one after which no row has the key."""
    ends = (place for place, one in enumerate(changes) if one.key == key and one.key_after != key)
    return changes[: next(ends, len(changes)) + 1]


def _since_came(changes: Sequence[Change], key: str) -> Sequence[Change]:
    """Return the changes from the last one that gave a row the key."""
    starts = (place for place, one in reversed(list(enumerate(changes))) if one.key_after == key and one.key != key)
    return changes[next(starts, 0) :]


def key_of(connection: "DuckDBPyConnection", table: Table, text: str) -> str:
    """Return the `pk_values` that a person means. Raises like `asked_key`."""
    return asked_key(connection, table, text)[1]


def asked_key(connection: "DuckDBPyConnection", table: Table, text: str) -> tuple[tuple[str, ...], str]:
    """Return the columns of the key and the `pk_values` that a person means.

    Raises
    ------
    UnknownRowError
        The table has no primary key, or the text does not fit it.
    """
    keyed = [one for one in reversed(columns_of(connection, table).values()) if one.primary_key]
    if not keyed:
        raise UnknownRowError(
            f"{table} has no primary key, so its rows cannot be told apart.",
            hint='Look for a value: `binloom query --table ... --where "column = value"`.',
        )
    parts = key_parts(text)
    # The table may have had another key.
    columns = next((one for one in keyed if len(one.primary_key) == len(parts)), keyed[0])
    names = columns.primary_key
    if len(names) == 1 and len(parts) > 1:
        parts = [text]
    if len(parts) != len(names):
        raise UnknownRowError(
            f"The primary key of {table} has {counted(len(names), 'column')}, and {text!r} has"
            f" {counted(len(parts), 'value')}.",
            hint=f"Give {'|'.join(names)}, with | between the values.",
        )
    values = _in_order_of_key(parts, names)
    types = {column.name: column for column in columns.columns}
    values = [_key_value(value, types[name]) for value, name in zip(values, names, strict=True)]
    return tuple(names), key_text(values)


def _in_order_of_key(parts: Sequence[str], names: Sequence[str]) -> Sequence[str]:
    """Return the values of a key. Only if each part names a column, they are COLUMN=VALUE: a text may contain `=`."""
    pairs = [part.partition("=") for part in parts]
    named = {name.strip().lower(): value for name, _, value in pairs}
    lowered = [name.lower() for name in names]
    is_named = all(sign for _, sign, _ in pairs) and named.keys() == {*lowered}
    return [named[name] for name in lowered] if is_named else parts


def _key_value(value: str, column: Column) -> str:
    """Return a value of a key as the log has it; as it was given, if several texts of the log may mean it."""
    if _HASH.fullmatch(value) or TOKEN.fullmatch(value):
        return value
    name, types = column.name, (column.data_type, column.column_type, column.character_set)
    of_version = OfVersion(0, name, *types, is_nullable=False, is_primary_key=True)
    if of_version.kind not in _WRITTEN_IN_SEVERAL_WAYS:
        return value
    try:
        return canonical(value, of_version) or value
    except MismatchError as error:
        hint = f'Give {name}, or find the rows with `binloom query --table ... --where "{value}"`.'
        raise UnknownRowError(error.message, hint=hint if "=" in value else error.hint) from None


def _nearest(connection: "DuckDBPyConnection", table: Table, key: str) -> str:
    """Return which keys with changes are nearest to one without."""
    distance = (
        "abs(try_cast(pk_values as hugeint) - $key::hugeint)"
        if WHOLE_NUMBER.fullmatch(key)
        else "levenshtein(pk_values, $key)"
    )
    rows = connection.execute(
        f"""select distinct pk_values, {distance} as distance from binloom.row_changes
        where source_id = $source and schema_name = $schema and table_name = $table and pk_values is not null
            and pk_values != $key
        order by distance, pk_values limit 3""",
        {**table.parameters, "key": key},
    ).fetchall()
    return (
        f"The nearest keys are {', '.join(row[0] for row in rows)}." if rows else "The log has no changes of the table."
    )
