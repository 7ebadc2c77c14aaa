"""How an ALTER TABLE changes the rows that a table has: the log contains the statement, and not the rows.

`alteration` is the one function that tells it. Each column is kept (perhaps under another name, perhaps with another
type), added with one value for all rows, dropped, or unknown; and rows keep their keys, get others, or lose them.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from ingest.ddl.actions import Action, Column
from ingest.ddl.column_types import TEXT_TYPES
from ingest.ddl.letter_case import lowered
from ingest.ddl.shapes import Shape, ShapeError, Shapes
from ingest.ddl.sql_modes import NO_AUTO_VALUE_ON_ZERO, PAD_CHAR_TO_FULL_LENGTH
from recover.selection.filters import key_text
from recover.timeline.columns import Columns
from recover.timeline.conversions import UNKNOWN, Value, converted, initial, keeps_other_texts, keeps_text, padded
from recover.timeline.events import Effect, Image, TableEvent
from recover.timeline.readings import Reading

_OF_OTHER_TABLES: Final = ("rename_table", "create_like", "drop_table", "exchange_partition", "create_table")
_CONTROL: Final = re.compile(r"[\x00-\x1f]")


@dataclass(frozen=True)
class Kept:
    """A column that a table had before: its former name, and each change of its definition, before and after."""

    former: str
    steps: tuple[tuple[Column, Column], ...] = ()

    @property
    def keeps_text(self) -> bool:
        """Whether each value that is not NULL has the same text."""
        return all(keeps_text(*step) for step in self.steps)

    @property
    def keeps_other_texts(self) -> bool:
        """Whether each value that is neither NULL nor a zero has the same text."""
        return all(keeps_other_texts(*step) for step in self.steps)

    def value(self, value: str | None) -> Value:
        """Return the text of a value after the statement."""
        found: Value = value
        for before, after in self.steps:
            if found is UNKNOWN:
                break
            found = converted(found, before, after)
        return found


@dataclass(frozen=True)
class Added:
    """A column that a table did not have before, and its value in all rows."""

    value: Value


Origin = Kept | Added


@dataclass(frozen=True, eq=False)
class Alteration:
    """The effect of an ALTER TABLE on the rows of its table.

    Attributes
    ----------
    before, after
        The columns; `after` is None if the statement is not understood, or does not fit the columns before.
    origins
        For each column after the statement, in their order, where its values come from.
    has_key
        Whether rows had a primary key before. It is one of other columns if `before` does not name it.
    """

    before: Columns
    after: Columns | None
    origins: Mapping[str, Origin]
    has_key: bool

    @cached_property
    def new_names(self) -> dict[str, str]:
        """The present name of each column that the statement keeps, by its former name."""
        return {origin.former: name for name, origin in self.origins.items() if isinstance(origin, Kept)}

    @cached_property
    def changes_nothing(self) -> bool:
        """Whether each row has the same columns with the same texts afterwards."""
        return (
            self.after is not None
            and len(self.origins) == len(self.before.columns)
            and all(self._is_same(name) for name in self.origins)
        )

    def _is_same(self, name: str) -> bool:
        origin = self.origins[name]
        # A NULL becomes a value if its column becomes NOT NULL.
        return isinstance(origin, Kept) and origin.former == name and not origin.steps

    @cached_property
    def keeps_keys(self) -> bool:
        """Whether each row has the same key afterwards, as `pk_values` has it."""
        kept = [origin for origin in self._of_key if isinstance(origin, Kept)]
        return self.keeps_other_keys and all(origin.keeps_text for origin in kept)

    @property
    def _of_key(self) -> list[Origin]:
        return [] if self.after is None else [self.origins[name] for name in self.after.key]

    @cached_property
    def keeps_other_keys(self) -> bool:
        """Whether each row without a zero in its key has the same key afterwards."""
        if self.after is None:
            return False
        if not self.has_key:
            return not self.after.key and self.changes_nothing
        if not self.before.key:
            # A key of unknown columns.
            return self._leaves_all_columns
        kept = [one for one in self._of_key if isinstance(one, Kept) and one.keeps_other_texts]
        return [one.former for one in kept] == [*self.before.key]

    def keeps_key_of(self, before: Image, after: Image) -> bool:
        """Return whether a row has the same key after the statement, as far as it is known before and after."""
        if not self.keeps_other_keys:
            return False
        kept = [one.former for one in self._of_key if isinstance(one, Kept)]
        return self.keeps_keys or all(self.new_names[name] in after for name in kept if name in before)

    @property
    def has_new_key(self) -> bool:
        """Whether the statement gives a primary key to a table that had none."""
        return not self.has_key and self.after is not None and bool(self.after.key)

    @property
    def _leaves_all_columns(self) -> bool:
        kept = [one for one in self.origins.values() if isinstance(one, Kept)]
        return len(kept) == len(self.before.columns) and not any(one.steps for one in kept) and not self.after.key  # type: ignore[union-attr]

    def row(self, row: Image) -> Image:
        """Return what is known of a row after the statement. A column without an entry is unknown."""
        found: Image = {}
        depends = self._may_depend if self._changes_texts(row) else frozenset()
        for name, origin in self.origins.items():
            value = origin.value if isinstance(origin, Added) else self._kept(origin, row)
            if value is not UNKNOWN and name not in depends:
                found[name] = value
        return found

    def _kept(self, origin: Kept, row: Image) -> Value:
        return origin.value(row[origin.former]) if origin.former in row else UNKNOWN

    def _changes_texts(self, row: Image) -> bool:
        return any(
            self._kept(origin, row) != row[origin.former]
            for origin in self.origins.values()
            if isinstance(origin, Kept) and origin.steps and origin.former in row
        )

    @cached_property
    def _may_depend(self) -> frozenset[str]:
        """The columns that the server may have computed again from others."""
        before = {column.name: column for column in self.before.columns}
        key = self.after.key if self.after is not None else ()
        return frozenset(
            name
            for name, origin in self.origins.items()
            if isinstance(origin, Kept)
            and (
                before[origin.former].is_generated
                or not (self.before.are_generated_known or origin.steps or name in key)
            )
        )

    def key(self, row: Image) -> str | None:
        """Return the key of a row after the statement, from what is known of it; None if it is unknown.

        Rows of a table without a primary key are recognized by all of their values.
        """
        names = [*self.origins] if self.after is None or not self.after.key else self.after.key
        if self.after is None or any(name not in row for name in names):
            return None
        if not self.after.key:
            return key_of_image(row)
        values = [row[name] for name in names]
        return key_text(value for value in values if value is not None) if None not in values else None


def alteration(
    readings: Sequence[Reading],
    before: Columns | None,
    names: Iterable[str] = (),
    has_key: bool | None = None,
    known: Iterable[Columns] = (),
) -> Alteration:
    """Return the effect of an ALTER TABLE on the rows of its table.

    Parameters
    ----------
    readings
        The statement, as `readings_of` returns it. What its readings do not agree on is unknown.
    before
        The columns of the table before; None if they are unknown.
    names
        Columns that the table has at least, if they are unknown.
    has_key
        Whether the table has a primary key; None: as `before` shows.
    known
        Columns that the table has at some time. They have character sets that the statement takes from the table.
    """
    if before is None:
        before = Columns(tuple(map(Column, {*names} | {*_named(readings)})))
    found = [_read(reading, before, bool(before.key) if has_key is None else has_key) for reading in readings]
    if not found or any(one is None for one in found):
        return Alteration(before, None, {}, bool(before.key) if has_key is None else has_key)
    first, *others = [one for one in found if one is not None]
    for other in others:
        first = _agreed(first, other)
    return _with_character_sets(first, known)


def _with_character_sets(found: Alteration, known: Iterable[Columns]) -> Alteration:
    """Return an alteration with the character sets that known columns have, if only these tell them."""
    if found.after is None or all(one.character_set or one.data_type not in TEXT_TYPES for one in found.after.columns):
        return found
    equal = [one.columns for one in known if _shape(one) == _shape(found.after)]
    sets = [{column.character_set for column in columns} for columns in zip(*equal, strict=True)]
    if not sets:
        return found
    columns = [
        replace(column, character_set=next(iter(one))) if column.character_set is None and len(one) == 1 else column
        for column, one in zip(found.after.columns, sets, strict=True)
    ]
    origins = {column.name: _ending_with(column, found.origins[column.name]) for column in columns}
    return replace(found, after=replace(found.after, columns=tuple(columns)), origins=origins)


def _shape(columns: Columns) -> list[tuple[str, str]]:
    return [(lowered(name), column_type) for name, column_type in columns.types.items()]


def _ending_with(column: Column, origin: Origin) -> Origin:
    if not isinstance(origin, Kept) or not origin.steps:
        return origin
    *steps, (before, last) = origin.steps
    return replace(origin, steps=(*steps, (before, replace(last, character_set=column.character_set))))


@dataclass
class Alterations:
    """The effects of ALTER TABLE statements; each is read once for all rows of a table."""

    known: Sequence[Columns] = ()
    _found: dict[tuple[TableEvent, Columns | None, tuple[str, ...], bool], Alteration] = field(default_factory=dict)

    def of(self, event: TableEvent, before: Columns | None, names: tuple[str, ...], has_key: bool) -> Alteration:
        """Return the effect of a statement; see `alteration`."""
        asked = event, before, names if before is None else (), has_key
        if asked not in self._found:
            self._found[asked] = alteration(event.readings, before, names, has_key, self.known)
        return self._found[asked]


def moves_keys(events: Iterable[TableEvent], versions: Iterable[Columns], *, with_zeros: bool = True) -> bool:
    """Return whether a statement may give rows of a table other keys, or lose them.

    Parameters
    ----------
    events
        Events of the table.
    versions
        All columns that it has had.
    with_zeros
        Whether rows may have a zero in their key.
    """
    known = [*versions]
    return any(_moves_keys(event, known, with_zeros) for event in events if event.effect is Effect.ALTERS)


def _moves_keys(event: TableEvent, versions: Sequence[Columns], with_zeros: bool) -> bool:
    fitting = [one for one in (alteration(event.readings, before) for before in versions) if one.after is not None]
    return not fitting or not all(one.keeps_keys if with_zeros else one.keeps_other_keys for one in fitting)


def _agreed(one: Alteration, other: Alteration) -> Alteration:
    """Return the alteration that two readings of a statement agree on."""
    if (
        one.after is None
        or other.after is None
        or [*one.origins] != [*other.origins]
        or one.after.key != other.after.key
    ):
        return replace(one, after=None, origins={})
    origins = {
        name: origin if origin == other.origins[name] else _doubtful(origin) for name, origin in one.origins.items()
    }
    return replace(one, origins=origins)


def _doubtful(origin: Origin) -> Origin:
    if isinstance(origin, Added):
        return Added(UNKNOWN)
    nothing = Column(origin.former)
    return Kept(origin.former, (*origin.steps, (nothing, nothing)))


def _named(readings: Sequence[Reading]) -> Iterable[str]:
    """Yield the columns that a statement needs."""
    for step in readings[0] if readings else ():
        yield from (name for name in (step.column_name, step.after_column) if name is not None)


def _read(reading: Reading, before: Columns, has_key: bool) -> Alteration | None:
    """Return the effect of one reading of a statement; None if it does not fit the columns."""
    steps = [step for step in reading if step.action not in _OF_OTHER_TABLES]
    if any(step.action == "not_understood" for step in steps):
        return None
    if not steps:
        return Alteration(before, before, {column.name: Kept(column.name) for column in before.columns}, has_key)
    shapes = _Followed(steps[0], before)
    try:
        for step in steps:
            shapes.apply(step)
    except ShapeError:
        return None
    after = Columns(tuple(shapes.shape.columns), shapes.shape.primary_key, before.are_generated_known)
    origins = {column.name: shapes.origins[lowered(column.name)] for column in after.columns}
    return Alteration(before, after, origins, has_key)


@dataclass
class _Followed:
    """The columns of a table while the steps of a statement change them, and where their values come from."""

    first: Action
    before: Columns
    origins: dict[str, Origin] = field(init=False)

    def __post_init__(self) -> None:
        self._shapes = Shapes()
        self._name = (self.first.schema_name or "", self.first.table_name or "")
        self._shapes.tables[self._name] = Shape([*self.before.columns], self.before.primary_key)
        self.origins = {lowered(column.name): Kept(column.name) for column in self.before.columns}

    @property
    def shape(self) -> Shape:
        return self._shapes.tables[self._name]

    def apply(self, step: Action) -> None:
        had = {lowered(column.name): column for column in self.shape.columns}
        self._shapes.apply(step)
        renamed = {}
        if step.action in ("modify_column", "rename_column") and lowered(step.column_name or "") in had:
            renamed = {lowered(step.columns[0].name): lowered(step.column_name or "")}
        origins: dict[str, Origin] = {}
        for column in self.shape.columns:
            name = lowered(column.name)
            former = renamed.get(name, name)
            if former not in had:
                origins[name] = Added(initial(column))
                continue
            origin = self.origins[former]
            is_modified = step.action == "modify_column" and former == lowered(step.column_name or "")
            if is_modified and column.is_generated:
                # The server computes it again, and its expression may be another.
                origins[name] = Added(UNKNOWN)
                continue
            is_changed = replace(had[former], name=column.name) != column
            if is_changed and isinstance(origin, Kept):
                origin = replace(origin, steps=(*origin.steps, *_steps(had[former], column, step)))
            origins[name] = origin
        self.origins = origins


def _steps(before: Column, after: Column, step: Action) -> Iterable[tuple[Column, Column]]:
    """Yield the changes that a column goes through in the SQL mode of the statement."""
    modes = (step.detail or "").split()
    if PAD_CHAR_TO_FULL_LENGTH in modes and before.data_type == "char" and after.data_type != "char":
        yield before, padded(before)
        before = replace(padded(before), extra=before.extra)
    # Zeros stay in this mode, as they do in a column that was AUTO_INCREMENT before.
    yield replace(before, extra=after.extra) if NO_AUTO_VALUE_ON_ZERO in modes else before, after


def key_of_image(row: Image) -> str:
    """Return the key of a row without a primary key: all of its values, as DuckDB writes them."""
    entries = (f'{{"key":{_json(name)},"value":{_json(value)}}}' for name, value in sorted(row.items()))
    return f"[{','.join(entries)}]"


def _json(text: str | None) -> str:
    """Return a text as DuckDB writes it in JSON: with upper-case digits for control characters."""
    if text is None or not _CONTROL.search(text):
        return json.dumps(text, ensure_ascii=False)
    parts = (json.dumps(one, ensure_ascii=False)[1:-1] for one in text)
    return '"' + "".join(f"\\u{part[2:].upper()}" if part.startswith("\\u") else part for part in parts) + '"'
