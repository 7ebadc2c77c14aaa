"""Apply the changes of JSON documents that MySQL logs with binlog_row_value_options=PARTIAL_JSON.

Documents are texts as the server prints them. Parts that are not changed keep their text: a number keeps its
digits. Source: server, sql-common/json_diff.cc, `apply_json_diff`.

Changes are hostile input: whatever they contain, the worst result is a `JsonDiffError`. A document never nests
more than `JSON_DEPTH` levels deep, no value is put into it twice, and its changes move at most `MOVES` elements.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ingest.binlog.kernel.layout import JSON_DEPTH

MOVES: Final = 1 << 28
"""Most elements that the changes of one document may move: an element added or removed moves all after it."""

Operation = Literal["replace", "insert", "remove"]
_OPERATIONS: Final[tuple[Operation, ...]] = ("replace", "insert", "remove")
# An index has 32 bits: at most ten digits.
_LEG: Final = re.compile(r'\.(?:"([^"\\]*(?:\\.[^"\\]*)*)"|([^.\[\s"]+))|\[(?:([0-9]{1,10})|last(?:-([0-9]{1,10}))?)\]')
_HALF_A_PAIR: Final = re.compile("[\ud800-\udfff]")
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')


class JsonDiffError(ValueError):
    """A change cannot be read, or does not fit the document."""


class Number(str):
    """A number of a parsed document, with the digits that it was printed with."""

    __slots__ = ()


@dataclass(frozen=True)
class Change:
    """One change of a document.

    Attributes
    ----------
    operation
        The kind of change.
    path
        The location as the server writes it: `$.a."b c"[2][last-1]`.
    legs
        Keys and indexes of the path; indexes that count from the end are negative.
    value
        The new value, parsed; None for a removal.
    """

    operation: Operation
    path: str
    legs: tuple[str | int, ...]
    value: Any

    @property
    def text(self) -> str | None:
        """The value as the server prints it; None for a removal."""
        return None if self.operation == "remove" else _print(self.value)


def read_changes(diffs: str) -> list[Change]:
    """Return the changes that the kernel found.

    Parameters
    ----------
    diffs
        JSON array of [operation, path, value], as the kernel writes it (`kernel.json.write_json_diffs`).

    Raises
    ------
    JsonDiffError
        When a path cannot be read, or a path and its value nest more than `JSON_DEPTH` levels deep together.
    """
    return [_change(*diff) for diff in _parse(diffs)]


def parse_change(operation: str, path: str, value: str | None) -> Change:
    """Return a change from its parts as `Change` has them: operation, path, and the value as text.

    Raises
    ------
    JsonDiffError
        When a part cannot be read.
    """
    if operation not in _OPERATIONS:
        raise JsonDiffError(f"{operation[:100]} is no operation")
    return _change(str(_OPERATIONS.index(operation)), path, None if value is None else _parse(value))


def apply_changes(document: str, changes: Sequence[Change]) -> str:
    """Return a document, as the server prints it, after its changes.

    Raises
    ------
    JsonDiffError
        When a change names a place that the document does not have, or the changes move more than `MOVES` elements.
    """
    # The document is the only element of a list, so that replacing the whole document is not a special case.
    root = [parse_document(document)]
    moves = 0
    for change in changes:
        moves += _apply(root, change)
        if moves > MOVES:
            raise JsonDiffError(f"the changes move more than {MOVES} elements")
    return _print(root[0])


def parse_document(document: str) -> Any:
    """Return the text of a document as Python's objects; numbers are `Number`.

    Raises
    ------
    JsonDiffError
        When the text is not one that the server prints, or nests more than `JSON_DEPTH` levels deep.
    """
    tree = _parse(document)
    if _nests_deeper(tree, JSON_DEPTH):
        raise JsonDiffError(f"the document nests more than {JSON_DEPTH} levels deep")
    return tree


def scalars_of(document: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the value of each number (a `Number`) and each string of a document, in the order of its text.

    Raises like `parse_document`.
    """
    yield from _scalars("$", parse_document(document))


def _scalars(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield from _scalars(path_of_key(path, key), member)
    elif isinstance(value, list):
        for place, member in enumerate(value):
            yield from _scalars(path_of_index(path, place), member)


def path_of_key(path: str, key: str) -> str:
    """Return the path of a member of the object at a path."""
    return f"{path}.{quoted(key)}"


def path_of_index(path: str, place: int) -> str:
    """Return the path of an element of the array at a path."""
    return f"{path}[{place}]"


def _parse(text: str) -> Any:
    try:
        return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number, strict=False)
    except (ValueError, RecursionError):
        raise JsonDiffError("this is no text that the server prints") from None


def _change(operation: str, path: str, value: Any = None) -> Change:
    legs = _legs(path)
    if not legs and _OPERATIONS[int(operation)] != "replace":
        raise JsonDiffError("a whole document can only be replaced")
    if _nests_deeper(value, JSON_DEPTH - len(legs)):
        raise JsonDiffError(f"a change leads more than {JSON_DEPTH} levels deep")
    return Change(_OPERATIONS[int(operation)], path, legs, value)


def _nests_deeper(value: Any, levels: int) -> bool:
    """Return whether containers nest more than `levels` deep."""
    containers = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        containers = [inner for outer in containers for inner in _members(outer) if isinstance(inner, dict | list)]
        if not containers:
            return False
    return bool(containers)


def _members(container: dict[str, Any] | list[Any]) -> Sequence[Any]:
    return list(container.values()) if isinstance(container, dict) else container


def _apply(root: list[Any], change: Change) -> int:
    """Apply a change and return how many array elements it moves."""
    parent: Any = root
    leg: str | int = 0
    for following in change.legs:
        parent, leg = _child(parent, leg, change), following
    moves = _behind(parent, leg)
    if change.operation == "replace":
        _child(parent, leg, change)
        parent[leg] = change.value
        return 0
    if change.operation == "remove":
        _child(parent, leg, change)
        del parent[leg]
    elif isinstance(parent, dict) and isinstance(leg, str) and leg not in parent:
        parent[leg] = change.value
    elif isinstance(parent, list) and isinstance(leg, int):
        parent.insert(leg if leg >= 0 else max(len(parent) + leg, 0), change.value)
    else:
        raise JsonDiffError(f"nothing can be inserted at {change.path}")
    return moves


def _behind(parent: Any, leg: str | int) -> int:
    """Return how many elements an array has from a place on; 0 for an object."""
    if not isinstance(parent, list) or not isinstance(leg, int):
        return 0
    return max(len(parent) - leg, 0) if leg >= 0 else min(-leg, len(parent))


def _child(parent: Any, leg: str | int, change: Change) -> Any:
    if isinstance(parent, dict) and leg in parent:
        return parent[leg]
    if isinstance(parent, list) and isinstance(leg, int) and -len(parent) <= leg < len(parent):
        return parent[leg]
    raise JsonDiffError(f"the document has nothing at {change.path}")


def _legs(path: str) -> tuple[str | int, ...]:
    """Return keys and indexes of a path such as `$.a."b c"[2][last-1]`; indexes from the end are negative."""
    at = len("$")
    legs: list[str | int] = []
    if not path.startswith("$"):
        raise JsonDiffError(f"{path[:100]} is no path")
    while at < len(path):
        match = _LEG.match(path, at)
        if match is None or len(legs) == JSON_DEPTH:
            raise JsonDiffError(f"{path[:100]} is no path")
        quoted, plain, index, from_end = match.groups()
        if quoted is not None:
            legs.append(_key(quoted))
        elif plain is not None:
            legs.append(plain)
        else:
            legs.append(int(index) if index is not None else -1 - int(from_end or 0))
        at = match.end()
    return tuple(legs)


def _key(quoted: str) -> str:
    """Return the key from the text between its quotes."""
    key: str = _parse(f'"{quoted}"')
    if _HALF_A_PAIR.search(key):
        raise JsonDiffError("a key with half of a surrogate pair is no text")
    return key


def _print(value: Any) -> str:
    if isinstance(value, dict):
        # The server sorts keys by their length in bytes, then by their bytes.
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        return "{" + ", ".join([f"{quoted(key)}: {_print(value[key])}" for key in keys]) + "}"
    if isinstance(value, list):
        return "[" + ", ".join([_print(item) for item in value]) + "]"
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    return {None: "null", True: "true", False: "false"}[value]


def quoted(text: str) -> str:
    """Return a string as the server prints it in a document."""
    return '"' + _ESCAPED.sub(lambda match: _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}", text) + '"'
