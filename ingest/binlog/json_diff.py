"""Changes of JSON documents, as MySQL logs them with binlog_row_value_options=PARTIAL_JSON, applied to the document.

Documents are texts as the server prints them, and stay so in every part that is not changed: a number keeps
its digits. Source: server, sql-common/json_diff.cc, `apply_json_diff`.
"""

import json
import re
from typing import Any, Final

_REPLACE, _INSERT, _REMOVE = range(3)
_LEG: Final = re.compile(r'\.(?:"((?:[^"\\]|\\.)*)"|([^.\[\s"]+))|\[(?:(\d+)|last(?:-(\d+))?)\]')
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f]')


class JsonDiffError(ValueError):
    """A change that does not fit the document."""


class _Number(str):
    """A number with the digits that it was printed with."""

    __slots__ = ()


def apply_diffs(document: str, diffs: str) -> str:
    """The document after its changes.

    Parameters
    ----------
    document
        A JSON document as the server prints it.
    diffs
        JSON array of [operation, path, value], as the kernel writes it (`kernel.json.write_json_diffs`).

    Raises
    ------
    JsonDiffError
        When a change names a place that the document does not have.
    """
    root = [_parse(document)]
    for operation, path, *values in _parse(diffs):
        _apply(root, int(operation), path, values[0] if values else None)
    return _print(root[0])


def _parse(text: str) -> Any:
    return json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_Number, strict=False)


def _apply(root: list[Any], operation: int, path: str, value: Any) -> None:
    # The document is the only cell of a list, so that replacing it whole is no case of its own.
    parent: Any = root
    leg: str | int = 0
    for following in _legs(path):
        parent, leg = _child(parent, leg, path), following
    if operation == _REPLACE:
        _child(parent, leg, path)
        parent[leg] = value
    elif operation == _REMOVE:
        _child(parent, leg, path)
        del parent[leg]
    elif isinstance(parent, dict) and isinstance(leg, str) and leg not in parent:
        parent[leg] = value
    elif isinstance(parent, list) and isinstance(leg, int):
        parent.insert(leg if leg >= 0 else max(len(parent) + leg, 0), value)
    else:
        raise JsonDiffError(f"nothing can be inserted at {path}")


def _child(parent: Any, leg: str | int, path: str) -> Any:
    if isinstance(parent, dict) and leg in parent:
        return parent[leg]
    if isinstance(parent, list) and isinstance(leg, int) and -len(parent) <= leg < len(parent):
        return parent[leg]
    raise JsonDiffError(f"the document has nothing at {path}")


def _legs(path: str) -> list[str | int]:
    """Keys and indexes of a path such as `$.a."b c"[2][last-1]`; those that count from the end are negative."""
    at, legs = 1, []
    while at < len(path):
        match = _LEG.match(path, at)
        if match is None:
            raise JsonDiffError(f"{path} is no path")
        quoted, plain, index, from_end = match.groups()
        if quoted is not None:
            legs.append(json.loads(f'"{quoted}"'))
        elif plain is not None:
            legs.append(plain)
        else:
            legs.append(int(index) if index is not None else -1 - int(from_end or 0))
        at = match.end()
    return legs


def _print(value: Any) -> str:
    if isinstance(value, dict):
        # The server keeps keys by their length in bytes, then by their bytes.
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        return "{" + ", ".join(f"{_quote(key)}: {_print(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_print, value)) + "]"
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, str):
        return _quote(value)
    return {None: "null", True: "true", False: "false"}[value]


def _quote(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda match: _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04x}", text) + '"'
