"""Bits of SQL modes, as the servers have them."""

from typing import Final

REAL_AS_FLOAT: Final = 1 << 0
ANSI_QUOTES: Final = 1 << 2
ORACLE: Final = 1 << 9
MSSQL: Final = 1 << 10
MAXDB: Final = 1 << 12
NO_BACKSLASH_ESCAPES: Final = 1 << 20

TYPE_SCHEMAS: Final = {"MARIADB_SCHEMA": 0, "ORACLE_SCHEMA": ORACLE, "MAXDB_SCHEMA": MAXDB}
"""Words before the name of a type, with the mode in which MariaDB then reads DATE and TIMESTAMP.

It shows `mariadb_schema.date` where the SQL mode gives `date` another meaning. Other types are those of the session.

Source: MariaDB, sql/sql_schema.cc, `Schema::find_by_name`.
"""

SYNTAXES: Final = tuple(
    quotes | numbers | escapes
    # The other modes include ANSI_QUOTES.
    for quotes in (0, ANSI_QUOTES, ANSI_QUOTES | ORACLE, ANSI_QUOTES | MSSQL, ANSI_QUOTES | MAXDB)
    for numbers in (0, REAL_AS_FLOAT)
    for escapes in (0, NO_BACKSLASH_ESCAPES)
)
"""Each combination of the modes that change what a text means."""

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
