"""Columns that MariaDB adds to a system-versioned table that does not declare its period."""

from typing import Final

from ingest.ddl.actions import Column

PERIOD: Final = tuple(
    Column(name, "timestamp", "timestamp(6)", is_nullable=False, is_generated=True, extra="STORED GENERATED, INVISIBLE")
    for name in ("row_start", "row_end")
)
"""Ends of the period; they come after all other columns.

Source: MariaDB, sql/handler.cc, `Vers_parse_info::fix_implicit`.
"""

IS_ROW_END: Final = "row end"
"""Detail of an action that adds the end of the period."""


def with_row_end(key: tuple[str, ...], name: str = PERIOD[1].name) -> tuple[str, ...]:
    """Return the columns of a primary key with the end of the period, which the server adds: a row has versions.

    Source: MariaDB, sql/sql_table.cc, `vers_prepare_keys`.
    """
    return key if not key or name in key else (*key, name)
