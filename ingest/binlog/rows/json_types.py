"""Types of the members of a document, which the text that the server prints does not tell.

The text of a DATE is that of a string, the text of a DECIMAL may be that of a DOUBLE, and that of an unsigned integer
is that of a signed one. Only the binary form of the document has the types. Layout: `kernel.json`.
"""

from collections.abc import Iterator
from typing import Any, Final

from ingest.binlog.rows.json_diff import Number, parse_document, path_of_index, path_of_key

_LARGEST_CONTAINER: Final = 3
_LITERAL, _DOUBLE, _STRING, _OPAQUE = 4, 11, 12, 15
_UNSIGNED: Final = {6: 2, 8: 4, 10: 8}
_INTEGERS: Final = {5: 2, 7: 4, 9: 8, **_UNSIGNED}
_FIRST_UNSIGNED_ONLY: Final = 1 << 63
"""A larger number in a text is unsigned."""

_DECIMAL: Final = 246
_OPAQUE_TYPES: Final = {
    7: "TIMESTAMP(6)",
    10: "DATE",
    11: "TIME(6)",
    12: "DATETIME(6)",
    249: "TINYBLOB",
    250: "MEDIUMBLOB",
    251: "LONGBLOB",
    252: "BLOB",
}


class OtherDocumentError(ValueError):
    """Bytes are not the binary form of a document."""


def types_of(text: str, document: bytes) -> dict[str, str]:
    """Return the types of members that a server would read otherwise from the text of a document, by their paths.

    Parameters
    ----------
    text
        The document as the server prints it.
    document
        Its binary form, as the log has it.

    Returns
    -------
    dict
        The path as `json_diff.scalars_of` gives it, and the type in SQL: `DECIMAL(10,2)`, `UNSIGNED`, `DATE`,
        `BINARY(16)`. Numbers of other types are those that the text tells. An `OPAQUE 255` has no type in SQL.

    Raises
    ------
    OtherDocumentError
        The two are not the same document.
    """
    tree = parse_document(text)
    if not document:
        _assert(tree is None)
        return {}
    try:
        return dict(_types("$", tree, document[0], document, 1))
    except IndexError:
        raise OtherDocumentError from None


def _types(path: str, tree: Any, kind: int, data: bytes, at: int) -> Iterator[tuple[str, str]]:
    """Yield the types of a value and its members; `at` is where the value begins."""
    if kind <= _LARGEST_CONTAINER:
        for member_path, member, member_kind, place in _members(path, tree, kind, data, at):
            yield from _types(member_path, member, member_kind, data, place)
    elif kind == _OPAQUE:
        yield path, _opaque(tree, data, at)
    elif kind in _INTEGERS or kind == _DOUBLE:
        _assert(isinstance(tree, Number))
        if kind in _UNSIGNED and int(tree) < _FIRST_UNSIGNED_ONLY:
            yield path, "UNSIGNED"
    else:
        _assert(_is_string(tree) if kind == _STRING else kind == _LITERAL and tree in (None, True, False))


def _members(path: str, tree: Any, kind: int, data: bytes, base: int) -> Iterator[tuple[str, Any, int, int]]:
    """Yield the path, the parsed text, the type and the place of each member of a container."""
    is_object, is_large = kind < 2, kind % 2 == 1
    width = 4 if is_large else 2
    count = _integer(data, base, width)
    _assert(isinstance(tree, dict if is_object else list) and len(tree) == count)
    entries = base + 2 * width
    keys = [_key(data, base, entries + number * (width + 2), width) for number in range(count)] if is_object else []
    entries += len(keys) * (width + 2)
    for number in range(count):
        entry = entries + number * (width + 1)
        kind = data[entry]
        is_inline = kind == _LITERAL or _INTEGERS.get(kind, 8) <= width
        place = entry + 1 if is_inline else base + _integer(data, entry + 1, width)
        if is_object:
            _assert(keys[number] in tree)
            yield path_of_key(path, keys[number]), tree[keys[number]], kind, place
        else:
            yield path_of_index(path, number), tree[number], kind, place


def _key(data: bytes, base: int, entry: int, width: int) -> str:
    place, size = base + _integer(data, entry, width), _integer(data, entry + width, 2)
    return data[place : place + size].decode(errors="replace")


def _opaque(tree: Any, data: bytes, at: int) -> str:
    kind = data[at]
    size, place = _length(data, at + 1)
    _assert(isinstance(tree, Number) if kind == _DECIMAL else _is_string(tree))
    if kind == _DECIMAL:
        return f"DECIMAL({data[place]},{data[place + 1]})"
    sized = {15: f"VARBINARY({size})", 16: f"BIT({8 * size})", 254: f"BINARY({size})"}
    return _OPAQUE_TYPES.get(kind) or sized.get(kind) or f"OPAQUE {kind}"


def _length(data: bytes, at: int) -> tuple[int, int]:
    """Return a length of 7 bits a byte, low bits first, and the place behind it."""
    size = shift = 0
    while True:
        size |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return size, at


def _integer(data: bytes, at: int, width: int) -> int:
    if at + width > len(data):
        raise OtherDocumentError
    return int.from_bytes(data[at : at + width], "little")


def _is_string(tree: Any) -> bool:
    return isinstance(tree, str) and not isinstance(tree, Number)


def _assert(is_same: bool) -> None:
    if not is_same:
        raise OtherDocumentError
