"""Tables as a series of actions leaves them: columns in order, keys, character sets."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ingest.ddl.actions import Action, Column, Key
from ingest.ddl.column_types import TEXT_TYPES, bytes_each, text_type_for
from ingest.ddl.versioning import PERIOD

TableId = tuple[str, str]


class ShapeError(Exception):
    """An action does not fit what is known of its table; the message says why."""


@dataclass(slots=True)
class Shape:
    """A table.

    Attributes
    ----------
    columns
        In order.
    primary_key
        Names of its columns in the order of the key.
    keys
        Unique and foreign keys.
    character_set, collation
        Defaults of the table, None where nothing says them.
    """

    columns: list[Column] = field(default_factory=list)
    primary_key: tuple[str, ...] = ()
    keys: list[Key] = field(default_factory=list)
    character_set: str | None = None
    collation: str | None = None

    def index(self, name: str | None) -> int | None:
        """Where a column stands, None when there is none of the name."""
        wanted = (name or "").casefold()
        return next((at for at, one in enumerate(self.columns) if one.name.casefold() == wanted), None)

    def copy(self) -> "Shape":
        """The table that CREATE TABLE … LIKE makes of it: without its foreign keys."""
        keys = [key for key in self.keys if not key.is_foreign]
        return Shape([*self.columns], self.primary_key, keys, self.character_set, self.collation)


class Shapes:
    """Named tables, changed by one action after another.

    Parameters
    ----------
    character_set
        The server's default character set, None when it is not known.

    Attributes
    ----------
    tables
        By schema and name.
    """

    def __init__(self, character_set: str | None = None) -> None:
        self._default = (character_set, None)
        self.tables: dict[TableId, Shape] = {}
        self._character_sets: dict[str, tuple[str | None, str | None]] = {}
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

    def apply(self, action: Action) -> None:
        """Change the tables as an action does.

        Raises
        ------
        ShapeError
            It needs a table or column that is not known, or was not understood.
        """
        step = self._steps.get(action.action)
        if step is not None:
            step(action)

    # --- tables ---

    def _create_table(self, action: Action) -> None:
        table = _id(action)
        if table in self.tables:
            if action.is_conditional:
                return
            raise ShapeError(f"table {'.'.join(table)} is created, but is there already")
        character_set, collation = action.character_set, action.collation
        if character_set is None:
            character_set, collation = self._character_sets.get(table[0], self._default)
        shape = Shape([], action.key_columns, [*action.keys], character_set, collation)
        shape.columns = [_with_defaults(column, shape) for column in action.columns]
        self.tables[table] = shape

    def _create_like(self, action: Action) -> None:
        table, model = _id(action), (action.other_schema_name or "", action.other_table_name or "")
        if table in self.tables and action.is_conditional:
            return
        if model not in self.tables:
            raise ShapeError(f"table {'.'.join(table)} is made like {'.'.join(model)}, which is not known")
        self.tables[table] = self.tables[model].copy()

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
        self.tables[new] = shape
        for other in self.tables.values():
            other.keys = [
                replace(key, referenced_schema_name=new[0], referenced_table_name=new[1])
                if (key.referenced_schema_name, key.referenced_table_name) == table
                else key
                for key in other.keys
            ]

    def _create_database(self, action: Action) -> None:
        said = (action.character_set, action.collation) if action.character_set else self._default
        self._character_sets.setdefault(action.schema_name or "", said)

    def _drop_database(self, action: Action) -> None:
        self._character_sets.pop(action.schema_name or "", None)
        self.tables = {table: shape for table, shape in self.tables.items() if table[0] != action.schema_name}

    def _not_understood(self, action: Action) -> None:
        raise ShapeError(f"{action.statement_type} is not understood: {action.detail}")

    # --- columns ---

    def _table(self, action: Action) -> Shape | None:
        shape = self.tables.get(_id(action))
        if shape is None and not action.is_conditional:
            raise ShapeError(f"table {'.'.join(_id(action))} is changed, but is not known")
        return shape

    def _column(self, action: Action) -> tuple[Shape, int] | None:
        """The table and where the column stands that an action changes; None when it changes nothing."""
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
        shape.keys += action.keys

    def _drop_column(self, action: Action) -> None:
        if found := self._column(action):
            shape, at = found
            dropped = shape.columns.pop(at).name
            shape.primary_key = _without(shape.primary_key, dropped)
            keys = (replace(key, columns=_without(key.columns, dropped)) for key in shape.keys)
            shape.keys = [key for key in keys if key.columns]

    def _modify_column(self, action: Action) -> None:
        if found := self._column(action):
            shape, at = found
            old, column = shape.columns[at], _with_defaults(action.columns[0], shape)
            if old.name.casefold() in {name.casefold() for name in shape.primary_key}:
                column = replace(column, is_nullable=False)
            shape.columns[at] = column
            _rename_in_keys(shape, old.name, column.name)
            if action.place is not None:
                _place(shape, shape.columns.pop(at), action)
            shape.keys += action.keys

    def _rename_column(self, action: Action) -> None:
        if found := self._column(action):
            shape, at = found
            old, new = shape.columns[at].name, action.columns[0].name
            shape.columns[at] = replace(shape.columns[at], name=new)
            _rename_in_keys(shape, old, new)

    # --- keys and character sets ---

    def _add_primary_key(self, action: Action) -> None:
        if shape := self._table(action):
            places = [at for name in action.key_columns if (at := shape.index(name)) is not None]
            shape.primary_key = tuple(shape.columns[at].name for at in places)
            for at in places:
                shape.columns[at] = replace(shape.columns[at], is_nullable=False)

    def _drop_primary_key(self, action: Action) -> None:
        if shape := self._table(action):
            shape.primary_key = ()

    def _convert(self, action: Action) -> None:
        if shape := self._table(action):
            shape.character_set, shape.collation = action.character_set, action.collation
            shape.columns = [_converted(column, shape) for column in shape.columns]

    def _other(self, action: Action) -> None:
        if action.character_set is not None and action.table_name is None:
            self._character_sets[action.schema_name or ""] = (action.character_set, action.collation)
        shape = self.tables.get(_id(action))
        if shape is None:
            return
        if action.character_set is not None:
            shape.character_set, shape.collation = action.character_set, action.collation
        dropped = {name.casefold() for name in action.dropped_keys}
        shape.keys = [key for key in shape.keys if (key.name or "").casefold() not in dropped or key.name is None]
        shape.keys += action.keys


def _id(action: Action) -> TableId:
    return action.schema_name or "", action.table_name or ""


def _with_defaults(column: Column, shape: Shape) -> Column:
    """A column with the character set that it has from its table."""
    if column.data_type not in TEXT_TYPES or column.character_set is not None:
        return column
    return replace(column, character_set=shape.character_set, collation=shape.collation)


def _converted(column: Column, shape: Shape) -> Column:
    """A column in the table's new character set; a TEXT becomes one that has room for as many characters."""
    if column.data_type not in TEXT_TYPES:
        return column
    data_type = column.data_type
    if column.character_set is not None and shape.character_set is not None and "text" in data_type:
        grown = text_type_for(data_type, bytes_each(column.character_set), bytes_each(shape.character_set))
        column = replace(column, data_type=grown, column_type=(column.column_type or "").replace(data_type, grown, 1))
    return replace(column, character_set=shape.character_set, collation=shape.collation)


def _place(shape: Shape, column: Column, action: Action) -> None:
    if action.place == "first":
        shape.columns.insert(0, column)
    elif action.place == "after":
        at = shape.index(action.after_column)
        if at is None:
            raise ShapeError(f"table {'.'.join(_id(action))} has no column {action.after_column}")
        shape.columns.insert(at + 1, column)
    else:
        # The ends of a period that is not declared stay behind all others.
        at = len(shape.columns)
        while column not in PERIOD and at and shape.columns[at - 1] in PERIOD:
            at -= 1
        shape.columns.insert(at, column)


def _without(names: tuple[str, ...], dropped: str) -> tuple[str, ...]:
    return tuple(name for name in names if name.casefold() != dropped.casefold())


def _rename_in_keys(shape: Shape, old: str, new: str) -> None:
    def renamed(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new if name.casefold() == old.casefold() else name for name in names)

    shape.primary_key = renamed(shape.primary_key)
    shape.keys = [replace(key, columns=renamed(key.columns)) for key in shape.keys]
