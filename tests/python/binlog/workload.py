"""Rows of every type that a normal schema has, with their extremes, for a real server to log.

A `Column` knows its declaration, the SQL literals to store in it, and how to select it in binloom's text
form. `tables(flavor, seed)` returns the tables; `run(server, tables)` makes and changes them. The same
seed gives the same statements.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tests.python.binlog import workload_json
from tests.servers import Server

SCHEMA = "workload"
# Zero dates, invalid dates and characters that a column's set does not have are stored as well as can be.
SQL_MODE = "ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO"

Flavor = Literal["mysql", "mariadb"]
Kind = Literal[
    "integer", "decimal", "float", "double", "bit", "year", "date", "time", "datetime", "timestamp", "text", "binary",
    "enum", "set", "json",
]  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column, and what to put into it.

    Attributes
    ----------
    name, ddl
        Name and declaration: `int unsigned not null`.
    kind
        The family of its type: what decides its text form.
    literals
        SQL expressions, stored in turn.
    charset
        Character set of a text column.
    members
        Labels of an ENUM or SET.
    """

    name: str
    ddl: str
    kind: Kind
    literals: tuple[str, ...]
    charset: str | None = None
    members: tuple[str, ...] = ()

    @property
    def is_nullable(self) -> bool:
        return "not null" not in self.ddl and "generated" not in self.ddl

    @property
    def is_generated(self) -> bool:
        return "generated" in self.ddl

    @property
    def is_unsigned(self) -> bool:
        return "unsigned" in self.ddl

    @property
    def select(self) -> str:
        """The expression that makes the server print the column in binloom's text form."""
        name = quoted(self.name)
        if self.kind == "bit":
            return f"{name}+0"
        if self.kind == "binary":
            return f"concat('0x', hex({name}))"
        if self.kind == "float":
            # A FLOAT prints six digits only; the same number as a DOUBLE prints them all.
            return f"cast({name} as double)"
        return name


@dataclass(frozen=True)
class Table:
    """A table with an `id` column that counts its rows from 1, unless `key` says otherwise."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ("id",)
    options: str = ""
    extra_statements: tuple[str, ...] = field(default=())

    @property
    def rows(self) -> int:
        return max(len(column.literals) for column in self.columns)

    @property
    def identity(self) -> tuple[Column, ...]:
        """Columns before the workload's own, when the key is the usual one."""
        return (Column("id", "int not null", "integer", ()),) if self.key == ("id",) else ()

    @property
    def all_columns(self) -> tuple[Column, ...]:
        return self.identity + self.columns

    @property
    def quoted_name(self) -> str:
        return f"{SCHEMA}.{quoted(self.name)}"

    def ddl(self) -> str:
        lines = [f"{quoted(column.name)} {column.ddl}" for column in self.all_columns]
        if self.key:
            lines.append(f"primary key ({', '.join(quoted(name) for name in self.key)})")
        return f"create table {self.quoted_name} ({', '.join(lines)}) engine=InnoDB {self.options}"

    def select(self) -> str:
        """Return the query whose rows are the table's rows in binloom's text form."""
        return f"select {', '.join(column.select for column in self.all_columns)} from {self.quoted_name}"

    def statements(self) -> Iterator[str]:
        """Yield the changes: inserts, values that move through NULL and one row on, a copy and its deletion."""
        written = [column for column in self.all_columns if not column.is_generated]
        names = ", ".join(quoted(column.name) for column in written)
        yield self.ddl()
        for first in range(0, self.rows, 7):
            values = [self._row(index) for index in range(first, min(first + 7, self.rows))]
            yield f"insert into {self.quoted_name} ({names}) values {', '.join(values)}"
        if self.key == ("id",):
            yield from self._changes(written, names)
        yield from self.extra_statements

    def _row(self, index: int, shift: int = 0) -> str:
        values = [str(index + 1)] if self.identity else []
        values += [_pick(column, index + shift) for column in self.columns if not column.is_generated]
        return f"({', '.join(values)})"

    def _changes(self, written: Sequence[Column], names: str) -> Iterator[str]:
        nullable = [quoted(column.name) for column in written if column.is_nullable]
        if nullable:
            yield f"update {self.quoted_name} set {', '.join(f'{name} = null' for name in nullable)} where id % 2 = 0"
        for index in range(self.rows):
            changes = [
                f"{quoted(column.name)} = {_pick(column, index + 1)}"
                for column in self.columns
                if not column.is_generated
            ]
            yield f"update {self.quoted_name} set {', '.join(changes)} where id = {index + 1}"
        others = ", ".join(quoted(column.name) for column in written[1:])
        yield f"insert into {self.quoted_name} ({names}) select id + 100000, {others} from {self.quoted_name}"
        if nullable:
            moved = "id > 100000 and id % 3 = 0"
            yield f"update {self.quoted_name} set {nullable[0]} = null, id = id + 100000 where {moved}"
        yield f"delete from {self.quoted_name} where id > 100000 and id % 5 <> 0"


def quoted(name: str) -> str:
    """Quote an identifier."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Write text as a literal that means the same under every SQL mode and character set."""
    return f"_utf8mb4 x'{text.encode().hex()}'" if text else "''"


def binary(value: bytes) -> str:
    """Write bytes as a literal."""
    return f"x'{value.hex()}'"


def _pick(column: Column, index: int) -> str:
    return column.literals[index % len(column.literals)]


def _column(name: str, ddl: str, kind: Kind, literals: Sequence[object], **more: object) -> Column:
    texts = tuple(str(each) for each in literals)
    if "not null" not in ddl:
        texts = (*texts, "null")
    return Column(name, ddl, kind, texts, **more)  # type: ignore[arg-type]


# --- numbers ---


def _integers(random_numbers: random.Random) -> Table:
    columns = []
    for name, bits in (("tinyint", 8), ("smallint", 16), ("mediumint", 24), ("int", 32), ("bigint", 64)):
        half, whole = 1 << (bits - 1), 1 << bits
        signed = [-half, half - 1, 0, -1, 1, *(random_numbers.randrange(-half, half) for _ in range(12))]
        unsigned = [0, whole - 1, half, half - 1, 1, *(random_numbers.randrange(whole) for _ in range(12))]
        columns.append(_column(f"{name}_signed", name, "integer", signed))
        columns.append(_column(f"{name}_unsigned", f"{name} unsigned", "integer", unsigned))
        columns.append(_column(f"{name}_required", f"{name} unsigned not null", "integer", unsigned))
    columns.append(_column("flag", "tinyint(1)", "integer", [0, 1, -1]))
    columns.append(_column("filled", "int(8) unsigned", "integer", [0, 42, 4294967295]))
    return Table("integers", tuple(columns))


def _decimals(random_numbers: random.Random) -> Table:
    columns = []
    shapes = [(1, 0), (1, 1), (4, 2), (5, 5), (9, 0), (9, 9), (10, 2), (10, 10), (18, 9), (19, 1), (20, 20), (27, 18)]
    shapes += [(30, 30), (38, 10), (57, 28), (64, 1), (65, 0), (65, 30), (65, 9)]
    for precision, scale in shapes:
        most = "9" * (precision - scale) + ("." + "9" * scale if scale else "")
        least = "0." + "0" * (scale - 1) + "1" if scale else "1"
        values = [most, f"-{most}", 0, least, f"-{least}"]
        for _ in range(10):
            digits = "".join(random_numbers.choices("0123456789", k=random_numbers.randint(1, precision)))
            digits = digits.rjust(scale + 1, "0")
            number = digits[: len(digits) - scale] + ("." + digits[len(digits) - scale :] if scale else "")
            values.append(random_numbers.choice(["", "-"]) + number)
        columns.append(_column(f"d{precision}_{scale}", f"decimal({precision},{scale})", "decimal", values))
    columns.append(_column("unsigned_one", "decimal(10,3) unsigned", "decimal", [0, "9999999.999", "0.001"]))
    return Table("decimals", tuple(columns))


def _floats(random_numbers: random.Random) -> Table:
    doubles = ["0e0", "-0e0", "1e0", "-1.5e0", "0.1e0", "1e0/3e0", "1.7976931348623157e308", "-1.7976931348623157e308"]
    doubles += ["2.2250738585072014e-308", "5e-324", "123456789.123456789e0", "9007199254740993e0", "5e-5", "1.5e-7"]
    doubles += ["2.5e0", "100e0", "123456e0", "1234567.5e0", "0.30000000000000004e0", "9.5e-14", "4.35e0", "0.001e0"]
    doubles += [f"1e{power}" for power in (*range(13, 24), 37, 100, -3, -4, -5, -6, -7, -14, -15, -16, -17, -100)]
    doubles += [f"1.2345e{power}" for power in (13, 14, 15, 16, 17, 18, 22, -4, -5, -11, -14, -15, -16)]
    for _ in range(60):
        mantissa = random_numbers.choice([random_numbers.random(), random_numbers.randrange(10**6) / 1000])
        doubles.append(f"{mantissa * 10.0 ** random_numbers.randint(-300, 300)!r}".replace("e+", "e"))
    doubles = [text if "e" in text else f"{text}e0" for text in doubles]
    floats = ["0e0", "-0e0", "1e0", "0.1e0", "1e0/3e0", "3.4028234e38", "-3.4028234e38", "1.17549435e-38", "1e-45"]
    floats += [
        "16777216e0",
        "16777217e0",
        "123456.7e0",
        "1234567e0",
        "3.14159274e0",
        "1e10",
        "1e15",
        "1e-5",
        "9.999999e-5",
    ]
    floats += [f"{random_numbers.random() * 10.0 ** random_numbers.randint(-37, 37)!r}" for _ in range(60)]
    floats = [text if "e" in text else f"{text}e0" for text in floats]
    return Table(
        "floats",
        (
            _column("a_double", "double", "double", doubles),
            _column("a_float", "float", "float", floats),
            _column("required_double", "double not null", "double", doubles[:9]),
            _column("float_of_24", "float(24)", "float", floats[:9]),
            _column("float_of_53", "float(53)", "double", doubles[:7]),
            _column("a_real", "real", "double", doubles[:5]),
        ),
    )


def _bits(random_numbers: random.Random) -> Table:
    columns = []
    for width in range(1, 65):
        values = {
            0: None,
            1: None,
            (1 << width) - 1: None,
            1 << (width - 1): None,
            random_numbers.getrandbits(width): None,
        }
        columns.append(_column(f"b{width}", f"bit({width})", "bit", [f"b'{value:b}'" for value in values]))
    return Table("bits", tuple(columns))


# --- dates and times ---


def _temporals(random_numbers: random.Random) -> Table:
    dates = [
        "0000-00-00",
        "0000-01-00",
        "0000-00-01",
        "2024-00-15",
        "2024-02-31",
        "1000-01-01",
        "9999-12-31",
        "1970-01-01",
    ]
    dates += ["0001-01-01", "2024-02-29"]
    columns = [
        _column("a_year", "year", "year", ["0", "1901", "2155", "1970", "2000", "2026"]),
        _column("a_date", "date", "date", [f"'{value}'" for value in dates]),
    ]
    for digits in range(7):
        fractions = [
            "000000",
            "000001",
            "999999",
            "123456",
            "500000",
            "100000",
            f"{random_numbers.randrange(10**6):06}",
        ]
        ends = [f".{fraction[:digits]}" if digits else "" for fraction in fractions]
        suffix = f"({digits})" if digits else ""
        times = [
            f"'{sign}{clock}{end}'"
            for sign in ("", "-")
            for clock in ("00:00:00", "12:34:56", "00:00:01")
            for end in ends
        ]
        times += [
            "'838:59:59'",
            "'-838:59:59'",
            f"'837:59:59{ends[2]}'",
            f"'-837:59:59{ends[2]}'",
            "'-01:00:00'",
            "'255:00:00'",
        ]
        columns.append(_column(f"time{digits}", f"time{suffix}", "time", times))
        moments = [f"'{value} 00:00:00'" for value in dates]
        moments += [
            f"'9999-12-31 23:59:59{ends[2]}'",
            f"'2026-11-20 09:08:07{ends[3]}'",
            f"'0000-00-00 01:02:03{ends[1]}'",
        ]
        moments += [f"'1999-12-31 23:59:59{end}'" for end in ends]
        columns.append(_column(f"datetime{digits}", f"datetime{suffix}", "datetime", moments))
        stamps = ["'0000-00-00 00:00:00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'2000-02-29 12:00:00'"]
        stamps += [f"'2038-01-19 03:14:07{ends[2]}'", f"'1970-01-01 00:00:01{ends[1]}'"]
        stamps += [f"'2026-03-29 01:59:59{end}'" for end in ends]
        columns.append(_column(f"timestamp{digits}", f"timestamp{suffix} null", "timestamp", stamps))
    return Table("temporals", tuple(columns))


# --- text ---

SAMPLE_TEXTS = [
    "",
    "plain",
    'it\'s "quoted" \\ back\\slash',
    "tab\tnewline\nreturn\rnul\0bell\x07delete\x7f",
    "Zürich, façade, naïve, Ångström, ¿qué?, €",
    "Łódź, Dvořák, Győr, Škoda",
    "Привет, мир",
    "Ελλάδα",
    "שלום",
    "مرحبا",
    "สวัสดี",
    "简体中文, 繁體中文",
    "日本語テキスト、ｶﾅ",
    "한국어",
    "emoji 🎁🙏🏽👩‍👩‍👧, math 𝒳",
    "trailing spaces   ",
    "   leading",
    "?",
]


def _text_column(name: str, ddl: str, texts: Sequence[str], charset: str) -> Column:
    return _column(name, ddl, "text", [literal(text) for text in texts], charset=charset)


def _texts() -> Table:
    long_ones = ["x" * 254, "x" * 255, "é" * 255, "🎁" * 255, "ab" * 60]
    columns = []
    for charset in ("utf8mb4", "utf8mb3", "latin1", "ascii"):
        suffix = f"character set {charset}"
        columns += [
            _text_column(f"char10_{charset}", f"char(10) {suffix}", [text[:10] for text in SAMPLE_TEXTS], charset),
            _text_column(f"char255_{charset}", f"char(255) {suffix}", SAMPLE_TEXTS + long_ones, charset),
            _text_column(f"varchar60_{charset}", f"varchar(60) {suffix} not null", SAMPLE_TEXTS, charset),
            _text_column(f"varchar255_{charset}", f"varchar(255) {suffix}", SAMPLE_TEXTS + long_ones, charset),
            _text_column(f"varchar256_{charset}", f"varchar(256) {suffix}", SAMPLE_TEXTS + long_ones, charset),
        ]
    for length in (1, 63, 64, 85, 86):
        texts = ["", "a", "ü" * length, "🎁" * length, "b" * length]
        columns.append(_text_column(f"char{length}", f"char({length}) character set utf8mb4", texts, "utf8mb4"))
        columns.append(_text_column(f"varchar{length}", f"varchar({length}) character set utf8mb4", texts, "utf8mb4"))
    return Table("texts", tuple(columns))


def _large_texts() -> Table:
    sizes = {"tinytext": 255, "text": 65535, "mediumtext": 70_000, "longtext": 1_200_000}
    columns = []
    for name, size in sizes.items():
        texts = ["", "ü", "x" * size, "🎁" * (size // 4), "y" * (size // 2)]
        columns.append(_text_column(f"{name}_utf8mb4", f"{name} character set utf8mb4", texts, "utf8mb4"))
        columns.append(
            _text_column(f"{name}_latin1", f"{name} character set latin1", ["", "ü" * min(size, 999)], "latin1")
        )
        blobs = [b"", b"\0", bytes(range(256))[:255], b"\xff\xfe" * (min(size, 66_000) // 2)]
        kind = name.replace("text", "blob")
        columns.append(_column(kind, kind, "binary", [binary(value) for value in blobs]))
    return Table("large_texts", tuple(columns))


def _binaries(random_numbers: random.Random) -> Table:
    values = [
        b"",
        b"\0",
        b"a",
        b"a\0\0",
        b"\0\0a",
        b"trailing  ",
        bytes(range(20)),
        bytes(range(236, 256)),
        b"\xc3\x28",
    ]
    values += [random_numbers.randbytes(random_numbers.randint(1, 20)) for _ in range(10)]
    texts = [binary(value) for value in values]
    return Table(
        "binaries",
        (
            _column("binary1", "binary(1)", "binary", [binary(value[:1]) for value in values]),
            _column("binary20", "binary(20)", "binary", texts),
            _column("binary16_required", "binary(16) not null", "binary", [binary(value[:16]) for value in values]),
            _column("binary255", "binary(255)", "binary", [*texts, binary(b"\xff" * 255)]),
            _column("varbinary20", "varbinary(20)", "binary", texts),
            _column("varbinary255", "varbinary(255)", "binary", [*texts, binary(b"\0" * 255)]),
            _column("varbinary300", "varbinary(300)", "binary", [*texts, binary(b"\x80" * 300)]),
            _column(
                "char_of_binary", "char(8) character set binary", "binary", [binary(value[:8]) for value in values]
            ),
        ),
    )


def _charsets(charsets: Sequence[str]) -> Table:
    """Sample texts in every character set; what a set does not have, the server stores as `?`."""
    columns = [
        _text_column(f"varchar_{charset}", f"varchar(60) character set {charset}", SAMPLE_TEXTS, charset)
        for charset in charsets
    ]
    columns += [
        _text_column(
            f"char_{charset}", f"char(10) character set {charset}", [text[:10] for text in SAMPLE_TEXTS], charset
        )
        for charset in charsets
    ]
    return Table("charsets", tuple(columns), options="row_format=dynamic")


def repertoire(charset: str) -> Table:
    """Every character of the basic plane and some beyond, a row for each 256 of them, in a character set."""
    pages = []
    for first in [*range(0, 0xD800, 256), *range(0xE000, 0x10000, 256), 0x1D400, 0x1F600, 0x20000, 0x10FF00]:
        pages.append("".join(map(chr, range(first, first + 256))))
    return Table(
        f"repertoire_{charset}", (_text_column("page", f"text character set {charset} not null", pages, charset),)
    )


def _enums_and_sets() -> Table:
    # Labels of the basic plane only: information_schema is utf8mb3, so a snapshot has `?` for any beyond it.
    few = (
        "small",
        "medium",
        "large",
        "",
        "it's",
        "with,comma",
        "Größe",
        "贈り物",
        "back\\slash",
        "tab\tnewline\n",
        '"',
    )
    many = tuple(f"member {number}" for number in range(300))
    edge = tuple(f"m{number}" for number in range(255))
    latin = ("eins", "fünf", "ÿ")

    def enum_column(name: str, members: tuple[str, ...], values: Sequence[str], charset: str = "utf8mb4") -> Column:
        labels = ", ".join("'" + member.replace("'", "''").replace("\\", "\\\\") + "'" for member in members)
        texts = [literal(value) for value in values]
        return _column(name, f"enum({labels}) character set {charset}", "enum", texts, charset=charset, members=members)

    columns = [
        enum_column("few", few, few),
        enum_column("latin", latin, latin, "latin1"),
        enum_column("single", ("only",), ("only", "not a member")),
        enum_column("of255", edge, (edge[0], edge[127], edge[128], edge[254])),
        enum_column("of300", many, (many[0], many[254], many[255], many[256], many[299])),
    ]
    for size in (1, 2, 8, 9, 16, 17, 24, 25, 32, 33, 40, 48, 56, 57, 63, 64):
        members = tuple(f"ü{number}" if number == 3 else f"f{number}" for number in range(size))
        labels = ", ".join(f"'{member}'" for member in members)
        values = ["", members[0], members[-1], ",".join(members), ",".join(members[::2])]
        ddl = f"set({labels}) character set utf8mb4"
        texts = [literal(value) for value in values]
        columns.append(_column(f"set{size}", ddl, "set", texts, charset="utf8mb4", members=members))
    return Table("enums_and_sets", tuple(columns))


# --- shapes of tables ---


def _wide(count: int, random_numbers: random.Random) -> Table:
    """A table with many columns, whose NULLs fall in every byte of the bitmap."""
    columns = []
    for number in range(count):
        name = f"c{number}"
        match number % 4:
            case 0:
                values = [random_numbers.randrange(100) if random_numbers.random() < 0.6 else "null" for _ in range(13)]
                columns.append(_column(name, "int", "integer", values))
            case 1:
                texts = [literal(f"v{number}é") if random_numbers.random() < 0.6 else "null" for _ in range(11)]
                columns.append(_column(name, "varchar(9) character set utf8mb4", "text", texts, charset="utf8mb4"))
            case 2:
                columns.append(_column(name, "bigint unsigned not null", "integer", [0, 1 << 63, number]))
            case _:
                moments = ["'2026-11-20 01:02:03.04'" if random_numbers.random() < 0.6 else "null" for _ in range(7)]
                columns.append(_column(name, "datetime(2)", "datetime", moments))
    return Table(f"wide_{count}", tuple(columns))


def _shapes() -> list[Table]:
    one = _column("a", "int", "integer", [1, 2, 3])
    composite = (
        _column("tenant", "int unsigned not null", "integer", [1, 1, 2, 4294967295]),
        _column(
            "code",
            "varchar(8) character set utf8mb4 not null",
            "text",
            ["'a|b'", "'c\\\\d'", "''", "'é'"],
            charset="utf8mb4",
        ),
        _column("day", "date not null", "date", ["'2026-01-01'", "'2026-01-02'"]),
        _column("value", "decimal(6,2)", "decimal", ["1.5", "-2.25", "0"]),
    )
    no_key = (one, _column("b", "varchar(10) character set latin1", "text", ["'x'", "'ü'", "'x'"], charset="latin1"))
    odd = (
        _column("sp ace", "int", "integer", [1]),
        _column("q`uote", "int", "integer", [2]),
        _column("Ümläut", "varchar(5) character set utf8mb4", "text", ["'é'"], charset="utf8mb4"),
        _column("日本", "int unsigned", "integer", [4294967295]),
    )
    generated = (
        one,
        Column("doubled", "int generated always as (a * 2) stored", "integer", ("0",)),
        Column("negated", "int generated always as (-a) virtual", "integer", ("0",)),
        _column("after_them", "varchar(20) character set utf8mb4", "text", ["'end'"], charset="utf8mb4"),
    )
    mixed = Table(
        "statements", (one, _column("b", "varchar(10) character set utf8mb4", "text", ["'x'"], charset="utf8mb4"))
    )
    more = (
        f"replace into {mixed.quoted_name} values (1, 10, 'replaced'), (77, 7, 'new')",
        f"insert into {mixed.quoted_name} values (1, 1, 'x'), (78, 8, 'y')"
        " on duplicate key update a = a + 1, b = 'again'",
        f"update {mixed.quoted_name} set id = id + 1000 order by id desc",
        f"update {mixed.quoted_name} s join {SCHEMA}.no_key n on n.a = 1 set s.b = 'joined', n.b = 'Ü'",
        f"delete from {mixed.quoted_name} where id > 1070",
        f"delete from {SCHEMA}.no_key where a = 3 limit 1",
    )
    composite_name = f"{SCHEMA}.composite_key"
    return [
        Table(
            "composite_key",
            composite,
            key=("tenant", "code"),
            extra_statements=(
                f"update {composite_name} set tenant = tenant + 5 where tenant < 3",
                f"update {composite_name} set value = null",
                f"update {composite_name} set value = 9.99, day = '2027-01-01' where code = 'é'",
                f"delete from {composite_name} where code = ''",
            ),
        ),
        Table("no_key", no_key, key=()),
        Table("odd names & 表", odd),
        Table("generated", generated),
        Table(mixed.name, mixed.columns, extra_statements=more),
    ]


def tables(flavor: Flavor, charsets: Sequence[str], seed: int = 1) -> list[Table]:
    """Return the tables of the workload.

    Parameters
    ----------
    flavor
        MariaDB's JSON is a text type, so it has no table of JSON values.
    charsets
        Character sets of the server.
    seed
        Of the random values beside the extremes.
    """
    random_numbers = random.Random(seed)
    result = [
        _integers(random_numbers),
        _decimals(random_numbers),
        _floats(random_numbers),
        _bits(random_numbers),
        _temporals(random_numbers),
        _texts(),
        _large_texts(),
        _binaries(random_numbers),
        _charsets(charsets),
        _enums_and_sets(),
        _wide(9, random_numbers),
        _wide(65, random_numbers),
        _wide(300, random_numbers),
        *_shapes(),
    ]
    documents = workload_json.literals(flavor, random_numbers)
    if flavor == "mysql":
        result.append(Table("documents", (_column("document", "json", "json", documents),)))
    else:
        column = _column("document", "json", "text", documents, charset="utf8mb4")
        result.append(Table("documents", (column,)))
    return result


def server_charsets(server: Server) -> list[str]:
    """Return the character sets of a server, without `binary`."""
    rows = server.execute("select character_set_name from information_schema.character_sets order by 1")
    return [row[0] for row in rows if row[0] != "binary"]


def run(server: Server, workload: Sequence[Table]) -> None:
    """Make the tables in a fresh schema and change them; every third statement begins a new transaction."""
    server.execute(f"drop database if exists {SCHEMA}", f"create database {SCHEMA} character set utf8mb4")
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute(f"set session sql_mode = '{SQL_MODE}', time_zone = '+00:00', group_concat_max_len = 10000000")
        for table in workload:
            for number, statement in enumerate(table.statements()):
                try:
                    cursor.execute(statement)
                except Exception as error:
                    raise RuntimeError(f"{table.name}: {statement[:300]}") from error
                if number % 3 == 2:
                    connection.commit()
        connection.commit()


def final_rows(server: Server, table: Table) -> list[tuple[str | None, ...]]:
    """Return the rows of a table as the server prints them, in binloom's text form."""
    # Without converters pymysql hands over the text that the server sent.
    with server.connect(conv={}) as connection, connection.cursor() as cursor:
        cursor.execute("set session time_zone = '+00:00'")
        cursor.execute(table.select())
        return [tuple(None if value is None else _text(value) for value in row) for row in cursor.fetchall()]


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()
