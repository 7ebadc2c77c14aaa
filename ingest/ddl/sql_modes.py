"""Bits of the SQL modes that change where a text begins and ends, as the servers have them."""

from typing import Final

ANSI_QUOTES: Final = 1 << 2
NO_BACKSLASH_ESCAPES: Final = 1 << 20
