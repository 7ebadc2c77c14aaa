"""Reads the definitions of columns and keys in CREATE TABLE and ALTER TABLE.

Sources: server, sql/sql_yacc.yy, `table_element`; MariaDB, sql/sql_yacc.yy, `field_list_item`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from sqlglot.tokenizer_core import TokenType

from ingest.ddl.actions import Column, DefaultValue, Key, KeyPart, columns_of_period
from ingest.ddl.column_types import (
    DataType,
    Dialect,
    character_set_of,
    in_character_set,
    read_character_set,
    read_collation,
    read_type,
)
from ingest.ddl.letter_case import lowered
from ingest.ddl.tokens import Cursor

TableName = Callable[[Cursor], tuple[str | None, str]]

# Words that may follow an expression without parentheses, such as a default in MariaDB.
_ATTRIBUTES: Final = frozenset(
    {
        *("NOT", "NULL", "DEFAULT", "ON", "AUTO_INCREMENT", "SERIAL", "PRIMARY", "KEY", "UNIQUE", "COMMENT", "COLLATE"),
        *("COLUMN_FORMAT", "STORAGE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "GENERATED", "AS", "VIRTUAL"),
        *("STORED", "PERSISTENT", "CONSTRAINT", "CHECK", "REFERENCES", "VISIBLE", "INVISIBLE", "SRID", "WITH"),
        *("WITHOUT", "FIRST", "AFTER", "REF_SYSTEM_ID", "CHARACTER", "CHARSET"),
    }
)
_CONSTANTS: Final = {"NULL": None, "TRUE": "1", "FALSE": "0"}
ON_UPDATE: Final = "on update CURRENT_TIMESTAMP"
COUNTER: Final = "auto_increment"
_RULES: Final = ("RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT", "NO ACTION")


@dataclass(frozen=True, slots=True)
class Definition:
    """A column and the rest of its definition.

    Attributes
    ----------
    column
        The column, with the type of `data_type`.
    data_type
        Its type, which may still depend on the table's character set.
    is_primary_key
        Whether the definition contains PRIMARY KEY.
    keys
        Unique and foreign keys that the definition makes.
    place, after_column
        FIRST or AFTER.
    is_versioned
        Whether it contains WITH SYSTEM VERSIONING, which makes the table system-versioned.
    is_period
        Whether the column is an end of the period of a system-versioned table.
    is_row_end
        Whether it is the end that the server adds to the keys of the table.
    is_stamped_if_first
        Whether the server adds ON UPDATE CURRENT_TIMESTAMP if it is the first TIMESTAMP of the statement.
    """

    column: Column
    data_type: DataType
    is_primary_key: bool = False
    keys: tuple[Key, ...] = ()
    place: Literal["first", "after"] | None = None
    after_column: str | None = None
    is_versioned: bool = False
    is_period: bool = False
    is_stamped_if_first: bool = False
    is_row_end: bool = False

    def in_table(self, character_set: str | None, dialect: Dialect, *, is_stamped: bool = False) -> Column:
        """Return the column as it is in a table with a default character set; None for an unknown default."""
        column = _typed(self.column, in_character_set(self.data_type, character_set, dialect))
        return replace(column, extra=ON_UPDATE) if is_stamped else column


def stamped(definitions: Iterable[Definition]) -> Definition | None:
    """Return the column of a statement that gets ON UPDATE though the statement does not say so."""
    first = next((one for one in definitions if one.data_type.name == "timestamp"), None)
    return first if first is not None and first.is_stamped_if_first else None


@dataclass(slots=True)
class Elements:
    """Columns and keys between the parentheses of CREATE TABLE."""

    definitions: list[Definition] = field(default_factory=list)
    primary_key: tuple[str, ...] = ()
    is_key_conditional: bool = False
    periods: dict[str, tuple[str, ...]] = field(default_factory=dict)
    keys: list[Key] = field(default_factory=list)

    def columns(self, character_set: str | None, dialect: Dialect) -> tuple[Column, ...]:
        """Return the columns; those of the primary key and of a period are NOT NULL."""
        key, ends = ({lowered(name) for name in names} for names in (self.key_columns, self.period))
        first = stamped(self.definitions)
        columns = (one.in_table(character_set, dialect, is_stamped=one is first) for one in self.definitions)
        columns = (replace(one, is_nullable=False) if lowered(one.name) in key else one for one in columns)
        return tuple(one.as_end_of_period if lowered(one.name) in ends else one for one in columns)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Columns of the primary key, spelled as in their definitions."""
        inline = tuple(one.column.name for one in self.definitions if one.is_primary_key)
        key = with_columns_of_periods(self.primary_key or inline, self.periods)
        names = {lowered(one.column.name): one.column.name for one in self.definitions}
        found = tuple(names.get(lowered(name), name) for name in key)
        end = tuple(one.column.name for one in self.definitions if one.is_row_end and one.column.name not in found)
        return (*found, *end) if found else ()

    @property
    def period(self) -> tuple[str, ...]:
        """Columns of all periods, which are NOT NULL."""
        return tuple(column for columns in self.periods.values() for column in columns)

    @property
    def declares_period(self) -> bool:
        """Whether the columns include the ends of a period."""
        return any(one.is_period for one in self.definitions)

    @property
    def all_keys(self) -> tuple[Key, ...]:
        """Unique and foreign keys in the order of the statement; keys in definitions of columns come first."""
        return (*(key for one in self.definitions for key in one.keys), *self.keys_of_elements)

    @property
    def keys_of_elements(self) -> tuple[Key, ...]:
        """Unique and foreign keys that are no part of a column's definition."""
        return tuple(key.with_periods(self.periods) for key in self.keys)


def with_columns_of_periods(key: Iterable[str], periods: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the columns of a key, with those of a period for the name of the period (WITHOUT OVERLAPS)."""
    return tuple(column for name in key for column in columns_of_period(name, periods))


def read_column(cursor: Cursor, dialect: Dialect, table_name: TableName) -> Definition:
    """Read a column's name, definition and position."""
    return read_definition(cursor.column(), cursor, dialect, table_name)


def read_definition(name: str, cursor: Cursor, dialect: Dialect, table_name: TableName) -> Definition:
    """Read a column's definition and position.

    Parameters
    ----------
    name
        Name of the column, already read.
    cursor
        At the column's type.
    dialect
        Dialect of the server.
    table_name
        Reads the name of a table.
    """
    data_type = read_type(cursor, dialect)
    nullable: bool | None = None
    is_generated = is_primary = is_versioned = is_period = is_row_end = has_default = is_invisible = False
    extra = ""
    default: DefaultValue | None = None
    keys: list[Key] = []
    if data_type.is_serial:
        nullable, extra = False, COUNTER
        keys.append(Key(None, (name,)))
    while not _is_over(cursor):
        if cursor.take_words("NOT", "NULL"):
            nullable = False
        elif cursor.take_words("NULL"):
            nullable, default = True, default or DefaultValue(None)
        elif cursor.take_words("AUTO_INCREMENT"):
            nullable, extra = False, COUNTER
        elif cursor.take_words("SERIAL", "DEFAULT", "VALUE"):
            nullable, extra = False, COUNTER
            keys.append(Key(None, (name,)))
        elif cursor.take_words("DEFAULT"):
            default = _default(cursor, is_bit=data_type.name == "bit")
            has_default = True
        elif cursor.take_words("ON", "UPDATE"):
            _skip_expression(cursor)
            extra = ON_UPDATE
        elif cursor.take_words("UNIQUE"):
            cursor.take_words("KEY")
            keys.append(Key(None, (name,)))
        elif cursor.take_words("PRIMARY", "KEY") or cursor.take_words("KEY") or cursor.take_words("PRIMARY"):
            is_primary, nullable = True, False
        elif cursor.take_words("GENERATED", "ALWAYS", "AS", "ROW") or cursor.take_words("AS", "ROW"):
            is_row_end = cursor.take_one_of("START", "END") == "END"
            is_generated, is_period, nullable, extra = True, True, False, "STORED GENERATED"
        elif cursor.take_words("GENERATED", "ALWAYS", "AS") or cursor.take_words("AS"):
            cursor.skip()
            is_stored = cursor.take_one_of("VIRTUAL", "STORED", "PERSISTENT") in ("STORED", "PERSISTENT")
            is_generated, extra = True, "STORED GENERATED" if is_stored else "VIRTUAL GENERATED"
        elif cursor.take_words("COLLATE"):
            collation = read_collation(cursor, dialect)
            data_type = replace(
                data_type,
                collation=collation,
                character_set=data_type.character_set or character_set_of(collation),
            )
        elif (character_set := read_character_set(cursor, dialect)) is not None:
            data_type = replace(data_type, character_set=character_set)
        elif cursor.take_words("REFERENCES"):
            key = _reference(None, (name,), cursor, table_name)
            if dialect.takes_inline_references:
                keys.append(key)
        elif cursor.take_words("WITH", "SYSTEM", "VERSIONING"):
            is_versioned = True
        elif word := cursor.take_one_of("VISIBLE", "INVISIBLE"):
            is_invisible = word == "INVISIBLE"
        else:
            _skip_attribute(cursor)
    # Servers with other defaults do not log the setting that decides it.
    is_open = nullable is None and data_type.name == "timestamp" and not dialect.has_explicit_timestamps
    if nullable is None and not is_open:
        nullable = True
    place, after = read_place(cursor)
    column = Column(
        name,
        is_nullable=nullable,
        is_generated=is_generated,
        extra=extra,
        default=default,
        is_invisible=is_invisible,
    )
    is_stamped = not (nullable or is_generated or has_default or extra or dialect.has_explicit_timestamps)
    column = _typed(column, data_type)
    shown = (is_versioned, is_period, is_stamped, is_row_end)
    return Definition(column, data_type, is_primary, tuple(keys), place, after, *shown)


def _typed(column: Column, data_type: DataType) -> Column:
    return replace(
        column,
        data_type=data_type.name,
        column_type=data_type.column_type,
        character_set=data_type.character_set,
        collation=data_type.collation,
        length=data_type.wanted_length,
    )


def _is_over(cursor: Cursor) -> bool:
    return _ends_part(cursor) or cursor.word() in ("FIRST", "AFTER")


def _ends_part(cursor: Cursor) -> bool:
    return cursor.is_at_end or cursor.is_sign(",") or cursor.is_sign(")") or is_partitioning(cursor)


def is_partitioning(cursor: Cursor, ahead: int = 0) -> bool:
    """Return whether the partitioning of the table comes next: it follows the other parts without a comma.

    No definition contains these pairs of words outside of parentheses; one of them alone may be a name.
    """
    words = cursor.word(ahead), cursor.word(ahead + 1)
    return words in (("PARTITION", "BY"), ("REMOVE", "PARTITIONING"), ("UPGRADE", "PARTITIONING"))


def _default(cursor: Cursor, *, is_bit: bool) -> DefaultValue:
    """Read a default; that of a BIT may be a literal of bits, which is a text for other types."""
    start = cursor.at
    _skip_expression(cursor)
    end, cursor.at = cursor.at, start
    if cursor.is_text():
        text = cursor.text()
        if cursor.at == end:
            return DefaultValue(text, is_quoted=True)
        cursor.at = start
    tokens = [cursor.literal() for _ in range(end - start)]
    sign = "-" if tokens[0][0] == TokenType.DASH else ""
    match tokens[1:] if tokens[0][0] in (TokenType.DASH, TokenType.PLUS) else tokens:
        case [(TokenType.NUMBER, text)]:
            return DefaultValue(sign + text)
        case [(TokenType.VAR, text)] if text.upper() in _CONSTANTS and not sign:
            return DefaultValue(_CONSTANTS[text.upper()])
        case [(TokenType.BIT_STRING, bits)] if is_bit and not sign:
            return DefaultValue(str(int(bits, 2)))
    return DefaultValue(None, is_literal=False)


def _skip_expression(cursor: Cursor) -> None:
    """Skip a default: its first token, whatever that is, and the tokens that belong to it."""
    cursor.skip()
    while not (_is_over(cursor) or cursor.word() in _ATTRIBUTES):
        cursor.skip()


def _skip_attribute(cursor: Cursor) -> None:
    """Skip an attribute that does not affect the column's shape."""
    if cursor.take_one_of("VIRTUAL", "STORED", "PERSISTENT"):
        return
    if cursor.take_one_of("COMMENT", "COLUMN_FORMAT", "STORAGE", "SRID"):
        cursor.value()
    elif cursor.take_one_of("ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"):
        cursor.take_sign("=")
        cursor.value()
    elif cursor.is_words("CONSTRAINT") or cursor.is_words("CHECK"):
        if cursor.take_words("CONSTRAINT") and not cursor.is_words("CHECK"):
            cursor.name()
        cursor.expect("CHECK")
        cursor.skip()
        _skip_enforcement(cursor)
    elif not (
        cursor.take_words("NOT", "SECONDARY")
        or cursor.take_words("WITHOUT", "SYSTEM", "VERSIONING")
        or cursor.take_words("COMPRESSED")
        or _took_dictionary(cursor)
    ):
        # REF_SYSTEM_ID, or an option that a storage engine of MariaDB adds.
        cursor.name()
        cursor.expect_sign("=")
        cursor.value()


def _took_dictionary(cursor: Cursor) -> bool:
    """Move past the dictionary of a compressed column of Percona Server, if it comes next."""
    if not cursor.take_words("WITH", "COMPRESSION_DICTIONARY"):
        return False
    cursor.name()
    return True


def _skip_enforcement(cursor: Cursor) -> None:
    if not cursor.take_words("NOT", "ENFORCED"):
        cursor.take_words("ENFORCED")


def read_place(cursor: Cursor) -> tuple[Literal["first", "after"] | None, str | None]:
    """Read FIRST or AFTER and a column, if present."""
    if cursor.take_words("FIRST"):
        return "first", None
    if cursor.take_words("AFTER"):
        return "after", cursor.name()
    return None, None


# --- keys ---


def is_key(cursor: Cursor) -> bool:
    """Return whether the cursor is at the definition of a key, a CHECK or a period, and not of a column."""
    word, following = cursor.word(), cursor.word(1)
    if word in ("CONSTRAINT", "PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK"):
        return True
    if word == "VECTOR":
        return following in ("INDEX", "KEY") or cursor.is_sign("(", 1)
    return word == "PERIOD" and following in ("FOR", "IF")


def read_key(cursor: Cursor, elements: Elements, dialect: Dialect, table_name: TableName) -> str:
    """Read a key, a CHECK or a period and add it to the elements; return its kind in a few words."""
    name = None
    if cursor.take_words("CONSTRAINT") and cursor.word() not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        _skip_condition(cursor)
        name = cursor.name()
    if cursor.take_words("CHECK"):
        cursor.skip()
        _skip_enforcement(cursor)
        return "check"
    if cursor.take_words("PERIOD"):
        _skip_condition(cursor)
        cursor.expect("FOR")
        name = lowered(cursor.name())
        elements.periods[name] = tuple(cursor.list_of(cursor.name))
        return "period"
    if cursor.take_words("PRIMARY", "KEY"):
        elements.is_key_conditional = _skip_condition(cursor)
        _name_and_algorithm(cursor)
        elements.primary_key = _key_columns(cursor)
        _skip_key_options(cursor)
        return "primary key"
    if cursor.take_words("FOREIGN", "KEY"):
        is_conditional = _skip_condition(cursor)
        index_name, _ = _name_and_algorithm(cursor)
        columns = _key_columns(cursor)
        cursor.expect("REFERENCES")
        # An index of this name may be there, or none: MySQL names the constraint without it.
        named = name or (index_name if dialect.is_mariadb else None)
        key = _reference(named, columns, cursor, table_name)
        elements.keys.append(replace(key, is_conditional=is_conditional, tested_name=index_name))
        return "foreign key"
    is_unique = cursor.take_words("UNIQUE")
    kind = cursor.take_one_of("FULLTEXT", "SPATIAL", "VECTOR")
    if not cursor.take_one_of("INDEX", "KEY") and not (is_unique or kind):
        raise cursor.not_understood("a key")
    is_conditional = _skip_condition(cursor)
    index_name, algorithm = _name_and_algorithm(cursor)
    parts = read_key_parts(cursor)
    algorithm = _skip_key_options(cursor) or algorithm
    if is_unique:
        key = Key.of_parts(index_name or name, parts, is_hash=dialect.is_mariadb and algorithm == "HASH")
        elements.keys.append(replace(key, is_conditional=is_conditional))
    return "index"


def _skip_condition(cursor: Cursor) -> bool:
    return cursor.take_words("IF", "NOT", "EXISTS") or cursor.take_words("IF", "EXISTS")


def _name_and_algorithm(cursor: Cursor) -> tuple[str | None, str]:
    """Read the name of an index and its algorithm in front of the columns, as far as the statement has them."""
    name = None
    if not cursor.is_sign("(") and not (cursor.word() in ("USING", "TYPE") and not cursor.is_sign("(", 1)):
        name = cursor.name()
    return name, read_algorithm(cursor)


def read_algorithm(cursor: Cursor) -> str:
    """Read the algorithm of an index; return an empty string if none comes next."""
    return cursor.value().upper() if cursor.take_one_of("USING", "TYPE") else ""


def _key_columns(cursor: Cursor) -> tuple[str, ...]:
    return tuple(name for name, *_ in read_key_parts(cursor) if name is not None)


def read_key_parts(cursor: Cursor) -> list[KeyPart]:
    """Read the columns of a key with their lengths; an expression is a part without a column."""
    return cursor.list_of(lambda: _key_part(cursor))


def _key_part(cursor: Cursor) -> KeyPart:
    name = length = None
    if cursor.is_sign("("):
        cursor.skip()
    else:
        name = cursor.name()
        length = cursor.list_of(cursor.number)[0] if cursor.is_sign("(") else None
    if not cursor.take_one_of("ASC", "DESC"):
        cursor.take_words("WITHOUT", "OVERLAPS")
    return name, length, None


def _skip_key_options(cursor: Cursor) -> str:
    """Skip what follows the columns of a key; return its algorithm, or an empty string."""
    algorithm = ""
    while not _ends_part(cursor):
        if cursor.word() in ("USING", "TYPE"):
            algorithm = read_algorithm(cursor)
        elif cursor.take_words("COMMENT"):
            cursor.value()
        elif cursor.take_words("WITH", "PARSER"):
            cursor.name()
        elif not (
            cursor.take_one_of("VISIBLE", "INVISIBLE", "IGNORED", "ENFORCED") or cursor.take_words("NOT", "IGNORED")
        ):
            if cursor.word() in ("ALGORITHM", "LOCK"):  # Options of CREATE INDEX; ALTER TABLE has a comma before them.
                break
            cursor.name()
            cursor.take_sign("=")
            cursor.value()
    return algorithm


def _reference(name: str | None, columns: Iterable[str], cursor: Cursor, table_name: TableName) -> Key:
    schema, table = table_name(cursor)
    referenced = _key_columns(cursor) if cursor.is_sign("(") else ()
    rules: dict[str, str | None] = {"UPDATE": None, "DELETE": None}
    while True:
        if cursor.take_words("MATCH"):
            cursor.name()
        elif cursor.word() == "ON" and cursor.word(1) in rules:
            event = cursor.word(1)
            cursor.at += 2
            rules[event] = next((rule for rule in _RULES if cursor.take_words(*rule.split())), rules[event])
        else:
            break
    return Key(name, tuple(columns), schema, table, referenced, rules["UPDATE"], rules["DELETE"])


def read_elements(cursor: Cursor, dialect: Dialect, table_name: TableName) -> Elements:
    """Read columns and keys in parentheses."""
    elements = Elements()

    def element() -> None:
        if is_key(cursor):
            read_key(cursor, elements, dialect, table_name)
        else:
            elements.definitions.append(read_column(cursor, dialect, table_name))

    cursor.list_of(element)
    return elements
