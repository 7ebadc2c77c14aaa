"""Bounds of an answer: texts, rows and sentences that are too long or too many are cut, and the cut is counted."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final

from binloom.commands.output import iso, json_text
from ingest.escapes import visible
from ingest.words import subject
from recover.notes import Kind, Note

MOST_BYTES: Final = 200_000
"""Most bytes of the rows of an answer, as JSON."""
_LONGEST_TEXTS: Final = (2000, 200, 20)
"""Characters of a text in a row; the next number is for rows that are still too long."""
_LONGEST_ROW: Final = MOST_BYTES // 4
_LONGEST_SENTENCE: Final = 1000
_MOST_SENTENCES: Final = 40


class Bounded:
    """Cuts values to what an answer may have, and remembers what was cut.

    Attributes
    ----------
    cuts
        Number of texts that were cut.
    """

    def __init__(self) -> None:
        self.cuts = 0
        self._room = MOST_BYTES
        self._dropped = ""

    def rows(self, found: Iterable[Any]) -> list[dict[str, Any]]:
        """Return the first rows that fit into an answer."""
        rows: list[dict[str, Any]] = []
        for row in found:
            cells, size = self._fitted(row)
            if size > self._room:
                self._dropped = f"rows after the first {len(rows):,} are left out"
                break
            self._room -= size
            rows.append(cells)
        return rows

    def lines(self, lines: Iterable[str], limit: int) -> tuple[list[str], bool]:
        """Return the first lines, and whether there are more or longer ones."""
        begun, before = iter(lines), self.cuts
        kept = [row["line"] for row in self.rows({"line": line} for line in islice(begun, limit))]
        return kept, self.cuts > before or bool(self._dropped) or next(begun, None) is not None

    @property
    def notes(self) -> Iterator[Note]:
        """What was cut."""
        if self.cuts:
            yield Note(f"{subject(self.cuts, 'text', 'is', 'are')} cut: each ends with [cut: ...].", Kind.CUT)
        if self._dropped:
            yield Note(
                f"{self._dropped}: an answer has at most {MOST_BYTES:,} bytes. Ask for less at a time.", Kind.CUT
            )

    def _fitted(self, row: Any) -> tuple[dict[str, Any], int]:
        for longest in _LONGEST_TEXTS:
            cut = _Cut(longest)
            cells = {name: cut.plain(value) for name, value in _cells(row)}
            size = len(json_text(cells).encode())
            if size <= _LONGEST_ROW:
                break
        self.cuts += cut.texts
        return cells, size


class _Cut:
    def __init__(self, longest: int) -> None:
        self._longest = longest
        self.texts = 0

    def plain(self, value: Any) -> Any:
        match value:
            case None | bool() | int() | float():
                return value
            case datetime():
                return iso(value)
            case Mapping():
                return {_utf8(str(key)): self.plain(item) for key, item in value.items()}
            case list() | tuple():
                return [self.plain(item) for item in value]
            case _:
                return self._text(_utf8(str(value)))

    def _text(self, text: str) -> str:
        if len(text) <= self._longest:
            return text
        self.texts += 1
        return f"{text[: self._longest]}… [cut: {len(text):,} characters]"


def sentences(texts: Iterable[str]) -> list[str]:
    """Return the first sentences, with invisible characters as escapes."""
    found = list(texts)
    shown = [bounded_sentence(text) for text in found[:_MOST_SENTENCES]]
    return [*shown, f"There are {len(found) - len(shown):,} more sentences."] if len(found) > len(shown) else shown


def bounded_sentence(text: str) -> str:
    """Return a sentence that is not too long, with invisible characters as escapes."""
    shown = visible(text)
    return shown if len(shown) <= _LONGEST_SENTENCE else f"{shown[:_LONGEST_SENTENCE]}…"


def _utf8(text: str) -> str:
    """Return a text with escapes for half surrogate pairs, of which file names may have some: JSON cannot have them."""
    return text.encode(errors="backslashreplace").decode()


def _cells(row: Any) -> Iterable[tuple[str, Any]]:
    if is_dataclass(row):
        return ((one.name, getattr(row, one.name)) for one in fields(row))
    return row.items() if isinstance(row, Mapping) else ()
