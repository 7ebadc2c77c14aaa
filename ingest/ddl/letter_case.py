"""The case of letters in names, which servers do not tell apart in the names of columns.

The tables of the servers are those of Unicode 3.0, as tried on MySQL 5.6 and 9.7 and on MariaDB 10.11.
"""

from typing import Final
from unicodedata import ucd_3_2_0

# Letters of Unicode 3.1 and 3.2.
_LATER: Final = frozenset(
    map(chr, (0x220, 0x3D8, 0x3D9, 0x3F4, 0x48A, 0x48B, 0x4C5, 0x4C6, 0x4C9, 0x4CA, 0x4CD, 0x4CE, *range(0x500, 0x510)))
)


def lowered(name: str) -> str:
    """Return a name in lower case as servers have it: letter by letter, so that `ß` is not `ss`."""
    return name.lower() if name.isascii() else "".join(map(_lowered, name))


def _lowered(letter: str) -> str:
    # Python lowers İ to two characters.
    lower = letter.lower()[0]
    return lower if _is_old(letter) and _is_old(lower) else letter


def _is_old(letter: str) -> bool:
    return ucd_3_2_0.category(letter) != "Cn" and letter not in _LATER
