"""Shapes of tables after a series of actions: columns in order, keys, character sets."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ingest.ddl.actions import COMES_BACK, CONVERTS_COLUMNS, MAY_CONVERT_COLUMNS, Action, Column, Default, Key
from ingest.ddl.column_types import LABELLED, TEXT_TYPES, bytes_each, resolved, text_type_for, with_character_set
from ingest.ddl.hashed_keys import chosen_hashes, ends_hashes, hashed_keys, is_hash, with_hashes
from ingest.ddl.key_names import key_after_rename, with_added, without_dropped
from ingest.ddl.labels import reinterpreted
from ingest.ddl.letter_case import lowered
from ingest.ddl.versioning import IS_ROW_END, PERIOD, with_row_end

TableId = tuple[str, str]


NOT_KNOWN: Default = (None, None)

GENERATED_KEY: Final = "my_row_id"
"""Name of the primary key that MySQL gives a table without one."""


class ShapeError(Exception):
    """An action does not fit the known shape of its table; the message tells why."""


@dataclass(slots=True)
class Shape:
    """A table.

    Attributes
    ----------
    columns
        Columns in table order.
    primary_key
        Names of its columns in the order of the key.
    keys
        Unique and foreign keys.
    character_set, collation
        Defaults of the table, None where unknown.
    has_all_keys
        Whether the table has no other unique or foreign keys.
    may_be_later
        Whether a snapshot without a position shows it: it may already have the keys that the next statements add.
    """

    columns: list[Column] = field(default_factory=list)
    primary_key: tuple[str, ...] = ()
    keys: list[Key] = field(default_factory=list)
    character_set: str | None = None
    collation: str | None = None
    has_all_keys: bool = True
    may_be_later: bool = False

    def index(self, name: str | None) -> int | None:
        """Return the index of a column, None when there is no column of this name."""
        wanted = lowered(name or "")
        return next((at for at, one in enumerate(self.columns) if lowered(one.name) == wanted), None)

    def copy(self) -> "Shape":
        """Return the table that CREATE TABLE … LIKE makes from this one: without its foreign keys."""
        return replace(self, columns=[*self.columns], keys=[key for key in self.keys if not key.is_foreign])

    def column_rows(self, table: TableId) -> Iterator[dict[str, Any]]:
        """Yield the columns as rows of `schema_columns`, with the fields that `SchemaHints.from_columns` reads.

        `character_set` is None for types without a character set, and for text whose character set is unknown.

        Parameters
        ----------
        table
            Schema and name of the table.
        """
        in_key = {lowered(name): ordinal for ordinal, name in enumerate(self.primary_key, 1)}
        for ordinal, column in enumerate(self.columns, 1):
            yield {
                "schema_name": table[0],
                "table_name": table[1],
                "column_name": column.name,
                "ordinal_position": ordinal,
                "primary_key_ordinal": in_key.get(lowered(column.name)),
                "data_type": column.data_type,
                "column_type": column.column_type,
                "character_set": column.character_set,
                "collation": column.collation,
                "is_nullable": column.is_nullable,
                "is_generated": column.is_generated,
                "extra": column.extra,
            }


class Shapes:
    """Named tables, changed by one action after another.

    Parameters
    ----------
    begins_empty
        Whether no unknown database exists at first. Otherwise a database that IF NOT EXISTS creates may have existed
        before, with an unknown default.

    Attributes
    ----------
    tables
        By schema and name.
    schemas
        Default character set and collation by schema, for schemas with known defaults.
    """

    def __init__(self, begins_empty: bool = False) -> None:
        self._begins_empty = begins_empty
        self.tables: dict[TableId, Shape] = {}
        self.schemas: dict[str, Default] = {}
        self._dropped: set[str] = set()
        self._steps: dict[str, Callable[[Action], None]] = {
            "create_table": self._create_table,
            "create_like": self._create_like,
            "create_select": self._create_select,
            "drop_table": self._drop_table,
            "rename_table": self._rename_table,
            "create_database": self._create_database,
            "drop_database": self._drop_database,
            "add_column": self._add_column,
            "drop_column": self._drop_column,
            "modify_column": self._modify_column,
            "rename_column": self._rename_column,
            "add_primary_key": self._add_primary_key,
            "drop_primary_key": self._drop_primary_key,
            "convert_character_set": self._convert,
            "other": self._other,
            "not_understood": self._not_understood,
        }

    def observe(
        self,
        columns: Iterable[Mapping[str, Any]],
        defaults: Iterable[Mapping[str, Any]] = (),
        keys: Mapping[TableId, Iterable[Key]] | None = None,
        *,
        has_place: bool = True,
    ) -> None:
        """Take over the tables of a schema snapshot.

        Each table of the snapshot replaces everything known of this table. Tables and schema defaults that the snapshot
        does not list stay as they are.

        Parameters
        ----------
        columns
            Rows of `schema_columns` of one snapshot, in any order.
        defaults
            Rows of `schema_defaults` of the same snapshot. The default of a table is unknown when it has no such row,
            or a row without a character set.
        keys
            All unique and foreign keys of the snapshot; None: those beside the primary key are unknown afterwards.
        has_place
            Whether the snapshot has a position.
        """
        found: dict[TableId, Default] = {}
        for row in defaults:
            default = row["character_set"], row["collation"]
            if row["table_name"] is None:
                self.schemas[row["schema_name"]] = default
            else:
                found[row["schema_name"], row["table_name"]] = default
        by_table: dict[TableId, list[Mapping[str, Any]]] = defaultdict(list)
        for row in columns:
            by_table[row["schema_name"], row["table_name"]].append(row)
        for table, rows in by_table.items():
            character_set, collation = found.get(table, NOT_KNOWN)
            in_order = sorted(rows, key=lambda row: row["ordinal_position"])
            in_key = sorted(
                (row["primary_key_ordinal"], row["column_name"]) for row in rows if row["primary_key_ordinal"]
            )
            self.tables[table] = Shape(
                [_observed(row) for row in in_order],
                tuple(name for _, name in in_key),
                [] if keys is None else [*keys.get(table, ())],
                character_set,
                collation,
                has_all_keys=keys is not None,
                may_be_later=not has_place,
            )

    def forget_schemas(self) -> None:
        """Forget the defaults of schemas, and which ones were dropped."""
        self.schemas.clear()
        self._dropped.clear()

    def apply(self, action: Action) -> None:
        """Apply an action to the tables.

        Raises
        ------
        ShapeError
            The action needs an unknown table or column, or was not understood.
        """
        if step := self._steps.get(action.action):
            shape = self.tables.get(_id(action))
            if shape is not None and ends_hashes(action):
                _without_chosen_hashes(shape)
            before = 0 if shape is None else hashed_keys(shape.columns, shape.keys)
            step(action)
            shape = self.tables.get(_id(action))
            # CREATE TABLE … LIKE copies the columns with their hashes.
            if shape is not None and action.action != "create_like":
                shape.columns = with_hashes(shape.columns, hashed_keys(shape.columns, shape.keys) - before)

    # --- tables ---

    def _create_table(self, action: Action) -> None:
        table = _id(action)
        if table in self.tables:
            if action.is_conditional:
                return
            raise ShapeError(f"table {'.'.join(table)} is created, but is there already")
        character_set, collation = resolved(action.character_set, action.collation, self._default_of(table[0]))
        shape = Shape([], action.key_columns, with_added((), action.keys, table[1]), character_set, collation)
        shape.columns = [_with_defaults(column, shape) for column in action.columns]
        self.tables[table] = shape

    def _create_like(self, action: Action) -> None:
        table, model = _id(action), (action.other_schema_name or "", action.other_table_name or "")
        if table in self.tables and action.is_conditional:
            return
        if model not in self.tables:
            raise ShapeError(f"table {'.'.join(table)} is made like {'.'.join(model)}, which is not known")
        self.tables[table] = _without_chosen_hashes(self.tables[model].copy())

    def _create_select(self, action: Action) -> None:
        raise ShapeError(f"the columns of {'.'.join(_id(action))} come from a query, and are not known")

    def _drop_table(self, action: Action) -> None:
        self.tables.pop(_id(action), None)

    def _rename_table(self, action: Action) -> None:
        table, new = _id(action), (action.other_schema_name or "", action.other_table_name or "")
        shape = self._table(action)
        if shape is None:
            return
        del self.tables[table]
        shape.keys = [key_after_rename(key, table[1], new[1]) for key in shape.keys]
        self.tables[new] = shape
        self._change_references(
            table, lambda key: replace(key, referenced_schema_name=new[0], referenced_table_name=new[1])
        )

    def _change_references(self, table: TableId, change: Callable[[Key], Key]) -> None:
        for other in self.tables.values():
            # Most tables have no keys: this runs for each statement that renames something.
            if other.keys:
                other.keys = [
                    change(key) if (key.referenced_schema_name, key.referenced_table_name) == table else key
                    for key in other.keys
                ]

    def _create_database(self, action: Action) -> None:
        schema = action.schema_name or ""
        # The servers log IF NOT EXISTS also for a database that already exists.
        is_new = schema not in self.schemas and (self._begins_empty or schema in self._dropped)
        if is_new or not action.is_conditional:
            self.schemas[schema] = resolved(action.character_set, action.collation, NOT_KNOWN)
            self._dropped.discard(schema)

    def _drop_database(self, action: Action) -> None:
        self.schemas.pop(action.schema_name or "", None)
        self._dropped.add(action.schema_name or "")
        self.tables = {table: shape for table, shape in self.tables.items() if table[0] != action.schema_name}

    def _not_understood(self, action: Action) -> None:
        raise ShapeError(f"{action.statement_type} is not understood: {action.detail}")

    def _default_of(self, schema: str | None) -> Default:
        return self.schemas.get(schema or "", NOT_KNOWN)

    # --- columns ---

    def _table(self, action: Action) -> Shape | None:
        shape = self.tables.get(_id(action))
        if shape is None and not action.is_conditional:
            raise ShapeError(f"table {'.'.join(_id(action))} is changed, but is not known")
        return shape

    def _column(self, action: Action) -> tuple[Shape, int] | None:
        """Return the table and the index of the column that an action changes; None when it changes nothing."""
        shape = self._table(action)
        at = shape.index(action.column_name) if shape else None
        if shape is None or at is None:
            if action.is_conditional:
                return None
            raise ShapeError(f"table {'.'.join(_id(action))} has no column {action.column_name}")
        return shape, at

    def _add_column(self, action: Action) -> None:
        shape = self._table(action)
        if shape is None or (action.is_conditional and shape.index(action.columns[0].name) is not None):
            return
        _place(shape, _with_defaults(action.columns[0], shape), action)
        shape.keys = with_added(shape.keys, action.keys, _id(action)[1])
        if action.detail == IS_ROW_END or action.columns[0] == PERIOD[1]:
            shape.primary_key = with_row_end(shape.primary_key, action.columns[0].name)

    def _drop_column(self, action: Action) -> None:
        if found := self._column(action):
            shape, at = found
            dropped = shape.columns.pop(at).name
            if action.detail != COMES_BACK:
                shape.primary_key = _without(shape.primary_key, dropped)
                shape.keys = [kept for key in shape.keys if (kept := key.without(dropped)).columns]

    def _modify_column(self, action: Action) -> None:
        if found := self._column(action):
            shape, at = found
            old = shape.columns[at]
            shape.columns[at] = column = _with_defaults(action.columns[0], shape, old.name)
            self._rename_in_keys(_id(action), old.name, column.name)
            if action.place is not None:
                _place(shape, shape.columns.pop(at), action)
            shape.keys = with_added(shape.keys, action.keys, _id(action)[1])

    def _rename_column(self, action: Action) -> None:
        if found := self._column(action):
            shape, at = found
            old, new = shape.columns[at].name, action.columns[0].name
            shape.columns[at] = replace(shape.columns[at], name=new)
            self._rename_in_keys(_id(action), old, new)

    def _rename_in_keys(self, table: TableId, old: str, new: str) -> None:
        def renamed(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(new if _is_same(name, old) else name for name in names)

        if old == new:
            return
        shape = self.tables[table]
        shape.primary_key = renamed(shape.primary_key)
        shape.keys = [
            replace(key, columns=tuple(new if _is_same(name, old) else name for name in key.columns))
            for key in shape.keys
        ]
        self._change_references(table, lambda key: replace(key, referenced_columns=renamed(key.referenced_columns)))

    # --- keys and character sets ---

    def _add_primary_key(self, action: Action) -> None:
        shape = self._table(action)
        # A condition of a column is also one of its key: MariaDB, sql/sql_table.cc, `handle_if_exists_options`.
        if shape and not (action.is_conditional and shape.primary_key):
            if lost := [name for name in action.key_columns if shape.index(name) is None]:
                # For example a period that another statement has made.
                raise ShapeError(f"table {'.'.join(_id(action))} has no column {lost[0]}")
            key = _set_not_null(shape, action.key_columns)
            shape.primary_key = with_row_end(key) if PERIOD[1] in shape.columns else key

    def _drop_primary_key(self, action: Action) -> None:
        if shape := self._table(action):
            shape.primary_key = ()

    def _convert(self, action: Action) -> None:
        if shape := self._table(action):
            default = self._default_of(action.other_schema_name or action.schema_name)
            before, columns = (shape.character_set, shape.collation), shape.columns
            shape.character_set, shape.collation = resolved(action.character_set, action.collation, default)
            shape.columns = [_converted(column, shape) for column in columns]
            if action.detail in (CONVERTS_COLUMNS, MAY_CONVERT_COLUMNS):
                is_known = all(one.character_set for one in columns if one.data_type in TEXT_TYPES)
                if shape.columns == columns or not is_known:
                    kept = before if is_known and action.detail == CONVERTS_COLUMNS else NOT_KNOWN
                    shape.character_set, shape.collation = kept

    def _other(self, action: Action) -> None:
        schema, says_default = action.schema_name or "", action.character_set or action.collation
        if says_default and action.table_name is None:
            is_reset = action.character_set == "default"
            kept = NOT_KNOWN if is_reset else self._default_of(schema)
            self.schemas[schema] = resolved(action.character_set, action.collation, kept)
        shape = self.tables.get(_id(action))
        if shape is None:
            return
        if says_default:
            is_reset = action.character_set == "default"
            kept = self._default_of(schema) if is_reset else (shape.character_set, shape.collation)
            shape.character_set, shape.collation = resolved(action.character_set, action.collation, kept)
        if action.detail == "rename index":
            shape.has_all_keys = False
        if action.column_name is not None and (at := shape.index(action.column_name)) is not None:
            shape.columns[at] = replace(shape.columns[at], is_invisible=action.detail == "set invisible")
        if action.detail == "add period":
            ends = set(map(lowered, action.key_columns))
            shape.columns = [one.as_end_of_period if lowered(one.name) in ends else one for one in shape.columns]
        if action.detail == "drop period":
            shape.columns = [replace(one, is_in_period=False) for one in shape.columns]
        shape.keys = without_dropped(shape.keys, action)
        there = shape.keys if shape.may_be_later else ()
        nameless = {replace(key, name=None, update_rule=None, delete_rule=None) for key in there}
        new = (key for key in action.keys if replace(key, update_rule=None, delete_rule=None) not in nameless)
        shape.keys = with_added(shape.keys, new, _id(action)[1])


def _without_chosen_hashes(shape: Shape) -> Shape:
    """Take away the hidden columns of keys that have a hash only because a statement asked for it."""
    chosen = chosen_hashes(shape.columns, shape.keys, has_all_keys=shape.has_all_keys)
    shape.keys = [replace(key, is_hash=False) for key in shape.keys]
    shape.columns = with_hashes(shape.columns, -chosen)
    return shape


def _set_not_null(shape: Shape, names: Iterable[str]) -> tuple[str, ...]:
    """Make columns NOT NULL; return their names as the table has them."""
    places = [at for name in names if (at := shape.index(name)) is not None]
    for at in places:
        shape.columns[at] = replace(shape.columns[at], is_nullable=False)
    return tuple(shape.columns[at].name for at in places)


def _id(action: Action) -> TableId:
    return action.schema_name or "", action.table_name or ""


def _observed(row: Mapping[str, Any]) -> Column:
    """Return the column of a row of `schema_columns`."""
    return Column(
        row["column_name"],
        row["data_type"],
        row["column_type"],
        row["character_set"],
        row["collation"],
        row["is_nullable"],
        row["is_generated"],
        row["extra"] or "",
        is_invisible="INVISIBLE" in (row["extra"] or "").upper(),
    )


def _with_defaults(column: Column, shape: Shape, old: str | None = None) -> Column:
    """Return a column with what its definition omits: the character set of its table, NOT NULL of a key or period."""
    if lowered(old or column.name) in map(lowered, shape.primary_key):
        column = replace(column, is_nullable=False)
    if old is not None and (at := shape.index(old)) is not None and shape.columns[at].is_in_period:
        column = column.as_end_of_period
    if column.data_type not in TEXT_TYPES:
        return column
    default = shape.character_set, shape.collation
    return with_character_set(column, *resolved(column.character_set, column.collation, default))


def _converted(column: Column, shape: Shape) -> Column:
    """Return a column in the table's new character set; a TEXT becomes a type with room for as many characters."""
    if column.data_type not in TEXT_TYPES or column.character_set == "binary":
        return column
    data_type = column.data_type
    if data_type in LABELLED:
        kept = reinterpreted(column.column_type or "", column.character_set, shape.character_set)
        column = replace(column, column_type=kept)
    if column.character_set is not None and shape.character_set is not None and "text" in data_type:
        grown = text_type_for(data_type, bytes_each(column.character_set), bytes_each(shape.character_set))
        column = replace(column, data_type=grown, column_type=(column.column_type or "").replace(data_type, grown, 1))
    return with_character_set(column, shape.character_set, shape.collation)


def _place(shape: Shape, column: Column, action: Action) -> None:
    if action.place == "first":
        shape.columns.insert(int(_has_generated_key(shape)), column)
    elif action.place == "after":
        at = shape.index(action.after_column)
        if at is None:
            raise ShapeError(f"table {'.'.join(_id(action))} has no column {action.after_column}")
        shape.columns.insert(at + 1, column)
    else:
        at = len(shape.columns)
        while at and _rank(shape.columns[at - 1]) > _rank(column):
            at -= 1
        shape.columns.insert(at, column)


def _has_generated_key(shape: Shape) -> bool:
    """Return whether the table has a primary key that MySQL generated: that stays the first column.

    Source: server, sql/sql_gipk.cc, `adjust_generated_invisible_primary_key_column_position`.
    """
    first = shape.columns[0] if shape.columns else None
    return (
        first is not None
        and (first.is_invisible, first.column_type) == (True, "bigint unsigned")
        and "auto_increment" in first.extra.lower()
        and [lowered(first.name)] == [GENERATED_KEY] == [lowered(name) for name in shape.primary_key]
    )


def _rank(column: Column) -> int:
    """Return the place of a column in the order of MariaDB: declared ones, the ends of a period, hashes."""
    return 2 if is_hash(column.name, column.extra) else int(column in PERIOD)


def _is_same(name: str | None, other: str) -> bool:
    return name is not None and lowered(name) == lowered(other)


def _without(names: tuple[str, ...], dropped: str) -> tuple[str, ...]:
    return tuple(name for name in names if lowered(name) != lowered(dropped))
