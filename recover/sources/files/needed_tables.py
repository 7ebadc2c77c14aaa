"""The tables of files whose rows a question about one table needs."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ingest.ddl.letter_case import lowered

if TYPE_CHECKING:
    from ingest.ddl.foreign_keys import KeyInTime
    from ingest.ddl.history import Event, Place
    from ingest.landing.schema_history import SchemaHistory

    Evidence = Sequence[tuple[Place, Event]]


def needed_tables(tables: Collection[str], history: "SchemaHistory") -> frozenset[str] | None:
    """Return the names of tables whose rows are read, in lower case; None for all tables.

    They are the given ones, the names that these had before a RENAME TABLE, and the tables whose changes may have
    changed their rows by foreign keys.
    """
    from ingest.ddl.foreign_keys import foreign_keys_through

    if not tables:
        return None
    names, evidence = set(map(lowered, tables)), history.evidence()
    for former, name in reversed(renames(evidence)):
        if _are_named(_text(*name), names):
            names.add(_text(*former))
    keys = [key for key in foreign_keys_through(evidence) if key.is_cascading]
    while more := {_text(*parent) for key in keys if _has_name(key, names) for parent in key.parent} - names:
        names |= more
    return frozenset(names)


def renames(evidence: "Evidence") -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Return schema and name before and after each RENAME TABLE, in lower case, in the order of the log."""
    from ingest.ddl.actions import Action

    return [
        (_lower(event.schema_name, event.table_name), _lower(event.other_schema_name, event.other_table_name))
        for _, event in evidence
        if isinstance(event, Action) and event.action == "rename_table"
    ]


def _has_name(key: "KeyInTime", names: Collection[str]) -> bool:
    return any(_are_named(_text(*table), names) for table in key.table)


def _are_named(name: str, names: Collection[str]) -> bool:
    """Return whether a table is one of some names, which may have no schema."""
    return name in names or name.partition(".")[2] in names


def _lower(schema: str | None, table: str | None) -> tuple[str, str]:
    return lowered(schema or ""), lowered(table or "")


def _text(schema: str, table: str) -> str:
    return lowered(f"{schema}.{table}")
