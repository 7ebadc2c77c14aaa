"""The schema history of a source as raw tables: `table_versions` and `table_bindings`.

They are written as a whole, as one set: readers see the set that the latest row of `schema_histories` of the source
names, and this row is written last. Sets of before are kept for a day, for builds that read them.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from ingest.landing.bindings import Binding, Position, TableNames, TableVersion
from ingest.landing.row_counts import count_older_segments
from ingest.landing.schema_history import SchemaHistory
from ingest.warehouse.catalog import Statements
from ingest.warehouse.files import append_rows, delete_temporaries, read_rows, store_errors
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.locks import history_locked
from ingest.warehouse.names import source_stem
from ingest.warehouse.partitions import LISTED_FIRST, open_tables
from ingest.warehouse.raw_state import PLAIN_TABLES, raw_states
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.tables import (
    DERIVED_TABLES,
    NAMING_RULES,
    SCHEMA_HISTORIES,
    SCHEMA_SNAPSHOTS,
    SEGMENTS,
    TABLE_BINDINGS,
    TABLE_MAPS,
    TABLE_VERSIONS,
    RawTable,
)

_KEEP_SETS: Final = timedelta(days=1)
RAW_STATES: Final = "binloom.raw_states"
"""Setting of a session: the states of the raw tables when it listed their files."""
_STATE: Final = re.compile(r"(\w+):(\w+)")
_SET: Final = (TABLE_VERSIONS, TABLE_BINDINGS, SCHEMA_HISTORIES)


def open_home(session: Statements, home: Path, *, is_new: bool = False) -> None:
    """Let a session know everything that is landed, and the names that the schema history gives it.

    A session that nobody has used is opened faster with `is_new`.
    """
    count_older_segments(home)
    known = dict(_STATE.findall(session.sql(f"set {RAW_STATES}").collect()[0][1]))
    # Before the session lists the files: what lands in between is listed again by the next run.
    states = raw_states(home)
    # The session lists the segments first: the bindings of all their table maps are published after that.
    open_tables(session, home)
    publish_histories(home)
    states |= raw_states(home, DERIVED_TABLES)
    for table in PLAIN_TABLES:
        # What is in the other tables is read for the segments that are listed by now. A session lists the files of a
        # table once, and a new one has listed none.
        if table not in LISTED_FIRST and not is_new and states[table.name] != known.get(table.name):
            session.sql(f"refresh table {table.qualified_name}")
    session.sql(f"set {RAW_STATES} = {_in_words(states)}")


def _in_words(states: Mapping[str, str]) -> str:
    return " ".join(f"{name}:{state}" for name, state in states.items())


def publish_home(home: Path) -> None:
    """Publish all that the raw tables have only when somebody asks them: the names, and counts of older segments."""
    count_older_segments(home)
    publish_histories(home)


def publish_histories(home: Path) -> None:
    """Publish the schema history of every source whose evidence changed.

    Raises
    ------
    StoreError
        The warehouse cannot be read or written.
    """
    known = [read_rows(table, home, ["source_id"]) for table in (SEGMENTS, SCHEMA_SNAPSHOTS, TABLE_MAPS)]
    for source_id in sorted({row["source_id"] for rows in known for row in rows}):
        publish_history(source_id, home)


def published_bindings(source_id: str, home: Path) -> list[dict[str, Any]]:
    """Return the bindings of a source that count, as rows of `table_bindings`.

    Raises
    ------
    StoreError
        The warehouse cannot be read.
    """
    latest = _latest(read_rows(SCHEMA_HISTORIES, home, source_id=source_id))
    return read_rows(TABLE_BINDINGS, home, history_id=latest["history_id"]) if latest else []


def _latest(heads: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    return max(heads, key=lambda row: row["published_at"], default=None)


def publish_history(source_id: str, home: Path) -> bool:
    """Publish the schema history of a source, if its evidence changed; return whether it did.

    Raises
    ------
    StoreError
        The warehouse cannot be read or written.
    """
    with history_locked(home, source_id):
        heads = read_rows(SCHEMA_HISTORIES, home, source_id=source_id)
        latest = _latest(heads)
        record = SourceRecord.load(source_id, home)
        table_maps = _distinct(read_rows(TABLE_MAPS, home, source_id=source_id))
        evidence = _evidence(record, table_maps, read_rows(SCHEMA_SNAPSHOTS, home, source_id=source_id))
        if latest is not None and latest["evidence_hash"] == evidence:
            return False
        for table in _SET:
            delete_temporaries(table, f"{source_stem(source_id)}-", home)
        history = SchemaHistory.load(record, home)
        names = _names(history, source_id, table_maps)
        bindings = [(table_map, one) for table_map in table_maps for one in names.bindings(table_map)]
        head = {"source_id": source_id, "evidence_hash": evidence, "snapshot_epochs": history.snapshot_epochs()}
        _write_set(head, names.versions(), bindings, home)
        _delete_old_sets(heads, home)
    return True


def _names(history: SchemaHistory, source_id: str, table_maps: Iterable[Mapping[str, Any]]) -> TableNames:
    mapped = [(row["schema_name"], row["table_name"]) for row in table_maps]
    return TableNames(source_id, history, history.placed_versions(mapped))


def _distinct(table_maps: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each table map once, ordered by its key; each segment that contains it has landed it."""
    by_key = {row["table_map_id"]: row for row in table_maps}
    return [by_key[key] for key in sorted(by_key)]


def _evidence(
    record: SourceRecord, table_maps: Iterable[Mapping[str, Any]], snapshots: Iterable[Mapping[str, Any]]
) -> str:
    """Return a hash of everything that the history follows from."""
    facts = (
        NAMING_RULES,
        sorted(
            (*key, state.segment_start, state.segment_end, state.status)
            for key, states in record.states.items()
            for state in states
            if state.is_done
        ),
        sorted((*key, row["file_size"], str(row["first_event_at"])) for key, row in record.files.items()),
        sorted((row["epoch"], str(row["observed_at"])) for row in record.identities),
        sorted(row["snapshot_id"] for row in snapshots),
        [row["table_map_id"] for row in table_maps],
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _write_set(
    head: Mapping[str, Any],
    versions: Iterable[TableVersion],
    bindings: Sequence[tuple[Mapping[str, Any], Binding]],
    home: Path,
) -> None:
    source_id = head["source_id"]
    named = [one.version for _, one in bindings if one.confidence == "exact" and one.version is not None]
    exact = {version.table_version_id: version for version in named}
    of_versions = [_version_row(one) for one in (*versions, *exact.values())]
    of_bindings = [_binding_row(source_id, table_map, one) for table_map, one in bindings]
    digest = hashlib.sha256(repr((of_versions, of_bindings)).encode()).hexdigest()
    history_id = f"{source_stem(source_id)}-{digest[:32]}"
    for table, rows in ((TABLE_VERSIONS, of_versions), (TABLE_BINDINGS, of_bindings)):
        if not (raw_table_dir(table.name, home) / f"{history_id}.parquet").exists():
            append_rows(table, [{"history_id": history_id, **row} for row in rows], history_id, home)
    # Written last: a set counts when this row exists.
    whole = {"history_id": history_id, **head, "published_at": datetime.now(UTC)}
    append_rows(SCHEMA_HISTORIES, [whole], history_id, home)


def _version_row(version: TableVersion) -> dict[str, Any]:
    return {
        "source_id": version.source_id,
        "table_version_id": version.table_version_id,
        "definition_id": version.definition_id,
        "evidence": version.evidence,
        "evidence_id": version.evidence_id,
        "schema_name": version.table[0],
        "table_name": version.table[1],
        "column_count": len(version.columns),
        "columns": [asdict(column) for column in version.columns],
        "column_names": list(version.column_names),
        "primary_key_ordinals": list(version.primary_key_ordinals),
        "valid_from_binlog_file": version.valid_from_file,
        "valid_to_binlog_file": version.valid_to_file,
        **_range(version.valid_from, version.valid_to),
    }


def _binding_row(source_id: str, table_map: Mapping[str, Any], binding: Binding) -> dict[str, Any]:
    version = binding.version
    return {
        "source_id": source_id,
        "table_map_id": table_map["table_map_id"],
        "table_version_id": version.table_version_id if version is not None else None,
        "schema_name": table_map["schema_name"],
        "table_name": table_map["table_name"],
        "column_count": table_map["column_count"],
        "column_names": list(version.column_names) if version is not None else None,
        "primary_key_ordinals": list(version.primary_key_ordinals) if version is not None else None,
        "confidence": binding.confidence,
        "reason": binding.reason,
        "detail": binding.detail,
        **_range(binding.first, binding.end),
    }


def _range(first: Position | None, end: Position | None) -> dict[str, int | None]:
    names = ("epoch", "file_sequence", "pos")
    found: dict[str, int | None] = {}
    for word, position in (("valid_from", first), ("valid_to", end)):
        found |= {f"{word}_{name}": position[at] if position else None for at, name in enumerate(names)}
    return found


def _delete_old_sets(heads: Iterable[Mapping[str, Any]], home: Path) -> None:
    """Delete the sets that were replaced long ago: nobody reads them any more."""
    ordered = sorted(heads, key=lambda row: row["published_at"])
    newest = datetime.now(UTC) - _KEEP_SETS
    for replaced, by in pairwise(ordered):
        if by["published_at"] < newest:
            # The row that makes it count goes first.
            for table in reversed(_SET):
                _delete(table, replaced["history_id"], home)


def _delete(table: RawTable, name: str, home: Path) -> None:
    path = raw_table_dir(table.name, home) / f"{name}.parquet"
    with store_errors(path):
        path.unlink(missing_ok=True)
