"""Recognizes statements that may be DDL by their first word, before they are parsed."""

import re
from typing import Final

VERBS: Final = ("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE")

_BEGINNINGS: Final = rf"(?:{'|'.join(VERBS)}|SET\s+STATEMENT)\b"

DDL_PATTERN: Final = rf"(?is)^(?:\s|/\*.*?\*/|#[^\n]*\n|--[^\n]*\n|/\*M?![0-9]*)*{_BEGINNINGS}"
"""Matches the beginning of a statement that may be DDL, in the syntax that Arrow knows."""

# The same pattern, in one pass for any text: Python would backtrack and try each comment anew.
_MAY_BE_DDL: Final = re.compile(rf"(?is)(?>\s+|/\*M?![0-9]*|/\*.*?\*/|#[^\n]*|--[^\n]*)*+{_BEGINNINGS}")


def may_be_ddl(text: str) -> bool:
    """Return whether a statement begins like DDL."""
    return _MAY_BE_DDL.match(text) is not None
