"""Labels of ENUM and SET, in the text between the parentheses of COLUMN_TYPE.

The server keeps a label as bytes in the character set of its column. A statement has it as text, or as these bytes.
Bytes stay `x'…'` until the character set is known; information_schema shows bytes that are no text in the same way.

Sources: server, sql/sql_yacc.yy, `TEXT_STRING_literal`; sql/sql_table.cc, `prepare_set_and_enum_fields`;
sql/sql_show.cc, `append_unescaped`; MariaDB, sql/sql_table.cc, `Column_definition::prepare_interval_field`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from ingest.binlog.events.hints import LABEL_ESCAPES
from ingest.binlog.text.charsets import BINARY, as_text, decode_text, encode_text

_ESCAPES: Final = {"'": "''", "\\": "\\\\", "\0": "\\0", "\n": "\\n", "\r": "\\r"}
_LABEL: Final = re.compile(r"x'(?P<bytes>(?:[0-9a-f]{2})*)'|'(?P<text>(?:''|\\.|[^'\\])*)'", re.DOTALL)
UTF8: Final = frozenset({"utf8", "utf8mb3", "utf8mb4"})
# A character of these sets is this many bytes or a multiple of them; the server puts zeros before shorter bytes.
_WIDTHS: Final = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}


@dataclass(frozen=True, slots=True)
class Literals:
    """The character sets by which a server reads the literals of a statement; `binary` takes bytes as they are."""

    client: str
    connection: str

    @property
    def are_bytes(self) -> bool:
        """Whether the statement is no text for the server."""
        return self.client == BINARY

    def read(self, text: str) -> str | bytes:
        """Return a literal as the server reads it: signs that the connection lacks become others, mostly `?`."""
        return self.bytes_of(text) if self.connection == BINARY else decode_text(self.bytes_of(text), self.connection)

    def bytes_of(self, text: str) -> bytes:
        """Return the bytes of a literal, which a column in `binary` keeps."""
        if self.are_bytes:
            return text.encode()
        return encode_text(text, self.client if self.connection == BINARY else self.connection)


def written(labels: Iterable[str | bytes]) -> str:
    """Return labels as COLUMN_TYPE has them between the parentheses."""
    return ",".join(map(_written, labels))


def in_column(text: str, character_set: str | None) -> str:
    """Return the labels of a statement as they are in a column.

    Parameters
    ----------
    text
        Labels as the statement has them, or as the column has them already.
    character_set
        That of the column; None where it is unknown: then bytes stay bytes.
    """
    return _each(text, lambda label: _in_column(label, character_set))


def in_table(text: str, in_binary: str, character_set: str | None) -> str:
    """Return the labels of a statement as they are in a table.

    Parameters
    ----------
    text
        Labels as the statement has them.
    in_binary
        Those of a column in `binary`, if they may differ.
    character_set
        That of the column; None where it is unknown. Then labels stay as they are, except ASCII with other bytes in a
        column in `binary`, as of a connection in utf16: nobody knows them.
    """
    if character_set == BINARY:
        return in_column(in_binary or text, BINARY)
    if character_set is not None:
        return in_column(text, character_set)
    is_certain = not in_binary or not text.isascii() or in_column(in_binary, BINARY) == in_column(text, BINARY)
    return text if is_certain else "?"


def reinterpreted(text: str, before: str | None, after: str | None) -> str:
    """Return the labels of a column whose table is converted: the servers keep their bytes.

    Parameters
    ----------
    text
        The type of the column, as COLUMN_TYPE shows it.
    before, after
        Character set of the column before and after; None where it is unknown. Then nobody knows what becomes of
        labels that are not ASCII, and the type has no labels: `enum(?)`. So it is where bytes become no text.
    """
    if before == after:
        return text
    if before is None or after is None:
        return in_any(text)
    kept = [_shown(_bytes_of(_label(found), before), after) for found in _LABEL.finditer(text)]
    is_text = after == BINARY or all(isinstance(label, str) for label in kept)
    return f"{text.partition('(')[0]}({written(kept)})" if kept and is_text else _nameless(text)


def in_any(text: str, character_set: str | None = None) -> str:
    """Return the type of a column whose labels an unknown session, or in an unknown character set, defines.

    Parameters
    ----------
    text
        The type as the statement has it.
    character_set
        `binary`: it has the bytes that the session has for text. None for an unknown one, which may lack what is not
        ASCII, and may read bytes in another way.
    """
    labels = [_label(found) for found in _LABEL.finditer(text)]
    is_known = all(label.isascii() if isinstance(label, str) else character_set == BINARY for label in labels)
    return in_column(text, character_set) if is_known else _nameless(text)


def _nameless(text: str) -> str:
    return f"{text.partition('(')[0]}(?)"


def _each(text: str, change: Callable[[str | bytes], str | bytes]) -> str:
    return _LABEL.sub(lambda found: _written(change(_label(found))), text)


def _written(label: str | bytes) -> str:
    if isinstance(label, bytes):
        return f"x'{label.hex()}'"
    return f"'{''.join(_ESCAPES.get(sign, sign) for sign in label)}'"


def _label(found: re.Match[str]) -> str | bytes:
    if found["bytes"] is not None:
        return bytes.fromhex(found["bytes"])
    return re.sub(r"(?s)''|\\.", lambda pair: LABEL_ESCAPES.get(pair[0][1], pair[0][1]), found["text"])


def _in_column(label: str | bytes, character_set: str | None) -> str | bytes:
    if isinstance(label, bytes):
        if character_set is None:
            return label
        width = _WIDTHS.get(character_set, 1)
        label = _shown(label.rjust(-(-len(label) // width) * width, b"\0"), character_set)
    elif character_set is not None and character_set != BINARY:
        label = decode_text(encode_text(label, character_set), character_set)
    # Spaces at the end are no part of a label, except in bytes.
    return label.rstrip(" ") if isinstance(label, str) and character_set != BINARY else label


def _bytes_of(label: str | bytes, character_set: str) -> bytes:
    return label if isinstance(label, bytes) else encode_text(label, character_set)


def _shown(data: bytes, character_set: str) -> str | bytes:
    """Return bytes as information_schema shows them: as text if they are text."""
    text = as_text(data, character_set)
    return data if text is None else text
