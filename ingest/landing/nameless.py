"""Tables whose columns have no names in the log: their rows cannot be named, or cannot be masked, until a snapshot."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ingest.binlog.events.hints import SchemaHints
from ingest.masking.rows import KEY_LOST, NO_NAMES

_MOST_NAMED = 5
_UNMASKABLE = {
    NO_NAMES: "masks may concern them and their column names are not known. Land a snapshot with `binloom snapshot`, "
    "then run ingest again for the same files.",
    KEY_LOST: "masks give a column of their primary key the method drop, null or partial. Give it the method hash, and "
    "land the files under another --source.",
}


class Nameless:
    """Collects such tables while a run lands, for the warnings at its end."""

    def __init__(self) -> None:
        self._has_maps = False
        self._unmaskable: set[tuple[str, str, str]] = set()

    def add_maps(self, table_maps: Iterable[Mapping[str, Any]], hints: SchemaHints | None) -> None:
        """Take the table maps that have no names, and whose tables no hint names either."""
        self._has_maps |= any(_is_nameless(one, hints) for one in table_maps)

    def add_unmaskable(self, tables: Iterable[tuple[str, str, str]]) -> None:
        """Take tables whose rows are not landed, because they cannot be masked: reason, schema and name."""
        self._unmaskable |= {*tables}

    def warnings(self, source: str) -> Iterator[str]:
        """Yield the warnings."""
        for reason, advice in _UNMASKABLE.items():
            tables = sorted(f"{schema}.{table}" for why, schema, table in self._unmaskable if why == reason)
            if tables:
                yield f"Rows of {_listed(tables)} of source {source!r} are not landed, because {advice}"
        if self._has_maps:
            yield (
                f"The server does not log column names, and source {source!r} has no schema snapshot for some tables: "
                "their rows are landed, but cannot be named yet. Land a snapshot with "
                f"`binloom snapshot --source {source} --server HOST` (or `--from-dir DIR`), then run ingest for new "
                "files or `dbt run`."
            )


def _is_nameless(table_map: Mapping[str, Any], hints: SchemaHints | None) -> bool:
    if not table_map["columns"] or table_map["columns"][0]["name"] is not None:
        return False
    return hints is None or not hints.is_known(table_map["schema_name"], table_map["table_name"])


def _listed(tables: Sequence[str]) -> str:
    more = f" and {len(tables) - _MOST_NAMED} more" if len(tables) > _MOST_NAMED else ""
    return ", ".join(tables[:_MOST_NAMED]) + more
