"""Verb and table of a statement that changes rows, as far as the beginning of its text shows them."""

import re
from typing import Final

_NAME: Final = r"(?:`(?:[^`]|``)+`|\"[^\"]+\"|[\w$]+)"
_STRING: Final = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_SPACE: Final = r"(?:\s|/\*.*?\*/|--\s[^\n]*\n|#[^\n]*\n)"
_MODIFIERS: Final = r"(?:(?:low_priority|delayed|high_priority|quick|ignore)\s+)*"
_TARGETS: Final = {
    verb: re.compile(rf"{before}({_NAME}(?:\s*\.\s*{_NAME})?)", re.IGNORECASE | re.DOTALL)
    for verb, before in {
        "INSERT": rf"{_MODIFIERS}(?:into\b\s*)?",
        "REPLACE": rf"{_MODIFIERS}(?:into\b\s*)?",
        "UPDATE": _MODIFIERS,
        "DELETE": rf"{_MODIFIERS}(?:from\b\s*)?",
        "LOAD": rf"(?:{_STRING}|[^'\"])*?\binto\s+table\s*",
    }.items()
}

CHANGE_PATTERN: Final = rf"(?is)^{_SPACE}*({'|'.join(_TARGETS)})\s"
"""Matches the beginning of a statement that changes rows, in a syntax that Python and Arrow share."""

_CHANGE: Final = re.compile(CHANGE_PATTERN)


def changed_table(sql: str, default_schema: str | None) -> tuple[str, str, str] | None:
    """Return verb, schema and table of an INSERT, REPLACE, UPDATE, DELETE or LOAD; None for any other statement.

    If there are several tables, the first one is returned. A name without a schema is in `default_schema`.
    """
    change = _CHANGE.match(sql)
    if change is None:
        return None
    verb = change[1].upper()
    target = _TARGETS[verb].match(sql[change.end() :].lstrip())
    if target is None:
        return None
    parts = [_unquoted(part) for part in re.findall(_NAME, target[1])]
    schema, table = parts if len(parts) == 2 else (default_schema or "", parts[0])
    return verb, schema, table


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name[0] in '`"' else name
