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
