"""Names of generated models: `schema__table`, and longer where that would name two tables."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256

TableId = tuple[str, str, str]
"""Source, schema and name of a table."""

KINDS = ("", "history", "changes")
"""Endings of the models of a table; the current rows have none."""


def model_name(stem: str, kind: str) -> str:
    """Return the name of a model of a table."""
    return f"{stem}__{kind}" if kind else stem


def stems(tables: Iterable[TableId], known: Mapping[TableId, str], taken: Collection[str]) -> dict[TableId, str]:
    """Return the name of the model of current rows for each table.

    A name does not depend on the order of the tables, nor on the tables that are generated together: all tables of all
    sources compete. Tables of several sources get the source as a suffix, tables of one source a hash.

    Parameters
    ----------
    tables
        All tables of all sources.
    known
        Names of tables that have files already; they keep them.
    taken
        Names of other models.
    """
    everything = sorted({*tables, *known})
    plain = {one: _plain(*one[1:]) for one in everything}
    with_source = {one: f"{plain[one]}__{_word(one[0])}" for one in everything}
    chosen = plain
    for longer in (with_source, {one: f"{with_source[one]}__{_hash(one)}" for one in everything}):
        names = Counter(model_name(chosen[one], kind) for one in everything for kind in KINDS)
        chosen = {
            one: longer[one]
            if any(names[name] > 1 or name in taken for name in (model_name(chosen[one], kind) for kind in KINDS))
            else chosen[one]
            for one in everything
        }
    return {one: known.get(one, chosen[one]) for one in everything}


def _plain(schema: str, table: str) -> str:
    return f"{_word(schema)}__{_word(table)}"


def _word(name: str) -> str:
    """Return a name in the characters that Spark allows in the name of a table."""
    return re.sub(r"[^a-z0-9_]", "_", name.lower())


def _hash(table: TableId) -> str:
    return sha256("\0".join(table).encode()).hexdigest()[:8]
