"""JSON documents that MySQL makes of columns, and very large ones: the logged form against the printed form."""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ingest.binlog.rows import json_diff, patches
from tests.python.binlog.test_against_servers import assert_final_rows
from tests.servers import Server
from tests.support.binlog import recordings
from tests.support.binlog.recordings import Setting
from tests.support.binlog.replay import Decoded
from tests.support.binlog.workload import Column, Table


def assert_decodes(server: Server, literals: tuple[str, ...], directory: Path) -> None:
    table = Table("documents", (Column("document", "json", "json", literals),))
    recording = recordings.record(server, Setting("mysql"), [table], directory)
    assert_final_rows(recording, recording.decoded().committed_changes())


# The server stores values of these columns unchanged in a JSON document, or turns them into one of its own types.
SOURCES = {
    "bit(1)": "b'1'",
    "bit(12)": "b'101010101010'",
    "bit(64)": "~0",
    "tinyblob": "x'00'",
    "blob": "repeat(x'00ff', 28)",
    "mediumblob": "repeat('m', 57)",
    "longblob": "repeat('l', 58)",
    "binary(5)": "x'01'",
    "varbinary(300)": "repeat('v', 300)",
    "year": "2024",
    "geometry": "point(1, 2.5)",
    "enum('a', 'ü')": "'ü'",
    "set('x', 'y')": "'x,y'",
    "float": "1.1",
    "double": "1e-7",
    "decimal(65,30)": "-99999999999999999999999999999999999.999999999999999999999999999999",
    "tinyint unsigned": "255",
    "bigint unsigned": "18446744073709551615",
    "date": "'2024-02-29'",
    "datetime(6)": "'2024-02-29 01:02:03.000001'",
    "datetime": "'0000-00-00'",
    "timestamp(3)": "'2024-02-29 01:02:03.5'",
    "time(2)": "'-01:02:03.25'",
    "time(6)": "'838:59:59'",
    "char(5) character set latin1": "'é'",
    "varchar(9) character set sjis": "'日本'",
    "json": """'{"a": [1, 2.50]}'""",
}


def test_json_of_values_of_every_column_type(mysql_server: Server, tmp_path: Path) -> None:
    columns = ", ".join(f"c{number} {ddl}" for number, ddl in enumerate(SOURCES))
    mysql_server.execute(
        "drop database if exists sources",
        "create database sources",
        "set sql_mode = ''",
        f"create table sources.s ({columns})",
        f"insert into sources.s values ({', '.join(SOURCES.values())})",
    )
    shapes = ("json_array({0})", "json_object('k', {0}, 'more', json_array({0}, {0}))", "json_array(null, {0}, {0})")
    literals = tuple(
        f"(select {shape.format(f'c{number}')} from sources.s)" for number in range(len(SOURCES)) for shape in shapes
    )
    assert_decodes(mysql_server, literals, tmp_path)


def test_json_of_many_bytes_keys_and_levels(mysql_server: Server, tmp_path: Path) -> None:
    keys = {"\0": 1, "\x01\x1f\x7f": 2, '"\\/': 3, "é🎁": 4, "": 5, "\n\t\b\f\r": 6, "k" * 65535: 7}
    texts = [json.dumps(keys), json.dumps({"a": {"b" * 65534: []}})]
    for depth in (99, 100):
        texts += ["[" * depth + "]" * depth, '{"a": ' * (depth - 1) + "{}" + "}" * (depth - 1)]
    # Sizes around the limits between small and large containers, and above 65535 elements.
    for count in (9361, 9362, 13107, 13108, 21844, 21845, 65535, 65536, 70000):
        elements: tuple[object, ...] = (1, 70000, "a", None)
        texts += [json.dumps([element] * count) for element in elements]
        texts.append(json.dumps({str(number): None for number in range(count)}))
    literals = [f"cast(convert(x'{text.encode().hex()}' using utf8mb4) as json)" for text in texts]
    literals += [
        "json_array(repeat('x', 16000000))",
        "json_object('a', repeat(x'00', 999999), 'b', repeat('é', 3000000))",
    ]
    assert_decodes(mysql_server, tuple(literals), tmp_path)


SHAPES = ("cast({0} as json)", "json_array({0}, null, {0})", "json_object('k', {0}, '', json_array({0}))")


def decimals() -> Iterator[str]:
    """Return DECIMALs of each shape that a column can have, and results of expressions, which have up to 81 digits."""
    for precision in (1, 9, 10, 18, 19, 36, 64, 65):
        for scale in {0, 1, 9, 10, 29, 30} & {*range(precision + 1)}:
            whole = precision - scale
            for digits in ("9" * whole + "." + "9" * scale, "1" + "0" * (whole - 1) if whole else "0", "0.1"):
                for sign in ("", "-"):
                    yield f"cast('{sign}{digits}' as decimal({precision},{scale}))"
    yield "cast('-123456789012345678901234567890.123456789' as decimal(65,30))"
    for digits in range(1, 66, 4):
        yield f"-{'9' * digits} * 1.{'9' * 30}"
    yield from ("1.0 / 3.0 / 7.0", f"0.{'1' * 72}", f"0.{'1' * 82}", f"12.{'3' * 40}", f"{'9' * 65} + 1", f"{'9' * 81}")


TEMPORALS = [
    *("maketime(838, 59, 59)", "maketime(-838, 59, 59)", "cast('-00:00:00.000001' as time(6))", "sec_to_time(-1.5)"),
    *("cast('-25:00:00.5' as time(1))", "addtime('838:59:59', '838:59:59')", "cast('9999-12-31' as date)"),
    *("timestamp('0001-01-01')", "cast('0000-00-00' as datetime)", "cast('2024-02-00 11:00:00' as datetime(6))"),
    *("cast('9999-12-31 23:59:59.999999' as datetime(6))", "from_unixtime(1536771201.999999)", "from_unixtime(0)"),
]
OTHERS = [
    *("-128", "255", "-32768", "32767", "32768", "65535", "65536", "-2147483648", "2147483648", "4294967295"),
    *("4294967296", "-9223372036854775808", "9223372036854775807", "~0", "true", "false", "null", "b'1'", "b''"),
    *("1.7976931348623157e308", "2.2250738585072011e-308", "-4.9e-324", "-1e-320", "0e0", "-0e0", "1e15", "1e16"),
    *("1e17", "0.1e0 + 0.2e0", "1e0 / 3e0", "cast(1.1 as float)", "-cast(0 as float)", "cast(3.4e38 as float)"),
    *("cast(2155 as year)", "cast(0 as year)", "cast('' as binary)", "x'00'", "_binary x'ff'", "repeat(x'ff', 58)"),
    *("st_geomfromtext('point(1 2)')", "_latin1 x'e9'", "_gbk x'c4e3'", "_sjis x'93fa'", "convert('é' using koi8u)"),
    # Strings of character sets that JSON functions do not convert: the server prints their bytes.
    *("_ucs2 x'0041'", "_utf16 x'0041005c0022'", "_utf32 x'00000009'", "_utf16le x'4100'", "uuid()", "''"),
]


def test_json_of_the_extremes_of_every_type(mysql_server: Server, tmp_path: Path) -> None:
    expressions = [*decimals(), *TEMPORALS, *OTHERS]
    literals = []
    with mysql_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set sql_mode = ''")
        for literal in (shape.format(expression) for expression in expressions for shape in SHAPES):
            try:
                cursor.execute(f"select {literal}")
            except Exception as refused:  # a text that is not JSON, and one that is not UTF-8
                assert literal.startswith("cast("), (literal, refused)
                continue
            literals.append(literal)
    assert len(literals) > 2 * len(expressions)
    assert_decodes(mysql_server, tuple(literals), tmp_path)


KEYS = [
    "a",
    "k1",
    "_",
    "$",
    "last",
    "1a",
    "",
    " ",
    "a b",
    "a.b",
    "[0]",
    '"',
    "\\",
    "\\u0041",
    "\n",
    "\x01",
    "é",
    "🎁",
    "日本",
]
KEYS += ["\u2028", "\u200d", "k" * 200, "é" * 100]


def a_place(document: Any, random_numbers: random.Random) -> tuple[list[str | int], Any]:
    """Return a place in a document, mostly an existing one, and its value."""
    legs: list[str | int] = []
    while isinstance(document, dict | list) and document and random_numbers.random() < 0.7:
        leg = random_numbers.choice([*document] if isinstance(document, dict) else range(len(document)))
        document = document[leg]
        legs.append(leg)
    return legs, document


def path_of(legs: Sequence[str | int]) -> str:
    return "$" + "".join(f"[{leg}]" if isinstance(leg, int) else f".{json.dumps(leg)}" for leg in legs)


def a_change(document: Any, random_numbers: random.Random) -> tuple[str, list[str]]:
    """Return a call of a function that changes parts of a document, with its parameters."""
    function = random_numbers.choice(["set", "set", "replace", "remove", "array_insert", "insert", "array_append"])
    arguments, parameters = "", []
    for _ in range(random_numbers.choice([1, 1, 1, 2, 5])):
        legs, found = a_place(document, random_numbers)
        if function in ("set", "insert") and random_numbers.random() < 0.5:
            legs.append(random_numbers.randrange(9) if isinstance(found, list) else random_numbers.choice(KEYS))
        elif function == "array_insert":
            legs.append(random_numbers.randrange(9))
        elif function == "remove" and not legs:
            legs.append(0)
        parameters.append(path_of(legs))
        arguments += ", %s"
        if function != "remove":
            values = [
                "json_array()",
                "json_object('é', 1.5, 'a', null)",
                "repeat('x', 300)",
                "'a\\n\\t\\0\"\\\\'",
                "cast(%s as json)",
            ]
            value = random_numbers.choice([*values, *random_numbers.sample(VALUES, 8)])
            arguments += f", {value}"
            if "%s" in value:
                parameters.append(json.dumps({random_numbers.choice(KEYS): [1, {random_numbers.choice(KEYS): "x"}]}))
    return f"json_{function}(doc{arguments})", parameters


VALUES = [*decimals(), *TEMPORALS, *(text for text in OTHERS if not text.startswith(("_utf", "_ucs", "st_geom")))]


def applied_here(document: str, row: dict[str, Any]) -> str:
    """Apply a row's changes to a document."""
    operations = ("replace", "insert", "remove")
    diffs = [
        ",".join(filter(None, (str(operations.index(one["operation"])), json.dumps(one["path"]), one["value"])))
        for one in row["json_changes"]
    ]
    return json_diff.apply_changes(document, json_diff.read_changes(f"[[{'],['.join(diffs)}]]"))


@pytest.mark.parametrize("images", ["FULL", "MINIMAL"])
def test_documents_changed_in_part_at_random(
    mysql_server: Server, monkeypatch: pytest.MonkeyPatch, images: str
) -> None:
    """Both images of each UPDATE equal SELECT before and after it, or contain the change between the two."""
    random_numbers = random.Random(11)
    applied = []

    def counted(document: str, changes: Sequence[json_diff.Change]) -> str:
        applied.append(len(changes))
        return json_diff.apply_changes(document, changes)

    monkeypatch.setattr(patches, "apply_changes", counted)
    documents: list[Any] = [
        {key: [1, -0.0, {key: "x"}, [], None] for key in KEYS},
        [[[1, 2], [3, 4]], {"k": [True, None, 1.5]}, "text"] * 20,
        {"large": ["y" * 500] * 150, "n": list(range(300)), "members": {f"key {n}": n for n in range(300)}},
        json.loads('{"a": ' * 49 + "[" * 49 + "1" + "]" * 49 + "}" * 49),
    ]
    expected = []
    with Setting.of("mysql", row_value_options="PARTIAL_JSON", row_image=images).applied(mysql_server):
        mysql_server.execute(
            "drop database if exists changed",
            "create database changed",
            "create table changed.d (id int primary key, doc json)",
        )
        mysql_server.flush()
        with mysql_server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("set sql_mode = ''")
            for number, document in enumerate(documents):
                cursor.execute("insert into changed.d values (%s, %s)", (number, json.dumps(document)))
                cursor.execute("select doc from changed.d where id = %s", (number,))
                ((before,),) = cursor.fetchall()
                for _ in range(150):
                    call, parameters = a_change(json.loads(before), random_numbers)
                    try:
                        changed = cursor.execute(f"update changed.d set doc = {call} where id = {number}", parameters)
                    except Exception as refused:
                        assert any(word in str(refused) for word in ("depth", "too deep", "not allowed")), refused
                        continue
                    cursor.execute("select doc from changed.d where id = %s", (number,))
                    ((after,),) = cursor.fetchall()
                    expected += [(before, after)] * changed
                    before = after
        decoded = Decoded.of(mysql_server.flush())
    assert decoded.unsupported_events == []
    found = [row for row in decoded.row_events if row["event_type"] == "UPDATE"]
    assert len(found) == len(expected) > 300
    in_part = 0
    for row, (before, after) in zip(found, expected, strict=True):
        assert row["before_values"] == [row["before_values"][0], before if images == "FULL" else None]
        if row["undecoded_columns"]:
            in_part += 1
            assert (row["undecoded_columns"], row["after_values"], row["after_columns"]) == ([1], [None, None], [])
            assert applied_here(before, row) == after
        else:
            assert row["after_values"][1] == after
    assert (len(applied) if images == "FULL" else in_part) > 100
    assert images == "MINIMAL" or (in_part == 0 and sum(count > 1 for count in applied) > 20)
