"""JSON documents that MySQL makes of columns, and very large ones: as it logs them, against what it prints."""

import json
from pathlib import Path

from tests.python.binlog import recordings
from tests.python.binlog.recordings import Setting
from tests.python.binlog.test_against_servers import assert_final_rows
from tests.python.binlog.workload import Column, Table
from tests.servers import Server


def assert_decodes(server: Server, literals: tuple[str, ...], directory: Path) -> None:
    table = Table("documents", (Column("document", "json", "json", literals),))
    recording = recordings.record(server, Setting("mysql"), [table], directory)
    assert_final_rows(recording, recording.decoded().committed_changes())


# Columns whose values the server keeps as they are in a JSON document, or turns into one of its own types.
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
    # Around the steps from small to large containers, and to more than 65535 elements.
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
