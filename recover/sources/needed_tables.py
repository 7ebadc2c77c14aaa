"""The tables of files whose rows a question about one table needs."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ingest.ddl.actions import INACTIVE_RULES

if TYPE_CHECKING:
    from ingest.ddl.actions import Key
    from ingest.ddl.history import Event, Place
    from ingest.landing.schema_history import SchemaHistory

    Evidence = Sequence[tuple[Place, Event]]


def needed_tables(tables: Collection[str], history: "SchemaHistory") -> frozenset[str] | None:
    """Return the names of tables whose rows are read, in lower case; None for all tables.

    They are the given ones, the names that these had before a RENAME TABLE, and the tables whose changes may have
    changed their rows by foreign keys.
    """
    if not tables:
        return None
    names, evidence = {table.lower() for table in tables}, history.evidence()
    for former, name in reversed(renames(evidence)):
        if _are_named(name, names):
            names.add(former)
    keys = [*_cascades(evidence)]
    while more := {parent for table, parent in keys if _are_named(table, names)} - names:
        names |= more
    return frozenset(names)


def renames(evidence: "Evidence") -> list[tuple[str, str]]:
    """Return the names before and after each RENAME TABLE, in lower case, in the order of the log."""
    from ingest.ddl.actions import Action

    return [
        (_text(event.schema_name, event.table_name), _text(event.other_schema_name, event.other_table_name))
        for _, event in evidence
        if isinstance(event, Action) and event.action == "rename_table"
    ]


def _cascades(evidence: "Evidence") -> Iterator[tuple[str, str]]:
    """Yield the tables with a cascading foreign key, each with its parent, in lower case."""
    from ingest.ddl.actions import Action
    from ingest.ddl.history import Observation

    for _, event in evidence:
        if isinstance(event, Observation):
            for (schema, table), keys in (event.keys or {}).items():
                yield from ((_text(schema, table), parent) for parent in _parents(schema, keys))
        elif isinstance(event, Action):
            name = _text(event.schema_name, event.table_name)
            yield from ((name, parent) for parent in _parents(event.schema_name, event.keys))


def _parents(schema: str | None, keys: "Iterable[Key]") -> Iterator[str]:
    for key in keys:
        rules = {rule.upper() for rule in (key.delete_rule, key.update_rule) if rule is not None}
        if key.is_foreign and not rules <= INACTIVE_RULES:
            yield _text(key.referenced_schema_name or schema, key.referenced_table_name)


def _are_named(name: str, names: Collection[str]) -> bool:
    """Return whether a table is one of some names, which may have no schema."""
    return name in names or name.partition(".")[2] in names


def _text(schema: str | None, table: str | None) -> str:
    return f"{schema or ''}.{table or ''}".lower()
