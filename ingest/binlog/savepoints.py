"""Rows that ROLLBACK TO SAVEPOINT took back, although the server logged them.

A server removes such rows from its log. It cannot if it has written something since the savepoint that stays after a
rollback, such as a row of a table without transactions: then it logs the rows, SAVEPOINT and ROLLBACK TO. It logs only
a ROLLBACK TO that succeeded, so its savepoint exists. It logs neither RELEASE SAVEPOINT nor the savepoints of triggers
and stored functions. Source: server, sql/binlog.cc (sql/log.cc in MariaDB), binlog_savepoint_set and
binlog_savepoint_rollback.
"""

import re
import unicodedata
from collections import defaultdict
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ingest.binlog.batches import ROLLED_BACK_RANGES
from ingest.binlog.buffers import ControlBuffers, Int64s
from ingest.binlog.events.format import FormatDescription
from ingest.binlog.kernel import layout
from ingest.binlog.text.charsets import charset_of, decode_text

Place = tuple[int, int]
"""Physical offset of an event, and its ordinal inside a payload."""

ROLLBACK: Final = "rollback"
UNKNOWN: Final = "unknown"

# White space and comments. The text between `/*!` and `*/` is a part of the statement.
_IGNORED: Final = rb"(?>\s|/\*M?!\d*|\*/|/\*.*?\*/|--(?=\s)[^\n]*|#[^\n]*)*+"
_WORDS: Final = rb"~(?:savepoint\b|(?P<rollback>rollback\b~(?:work\b~)?to\b)(?:~savepoint\b(?=~[`\"\w$\x80-\xff]))?)~"
_NAME: Final = rb"""(?:`(?P<ticked>(?:[^`]|``)*)`|"(?P<quoted>(?:[^"]|"")*)"|(?P<bare>[\w$\x80-\xff]+))"""
_STATEMENT: Final = re.compile((_WORDS + _NAME).replace(b"~", _IGNORED), re.IGNORECASE | re.DOTALL)
_SHORTEST: Final = len("SAVEPOINT a")


class Savepoints:
    """Follows the savepoints of the transactions of a file.

    Parameters
    ----------
    format
        Format of the file.
    """

    def __init__(self, format: FormatDescription) -> None:
        self._outcome = ROLLBACK if keeps_engines_apart(format) else UNKNOWN
        self._open: dict[int, _Transaction] = {}

    def read(self, control: ControlBuffers, count: int) -> None:
        """Follow the first `count` statements; batches of statements come in the order of the log."""
        statements, offsets = control.statements[:count], control.text_offsets[: count + 1]
        is_query = statements[:, layout.STMT_KIND] == layout.KIND_QUERY
        for number in np.flatnonzero(is_query & (np.diff(offsets) >= _SHORTEST)).tolist():
            found = _STATEMENT.match(control.text_data.data, int(offsets[number]), int(offsets[number + 1]))
            if found is not None:
                record = statements[number]
                place = (int(record[layout.STMT_START]), int(record[layout.STMT_PAYLOAD_ORDINAL]))
                name = _name(found, int(record[layout.STMT_CHARSET]))
                self._follow(int(record[layout.STMT_TXN]), place, name, is_rollback=found["rollback"] is not None)

    def _follow(self, start: int, place: Place, name: str, *, is_rollback: bool) -> None:
        transaction = self._open.setdefault(start, _Transaction((start, 0), self._outcome))
        if is_rollback:
            transaction.roll_back(name, place)
        else:
            transaction.set(name, place)

    def ranges(self, starts: Int64s) -> pa.Array:
        """Return the column `rolled_back_ranges` of transactions that have ended, given by their starts."""
        if not self._open:
            return pa.nulls(len(starts), ROLLED_BACK_RANGES)
        ended = [self._open.pop(start, None) for start in starts.tolist()]
        return pa.array([one.ranges() if one is not None else None for one in ended], ROLLED_BACK_RANGES)


def keeps_engines_apart(format: FormatDescription) -> bool:
    """Return whether rows of tables without transactions are never among those that a savepoint is for.

    MySQL since 5.5.9 and MariaDB since 5.5 write them into transactions of their own, before the transaction in which
    they were written. The number of event types tells MySQL 5.6 from 5.5, and MariaDB 10.0 from 5.5.
    """
    known = len(format.post_header_sizes)
    return known >= 163 if known >= 160 else known >= 35


class _Transaction:
    """The savepoints of a transaction, and the ranges of its events that were taken back."""

    def __init__(self, start: Place, outcome: str) -> None:
        self._start = start
        self._outcome = outcome
        # By name in upper case, and the names that some servers hold for equal; both in the order of the savepoints.
        self._savepoints: dict[str, Place] = {}
        self._alike: dict[str, list[str]] = defaultdict(list)
        # By outcome. Ranges of one outcome do not overlap, and are in the order of the log.
        self._taken_back: dict[str, list[tuple[Place, Place]]] = {ROLLBACK: [], UNKNOWN: []}

    def set(self, name: str, place: Place) -> None:
        upper, alike = _upper(name), self._alike[_plain(name)]
        if self._savepoints.pop(upper, None) is not None:
            alike.remove(upper)
        self._savepoints[upper] = place
        alike.append(upper)

    def roll_back(self, name: str, place: Place) -> None:
        upper, alike = _upper(name), self._alike[_plain(name)]
        if not alike:
            # It was set in a part of the log that was not read.
            self._take_back(self._start, place, UNKNOWN)
            return
        last = alike[-1]
        if upper != last and upper in self._savepoints:
            # On some servers `last` replaced it.
            self._take_back(self._savepoints[upper], place, UNKNOWN)
        else:
            self._take_back(self._savepoints[last], place, self._outcome)
        while (later := next(reversed(self._savepoints))) != last:
            del self._savepoints[later]
            self._alike[_plain(later)].pop()

    def _take_back(self, start: Place, end: Place, outcome: str) -> None:
        ranges = self._taken_back[outcome]
        while ranges and ranges[-1][0] >= start:
            ranges.pop()
        ranges.append((start, end))

    def ranges(self) -> list[dict[str, Any]] | None:
        """Return the ranges, those with a certain outcome first; None without any."""
        names = ("start_pos", "start_ordinal", "end_pos", "end_ordinal")
        return [
            {**dict(zip(names, (*start, *end), strict=True)), "outcome": outcome}
            for outcome, ranges in self._taken_back.items()
            for start, end in ranges
        ] or None


def _name(found: "re.Match[bytes]", collation: int) -> str:
    """Return the name in a statement. Servers write it in UTF-8; those before 5.5 write what the client sent."""
    if found["ticked"] is not None:
        name = found["ticked"].replace(b"``", b"`")
    elif found["quoted"] is not None:
        name = found["quoted"].replace(b'""', b'"')
    else:
        name = found["bare"]
    try:
        return name.decode()
    except UnicodeDecodeError:
        return decode_text(name, charset_of(collation))


def _upper(name: str) -> str:
    """Return a name as all servers compare it at least: without case."""
    return "".join(letter.upper() if len(letter.upper()) == 1 else letter for letter in name)


def _plain(name: str) -> str:
    """Return a name as utf8_general_ci compares it, which MySQL and MariaDB before 11.5 use: also without accents."""
    return "".join(unicodedata.normalize("NFD", letter)[0] for letter in _upper(name)).replace("ß", "S")
