"""Filter for the tables whose rows are wanted."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Self


def matches(name: str, pattern: str) -> bool:
    """Return whether a pattern names a schema or a table: `*` and `?` stand for other letters, and brackets do not."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))


@dataclass(frozen=True, slots=True)
class TableFilter:
    """Schemas and tables to include and to exclude; patterns with `*` and `?`.

    A table is named `schema.table`, or `table` in any schema. Without `schemas` and `tables` all are included.
    """

    schemas: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    exclude_tables: tuple[str, ...] = field(default=())

    @classmethod
    def of(
        cls, schemas: Iterable[str] = (), tables: Iterable[str] = (), exclude_tables: Iterable[str] = ()
    ) -> Self | None:
        """Return a filter, or None when it would include everything."""
        found = cls(tuple(schemas), tuple(tables), tuple(exclude_tables))
        return found if found.schemas or found.tables or found.exclude_tables else None

    @classmethod
    def parse(cls, schemas: str | None, tables: str | None, exclude_tables: str | None) -> Self | None:
        """Return a filter from comma-separated names as a person types them."""
        return cls.of(*(_separated(names) for names in (schemas, tables, exclude_tables)))

    def takes(self, schema: str, table: str) -> bool:
        """Return whether rows of this table are wanted."""
        if self.schemas and not any(matches(schema, pattern) for pattern in self.schemas):
            return False
        if self.tables and not _names(self.tables, schema, table):
            return False
        return not _names(self.exclude_tables, schema, table)


def _separated(names: str | None) -> list[str]:
    return [name.strip() for name in (names or "").split(",") if name.strip()]


def _names(patterns: tuple[str, ...], schema: str, table: str) -> bool:
    return any(matches(f"{schema}.{table}" if "." in pattern else table, pattern) for pattern in patterns)
