"""Bits of SQL modes, as the servers have them."""

from typing import Final

ANSI_QUOTES: Final = 1 << 2
NO_BACKSLASH_ESCAPES: Final = 1 << 20

NO_AUTO_VALUE_ON_ZERO: Final = "NO_AUTO_VALUE_ON_ZERO"
PAD_CHAR_TO_FULL_LENGTH: Final = "PAD_CHAR_TO_FULL_LENGTH"
MODES_OF_VALUES: Final = {NO_AUTO_VALUE_ON_ZERO: 1 << 19, PAD_CHAR_TO_FULL_LENGTH: 1 << 31}
"""Modes that change which values rows have after an ALTER TABLE. An action that depends on one has it as its detail."""


def modes_of_values(sql_mode: int, *, is_counter: bool) -> str | None:
    """Return the modes that decide which values a changed column has; None if none does.

    Parameters
    ----------
    sql_mode
        Bits of the modes.
    is_counter
        Whether the column is AUTO_INCREMENT afterwards.
    """
    decisive = MODES_OF_VALUES if is_counter else (PAD_CHAR_TO_FULL_LENGTH,)
    return " ".join(name for name in decisive if sql_mode & MODES_OF_VALUES[name]) or None
