"""TABLE_MAP events: the columns of a table as a binlog describes them.

Source: server, libs/mysql/binlog/event/rows_event.h, `Table_map_event`. The optional metadata after the
null bits exists since MySQL 8.0.1 and MariaDB 10.5.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from ingest.binlog.events.hints import ColumnHint, Definition
from ingest.binlog.events.reader import MalformedEventError, Reader
from ingest.binlog.text.charsets import BINARY, charset_of, decode_text
from ingest.versions import NEWEST, Flavor, Version

MOST_COLUMNS: Final = 4096
"""Most columns of a table in MySQL and MariaDB: server, sql/sql_const.h, `MAX_FIELDS`."""

TYPE_NAMES: Final[dict[int, str]] = {
    0: "DECIMAL",
    1: "TINY",
    2: "SHORT",
    3: "LONG",
    4: "FLOAT",
    5: "DOUBLE",
    6: "NULL",
    7: "TIMESTAMP",
    8: "LONGLONG",
    9: "INT24",
    10: "DATE",
    11: "TIME",
    12: "DATETIME",
    13: "YEAR",
    14: "NEWDATE",
    15: "VARCHAR",
    16: "BIT",
    17: "TIMESTAMP2",
    18: "DATETIME2",
    19: "TIME2",
    20: "TYPED_ARRAY",
    140: "BLOB_COMPRESSED",
    141: "VARCHAR_COMPRESSED",
    242: "VECTOR",
    243: "INVALID",
    244: "BOOL",
    245: "JSON",
    246: "NEWDECIMAL",
    247: "ENUM",
    248: "SET",
    249: "TINY_BLOB",
    250: "MEDIUM_BLOB",
    251: "LONG_BLOB",
    252: "BLOB",
    253: "VAR_STRING",
    254: "STRING",
    255: "GEOMETRY",
}

_INTEGERS: Final = frozenset({"TINY", "SHORT", "INT24", "LONG", "LONGLONG"})
_NUMERIC: Final = _INTEGERS | {"NEWDECIMAL", "FLOAT", "DOUBLE"}
_CHARACTER: Final = frozenset({"STRING", "VAR_STRING", "VARCHAR", "BLOB", "BLOB_COMPRESSED", "VARCHAR_COMPRESSED"})
_LABELLED: Final = frozenset({"ENUM", "SET"})

# Columns that have an entry in the optional metadata, also those whose entry has no meaning. Source: MySQL,
# sql/field_common_properties.h, `has_signedess_information_type`, and sql/log_event.cc, `is_character_field`; MariaDB,
# sql/field.h, `Binlog_type_info` of each field, where a GEOMETRY is a BLOB.
_WITH_SIGN: Final = _NUMERIC | {"YEAR", "DECIMAL"}
_WITH_CHARSET: Final = {"mysql": _CHARACTER | {"VECTOR"}, "mariadb": _CHARACTER | {"GEOMETRY"}}

_OLD_TEMPORAL: Final = frozenset({"TIME", "DATETIME", "TIMESTAMP"})
_FIRST_FRACTIONS: Final = (5, 3, 0)

# MariaDB logs these types as BINARY of this many bytes: only a snapshot can identify them. Below, by size: the first
# versions that have such a type.
FIXED_BINARY: Final = {"UUID": 16, "INET4": 4, "INET6": 16}
_FIRST_FIXED_BINARY: Final = {16: (10, 5, 0), 4: (10, 10, 0)}

_METADATA_BYTES: Final = {
    **dict.fromkeys(("FLOAT", "DOUBLE", "TINY_BLOB", "BLOB", "MEDIUM_BLOB", "LONG_BLOB", "GEOMETRY", "JSON"), 1),
    **dict.fromkeys(("TIMESTAMP2", "DATETIME2", "TIME2", "VECTOR", "BLOB_COMPRESSED"), 1),
    **dict.fromkeys(("VARCHAR", "BIT", "NEWDECIMAL", "STRING", "VAR_STRING", "ENUM", "SET", "VARCHAR_COMPRESSED"), 2),
}

# Data types of information_schema that a wire type may represent.
_COMPATIBLE: Final[dict[str, frozenset[str]]] = {
    "TINY": frozenset({"tinyint", "bool", "boolean"}),
    "SHORT": frozenset({"smallint"}),
    "INT24": frozenset({"mediumint"}),
    "LONG": frozenset({"int", "integer"}),
    "LONGLONG": frozenset({"bigint", "serial"}),
    "FLOAT": frozenset({"float"}),
    "DOUBLE": frozenset({"double", "real"}),
    "NEWDECIMAL": frozenset({"decimal", "numeric"}),
    "BIT": frozenset({"bit"}),
    "YEAR": frozenset({"year"}),
    "DATE": frozenset({"date"}),
    "NEWDATE": frozenset({"date"}),
    **dict.fromkeys(("TIME", "TIME2"), frozenset({"time"})),
    **dict.fromkeys(("DATETIME", "DATETIME2"), frozenset({"datetime"})),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP2"), frozenset({"timestamp"})),
    "VARCHAR": frozenset({"varchar", "varbinary", "vector"}),
    "VARCHAR_COMPRESSED": frozenset({"varchar", "varbinary"}),
    "STRING": frozenset({"char", "binary", "inet4", "inet6", "uuid"}),
    "VAR_STRING": frozenset({"char", "binary"}),
    "ENUM": frozenset({"enum"}),
    "SET": frozenset({"set"}),
    **dict.fromkeys(
        ("BLOB", "BLOB_COMPRESSED"),
        frozenset({"tinyblob", "blob", "mediumblob", "longblob", "tinytext", "text", "mediumtext", "longtext", "json"}),
    ),
    "JSON": frozenset({"json"}),
    "GEOMETRY": frozenset(
        {
            "geometry",
            "point",
            "linestring",
            "polygon",
            "multipoint",
            "multilinestring",
            "multipolygon",
            "geometrycollection",
            "geomcollection",
        }
    ),
    "VECTOR": frozenset({"vector"}),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table map.

    `metadata` is the value in the event: maximum bytes of VARCHAR and STRING, length bytes of BLOB and JSON,
    fraction digits of temporal types, precision * 256 + scale of NEWDECIMAL, bits of BIT, bytes of ENUM and SET.
    For MariaDB's temporal types from before 10.1 the fraction digits come from the snapshot, else they are 0.
    A fact is None when neither the event nor a hint provides it. `unknown_hint` names this fact when the text of the
    column's values depends on it: `sign`, `charset`, `labels`, or `type` (BINARY, UUID and INET6 are logged alike).
    """

    ordinal: int
    type: str
    metadata: int
    is_nullable: bool
    is_unsigned: bool | None = None
    charset: str | None = None
    members: tuple[str, ...] | None = None
    name: str | None = None
    is_primary_key: bool | None = None
    is_visible: bool | None = None
    unknown_hint: str | None = None


@dataclass(frozen=True, slots=True)
class TableMap:
    """A table map and the hints for decoding it.

    `hint` is the source of the hints: `snapshot` when a snapshot provided any fact that the text of a value
    depends on, else `metadata` when the event itself did, else `none`. `column_names` are the event's own
    or the snapshot's. `has_metadata` is False for MySQL 5.1 before 5.1.18, whose table maps contain only types.
    `lacks_digits` means that temporal columns may have a fraction with an unknown number of digits: MariaDB has
    such types since 5.3, and logs them with the codes of types without a fraction. `fixed_binary_sizes` contains
    the sizes, in bytes, of BINARY columns that may really be columns of a type in `FIXED_BINARY`. `hidden_columns` are
    logged behind `columns`, and are no part of the table that anybody sees.
    """

    table_map_id: str
    schema_name: str
    table_name: str
    columns: tuple[Column, ...]
    hint: str
    column_names: tuple[str, ...] | None
    has_metadata: bool = True
    lacks_digits: bool = False
    fixed_binary_sizes: frozenset[int] = frozenset()
    hidden_columns: tuple[Column, ...] = ()

    @property
    def logged_columns(self) -> tuple[Column, ...]:
        """All columns of the event."""
        return *self.columns, *self.hidden_columns


def parse_table_map(body: bytes, flavor: Flavor = "mysql", version: Version = NEWEST) -> TableMap:
    """Parse the body of a TABLE_MAP event after its table id.

    Parameters
    ----------
    body
        Flags (2 bytes), schema and table (size, name, zero byte), column count, types, metadata, null bits,
        optional metadata.
    flavor, version
        Flavor and version of the server that wrote the event: MySQL and MariaDB differ in which columns have metadata
        entries.

    Raises
    ------
    MalformedEventError
        When the fields do not fit into the body, or there are more columns than a table can have.
    """
    reader = Reader(body)
    reader.take(2)
    schema = reader.take(reader.byte()).decode("utf-8", "backslashreplace")
    reader.take(1)
    table = reader.take(reader.byte()).decode("utf-8", "backslashreplace")
    reader.take(1)
    count = reader.packed()
    if count > MOST_COLUMNS:
        raise MalformedEventError(f"{count} columns, more than a table can have")
    types = reader.take(count)
    if not reader.left:
        columns = [Column(ordinal, TYPE_NAMES.get(code, str(code)), 0, True) for ordinal, code in enumerate(types)]
        return TableMap("", schema, table, tuple(columns), "none", None, has_metadata=False)
    metadata = Reader(reader.take(reader.packed()))
    null_bits = reader.take((count + 7) // 8)
    columns = []
    for ordinal, code in enumerate(types):
        name, value = _column_type(code, metadata)
        is_nullable = bool(null_bits[ordinal >> 3] >> (ordinal & 7) & 1)
        columns.append(Column(ordinal, name, value, is_nullable))
    optional = _optional_metadata(reader)
    described = _describe(columns, optional, flavor)
    visible = max((column.ordinal + 1 for column in described if column.type != "TYPED_ARRAY"), default=0)
    named_columns = described[:visible]
    names = tuple(column.name for column in named_columns if column.name is not None)
    return TableMap(
        table_map_id="",
        schema_name=schema,
        table_name=table,
        columns=named_columns,
        hint="metadata" if optional else "none",
        column_names=names if len(names) == visible and visible else None,
        lacks_digits=flavor == "mariadb"
        and version >= _FIRST_FRACTIONS
        and any(column.type in _OLD_TEMPORAL for column in columns),
        fixed_binary_sizes=frozenset(
            size for size, first in _FIRST_FIXED_BINARY.items() if flavor == "mariadb" and version >= first
        ),
        hidden_columns=described[visible:],
    )


def with_hints(table_map: TableMap, body: bytes, definitions: tuple[Definition, ...]) -> TableMap:
    """Return the table map with its id, completed by a definition of the table that fits it.

    The event's own metadata has priority. Only a definition can provide UUID, INET4, INET6 and the digits of old
    temporal types. A definition counts only as a whole: as many columns, each of a compatible type. A column of
    unknown type stays as the event describes it, and so does one that several fitting definitions complete differently.
    The id is a hash of the event's bytes, of the facts that the definitions added, and of the facts that are unknown.
    """
    columns, hint = table_map.columns, table_map.hint
    fitting = [found for one in definitions if (found := fitting_hints(columns, one)) is not None]
    completed = {
        tuple(
            _complete(column, known, with_digits=table_map.lacks_digits)
            for column, known in zip(columns, one, strict=True)
        )
        for one in fitting
    }
    disputed = {ordinal for ordinal, known in enumerate(zip(*completed, strict=True)) if len(set(known)) > 1}
    disputed |= {ordinal for one in fitting for ordinal, known in enumerate(one) if not known.data_type}
    if completed:
        some = next(iter(completed))
        agreed = tuple(column if column.ordinal in disputed else some[column.ordinal] for column in columns)
        if agreed != columns or table_map.lacks_digits:
            columns, hint = agreed, "snapshot"
    columns = tuple(
        replace(column, unknown_hint=unknown) if unknown else column
        for column, unknown in (
            (
                column,
                _unknown_hint(column, table_map.fixed_binary_sizes, bool(completed) and column.ordinal not in disputed),
            )
            for column in columns
        )
    )
    digest = hashlib.blake2b(body, digest_size=16)
    if hint == "snapshot" or any(column.unknown_hint for column in columns):
        facts = [
            (c.type, c.metadata, c.is_nullable, c.is_unsigned, c.charset, c.members, c.unknown_hint) for c in columns
        ]
        digest.update(repr(facts).encode())
    names = {tuple(known.name for known in one) for one in fitting}
    return replace(
        table_map,
        table_map_id=digest.hexdigest(),
        columns=columns,
        hint=hint,
        column_names=table_map.column_names or (names.pop() if len(names) == 1 else None),
        lacks_digits=table_map.lacks_digits
        and (not completed or any(columns[at].type in _OLD_TEMPORAL for at in disputed)),
    )


def fitting_hints(columns: tuple[Column, ...], definition: Definition) -> Definition | None:
    """Return the definition if its columns, with or without virtual columns, match these in number and types."""
    for candidate in (definition, tuple(hint for hint in definition if not hint.is_virtual)):
        if len(candidate) == len(columns) and all(
            _may_describe(known, column) for column, known in zip(columns, candidate, strict=True)
        ):
            return candidate
    return None


def _may_describe(known: ColumnHint, column: Column) -> bool:
    if not known.data_type:
        return True
    fixed_size = FIXED_BINARY.get(known.data_type.upper(), column.metadata)
    return known.data_type in _COMPATIBLE.get(column.type, frozenset()) and column.metadata == fixed_size


def _complete(column: Column, known: ColumnHint, *, with_digits: bool) -> Column:
    if known.data_type.upper() in FIXED_BINARY:
        return replace(column, type=known.data_type.upper())
    if with_digits and column.type in _OLD_TEMPORAL:
        return replace(column, metadata=known.fraction_digits)
    changes: dict[str, object] = {}
    if column.is_unsigned is None and column.type in _NUMERIC:
        changes["is_unsigned"] = known.is_unsigned
    if column.charset is None and known.charset is not None and column.type in _CHARACTER | _LABELLED:
        changes["charset"] = known.charset
    if column.members is None and known.members is not None and column.type in _LABELLED:
        changes["members"] = known.members
    return replace(column, **changes) if changes else column  # type: ignore[arg-type]


def _unknown_hint(column: Column, fixed_binary_sizes: frozenset[int], is_described: bool) -> str | None:
    """Return the unknown fact that the text of a column's values depends on; None if there is no such fact."""
    if column.type in _INTEGERS and column.is_unsigned is None:
        return "sign"
    if column.type in _CHARACTER and column.charset is None:
        return "charset"
    if column.type in _LABELLED and column.members is None:
        return "labels"
    is_binary = column.type == "STRING" and column.charset == BINARY
    return "type" if is_binary and not is_described and column.metadata in fixed_binary_sizes else None


def _column_type(code: int, metadata: Reader) -> tuple[str, int]:
    """Return the type's name and its metadata as one number, in the units of `Column`."""
    name = TYPE_NAMES.get(code, str(code))
    size = _METADATA_BYTES.get(name, 0)
    raw = metadata.take(size)
    if name in ("STRING", "VAR_STRING", "ENUM", "SET"):
        real, length = raw
        if real & 0x30 != 0x30:
            # CHAR of 256 bytes or more: the type byte contains two bits of the length, inverted.
            length |= ((real & 0x30) ^ 0x30) << 4
            real |= 0x30
        return TYPE_NAMES.get(real, str(real)), length
    if name == "NEWDECIMAL":
        return name, raw[0] << 8 | raw[1]
    if name == "BIT":
        return name, raw[1] * 8 + raw[0]
    return name, int.from_bytes(raw, "little")


def _optional_metadata(reader: Reader) -> dict[int, bytes]:
    """Return the optional fields by type. A field is type, packed size, bytes. Unknown types are kept and ignored."""
    fields = {}
    while reader.left:
        kind = reader.byte()
        fields[kind] = reader.take(reader.packed())
    return fields


_SIGNEDNESS, _DEFAULT_CHARSET, _COLUMN_CHARSET, _COLUMN_NAME = 1, 2, 3, 4
_SET_STR_VALUE, _ENUM_STR_VALUE, _SIMPLE_PRIMARY_KEY, _PRIMARY_KEY_WITH_PREFIX = 5, 6, 8, 9
_LABELLED_DEFAULT_CHARSET, _LABELLED_COLUMN_CHARSET, _VISIBILITY = 10, 11, 12


def _describe(columns: list[Column], optional: dict[int, bytes], flavor: Flavor) -> tuple[Column, ...]:
    facts: list[dict[str, object]] = [{} for _ in columns]
    if _SIGNEDNESS in optional:
        signed_or_not = [column for column in columns if column.type in _WITH_SIGN]
        for column, bit in zip(signed_or_not, _bits(optional[_SIGNEDNESS]), strict=False):
            if column.type in _NUMERIC:
                facts[column.ordinal]["is_unsigned"] = bit
    for types, default, each in (
        (_WITH_CHARSET[flavor], _DEFAULT_CHARSET, _COLUMN_CHARSET),
        (_LABELLED, _LABELLED_DEFAULT_CHARSET, _LABELLED_COLUMN_CHARSET),
    ):
        concerned = [column for column in columns if column.type in types]
        for index, collation in _collations(optional, default, each, len(concerned)):
            if index < len(concerned) and concerned[index].type in _CHARACTER | _LABELLED:
                facts[concerned[index].ordinal]["charset"] = charset_of(collation)
    if _COLUMN_NAME in optional:
        reader = Reader(optional[_COLUMN_NAME])
        for fact in facts:
            if reader.left:
                fact["name"] = reader.take(reader.packed()).decode("utf-8", "backslashreplace")
    for kind, field in (("SET", _SET_STR_VALUE), ("ENUM", _ENUM_STR_VALUE)):
        reader = Reader(optional.get(field, b""))
        for column in columns:
            if column.type == kind and reader.left:
                labels = [reader.take(reader.packed()) for _ in range(reader.packed())]
                charset = facts[column.ordinal].get("charset")
                facts[column.ordinal]["members"] = tuple(
                    decode_text(label, str(charset) if charset else None) for label in labels
                )
    key: set[int] | None = None
    if _SIMPLE_PRIMARY_KEY in optional:
        key = set(_packed_numbers(optional[_SIMPLE_PRIMARY_KEY]))
    elif _PRIMARY_KEY_WITH_PREFIX in optional:
        key = set(list(_packed_numbers(optional[_PRIMARY_KEY_WITH_PREFIX]))[::2])
    if key is not None or _COLUMN_NAME in optional:
        for ordinal, fact in enumerate(facts):
            fact["is_primary_key"] = ordinal in (key or ())
    if _VISIBILITY in optional:
        for fact, bit in zip(facts, _bits(optional[_VISIBILITY]), strict=False):
            fact["is_visible"] = bit
    return tuple(replace(column, **fact) for column, fact in zip(columns, facts, strict=True))  # type: ignore[arg-type]


def _bits(data: bytes) -> Iterator[bool]:
    """Yield bits, beginning with the highest bit of the first byte."""
    for byte in data:
        for bit in range(7, -1, -1):
            yield bool(byte >> bit & 1)


def _packed_numbers(data: bytes) -> Iterator[int]:
    reader = Reader(data)
    while reader.left:
        yield reader.packed()


def _collations(optional: dict[int, bytes], default: int, each: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield collation ids by index among the columns that have one: a default and exceptions, or one per column."""
    if default in optional:
        numbers = list(_packed_numbers(optional[default]))
        exceptions = dict(zip(numbers[1::2], numbers[2::2], strict=False))
        if numbers:
            yield from ((index, exceptions.get(index, numbers[0])) for index in range(count))
    elif each in optional:
        yield from enumerate(_packed_numbers(optional[each]))
