"""ALTER TABLE as actions, in an order that has the same effect as the server's own.

The server drops columns first. Then it changes the columns that keep their position. Then it adds and moves the
others in the order of the statement. A new default character set already applies to these columns, wherever the
statement has it. Keys change last: ADD PRIMARY KEY uses the new names of columns. Renaming the table comes at the end.

Sources: server, sql/sql_table.cc, `mysql_prepare_alter_table`, sql/sql_yacc.yy, `alter_list_item`; MariaDB the same.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ingest.ddl.actions import CONVERTS_COLUMNS, MAY_CONVERT_COLUMNS, Action, Column, Default
from ingest.ddl.column_order import behind_generated_key, coming_back, without_clashes, without_columns_of_before
from ingest.ddl.column_types import (
    LABELLED,
    TEXT_TYPES,
    Dialect,
    character_set_of,
    read_character_set,
    read_collation,
    resolved,
    with_character_set,
)
from ingest.ddl.definitions import (
    COUNTER,
    Definition,
    Elements,
    is_key,
    is_partitioning,
    read_column,
    read_definition,
    read_elements,
    read_key,
    stamped,
    with_columns_of_periods,
)
from ingest.ddl.hashed_keys import with_hashes_apart
from ingest.ddl.letter_case import lowered
from ingest.ddl.names import Names
from ingest.ddl.sql_modes import modes_of_values
from ingest.ddl.table_options import OPTIONS, read_option
from ingest.ddl.tokens import Cursor
from ingest.ddl.versioning import IS_ROW_END, PERIOD

ActionOf = Callable[..., Action]

_STANDALONE: Final = (
    *("FORCE", "NOWAIT", "ENABLE KEYS", "DISABLE KEYS", "DISCARD TABLESPACE", "IMPORT TABLESPACE", "SECONDARY_LOAD"),
    *("SECONDARY_UNLOAD", "REMOVE PARTITIONING", "UPGRADE PARTITIONING", "WITH VALIDATION", "WITHOUT VALIDATION"),
    "ONLINE",
)
_PARTITION_VERBS: Final = (
    *("COALESCE", "REORGANIZE", "ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR", "DISCARD", "IMPORT"),
    *("SECONDARY_LOAD", "SECONDARY_UNLOAD"),
)

_CONVERSIONS: Final = {True: CONVERTS_COLUMNS, None: MAY_CONVERT_COLUMNS, False: None}


def read_alter_table(cursor: Cursor, dialect: Dialect, names: Names, action: ActionOf) -> list[Action]:
    """Read the parts of an ALTER TABLE, behind the table's name.

    Parameters
    ----------
    cursor
        At the token behind the table's name.
    dialect, names
        Dialect and name reader of the statement.
    action
        Makes an action on the table.

    Raises
    ------
    NotUnderstoodError
        A part of the statement is unknown.
    """
    reader = _Parts(cursor, dialect, names, action)
    while not cursor.is_at_end:
        reader.parts += cursor.word() != "LOCK"
        reader.read_part()
        # Table options may follow each other without a comma, and so may operations on partitions.
        cursor.take_sign(",")
    return reader.in_order()


def _turn_of_keys(action: Action) -> int:
    """Return the turn of an action among others, wherever the statement has it.

    A key may get the name of a dropped one. But the number of a foreign key without a name comes behind those of all
    that were there before.
    """
    if any(key.is_foreign and key.name is None for key in action.keys):
        return 0
    return 1 if action.dropped_keys else 2


class _Parts:
    """Reads the parts of the statement, and groups them by when they take effect."""

    def __init__(self, cursor: Cursor, dialect: Dialect, names: Names, action: ActionOf) -> None:
        self._cursor = cursor
        self._dialect = dialect
        self._names = names
        self._action = action
        self._dropped: list[Action] = []
        self._dropped_periods: list[Action] = []
        self._changed: list[Action] = []
        self._placed: list[Action] = []
        self._keys: list[Action] = []
        self._defaults: list[Action] = []
        self._converted_to: Default = (None, None)
        self._others: list[Action] = []
        self._renamed: list[Action] = []
        self._adds_versioning = self._declares_period = False
        self._periods: dict[str, tuple[str, ...]] = {}
        # By column, as the statement has them: a column that it converts never has another character set.
        self._labels: dict[str, str] = {}
        self.parts = 0

    def in_order(self) -> list[Action]:
        """Return the actions, in an order that gives the result of the statement."""
        others = [*self._dropped, *self._changed]
        placed = behind_generated_key(without_columns_of_before(self._placed, others, self._cursor.not_understood))
        columns = without_clashes([*self._changed, *placed, *self._added_period()], self._action)
        columns = [replace(one, columns=tuple(map(self._converted, one.columns))) for one in columns]
        has_keys = any(one.keys for one in self._others)
        others, hashes = with_hashes_apart(sorted(self._others, key=_turn_of_keys) if has_keys else self._others)
        # MariaDB converts the columns, and gives the table another default if the statement has one.
        is_last = self._dialect.is_mariadb and self._converted_to[0] is not None
        first, last = ([], self._defaults) if is_last else (self._defaults, [])
        dropped = [*self._dropped_periods, *coming_back(self._dropped, columns)]
        found = [*first, *dropped, *columns, *self._added_keys(), *others, *last, *hashes, *self._renamed]
        if self.parts == 1 and found and found[0].action == "convert_character_set":
            found = [replace(found[0], detail=_CONVERSIONS[self._dialect.skips_a_conversion])]
        return found or [self._action("other", detail="nothing")]

    def _added_keys(self) -> list[Action]:
        """Return the primary key that the statement adds, if it is sure to do so or depends on the table alone.

        MariaDB adds none if there is one before the statement, also if the statement drops that.
        """
        keys = [replace(one, key_columns=with_columns_of_periods(one.key_columns, self._periods)) for one in self._keys]
        certain = [key for key in keys if not key.is_conditional]
        if len(certain) == len(keys):
            return certain
        dropped = {(one.action, one.is_conditional) for one in self._dropped}
        if ("drop_primary_key", False) in dropped:
            return certain
        if dropped:
            raise self._cursor.not_understood("a primary key that does not depend on what is dropped")
        return keys

    def _converted(self, column: Column) -> Column:
        """Return a column that the statement defines, in the character set that the statement converts the table to."""
        character_set, collation = self._converted_to
        if character_set is None or column.data_type not in TEXT_TYPES or column.character_set == "binary":
            return column
        column = replace(column, column_type=self._labels.get(column.name, column.column_type))
        return with_character_set(column, *resolved(character_set, collation, self._converted_to))

    def read_part(self) -> None:
        """Read one part."""
        cursor = self._cursor
        match cursor.word():
            case "ADD":
                cursor.at += 1
                self._add()
            case "DROP":
                cursor.at += 1
                self._drop()
            case "MODIFY":
                cursor.at += 1
                is_conditional = self._skip_column()
                name = cursor.column()
                self._change(name, name, is_conditional)
            case "CHANGE":
                cursor.at += 1
                is_conditional = self._skip_column()
                name = cursor.column()
                self._change(name, cursor.column(), is_conditional)
            case "RENAME":
                cursor.at += 1
                self._rename()
            case "ALTER":
                cursor.at += 1
                self._alter()
            case "CONVERT":
                cursor.at += 1
                self._convert()
            case "ORDER":
                self._order_by()
            case "TRUNCATE":
                cursor.at += 1
                cursor.expect("PARTITION")
                self._others.append(self._action("truncate_partition", detail=self._partitions()))
            case "EXCHANGE":
                cursor.at += 1
                self._exchange_partition()
            case "PARTITION":
                cursor.at += 1
                cursor.expect("BY")
                self._other("partition by")
                cursor.skip_until(lambda at: False)
            case _:
                self._option()

    def _other(self, detail: str, **facts: object) -> None:
        self._others.append(self._action("other", detail=detail, **facts))

    def _skip_column(self) -> bool:
        """Skip COLUMN and a condition; return whether there was a condition."""
        self._cursor.take_words("COLUMN")
        return self._condition()

    def _condition(self) -> bool:
        return self._cursor.take_words("IF", "EXISTS") or self._cursor.take_words("IF", "NOT", "EXISTS")

    def _alter(self) -> None:
        """Read what changes no values: the default or visibility of a column, the visibility of an index, a check."""
        cursor = self._cursor
        detail, name = f"alter {cursor.word().lower()}".rstrip(), None
        if cursor.word() not in ("INDEX", "CHECK", "CONSTRAINT"):
            cursor.take_words("COLUMN")
            name = cursor.column()
            word = cursor.take_words("SET") and cursor.take_one_of("VISIBLE", "INVISIBLE")
            detail, name = (f"set {word.lower()}", name) if word else (detail, None)
        self._other(detail, column_name=name)
        cursor.skip_until(lambda at: at.is_sign(","))

    # --- ADD ---

    def _add(self) -> None:
        cursor = self._cursor
        if cursor.take_words("SYSTEM", "VERSIONING"):
            self._adds_versioning = True
        elif cursor.is_words("PARTITION") and not cursor.is_words("PARTITION", "BY"):
            cursor.at += 1
            self._other("add partition")
            cursor.skip_until(lambda at: at.is_sign(","))
        elif is_key(cursor):
            elements = Elements()
            what = read_key(cursor, elements, self._dialect, self._names.table)
            self._add_elements(elements, f"add {what}")
        else:
            is_conditional = self._skip_column()
            if cursor.is_sign("("):
                elements = read_elements(cursor, self._dialect, self._names.table)
                self._add_elements(elements, "add index", is_conditional=is_conditional)
            else:
                self._add_column(read_column(cursor, self._dialect, self._names.table), is_conditional)

    def _added_period(self) -> list[Action]:
        """Return the columns that MariaDB adds behind all others, unless the statement declares its own."""
        if not self._adds_versioning or self._declares_period:
            return []
        return [
            self._action("add_column", columns=(column,), is_conditional=True, detail="system versioning")
            for column in PERIOD
        ]

    def _add_elements(self, elements: Elements, detail: str, *, is_conditional: bool = False) -> None:
        for definition in elements.definitions:
            self._add_column(definition, is_conditional)
        if elements.primary_key:
            self._add_primary_key(elements.primary_key, is_conditional=elements.is_key_conditional)
        self._periods |= elements.periods
        if elements.periods:
            self._other("add period", key_columns=elements.period)
        if elements.keys or not (elements.definitions or elements.primary_key or elements.periods):
            self._other(detail, keys=elements.keys_of_elements)

    def _add_column(self, definition: Definition, is_conditional: bool) -> None:
        column = definition.column
        self._declares_period |= definition.is_period
        self._placed.append(
            self._action(
                "add_column",
                columns=(self._column(definition),),
                place=definition.place,
                after_column=definition.after_column,
                is_conditional=is_conditional,
                keys=tuple(replace(key, is_conditional=is_conditional) for key in definition.keys),
                detail=IS_ROW_END if definition.is_row_end else None,
            )
        )
        if definition.is_primary_key:
            self._add_primary_key((column.name,), is_conditional=is_conditional)

    def _add_primary_key(self, columns: tuple[str, ...], *, is_conditional: bool) -> None:
        self._keys.append(self._action("add_primary_key", key_columns=columns, is_conditional=is_conditional))

    def _column(self, definition: Definition) -> Column:
        if definition.data_type.name in LABELLED:
            self._labels[definition.column.name] = definition.data_type.column_type
        return definition.in_table(None, self._dialect, is_stamped=stamped([definition]) is not None)

    # --- DROP ---

    def _drop(self) -> None:
        cursor = self._cursor
        if cursor.take_words("SYSTEM", "VERSIONING"):
            for column in PERIOD:
                self._dropped.append(
                    self._action(
                        "drop_column", column_name=column.name, is_conditional=True, detail="system versioning"
                    )
                )
        elif cursor.is_words("PERIOD", "FOR") or cursor.is_words("PERIOD", "IF"):
            cursor.take_words("PERIOD")
            self._condition()
            cursor.expect("FOR")
            cursor.name()
            self._dropped_periods.append(self._action("other", detail="drop period"))
        elif cursor.take_words("PARTITION"):
            self._condition()
            self._others.append(self._action("drop_partition", detail=self._partitions()))
        elif cursor.take_words("PRIMARY", "KEY"):
            self._drop_key("PRIMARY", "key", False)
        elif cursor.take_words("FOREIGN", "KEY"):
            is_conditional = self._condition()
            self._drop_key(cursor.name(), "foreign key", is_conditional)
        elif cursor.word() in ("INDEX", "KEY", "CONSTRAINT", "CHECK"):
            what = cursor.name().lower()
            is_conditional = self._condition()
            self._drop_key(cursor.name(), what, is_conditional)
        else:
            is_conditional = self._skip_column()
            self._dropped.append(
                self._action("drop_column", column_name=cursor.column(), is_conditional=is_conditional)
            )
        cursor.take_one_of("RESTRICT", "CASCADE")

    def _drop_key(self, name: str, what: str, is_conditional: bool) -> None:
        if lowered(name) == "primary" and what != "foreign key":
            self._dropped.append(self._action("drop_primary_key", is_conditional=is_conditional))
        else:
            self._other(f"drop {what}", dropped_keys=(name,), is_conditional=is_conditional)

    # --- changes of columns ---

    def _change(self, name: str, new_name: str, is_conditional: bool) -> None:
        definition = read_definition(new_name, self._cursor, self._dialect, self._names.table)
        changed = self._action(
            "modify_column",
            column_name=name,
            columns=(self._column(definition),),
            place=definition.place,
            after_column=definition.after_column,
            is_conditional=is_conditional,
            keys=tuple(replace(key, is_conditional=is_conditional) for key in definition.keys),
            detail=modes_of_values(self._dialect.sql_mode, is_counter=definition.column.extra == COUNTER),
        )
        (self._placed if definition.place else self._changed).append(changed)
        if definition.is_primary_key:
            self._add_primary_key((new_name,), is_conditional=is_conditional)

    def _rename(self) -> None:
        cursor = self._cursor
        if cursor.take_words("COLUMN"):
            is_conditional = self._condition()
            name = cursor.name()
            cursor.expect("TO")
            self._changed.append(
                self._action(
                    "rename_column", column_name=name, columns=(Column(cursor.name()),), is_conditional=is_conditional
                )
            )
        elif cursor.word() in ("INDEX", "KEY"):
            cursor.at += 1
            self._condition()
            cursor.name()
            cursor.expect("TO")
            cursor.name()
            self._other("rename index")
        else:
            if not cursor.take_one_of("TO", "AS"):
                cursor.take_sign("=")
            schema, table = self._names.table(cursor)
            # The last name counts.
            self._renamed = [self._action("rename_table", other_schema_name=schema, other_table_name=table)]

    # --- the table as a whole ---

    def _convert(self) -> None:
        cursor = self._cursor
        if cursor.take_words("PARTITION"):  # MariaDB: a partition becomes a table of its own.
            partition = cursor.name()
            cursor.expect("TO", "TABLE")
            schema, table = self._names.table(cursor)
            # The rows go from the one table to the other, as with EXCHANGE PARTITION.
            rows = self._action(
                "exchange_partition", other_schema_name=schema, other_table_name=table, detail=partition
            )
            like = replace(rows, action="create_like", schema_name=schema, table_name=table, detail=None)
            self._others += [replace(like, other_schema_name=rows.schema_name, other_table_name=rows.table_name), rows]
            cursor.skip_until(lambda at: at.is_sign(","))
        elif cursor.take_words("TABLE"):
            schema, table = self._names.table(cursor)
            self._others.append(
                self._action("drop_table", schema_name=schema, table_name=table, detail="convert table to partition")
            )
            self._other("convert table to partition")
            cursor.skip_until(lambda at: at.is_sign(","))
        else:
            cursor.expect("TO")
            character_set = read_character_set(cursor, self._dialect)
            if character_set is None:
                raise cursor.not_understood("CHARACTER SET")
            collation = read_collation(cursor, self._dialect) if cursor.take_words("COLLATE") else None
            if character_set == "default":
                collation = collation or "default"
                character_set = character_set_of(collation)
            self._converted_to = character_set, collation
            # MySQL 5.6 accepts several, and the last one counts.
            self._others = [one for one in self._others if one.action != "convert_character_set"]
            self._others.append(self._action("convert_character_set", character_set=character_set, collation=collation))

    def _order_by(self) -> None:
        """Skip the columns that rows are sorted by. A comma may also come before the next part of the statement."""
        cursor = self._cursor
        cursor.expect("ORDER", "BY")
        self._other("order by")
        while True:
            cursor.name()
            while cursor.take_sign("."):
                cursor.name()
            cursor.take_one_of("ASC", "DESC")
            if not (cursor.is_sign(",") and cursor.is_name(1) and self._is_sorted_by(2)):
                return
            cursor.at += 1

    def _is_sorted_by(self, ahead: int) -> bool:
        cursor = self._cursor
        return (
            cursor.word(ahead) in ("ASC", "DESC")
            or cursor.is_sign(",", ahead)
            or is_partitioning(cursor, ahead)
            or not (cursor.is_name(ahead) or cursor.is_sign("=", ahead))
        )

    def _exchange_partition(self) -> None:
        cursor = self._cursor
        cursor.expect("PARTITION")
        partition = cursor.name()
        cursor.expect("WITH", "TABLE")
        schema, table = self._names.table(cursor)
        self._others.append(
            self._action("exchange_partition", other_schema_name=schema, other_table_name=table, detail=partition)
        )

    def _partitions(self) -> str:
        """Read the names of partitions; return them in one string."""
        cursor = self._cursor
        found = [cursor.name()]
        while cursor.is_sign(",") and cursor.is_name(1):
            cursor.at += 1
            found.append(cursor.name())
        return ", ".join(found)

    def _option(self) -> None:
        cursor = self._cursor
        if standing := next((one for one in _STANDALONE if cursor.take_words(*one.split())), None):
            self._other(standing.lower())
        elif cursor.take_words("WAIT"):
            cursor.number()
        elif cursor.word() in _PARTITION_VERBS and cursor.word(1) == "PARTITION":
            self._other(f"{cursor.word().lower()} partition")
            cursor.skip_until(lambda at: False)
        elif cursor.word() in ("DATA", "INDEX") and cursor.word(1) == "DIRECTORY":
            cursor.at += 1
            self._others += read_option(cursor, self._names, self._action)
        elif cursor.is_words("DEFAULT") or cursor.word() in ("CHARACTER", "CHARSET", "COLLATE", "CHAR"):
            self._default_character_set()
        elif cursor.word() in OPTIONS or (cursor.is_name() and cursor.is_sign("=", 1)):
            self._others += read_option(cursor, self._names, self._action)
        else:
            raise cursor.not_understood("a part of ALTER TABLE")

    def _default_character_set(self) -> None:
        cursor = self._cursor
        cursor.take_words("DEFAULT")
        character_set = read_character_set(cursor, self._dialect)
        collation = None
        if character_set is None:
            cursor.expect("COLLATE")
            collation = read_collation(cursor, self._dialect)
            character_set = character_set_of(collation)
        elif cursor.take_words("COLLATE") or cursor.take_words("DEFAULT", "COLLATE"):
            collation = read_collation(cursor, self._dialect)
            if character_set == "default":
                character_set = character_set_of(collation) or character_set
        self._defaults.append(
            self._action("other", detail="default character set", character_set=character_set, collation=collation)
        )
