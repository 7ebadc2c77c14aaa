"""How a statement begins that may be DDL: a look at its first word, before anything is read."""

import re
from typing import Final

VERBS: Final = ("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE")

_BEGINNINGS: Final = rf"(?:{'|'.join(VERBS)}|SET\s+STATEMENT)\b"

DDL_PATTERN: Final = rf"(?is)^(?:\s|/\*.*?\*/|#[^\n]*\n|--[^\n]*\n|/\*M?![0-9]*)*{_BEGINNINGS}"
"""What a statement begins with that may be DDL, in the syntax that Arrow knows."""

# The same, in one pass whatever the text: Python would go back and try each comment anew.
_MAY_BE_DDL: Final = re.compile(rf"(?is)(?>\s+|/\*M?![0-9]*|/\*.*?\*/|#[^\n]*|--[^\n]*)*+{_BEGINNINGS}")


def may_be_ddl(text: str) -> bool:
    """Whether a statement begins like DDL."""
    return _MAY_BE_DDL.match(text) is not None
