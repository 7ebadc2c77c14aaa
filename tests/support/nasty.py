"""A binlog file, a folder and a source with names that do harm wherever they are not treated as data."""

import struct
from pathlib import Path

import pytest

from binloom.cli import app
from binloom.commands.running import run_app
from ingest.escapes import visible
from tests.support.binlog import forge

# Each name contains text that has a meaning in a terminal, rich, a spreadsheet, HTML, Jinja, Spark's SQL, or a path.
SCRIPT = "<script>alert(1)</script>"
SCHEMA = "=1+1\x1b]0;title\x07`s`"
TABLE = f"@t'\x1b[2J[red]{SCRIPT}{{{{ 1 }}}}"
LABELS = ["id", "+cmd|' /C calc'!A0\x9b31m\u202e\n", "${spark.app.name}../../x"]
VALUE = f"=v\x1b[31m\r\n\u2028{SCRIPT}"
VERSION = f"8.0.40-\x1b]0;pwn\x07{SCRIPT}"
STATEMENT = f"insert into t -- \x1b[2J{SCRIPT}\n"
INCIDENT = f"lost \x1b[31m{SCRIPT}"
NEXT_FILE = "../../\x1b[2J.000002"
SOURCE = f"../../=s'\x1b[2J{{{{ 1 }}}}${{spark.app.name}}\\ {SCRIPT.replace('/', '%')}\n"
FILE = "=b'${env:HOME}{{ 1 }}\\\x1b[2J\u202e.%06d"
FOLDER = "[red]\x1b[2J\n=d"


def nasty_file(path: Path, number: int, text: str = VALUE) -> None:
    """Write one transaction that inserts a row, a DDL statement, an incident and a ROTATE, all with such names."""
    maker = forge.FileMaker(version=VERSION.encode())
    maker.begin()
    maker.event(29, bytes([len(STATEMENT)]) + STATEMENT.encode())
    schema, table = SCHEMA.encode(), TABLE.encode()
    labels = b"".join(forge.packed(len(label.encode())) + label.encode() for label in LABELS)
    types = [forge.LONG, forge.VARCHAR, forge.VARCHAR]
    body = struct.pack("<IHH", 1, 0, 1) + bytes([len(schema)]) + schema + b"\0" + bytes([len(table)]) + table + b"\0"
    body += forge.packed(3) + bytes(types) + forge.packed(4) + struct.pack("<HH", 400, 400) + b"\xff"
    body += forge.signedness(False) + forge.charset(forge.UTF8MB4) + forge.field_of(4, labels)
    maker.event(19, body + forge.field_of(8, b"\0"))
    value = text.encode()
    image = b"\0" + struct.pack("<I", number) + 2 * (struct.pack("<H", len(value)) + value)
    maker.rows(30, 3, image)
    maker.commit(number)
    ddl = f"create table `{SCHEMA.replace('`', '``')}`.`{TABLE}_2` (`{LABELS[1]}` int)"
    maker.event(2, struct.pack("<IIBHH", 7, 0, 0, 0, 0) + b"\0" + ddl.encode())
    maker.event(26, b"\1\0" + bytes([len(INCIDENT)]) + INCIDENT.encode())
    maker.rotate(NEXT_FILE.encode())
    maker.write(path.parent, path.name)


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """Run a command in this process, which must end with a code; assert that its output is harmless; return stdout."""
    found = run_app(app, arguments)
    printed = capsys.readouterr()
    assert found == code, printed.err
    # CSV keeps line ends and tabs, in quotes.
    for text in (printed.out, printed.err):
        assert visible(text, keep="\n\r\t" if "csv" in arguments else "\n") == text
    return printed.out
