"""Passwords and their hashes in the statements on accounts, which nobody needs to read a log."""

import re
from typing import Final

_ACCOUNTS: Final = re.compile(
    r"(?:\s|/\*.*?\*/|(?:--|\#)[^\n]*\n)*"
    r"(?:(?:CREATE|ALTER)\s+(?:OR\s+REPLACE\s+)?(?:USER|ROLE|SERVER)|GRANT|SET\s+PASSWORD)\b",
    re.IGNORECASE | re.DOTALL,
)
# A text that is cut may end in a literal.
_LITERAL: Final = r"""'(?:[^'\\]|\\.|'')*(?:'|\Z)|"(?:[^"\\]|\\.|"")*(?:"|\Z)|0x[0-9a-f]+"""
_SECRET: Final = re.compile(
    rf"(\b(?:BY|AS|USING|PASSWORD|REPLACE)\b[\s=(]*|=\s*)x?(?:{_LITERAL})", re.IGNORECASE | re.DOTALL
)


def without_secrets(text: str) -> str:
    """Return a statement with `'…'` in place of each password and hash, if it is a statement on accounts."""
    return _SECRET.sub(r"\1'…'", text) if _ACCOUNTS.match(text) else text
