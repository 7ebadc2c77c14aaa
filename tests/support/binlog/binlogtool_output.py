r"""Parses the output of `mysqlbinlog -vv` and `mariadb-binlog -vv` for row events.

A value has its own line: `###   @3='a\nb' /* VARSTRING(40) meta=40 nullable=1 is_null=0 */`. The
tool escapes newlines, so each line is one value; strings are bytes in the column's own character set. A column
that is absent from a partial image has no line. A partial JSON update is printed as calls of functions, over
several lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.support.binlog.replay import ABSENT, Absent

_ROW = re.compile(rb"^### (INSERT INTO|UPDATE|DELETE FROM) `(.+)`\.`(.+)`$")
_VALUE = re.compile(
    rb"^###   @(\d+)=(.*?) +/\* ([A-Z/]+(?:\([^)]*\))?) meta=\d+ nullable=\d is_null=(\d) \*/$", re.DOTALL
)
_QUERY = re.compile(rb"^#\d{6} [ \d]\d:\d\d:\d\d server id .*\tQuery(?:_compressed)?\t")
_GTID = re.compile(rb"^SET @@SESSION\.GTID_NEXT= '([0-9a-f-]+(?::\w+)?:\d+)'|\tGTID (\d+-\d+-\d+)", re.MULTILINE)
_KINDS = {b"INSERT INTO": "INSERT", b"UPDATE": "UPDATE", b"DELETE FROM": "DELETE"}


@dataclass
class ToolChange:
    """A changed row as the tool prints it: the bytes between `=` and the comment; None is NULL.

    Columns that are absent after the last present column are not in an image.
    """

    event_type: str
    table: str
    before: list[bytes | Absent | None] | None = None
    after: list[bytes | Absent | None] | None = None


@dataclass
class Output:
    """The tool's output for one file."""

    changes: list[ToolChange] = field(default_factory=list)
    gtids: list[str] = field(default_factory=list)
    event_positions: list[int] = field(default_factory=list)
    queries: int = 0


def parse(output: bytes) -> Output:
    """Parse the tool's whole output."""
    result = Output()
    image: list[bytes | Absent | None] = []
    pending = b""
    for line in output.split(b"\n"):
        if line.startswith(b"### "):
            if row := _ROW.match(line):
                table = row[3].decode().replace("``", "`")
                result.changes.append(ToolChange(_KINDS[row[1]], table))
            elif line == b"### WHERE":
                image = result.changes[-1].before = []
            elif line == b"### SET":
                image = result.changes[-1].after = []
            elif value := _VALUE.match(pending + line):
                pending = b""
                image += [ABSENT] * (int(value[1]) - 1 - len(image))
                image.append(None if value[4] == b"1" else value[2])
            else:
                pending += line.removeprefix(b"###      ")
        elif pending:
            raise AssertionError(f"cannot read: {pending!r}")
        elif line.startswith(b"# at "):
            result.event_positions.append(int(line[5:]))
        elif _QUERY.match(line):
            result.queries += 1
    result.gtids = [(match[1] or match[2]).decode() for match in _GTID.finditer(output)]
    return result


def unescaped(quoted: bytes, flavor: str) -> bytes:
    r"""Return the bytes of a string that the tool printed in quotes.

    MySQL's tool escapes backslashes and quotes, so its output is unambiguous. MariaDB's writes control characters as
    `\x0a` and leaves backslashes alone: text that contains `\x` followed by two digits is ambiguous.
    """
    assert quoted[:1] == quoted[-1:] == b"'", quoted
    inner = quoted[1:-1]
    if flavor == "mysql":
        return re.sub(rb"\\(x[0-9a-fA-F]{2}|.)", _mysql_escape, inner, flags=re.DOTALL)
    return re.sub(rb"\\x([0-9a-f]{2})", lambda match: bytes([int(match[1], 16)]), inner)


def _mysql_escape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if len(code) == 3:
        return bytes([int(code[1:], 16)])
    return {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"f": b"\f", b"0": b"\0"}.get(code, code)
