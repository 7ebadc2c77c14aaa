"""Converts data types from the form in statements to the form in information_schema.columns.

Sources: server, sql/sql_yacc.yy, `type`, and sql/field.cc, `sql_type`; MariaDB, sql/sql_yacc.yy, `field_type`.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from ingest.ddl.actions import Column, Default
from ingest.ddl.labels import Literals, in_any, in_column, in_table, written
from ingest.ddl.sql_modes import MAXDB, ORACLE, REAL_AS_FLOAT, TYPE_SCHEMAS
from ingest.ddl.tokens import Cursor
from ingest.versions import NEWEST, Flavor


@dataclass(frozen=True, slots=True)
class Dialect:
    """Rules by which a server reads a statement.

    Attributes
    ----------
    flavor, version
        Flavor and version of the server; without a version, the newest is assumed.
    sql_mode
        Bits of the SQL mode in which the statement runs.
    literals
        How the server read literals; None if they mean what the text shows.
    """

    flavor: Flavor
    version: tuple[int, ...] = NEWEST
    sql_mode: int = 0
    literals: Literals | None = None

    @property
    def is_mariadb(self) -> bool:
        """Whether the server is MariaDB."""
        return self.flavor == "mariadb"

    @property
    def skips_a_conversion(self) -> bool | None:
        """Whether CONVERT TO alone does nothing if it changes no column: so MySQL 5.6, and not MySQL 9.7 and MariaDB.

        None for MySQL 5.7, which was not tried.
        """
        if self.is_mariadb or self.version >= (8,):
            return False
        return True if self.version < (5, 7) else None

    @property
    def shows_widths(self) -> bool:
        """Whether integers are shown with a display width; MySQL stopped this in 8.0.19."""
        return self.is_mariadb or self.version < (8, 0, 19)

    @property
    def has_explicit_timestamps(self) -> bool:
        """Whether a TIMESTAMP without NULL or NOT NULL is nullable, by the server's default settings."""
        return self.version >= ((10, 10) if self.is_mariadb else (8, 0))

    @property
    def utf8(self) -> str:
        """The server's own name for the character set `utf8`."""
        if self.is_mariadb:
            return "utf8mb3" if self.version >= (10, 6) else "utf8"
        return "utf8mb3" if self.version >= (8, 0, 30) else "utf8"

    @property
    def default_character_set(self) -> str:
        """The server's character set when none is configured."""
        return "latin1" if self.version < ((11, 6) if self.is_mariadb else (8,)) else "utf8mb4"

    @property
    def takes_inline_references(self) -> bool:
        """Whether REFERENCES in a column's definition makes a foreign key."""
        return self.version >= ((10, 5) if self.is_mariadb else (9, 0))


@dataclass(frozen=True, slots=True)
class DataType:
    """A type without its attributes.

    Attributes
    ----------
    name
        As DATA_TYPE of information_schema shows it.
    sizes
        Text in parentheses behind the name in COLUMN_TYPE.
    suffix
        Text behind the parentheses: ` unsigned`, ` zerofill`.
    character_set, collation
        As written, or as the type implies.
    is_serial
        Whether it is SERIAL, which means a type, NOT NULL, AUTO_INCREMENT and UNIQUE in one.
    wanted_length
        Length that a TEXT or BLOB must have. The server chooses the type by it.
    binary_sizes
        Labels as a column in `binary` has them, if they may differ from those of other columns.
    """

    name: str
    sizes: str = ""
    suffix: str = ""
    character_set: str | None = None
    collation: str | None = None
    is_serial: bool = False
    wanted_length: int | None = None
    binary_sizes: str = ""

    @property
    def is_text(self) -> bool:
        """Whether the type has a character set."""
        return self.name in TEXT_TYPES

    @property
    def column_type(self) -> str:
        """The type as COLUMN_TYPE of information_schema shows it."""
        return self.name + (f"({self.sizes})" if self.sizes else "") + self.suffix


_TEXTS: Final = ("tinytext", "text", "mediumtext", "longtext")
_BLOBS: Final = ("tinyblob", "blob", "mediumblob", "longblob")
_LENGTHS: Final = (1 << 8, 1 << 16, 1 << 24)
LABELLED: Final = frozenset({"enum", "set"})
TEXT_TYPES: Final = frozenset({"char", "varchar", *LABELLED, *_TEXTS})

_INTEGERS: Final = {
    **dict.fromkeys(("TINYINT", "INT1"), "tinyint"),
    **dict.fromkeys(("SMALLINT", "INT2"), "smallint"),
    **dict.fromkeys(("MEDIUMINT", "INT3", "MIDDLEINT"), "mediumint"),
    **dict.fromkeys(("INT", "INTEGER", "INT4"), "int"),
    **dict.fromkeys(("BIGINT", "INT8"), "bigint"),
}
_WIDTHS: Final = {"tinyint": 4, "smallint": 6, "mediumint": 9, "int": 11, "bigint": 20}
_DECIMALS: Final = frozenset({"DECIMAL", "DEC", "NUMERIC", "FIXED"})
_FLOATS: Final = {"FLOAT": "float", "FLOAT4": "float", "DOUBLE": "double", "FLOAT8": "double", "REAL": "double"}
_GEOMETRIES: Final = frozenset(
    {"GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON"}
)
_COLLECTIONS: Final = frozenset({"GEOMETRYCOLLECTION", "GEOMCOLLECTION"})
_OF_MARIADB: Final = frozenset({"INET4", "INET6", "UUID", "XMLTYPE"})
_CHAR_WORDS: Final = frozenset({"CHAR", "CHARACTER", "NCHAR"})
_VARCHAR_WORDS: Final = frozenset({"VARCHAR", "VARCHARACTER", "NVARCHAR", "VARCHAR2"})
# The decoder writes a byte that is no text like this, and nobody can tell it from these characters.
_LOST_BYTE: Final = re.compile(r"\\x[0-9a-f]{2}")
_VARYING: Final = re.compile(r"var(?:char|binary)\((\d+)\)")
_LONGER: Final = {"varchar": _TEXTS, "varbinary": _BLOBS}
_BINARY_OF: Final = {"char": "binary", "varchar": "varbinary", **dict(zip(_TEXTS, _BLOBS, strict=True))}
BYTE_TYPES: Final = frozenset(_BINARY_OF.values())


def read_type(cursor: Cursor, dialect: Dialect) -> DataType:
    """Read a type and its own attributes.

    Raises
    ------
    NotUnderstoodError
        The cursor is not at a type that the servers know.
    """
    schema = dialect.sql_mode
    if cursor.is_sign(".", 1) and cursor.word() in TYPE_SCHEMAS:
        schema = TYPE_SCHEMAS[cursor.word()]
        cursor.at += 2
    if cursor.is_quoted():
        raise cursor.not_understood("a type")
    word = cursor.name().upper()
    is_sized_blob = word == "BLOB" and cursor.is_sign("(")
    if word == "DATE" and schema & ORACLE and dialect.is_mariadb:
        return DataType("datetime")
    if dialect.sql_mode & ORACLE and dialect.is_mariadb and word in _OF_ORACLE and not is_sized_blob:
        return _oracle_type(word, cursor, dialect)
    if word in _INTEGERS:
        return _integer(_INTEGERS[word], cursor, dialect)
    if word in ("BOOL", "BOOLEAN"):
        return DataType("tinyint", "1")
    if word == "SERIAL":
        return replace(_shown_integer("bigint", None, True, False, dialect), is_serial=True)
    if word in _DECIMALS:
        sizes = _sizes(cursor)
        return DataType("decimal", ",".join(map(str, [(sizes or [0])[0] or 10, *(sizes[1:] or [0])])), _sign(cursor))
    if word in _FLOATS:
        return _float(word, cursor, dialect)
    if word == "BIT":
        return DataType("bit", str((_sizes(cursor) or [0])[0] or 1))
    if word == "YEAR":
        width = (_sizes(cursor) or [4])[0]
        _sign(cursor)
        return DataType("year", ("2" if width == 2 else "4") if dialect.shows_widths else "")
    if word in ("DATE", "TIME", "DATETIME", "TIMESTAMP"):
        digits = _sizes(cursor)
        if word == "TIMESTAMP" and schema & MAXDB:
            word = "DATETIME"
        return DataType(word.lower(), str(digits[0]) if digits and digits[0] else "")
    if word in ("ENUM", "SET"):
        start = cursor.at
        labels = cursor.list_of(lambda: _label(cursor, dialect))
        labelled = _text(DataType(word.lower(), written(labels)), cursor, dialect)
        if dialect.literals is None:
            return labelled
        end, cursor.at = cursor.at, start
        labels = cursor.list_of(lambda: _label(cursor, dialect, is_binary=True))
        cursor.at = end
        return replace(labelled, binary_sizes=written(labels))
    if word == "JSON":
        if not dialect.is_mariadb:
            return DataType("json")
        return _text(DataType("longtext", character_set="utf8mb4", collation="utf8mb4_bin"), cursor, dialect)
    if word == "VECTOR":
        return DataType("vector", str((_sizes(cursor) or [2048])[0]))
    if word in _GEOMETRIES:
        _sizes(cursor)
        return DataType(word.lower())
    if word in _COLLECTIONS:
        is_short = not dialect.is_mariadb and dialect.version >= (8,)
        return DataType("geomcollection" if is_short else "geometrycollection")
    if word in _OF_MARIADB:
        return DataType(word.lower())
    if found := _string(word, cursor, dialect):
        return found
    cursor.at -= 1
    raise cursor.not_understood("a type")


def in_character_set(found: DataType, character_set: str | None, dialect: Dialect) -> DataType:
    """Return a type as it is in a table with a default character set; None for an unknown default.

    With the default `binary`, text types become byte types. A TEXT or BLOB with a length becomes the smallest type
    that holds this length.
    """
    known = found.character_set or character_set
    if found.name in LABELLED:
        if known == "binary":
            found = replace(found, character_set=known, collation=known)
        return replace(found, sizes=in_table(found.sizes, found.binary_sizes, known))
    name = name_in(found.name, known or dialect.default_character_set, found.wanted_length)
    if known is not None and (longer := _longer_type(found.name, found.column_type, known)):
        found, name = replace(found, sizes=""), longer
    if known == "binary" and found.name in _BINARY_OF:
        return replace(found, name=name, character_set=None, collation=None, wanted_length=None)
    still_open = found.wanted_length if known is None and found.name in _TEXTS else None
    return replace(found, name=name, wanted_length=still_open)


def name_in(name: str, character_set: str, length: int | None = None) -> str:
    """Return the name of a type in a character set: in `binary`, a text type becomes a byte type.

    A TEXT or BLOB with a length becomes the smallest type that holds this length.
    """
    if character_set == "binary":
        name = _BINARY_OF.get(name, name)
    if length is None:
        return name
    if name in _TEXTS:
        return _smallest(_TEXTS, length * bytes_each(character_set))
    return _smallest(_BLOBS, length)


def with_character_set(column: Column, character_set: str | None, collation: str | None) -> Column:
    """Return a text column as it is in a character set; None for an unknown character set."""
    data_type, column_type = column.data_type, column.column_type
    assert data_type is not None and column_type is not None
    if data_type in LABELLED:
        # Only CREATE TABLE tells that the table is in `binary`. The bytes of labels then depend on the session.
        is_open = character_set is None or (character_set == "binary" and column.character_set is None)
        column_type = in_any(column_type, character_set) if is_open else in_column(column_type, character_set)
    if character_set is None:
        return replace(column, column_type=column_type, character_set=None, collation=None)
    name = name_in(data_type, character_set, column.length)
    if longer := _longer_type(data_type, column_type, character_set):
        name, column_type = longer, _VARYING.sub(data_type, column_type)
    is_text = name in TEXT_TYPES
    return replace(
        column,
        data_type=name,
        column_type=name + column_type.removeprefix(data_type),
        character_set=character_set if is_text else None,
        collation=collation if is_text else None,
        length=None,
    )


def _longer_type(name: str, column_type: str, character_set: str) -> str | None:
    """Return the type that a server without strict mode makes of a VARCHAR or VARBINARY that is too long.

    Source: server, sql/sql_table.cc, `prepare_blob_field`.
    """
    found = _VARYING.match(column_type) if name in _LONGER else None
    size = int(found[1]) * bytes_each(character_set) if found else 0
    if size < _LENGTHS[1]:
        return None
    return _smallest(_BLOBS if character_set == "binary" else _LONGER[name], size)


def resolved(character_set: str | None, collation: str | None, default: Default) -> Default:
    """Return a character set and collation as written, with omitted parts taken from a default.

    DEFAULT takes the character set of the default, but not always its collation.
    """
    if character_set is None and collation is None:
        return default
    if character_set in (None, "default"):
        character_set = default[0]
    if collation == "default":
        collation = None
    elif collation is not None and character_set_of(collation) is None:
        collation = None if character_set is None else f"{character_set}_{collation}"
    return character_set, "binary" if character_set == "binary" else collation


def text_type_for(name: str, bytes_before: int, bytes_after: int) -> str:
    """Return the text type with room for as many characters as `name` had, when the bytes of a character change."""
    length = [*_LENGTHS, 1 << 32][_TEXTS.index(name)] - 1
    return _smallest(_TEXTS, length // bytes_before * bytes_after)


def _smallest(family: tuple[str, ...], size: int) -> str:
    return family[sum(size >= length for length in _LENGTHS)]


def bytes_each(character_set: str) -> int:
    """Return the maximum number of bytes of a character."""
    if character_set in ("utf8mb4", "utf16", "utf16le", "utf32", "gb18030"):
        return 4
    if character_set in ("utf8", "utf8mb3", "ujis", "eucjpms"):
        return 3
    return 2 if character_set in ("ucs2", "big5", "gbk", "gb2312", "sjis", "cp932", "euckr") else 1


def _sizes(cursor: Cursor) -> list[int]:
    return cursor.list_of(cursor.number) if cursor.is_sign("(") else []


def _sign(cursor: Cursor) -> str:
    words = set()
    while word := cursor.take_one_of("UNSIGNED", "SIGNED", "ZEROFILL"):
        words.add(word)
    # ZEROFILL implies UNSIGNED.
    return " unsigned" * bool(words & {"UNSIGNED", "ZEROFILL"}) + " zerofill" * ("ZEROFILL" in words)


def _integer(name: str, cursor: Cursor, dialect: Dialect) -> DataType:
    sizes = _sizes(cursor)
    suffix = _sign(cursor)
    return _shown_integer(name, sizes[0] if sizes else None, "unsigned" in suffix, "zerofill" in suffix, dialect)


def _shown_integer(name: str, width: int | None, is_unsigned: bool, is_filled: bool, dialect: Dialect) -> DataType:
    suffix = " unsigned" * is_unsigned + " zerofill" * is_filled
    is_boolean = name == "tinyint" and width == 1 and not is_unsigned
    if not (dialect.shows_widths or is_filled or is_boolean):
        return DataType(name, "", suffix)
    default = _WIDTHS[name] - (is_unsigned and name != "bigint")
    return DataType(name, str(width if width is not None else default), suffix)


def _float(word: str, cursor: Cursor, dialect: Dialect) -> DataType:
    name = "float" if word == "REAL" and dialect.sql_mode & REAL_AS_FLOAT else _FLOATS[word]
    if word == "DOUBLE":
        cursor.take_words("PRECISION")
    sizes = _sizes(cursor)
    if len(sizes) == 1:  # A number of binary digits decides between FLOAT and DOUBLE.
        name, sizes = "float" if sizes[0] <= 24 else "double", []
    return DataType(name, ",".join(map(str, sizes)), _sign(cursor))


def _label(cursor: Cursor, dialect: Dialect, *, is_binary: bool = False) -> str | bytes:
    if cursor.is_text():
        if dialect.literals is not None and dialect.literals.are_bytes and _LOST_BYTE.search(cursor.written()):
            raise cursor.not_understood("a label whose bytes are text")
        text = cursor.text()
        if dialect.literals is None:
            return text
        return dialect.literals.bytes_of(text) if is_binary else dialect.literals.read(text)
    kind, text = cursor.literal()
    if kind.name == "HEX_STRING":
        return bytes.fromhex(text.rjust(len(text) + len(text) % 2, "0"))
    if kind.name == "BIT_STRING":
        return int(text or "0", 2).to_bytes((len(text) + 7) // 8, "big")
    cursor.at -= 1
    raise cursor.not_understood("a label")


def _string(word: str, cursor: Cursor, dialect: Dialect) -> DataType | None:
    """Read a character or byte type behind its first word; return None for any other type."""
    national = dialect.utf8 if word in ("NATIONAL", "NCHAR", "NVARCHAR") else None
    if word == "NATIONAL":
        word = cursor.name().upper()
    if word == "LONG":
        if cursor.take_one_of("VARBINARY", "BYTE"):
            return DataType("mediumblob")
        if cursor.take_one_of(*_CHAR_WORDS):
            cursor.expect("VARYING")
        else:
            cursor.take_one_of(*_VARCHAR_WORDS)
        return _text(DataType("mediumtext"), cursor, dialect)
    is_varying = word in _VARCHAR_WORDS
    if word in _CHAR_WORDS:
        is_varying = bool(cursor.take_one_of("VARYING", "VARCHAR", "VARCHARACTER"))
    if word in _CHAR_WORDS or is_varying:
        length = (_sizes(cursor) or [1])[0]
        return _text(
            DataType("varchar" if is_varying else "char", str(length), character_set=national), cursor, dialect
        )
    if word in ("BINARY", "VARBINARY"):
        found = DataType(word.lower(), str((_sizes(cursor) or [1])[0]))
        if longer := _longer_type(found.name, found.column_type, "binary"):
            found = DataType(longer)
        return _compressed(found, cursor)
    for family in (_TEXTS, _BLOBS):
        if word.lower() in family:
            sizes = _sizes(cursor)
            # TEXT(0) is TINYTEXT in MySQL 8 and later, and TEXT elsewhere.
            has_length = bool(sizes and (sizes[0] or (not dialect.is_mariadb and dialect.version >= (8,))))
            found = DataType(word.lower(), wanted_length=sizes[0] if has_length else None)
            return _text(found, cursor, dialect) if family is _TEXTS else _compressed(found, cursor)
    return None


def _text(found: DataType, cursor: Cursor, dialect: Dialect) -> DataType:
    """Read the attributes behind a text type, in any order; return the type with them."""
    character_set, collation, is_binary = found.character_set, found.collation, False
    while True:
        if (said := read_character_set(cursor, dialect)) is not None:
            character_set = said
        elif cursor.take_words("ASCII"):
            character_set = "latin1"
        elif cursor.take_words("UNICODE"):
            character_set = "ucs2"
        elif cursor.take_words("BYTE"):
            character_set = "binary"
        elif cursor.take_words("BINARY"):
            is_binary = True
        elif cursor.take_words("COLLATE"):
            collation = read_collation(cursor, dialect)
        else:
            break
    if character_set is None and collation is not None:
        character_set = character_set_of(collation)
    if is_binary and collation is None:
        collation = "bin" if character_set is None else f"{character_set}_bin"
    return _compressed(replace(found, character_set=character_set, collation=collation), cursor)


def _compressed(found: DataType, cursor: Cursor) -> DataType:
    if not cursor.take_words("COMPRESSED"):
        return found
    if cursor.take_sign("="):
        cursor.value()
    return replace(found, suffix=f"{found.suffix} /*M!100301 COMPRESSED*/")


def read_character_set(cursor: Cursor, dialect: Dialect) -> str | None:
    """Read CHARACTER SET or CHARSET and a name; None when neither is there. `utf8` becomes the server's own name."""
    is_said = cursor.take_words("CHARSET") or (
        cursor.word() in ("CHARACTER", "CHAR") and cursor.word(1) == "SET" and cursor.take_words(cursor.word(), "SET")
    )
    if not is_said:
        return None
    cursor.take_sign("=")
    name = cursor.value().lower()
    return dialect.utf8 if name in ("utf8", "utf8mb3") else name


def read_collation(cursor: Cursor, dialect: Dialect) -> str:
    """Read a collation, with or without `=` before it; return the server's own name for it."""
    cursor.take_sign("=")
    return collation_of(cursor.value(), dialect)


def collation_of(name: str, dialect: Dialect) -> str:
    """Return the server's own name for a collation."""
    name = name.lower()
    for prefix in ("utf8_", "utf8mb3_"):
        if name.startswith(prefix):
            return f"{dialect.utf8}_{name.removeprefix(prefix)}"
    return name


def character_set_of(collation: str) -> str | None:
    """Return the character set of a collation; None for a collation name that fits any character set."""
    first = collation.partition("_")[0]
    return None if first in ("uca1400", "default", "bin") else first


_OF_ORACLE: Final = frozenset({"NUMBER", "CLOB", "BLOB", "RAW", "VARCHAR2", "VARCHAR"})


def _oracle_type(word: str, cursor: Cursor, dialect: Dialect) -> DataType:
    """Read a type that has another meaning in MariaDB's sql_mode=ORACLE."""
    sizes = _sizes(cursor)
    if word == "NUMBER":
        return DataType("decimal", f"{sizes[0]},{(*sizes, 0)[1]}", _sign(cursor)) if sizes else DataType("double")
    if word == "RAW":
        return DataType("varbinary", str((sizes or [1])[0]))
    if word == "BLOB":
        return DataType("longblob")
    name = "longtext" if word == "CLOB" else "varchar"
    return _text(DataType(name, str(sizes[0]) if sizes else ""), cursor, dialect)
