"""The ranges of an indexed file that a question has to read: all that may have a row which the filters select.

A range that is skipped has no such row, no row of the tables in question that may be in quarantine, and no event that
could not be decoded when the file was indexed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from ingest.binlog.assembly import table_map_batch
from ingest.binlog.events.hints import Definition
from ingest.binlog.events.old_rows import with_snapshot_columns
from ingest.binlog.events.reader import MalformedEventError
from ingest.binlog.events.table_map import TableMap, parse_table_map, with_hints
from ingest.binlog.gtid_sets import GtidSet
from ingest.landing.bindings import Binding, TableNames
from ingest.versions import Flavor
from recover.index.blooms import XA_NAME, hash_of, name_of_column
from recover.index.sidecar import IndexedMap, IndexedSegment, Sidecar
from recover.selection.catalog import table_version
from recover.selection.filters import Filters
from recover.selection.gtids import GtidRange, gtid_ranges, is_gtid
from recover.sources.files.row_filter import KeyTexts, texts_of_keys

if TYPE_CHECKING:
    from ingest.binlog import SchemaHints, TableFilter
    from ingest.sources.files.directory import BinlogPath

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class _KnownMap:
    """A table map with the definitions that are known where it is.

    `row` is its row of `table_maps`; None if it is malformed. `is_asked` tells whether the question is about its table.
    """

    row: Mapping[str, Any] | None
    is_asked: bool
    bindings: Sequence[Binding] = ()


class Needed:
    """Chooses ranges for one question.

    Parameters
    ----------
    filters
        The filters of the question.
    tables
        Takes the tables that the question is about; it is asked for every table.
    names
        Names of the tables.
    hints
        Definitions of the tables.
    with_facts
        Whether the question is about the statements that change tables, too.
    """

    def __init__(
        self,
        filters: Filters,
        tables: "TableFilter",
        names: TableNames,
        hints: "SchemaHints | None",
        *,
        with_facts: bool,
    ) -> None:
        self._with_facts = with_facts
        self._filters = filters
        self._tables = tables
        self._names = names
        self._hints = hints
        self._rows: dict[tuple[bytes, Flavor, str | None, tuple[Definition, ...]], _KnownMap] = {}
        self._parsed_maps: dict[tuple[bytes, Flavor, str | None], TableMap] = {}
        self._texts: dict[str, KeyTexts] = {}
        self._hashes: dict[tuple[str, str], int] = {}
        # Of the file that is asked about: the places where definitions change, and without any the known table maps.
        self._file: BinlogPath | None = None
        self._changes: Mapping[int, set[tuple[str, str]]] = {}
        self._by_body: dict[int, _KnownMap] = {}

    def segments(self, file: "BinlogPath", sidecar: Sidecar) -> list[IndexedSegment]:
        """Return the segments to read."""
        self._turn_to(file)
        return [one for one in sidecar.contents.segments if self._is_needed(one, file, sidecar, self._inside(one))]

    def _turn_to(self, file: "BinlogPath") -> None:
        if self._file is not file:
            self._file, self._by_body = file, {}
            self._changes = self._hints.changes_in(file.name) if self._hints is not None else {}

    def _inside(self, segment: IndexedSegment) -> set[tuple[str, str]]:
        """Return the tables whose definition changes in the middle of a segment, in small letters."""
        inside = (tables for place, tables in self._changes.items() if segment.start < place < segment.end)
        return {(schema.lower(), table.lower()) for tables in inside for schema, table in tables}

    def table_maps(self, file: "BinlogPath", sidecar: Sidecar) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of `table_maps` of the tables that the question is about, those of skipped segments too."""
        told = set()
        for segment in sidecar.contents.segments:
            if self._filters.from_pos is not None and segment.end <= self._filters.from_pos:
                continue
            for row in self.table_maps_in(segment, file, sidecar):
                if row["table_map_id"] not in told:
                    told.add(row["table_map_id"])
                    yield row

    def table_maps_in(
        self, segment: IndexedSegment, file: "BinlogPath", sidecar: Sidecar, *, with_rows: bool = False
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of `table_maps` of a segment; `with_rows`: only of table maps with rows."""
        for one in segment.maps:
            known = self._known(one, segment, file, sidecar)
            if known.is_asked and known.row is not None and (one.rows or not with_rows):
                yield known.row

    def prepared(self, sidecar: Sidecar, xids: Sequence[str]) -> list[IndexedSegment]:
        """Return the segments that may have parts of prepared transactions, by their identifiers."""
        return [
            one
            for one in sidecar.contents.segments
            if one.prepares and any(sidecar.may_have(one, hash_of(XA_NAME, xid)) for xid in xids)
        ]

    # --- one segment ---

    def _is_needed(
        self, segment: IndexedSegment, file: "BinlogPath", sidecar: Sidecar, changed: set[tuple[str, str]]
    ) -> bool:
        if self._with_facts and segment.acts:
            return True
        if not self._is_in_place(segment, file):
            return False
        # The rows that could not be decoded have no times here.
        if segment.is_open:
            return True
        return self._is_in_time(segment) and any(
            self._may_have(one, segment, file, sidecar, changed) for one in segment.maps
        )

    def _is_in_place(self, segment: IndexedSegment, file: "BinlogPath") -> bool:
        filters = self._filters
        if filters.files and file.name not in filters.files:
            return False
        if filters.from_pos is not None and segment.end <= filters.from_pos:
            return False
        if filters.to_pos is not None and segment.start >= filters.to_pos:
            return False
        if filters.gtids and not _has_any(segment.gtids, filters.gtids):
            return False
        return not filters.transactions or any(self._names_part(text, segment, file) for text in filters.transactions)

    def _names_part(self, text: str, segment: IndexedSegment, file: "BinlogPath") -> bool:
        """Return whether the name of a transaction may be that of one in the segment."""
        if is_gtid(text):
            return _has_any(segment.gtids, gtid_ranges(text))
        name, _, position = text.replace("/", ":").rpartition(":")
        if not position.isdecimal() or name.rpartition(":")[2] != file.name:
            # An unusual name, or one that is refused later.
            return not position.isdecimal() or file.name in text
        return segment.start <= int(position) < segment.end

    def _is_in_time(self, segment: IndexedSegment) -> bool:
        since, until = self._filters.since, self._filters.until
        if segment.first_at is None or segment.last_at is None:
            return since is None and until is None
        return (since is None or segment.last_at >= (since - _EPOCH) // _MICROSECOND) and (
            until is None or segment.first_at < (until - _EPOCH) // _MICROSECOND
        )

    # --- tables and keys ---

    def _may_have(
        self,
        one: IndexedMap,
        segment: IndexedSegment,
        file: "BinlogPath",
        sidecar: Sidecar,
        changed: set[tuple[str, str]],
    ) -> bool:
        known = self._known(one, segment, file, sidecar)
        if known.row is None:
            return True
        if not known.is_asked:
            return False
        if (known.row["schema_name"].lower(), known.row["table_name"].lower()) in changed:
            return True
        sequence = file.sequence or 0
        here = [
            binding
            for binding in known.bindings
            if binding.first < (0, sequence, segment.end) and binding.end > (0, sequence, segment.start)
        ]
        if not here or known.row["unknown_hints"]:
            return True
        return any(self._may_have_key(one, binding, known.row, segment, sidecar) for binding in here)

    def _may_have_key(
        self, one: IndexedMap, binding: Binding, row: Mapping[str, Any], segment: IndexedSegment, sidecar: Sidecar
    ) -> bool:
        if not self._filters.keys or binding.version is None or binding.reason is not None:
            return True
        version_id = binding.version.table_version_id
        if version_id not in self._texts:
            self._texts[version_id] = texts_of_keys(self._filters.keys, table_version(binding.version))
        texts = self._texts[version_id]
        for ordinal in one.ordinals:
            if ordinal in texts:
                name = name_of_column(row["schema_name"], row["table_name"], ordinal)
                if not any(sidecar.may_have(segment, self._hash(name, text)) for text in texts[ordinal]):
                    return False
        return True

    def _hash(self, name: str, text: str) -> int:
        found = self._hashes.get((name, text))
        if found is None:
            found = self._hashes[name, text] = hash_of(name, text)
        return found

    def _known(self, one: IndexedMap, segment: IndexedSegment, file: "BinlogPath", sidecar: Sidecar) -> _KnownMap:
        """Return a table map as the decoder would give it at the start of a segment."""
        self._turn_to(file)
        if (same := self._by_body.get(one.body)) is not None:
            return same
        found = self._found(one, segment, file, sidecar)
        if not self._changes:
            self._by_body[one.body] = found
        return found

    def _found(self, one: IndexedMap, segment: IndexedSegment, file: "BinlogPath", sidecar: Sidecar) -> _KnownMap:
        body, format = sidecar.contents.bodies[one.body], sidecar.contents.scan.format
        try:
            parsed = self._parsed(body, sidecar)
        except MalformedEventError:
            return _KnownMap(None, is_asked=True)
        place = file.name, segment.start
        known = self._hints.definitions(parsed.schema_name, parsed.table_name, *place) if self._hints else ()
        found = self._rows.get((body, format.flavor, format.server_version, known))
        if found is None:
            table_map = with_hints(with_snapshot_columns(parsed, known), body, known)
            is_asked = self._tables.takes(parsed.schema_name, parsed.table_name)
            (row,) = table_map_batch([table_map]).to_pylist()
            found = _KnownMap(row, is_asked, self._names.bindings(row) if is_asked else ())
            self._rows[body, format.flavor, format.server_version, known] = found
        return found

    def _parsed(self, body: bytes, sidecar: Sidecar) -> TableMap:
        format = sidecar.contents.scan.format
        key = body, format.flavor, format.server_version
        if key not in self._parsed_maps:
            self._parsed_maps[key] = parse_table_map(body, format.flavor, format.version)
        return self._parsed_maps[key]


def _has_any(gtids: str, wanted: Sequence[GtidRange]) -> bool:
    found = GtidSet.parse(gtids)
    return any(found.has_any(one.stem, one.first, one.last) for one in wanted)
