"""Tables of every type that a server has, with their extreme values. The same seed gives the same statements."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.servers import Server, mysql56
from tests.support.binlog import workload_json
from tests.support.binlog.workload import SCHEMA, Column, Kind, Table, binary, literal, make_column, text_column

# --- numbers ---


def _integers(random_numbers: random.Random) -> Table:
    columns = []
    for name, bits in (("tinyint", 8), ("smallint", 16), ("mediumint", 24), ("int", 32), ("bigint", 64)):
        half, whole = 1 << (bits - 1), 1 << bits
        signed = [-half, half - 1, 0, -1, 1, *(random_numbers.randrange(-half, half) for _ in range(12))]
        unsigned = [0, whole - 1, half, half - 1, 1, *(random_numbers.randrange(whole) for _ in range(12))]
        columns.append(make_column(f"{name}_signed", name, "integer", signed))
        columns.append(make_column(f"{name}_unsigned", f"{name} unsigned", "integer", unsigned))
        columns.append(make_column(f"{name}_required", f"{name} unsigned not null", "integer", unsigned))
    columns.append(make_column("flag", "tinyint(1)", "integer", [0, 1, -1]))
    columns.append(make_column("filled", "int(8) unsigned", "integer", [0, 42, 4294967295]))
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
        columns.append(make_column(f"d{precision}_{scale}", f"decimal({precision},{scale})", "decimal", values))
    columns.append(make_column("unsigned_one", "decimal(10,3) unsigned", "decimal", [0, "9999999.999", "0.001"]))
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
            make_column("a_double", "double", "double", doubles),
            make_column("a_float", "float", "float", floats),
            make_column("required_double", "double not null", "double", doubles[:9]),
            make_column("float_of_24", "float(24)", "float", floats[:9]),
            make_column("float_of_53", "float(53)", "double", doubles[:7]),
            make_column("a_real", "real", "double", doubles[:5]),
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
        columns.append(make_column(f"b{width}", f"bit({width})", "bit", [f"b'{value:b}'" for value in values]))
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
        make_column("a_year", "year", "year", ["0", "1901", "2155", "1970", "2000", "2026"]),
        make_column("a_date", "date", "date", [f"'{value}'" for value in dates]),
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
        columns.append(make_column(f"time{digits}", f"time{suffix}", "time", times))
        moments = [f"'{value} 00:00:00'" for value in dates]
        moments += [
            f"'9999-12-31 23:59:59{ends[2]}'",
            f"'2026-11-20 09:08:07{ends[3]}'",
            f"'0000-00-00 01:02:03{ends[1]}'",
        ]
        moments += [f"'1999-12-31 23:59:59{end}'" for end in ends]
        columns.append(make_column(f"datetime{digits}", f"datetime{suffix}", "datetime", moments))
        stamps = ["'0000-00-00 00:00:00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'2000-02-29 12:00:00'"]
        stamps += [f"'2038-01-19 03:14:07{ends[2]}'", f"'1970-01-01 00:00:01{ends[1]}'"]
        stamps += [f"'2026-03-29 01:59:59{end}'" for end in ends]
        columns.append(make_column(f"timestamp{digits}", f"timestamp{suffix} null", "timestamp", stamps))
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


def _texts() -> Table:
    long_ones = ["x" * 254, "x" * 255, "é" * 255, "🎁" * 255, "ab" * 60]
    columns = []
    for charset in ("utf8mb4", "utf8mb3", "latin1", "ascii"):
        suffix = f"character set {charset}"
        columns += [
            text_column(f"char10_{charset}", f"char(10) {suffix}", [text[:10] for text in SAMPLE_TEXTS], charset),
            text_column(f"char255_{charset}", f"char(255) {suffix}", SAMPLE_TEXTS + long_ones, charset),
            text_column(f"varchar60_{charset}", f"varchar(60) {suffix} not null", SAMPLE_TEXTS, charset),
            text_column(f"varchar255_{charset}", f"varchar(255) {suffix}", SAMPLE_TEXTS + long_ones, charset),
            text_column(f"varchar256_{charset}", f"varchar(256) {suffix}", SAMPLE_TEXTS + long_ones, charset),
        ]
    for length in (1, 63, 64, 85, 86):
        texts = ["", "a", "ü" * length, "🎁" * length, "b" * length]
        columns.append(text_column(f"char{length}", f"char({length}) character set utf8mb4", texts, "utf8mb4"))
        columns.append(text_column(f"varchar{length}", f"varchar({length}) character set utf8mb4", texts, "utf8mb4"))
    return Table("texts", tuple(columns))


def _large_texts() -> Table:
    sizes = {"tinytext": 255, "text": 65535, "mediumtext": 70_000, "longtext": 1_200_000}
    columns = []
    for name, size in sizes.items():
        texts = ["", "ü", "x" * size, "🎁" * (size // 4), "y" * (size // 2)]
        columns.append(text_column(f"{name}_utf8mb4", f"{name} character set utf8mb4", texts, "utf8mb4"))
        columns.append(
            text_column(f"{name}_latin1", f"{name} character set latin1", ["", "ü" * min(size, 999)], "latin1")
        )
        blobs = [b"", b"\0", bytes(range(256))[:255], b"\xff\xfe" * (min(size, 66_000) // 2)]
        kind = name.replace("text", "blob")
        columns.append(make_column(kind, kind, "binary", [binary(value) for value in blobs]))
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
            make_column("binary1", "binary(1)", "binary", [binary(value[:1]) for value in values]),
            make_column("binary20", "binary(20)", "binary", texts),
            make_column("binary16_required", "binary(16) not null", "binary", [binary(value[:16]) for value in values]),
            make_column("binary255", "binary(255)", "binary", [*texts, binary(b"\xff" * 255)]),
            make_column("varbinary20", "varbinary(20)", "binary", texts),
            make_column("varbinary255", "varbinary(255)", "binary", [*texts, binary(b"\0" * 255)]),
            make_column("varbinary300", "varbinary(300)", "binary", [*texts, binary(b"\x80" * 300)]),
            make_column(
                "char_of_binary", "char(8) character set binary", "binary", [binary(value[:8]) for value in values]
            ),
        ),
    )


def _charsets(charsets: Sequence[str]) -> Table:
    """Return sample texts in every character set; the server stores `?` for a character that a set does not have."""
    columns = [
        text_column(f"varchar_{charset}", f"varchar(60) character set {charset}", SAMPLE_TEXTS, charset)
        for charset in charsets
    ]
    columns += [
        text_column(
            f"char_{charset}", f"char(10) character set {charset}", [text[:10] for text in SAMPLE_TEXTS], charset
        )
        for charset in charsets
    ]
    return Table("charsets", tuple(columns), options="row_format=dynamic")


def repertoire(charset: str) -> Table:
    """Return every character of the basic plane and some beyond, in a character set, one row for each 256 of them."""
    pages = []
    for first in [*range(0, 0xD800, 256), *range(0xE000, 0x10000, 256), 0x1D400, 0x1F600, 0x20000, 0x10FF00]:
        pages.append("".join(map(chr, range(first, first + 256))))
    return Table(
        f"repertoire_{charset}", (text_column("page", f"text character set {charset} not null", pages, charset),)
    )


def _enums_and_sets() -> Table:
    # Labels of the basic plane only: information_schema is utf8mb3, so a snapshot has `?` for other characters.
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
        return make_column(
            name, f"enum({labels}) character set {charset}", "enum", texts, charset=charset, members=members
        )

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
        columns.append(make_column(f"set{size}", ddl, "set", texts, charset="utf8mb4", members=members))
    return Table("enums_and_sets", tuple(columns))


# --- shapes of tables ---


def wide(count: int, random_numbers: random.Random) -> Table:
    """Return a table with many columns, with NULLs in every byte of the bitmap."""
    columns = []
    for number in range(count):
        name = f"c{number}"
        match number % 4:
            case 0:
                values = [random_numbers.randrange(100) if random_numbers.random() < 0.6 else "null" for _ in range(13)]
                columns.append(make_column(name, "int", "integer", values))
            case 1:
                texts = [literal(f"v{number}é") if random_numbers.random() < 0.6 else "null" for _ in range(11)]
                columns.append(make_column(name, "varchar(9) character set utf8mb4", "text", texts, charset="utf8mb4"))
            case 2:
                columns.append(make_column(name, "bigint unsigned not null", "integer", [0, 1 << 63, number]))
            case _:
                moments = ["'2026-11-20 01:02:03.04'" if random_numbers.random() < 0.6 else "null" for _ in range(7)]
                columns.append(make_column(name, "datetime(2)", "datetime", moments))
    return Table(f"wide_{count}", tuple(columns))


def _shapes() -> list[Table]:
    one = make_column("a", "int", "integer", [1, 2, 3])
    composite = (
        make_column("tenant", "int unsigned not null", "integer", [1, 1, 2, 4294967295]),
        make_column(
            "code",
            "varchar(8) character set utf8mb4 not null",
            "text",
            ["'a|b'", "'c\\\\d'", "''", "'é'"],
            charset="utf8mb4",
        ),
        make_column("day", "date not null", "date", ["'2026-01-01'", "'2026-01-02'"]),
        make_column("value", "decimal(6,2)", "decimal", ["1.5", "-2.25", "0"]),
    )
    no_key = (
        one,
        make_column("b", "varchar(10) character set latin1", "text", ["'x'", "'ü'", "'x'"], charset="latin1"),
    )
    odd = (
        make_column("sp ace", "int", "integer", [1]),
        make_column("q`uote", "int", "integer", [2]),
        make_column("Ümläut", "varchar(5) character set utf8mb4", "text", ["'é'"], charset="utf8mb4"),
        make_column("日本", "int unsigned", "integer", [4294967295]),
    )
    mixed = Table(
        "statements", (one, make_column("b", "varchar(10) character set utf8mb4", "text", ["'x'"], charset="utf8mb4"))
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
        Table(mixed.name, mixed.columns, extra_statements=more),
    ]


def _generated() -> Table:
    return Table(
        "generated",
        (
            make_column("a", "int", "integer", [1, 2, 3]),
            Column("doubled", "int generated always as (a * 2) stored", "integer", ("0",)),
            Column("negated", "int generated always as (-a) virtual", "integer", ("0",)),
            make_column("after_them", "varchar(20) character set utf8mb4", "text", ["'end'"], charset="utf8mb4"),
        ),
    )


def tables(server: Server, charsets: Sequence[str], seed: int = 1) -> list[Table]:
    """Return the tables of every type that all servers have, and of JSON where it is a type.

    Parameters
    ----------
    charsets
        Character sets of the server.
    seed
        Seed of the random values that supplement the extreme values.
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
        wide(9, random_numbers),
        wide(65, random_numbers),
        wide(300, random_numbers),
        *_shapes(),
    ]
    if server.distribution is not mysql56:
        result.append(_generated())
        documents = workload_json.literals(server.flavor, random_numbers)
        kind: Kind = "json" if server.flavor == "mysql" else "text"
        result.append(Table("documents", (make_column("document", "json", kind, documents, charset="utf8mb4"),)))
    return result


def server_charsets(server: Server) -> list[str]:
    """Return the character sets of a server, without `binary`."""
    rows = server.execute("select character_set_name from information_schema.character_sets order by 1")
    return [row[0] for row in rows if row[0] != "binary"]
