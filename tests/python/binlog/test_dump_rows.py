"""Rows of INSERT statements: values come back as they were escaped, and damage is named without a foreign access."""

import io
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ingest.binlog.kernel.dump_row_layout import BINARY, BITS, NUMBER, TEXT
from ingest.binlog.rows.dump_rows import DumpRowError, DumpRows
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT

KINDS = (NUMBER, TEXT, BINARY, BITS)
ESCAPES = {"\0": "\\0", "\n": "\\n", "\r": "\\r", "\x1a": "\\Z", "'": "\\'", '"': '\\"', "\\": "\\\\"}
SIGNS = [*"abc ,();'\"\\\n\r\0\x1a%_", "ü", "🎁"]
STEPS = 3000

Row = list[str | None]


def split(text: bytes, at_once: int = 1 << 20) -> list[Row]:
    """Return the rows of a text that arrives in parts."""
    source = io.BytesIO(text)

    def head_size(statement: bytes) -> int | None:
        found = re.match(rb"INSERT INTO t VALUES ?", statement)
        return found and found.end()

    rows = DumpRows(KINDS, lambda view: source.readinto(view[:at_once]), head_size)
    return [row for batch in rows.batches() for row in batch.to_pylist()]


def made(chance: random.Random) -> tuple[bytes, list[Row]]:
    """Return statements with random rows, and the rows."""
    rows: list[Row] = []
    statements = []
    for _ in range(chance.randint(1, 3)):
        written = []
        for _ in range(chance.randint(1, 5)):
            text = "".join(chance.choices(SIGNS, k=chance.randint(0, 9)))
            number = chance.choice(("0", "-1.50", "1e-300", "18446744073709551615"))
            data, bits = chance.randbytes(chance.randint(0, 5)), chance.randrange(1 << 16)
            escaped = "".join(ESCAPES.get(sign, sign) for sign in text)
            hexed = f"0x{data.hex()}" if data else "''"
            rows.append([number, text, f"0x{data.hex().upper()}", str(bits)])
            forms = [f"'{escaped}'", f"_binary '{escaped}'", f"CONVERT('{escaped}' USING UTF8MB4)"]
            forms += [f"0x{text.encode().hex()}"] if text else []
            written.append(f"({number},{chance.choice(forms)},{hexed},b'{bits:b}')")
            if chance.random() < 0.3:
                rows.append([None] * 4)
                written.append("(NULL,NULL,NULL,NULL)")
        statements.append(f"INSERT INTO t VALUES {chance.choice((',', ',' + chr(10))).join(written)};\n")
    return "".join(statements).encode(), rows


def mutated() -> Iterator[bytes]:
    """Yield statements that are cut, or have other bytes somewhere."""
    chance = random.Random(2)
    for _ in range(STEPS):
        text = bytearray(made(chance)[0])
        for _ in range(chance.randint(1, 3)):
            text[chance.randrange(len(text))] = chance.choice(b"\\'\"(),;0xNb\0")
        yield bytes(text[: chance.randint(1, len(text))])


def test_rows_come_back() -> None:
    chance = random.Random(1)
    for _ in range(200):
        text, rows = made(chance)
        assert split(text) == split(text, at_once=7) == rows


def test_a_row_that_is_larger_than_the_buffer() -> None:
    large = "ü" * (5 << 20)
    assert split(f"INSERT INTO t VALUES (1,'{large}','',''),(2,'','','');\n".encode())[0][1] == large


@pytest.mark.parametrize(
    "row",
    ("(1,'a',1,'')", "(1,2,'','')", "(x,'a','','')", "(1,'a','')", "(1,'a','','','')", "(1,'a\\%','','')", "(1,'a"),
)
def test_what_is_no_row_is_told(row: str) -> None:
    with pytest.raises(DumpRowError):
        split(f"INSERT INTO t VALUES {row};\n".encode())


@pytest.mark.slow
def test_damage_causes_no_foreign_access() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.python.binlog.test_dump_rows"],
        cwd=PROJECT,
        env={**os.environ, "BINLOOM_KERNEL_CHECKS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-2000:]


if __name__ == "__main__":
    for damaged in mutated():
        try:
            split(damaged)
        except DumpRowError:
            continue
