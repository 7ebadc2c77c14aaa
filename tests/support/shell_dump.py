"""A dump as MySQL Shell writes it, from a real server.

The program itself is not among the packages that tests can get. This follows its source: the same session, the same
SELECT for each table, the same escapes and names of files (`dumper.cc`, `text_dump_writer.cc`, `common/dump/utils.cc`).
"""

import json
from pathlib import Path
from typing import Any

import zstandard

from tests.servers import Server

_ESCAPES = {0: b"\\0", 8: b"\\b", 9: b"\\t", 10: b"\\n", 13: b"\\r", 26: b"\\Z", 92: b"\\\\"}
_RESERVED = " \"#$%&+,/:;<=>?@[\\]^`{|}~()'*!"


def shell_dump(server: Server, folder: Path, *schemas: str, rows_of_file: int = 2, is_hex: bool = False) -> Path:
    """Write a dump; tables with more rows than fit into a file have several."""
    folder.mkdir()
    sizes: dict[str, int] = {}
    # Without conversions, values are the texts that the server sends.
    with server.connect(conv={}) as connection, connection.cursor() as cursor:
        cursor.execute("set session time_zone = '+00:00', sql_mode = ''")
        cursor.execute("start transaction with consistent snapshot")
        cursor.execute("show binary log status" if server.flavor == "mysql" else "show master status")
        file, pos, *_ = cursor.fetchone()
        cursor.execute(
            "select @@global.gtid_executed, version()" if server.flavor == "mysql" else "select '', version()"
        )
        gtids, version = cursor.fetchone()
        for schema in schemas:
            cursor.execute(
                f"select table_name from information_schema.tables where table_schema = '{schema}'"
                " and table_type = 'BASE TABLE'"
            )
            tables = [name for (name,) in cursor.fetchall()]
            stems = {table: f"{_encoded(schema)}@{_encoded(table)}" for table in tables}
            _write(folder, f"{_encoded(schema)}.json", {"schema": schema, "tables": tables, "basenames": stems})
            cursor.execute(f"show create database `{schema}`")
            (folder / f"{_encoded(schema)}.sql").write_text(f"-- comment\n{cursor.fetchone()[1]};\n")
            for table, stem in stems.items():
                _write_table(cursor, folder, schema, table, stem, sizes, rows_of_file, is_hex)
    _write(
        folder,
        "@.json",
        {
            "dumper": "mysqlsh Ver 9.5.0", "version": "2.0.1", "schemas": list(schemas),
            "basenames": {schema: _encoded(schema) for schema in schemas}, "defaultCharacterSet": "utf8mb4",
            "tzUtc": True, "serverVersion": version, "binlogFile": file, "binlogPosition": int(pos),
            "gtidExecuted": gtids,
            "gtidExecutedInconsistent": False, "consistent": True, "compatibilityOptions": [],
            "begin": "2026-11-28 12:00:00",
        },
    )  # fmt: skip
    _write(folder, "@.done.json", {"end": "2026-11-28 12:00:01", "chunkFileBytes": sizes})
    return folder


def _write_table(
    cursor: Any, folder: Path, schema: str, table: str, stem: str, sizes: dict[str, int], at_once: int, is_hex: bool
) -> None:
    cursor.execute(f"show create table `{schema}`.`{table}`")
    (folder / f"{stem}.sql").write_text(f"-- comment\n{cursor.fetchone()[1]};\n")
    cursor.execute(
        f"select column_name, data_type from information_schema.columns where table_schema = '{schema}'"
        f" and table_name = '{table}' and extra not like '% GENERATED%' order by ordinal_position"
    )
    columns = cursor.fetchall()
    unsafe = [name for name, kind in columns if kind.endswith(("binary", "blob")) or kind in ("bit", "point")]
    # The program leaves the newlines of TO_BASE64 out.
    function = "hex({})" if is_hex else "replace(to_base64({}), char(10), '')"
    values = ", ".join(function.format(f"`{name}`") if name in unsafe else f"`{name}`" for name, _ in columns)
    cursor.execute(f"select {values} from `{schema}`.`{table}`")
    rows = cursor.fetchall()
    parts = [rows[start : start + at_once] for start in range(0, len(rows), at_once)] or [()]
    for number, part in enumerate(parts):
        name = f"{stem}@{'@' if number == len(parts) - 1 else ''}{number}.tsv.zst"
        text = b"".join(b"\t".join(map(_field, row)) + b"\n" for row in part)
        (folder / name).write_bytes(zstandard.compress(text))
        (folder / f"{name}.idx").write_bytes(len(text).to_bytes(8))
        sizes[name] = len(text)
    options = {
        "schema": schema, "table": table, "columns": [name for name, _ in columns],
        "decodeColumns": dict.fromkeys(unsafe, "UNHEX" if is_hex else "FROM_BASE64"),
        "defaultCharacterSet": "utf8mb4", "fieldsTerminatedBy": "\t", "fieldsEnclosedBy": "",
        "fieldsOptionallyEnclosed": False, "fieldsEscapedBy": "\\", "linesTerminatedBy": "\n",
    }  # fmt: skip
    _write(folder, f"{stem}.json", {"options": options, "includesData": True, "extension": "tsv.zst", "partitions": []})


def _field(value: bytes | str | None) -> bytes:
    if value is None:
        return b"\\N"
    data = value.encode() if isinstance(value, str) else value
    return b"".join(_ESCAPES.get(byte, bytes([byte])) for byte in data)


def _encoded(name: str) -> str:
    return "".join(f"%{ord(sign):02X}" if sign in _RESERVED else sign for sign in name)


def _write(folder: Path, name: str, content: dict[str, Any]) -> None:
    (folder / name).write_text(json.dumps(content, indent=4))
