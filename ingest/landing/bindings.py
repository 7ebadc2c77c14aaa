"""Names of the values in row images: which definition each table map has, in which range of positions.

A table map has the names itself (binlog_row_metadata=FULL). Otherwise the definitions of its table give them: those of
schema snapshots, and of the statements after them.
"""

import csv
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import groupby, pairwise
from typing import Any, Final

from ingest.ddl.hashed_keys import may_be_hash
from ingest.ddl.history import Certainty, Evidence, Version, outline
from ingest.ddl.shapes import TableId
from ingest.landing.schema_history import SchemaHistory
from ingest.warehouse.project import own_project

Position = tuple[int, int, int]
"""Epoch, number of the file, offset."""

FIRST: Final[Position] = (-1, -1, -1)
"""Before every position."""
FOREVER: Final[Position] = (2147483647, 2**63 - 1, 2**63 - 1)
"""Behind every position."""

_NAMELESS: Final = "the table map has no column names, and"
_SIZES: Final = re.compile(r"\((\d+)(?:,(\d+)\))?")


@dataclass(frozen=True, slots=True)
class NamedColumn:
    """A column of a table version. The ordinal counts from 0."""

    ordinal: int
    name: str
    data_type: str | None
    column_type: str | None
    character_set: str | None
    is_nullable: bool | None
    is_primary_key: bool


@dataclass(frozen=True)
class TableVersion:
    """A definition of a table, and where it was in force.

    Attributes
    ----------
    table
        Schema and name.
    columns
        Columns in table order.
    evidence, evidence_id
        `table_map`, `snapshot` or `ddl`, and which one: the table map, the snapshot, or file and position of the
        statement.
    valid_from, valid_to, valid_from_file, valid_to_file
        First position and end, and the names of their files; None for a definition of table maps, which have their own
        names everywhere.
    is_certain
        Whether it was certainly in force somewhere in this range.
    table_version_id, definition_id
        Hashes: the same definition at another time is another version.
    """

    source_id: str
    table: TableId
    columns: tuple[NamedColumn, ...]
    evidence: str
    evidence_id: str
    valid_from: Position | None = None
    valid_to: Position | None = None
    valid_from_file: str | None = None
    valid_to_file: str | None = None
    is_certain: bool = True

    @cached_property
    def definition_id(self) -> str:
        """Hash of the table and its columns."""
        return _definition_id(self.source_id, self.table, self.columns, with_ordinals=self.valid_from is None)

    @cached_property
    def table_version_id(self) -> str:
        """Key of the version."""
        return self.definition_id if self.valid_from is None else _version_id(self.definition_id, self.valid_from)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names in table order."""
        return tuple(column.name for column in self.columns)

    @property
    def primary_key_ordinals(self) -> tuple[int, ...]:
        """Ordinals of the columns of the primary key, in table order."""
        return tuple(column.ordinal for column in self.columns if column.is_primary_key)


@dataclass(frozen=True, slots=True)
class Binding:
    """Names of a table map in a range of positions, or the reason why it has none.

    Attributes
    ----------
    first, end
        First position, and the position behind the range.
    version
        Version of the table, None if nothing is known of it.
    confidence
        `exact`, `in_force`, `inferred` or `ambiguous`; None if no version fits.
    reason, detail
        Reason why its rows are in quarantine; None if they are not.
    """

    first: Position
    end: Position
    version: TableVersion | None
    confidence: str | None
    reason: str | None = None
    detail: str | None = None


@dataclass(slots=True)
class _Range:
    """The definitions that a table may have in a range of positions, and why there is none."""

    first: Position
    end: Position
    candidates: list[tuple[TableVersion, bool]] = field(default_factory=list)
    gap: str = ""


class TableNames:
    """The definitions of a source's tables, and the names that they give to table maps.

    Parameters
    ----------
    source_id
        Name of the source.
    history
        Evidence of the definitions; None if there is none.
    versions
        Definitions by table, as the history gives them.
    """

    def __init__(
        self,
        source_id: str,
        history: SchemaHistory | None = None,
        versions: Mapping[TableId, Sequence[Version]] | None = None,
    ) -> None:
        self._source_id = source_id
        self._history = history
        self._ranges = {
            table: self._named(table, list(self._possible(of_table))) for table, of_table in (versions or {}).items()
        }

    def versions(self) -> Iterator[TableVersion]:
        """Yield each definition that snapshots and statements give once, with its whole range."""
        seen: dict[str, TableVersion] = {}
        for ranges in self._ranges.values():
            for one in ranges:
                for version, _ in one.candidates:
                    seen[version.table_version_id] = version
        yield from seen.values()

    def bindings(self, table_map: Mapping[str, Any]) -> list[Binding]:
        """Return the bindings of a table map (a row of `table_maps`), ordered by their positions."""
        columns = table_map["columns"]
        if columns and all(column["name"] is not None for column in columns):
            return [_exact(self._source_id, table_map)]
        ranges = self._ranges.get((table_map["schema_name"], table_map["table_name"]))
        if not ranges:
            detail = f"{_NAMELESS} nothing tells what the table looks like"
            return [Binding(FIRST, FOREVER, None, None, "unknown_table", detail)]
        return _merged(_bound(one, columns) for one in ranges)

    # --- ranges ---

    def _possible(self, versions: Sequence[Version]) -> Iterator[tuple[Position, list[tuple[Version, bool]], str]]:
        """Yield each position with the definitions that the table may have from there on, and whether they are sure.

        The third is the reason why there is none.
        """
        # The last version of a position is in force.
        steps = [(first, list(here)) for first, here in groupby(versions, self._position)]
        for (first, of_position), (_, following) in pairwise([*steps, (FOREVER, [])]):
            version = _confirmed(of_position)
            own = version if version.columns is not None else None
            later = _shown_before(following, is_known=version.evidence is not None) or version.carried
            found = []
            if own is not None and later is not None and outline(own.columns or ()) == outline(later.columns or ()):
                found.append((later, Certainty.CERTAIN in (own.certainty, later.certainty)))
            else:
                found += [(one, one is own and one.certainty is Certainty.CERTAIN) for one in (own, later) if one]
            yield first, found, self._gap(version)

    def _position(self, version: Version) -> Position:
        place = version.place
        if len(place) == 1 and self._history is not None:
            return place[0], *self._history.begin_of(place[0])
        return (place[0], place[1], place[2]) if place else FIRST

    def _gap(self, version: Version) -> str:
        evidence = version.evidence
        if evidence is None:
            return f"{_NAMELESS} what the table looks like is known only from another position on"
        return f"{_NAMELESS} what the table looks like is not known since {self._id(evidence)}: {evidence.detail}"

    def _id(self, evidence: Evidence) -> str:
        if evidence.place and self._history is not None:
            return f"{self._history.file_at(evidence.place)}:{evidence.place[4]}"
        return evidence.snapshot_id

    def _named(
        self, table: TableId, ranges: Sequence[tuple[Position, list[tuple[Version, bool]], str]]
    ) -> list[_Range]:
        """Make versions. Consecutive ranges with the same definition are one, named by its first position."""
        found: list[_Range] = []
        runs: dict[str, _Run] = {}
        every: list[_Run] = []
        for (first, candidates, gap), (end, _, _) in pairwise([*ranges, (FOREVER, [], "")]):
            here: dict[str, _Run] = {}
            for version, is_certain in candidates:
                one = self._version(table, version, first, end, is_certain=is_certain)
                run = runs.get(one.definition_id) or _Run(one)
                if run.version is not one:
                    run.extend(one)
                else:
                    every.append(run)
                here[one.definition_id] = run
                run.places.append((len(found), is_certain))
            runs = here
            found.append(_Range(first, end, [], gap))
        for run in every:
            for number, is_certain in run.places:
                found[number].candidates.append((run.version, is_certain))
        return found

    def _version(
        self, table: TableId, version: Version, first: Position, end: Position, *, is_certain: bool
    ) -> TableVersion:
        evidence = version.evidence or Evidence()
        return TableVersion(
            self._source_id,
            table,
            tuple(_column(row, ordinal) for ordinal, row in enumerate(version.columns or ())),
            "ddl" if evidence.place else "snapshot",
            self._id(evidence),
            first,
            end,
            self._file(first),
            self._file(end),
            is_certain,
        )

    def _file(self, position: Position) -> str | None:
        is_somewhere = FIRST < position < FOREVER and position[1] >= 0
        return self._history.file_at(position) if is_somewhere and self._history is not None else None


def _confirmed(of_position: Sequence[Version]) -> Version:
    """Return the last version of a position. A snapshot confirms the statement before it if it shows the same."""
    last = of_position[-1]
    same = [
        one
        for one in of_position
        if last.is_observed and one.columns is not None and outline(one.columns) == outline(last.columns or ())
    ]
    return replace(last, certainty=max((one.certainty for one in same), default=last.certainty))


def _shown_before(following: Sequence[Version], *, is_known: bool) -> Version | None:
    """Return the version of the next position that is valid here, too: that of a snapshot, back to the last statement.

    A snapshot without a position counts from the beginning, as far as nothing else is known, and no statement on a
    table that was not known comes between.
    """
    if not following or following[0].columns is None:
        return None
    if following[0].is_observed:
        return _confirmed(following) if following[0].columns else None
    is_assumed = following[-1].is_observed and following[-1].certainty is Certainty.ASSUMED
    return following[-1] if is_assumed and not is_known else None


@dataclass(slots=True)
class _Run:
    """A definition in consecutive ranges, and the numbers of the ranges."""

    version: TableVersion
    places: list[tuple[int, bool]] = field(default_factory=list)

    def extend(self, version: TableVersion) -> None:
        """Add the next range; what first made the definition certain is its evidence."""
        shown = version if version.is_certain and not self.version.is_certain else self.version
        begin, end = self.version, version
        self.version = replace(
            shown,
            valid_from=begin.valid_from,
            valid_from_file=begin.valid_from_file,
            valid_to=end.valid_to,
            valid_to_file=end.valid_to_file,
        )


def _column(row: Mapping[str, Any], ordinal: int) -> NamedColumn:
    return NamedColumn(
        ordinal=ordinal,
        name=row["column_name"],
        data_type=row["data_type"].lower() if row["data_type"] is not None else None,
        column_type=row["column_type"],
        character_set=row["character_set"],
        is_nullable=row["is_nullable"],
        is_primary_key=row["primary_key_ordinal"] is not None,
    )


# --- table maps ---


def _exact(source_id: str, table_map: Mapping[str, Any]) -> Binding:
    """Return the binding of a table map that has the names itself."""
    columns = tuple(
        NamedColumn(
            ordinal=column["ordinal"],
            name=column["name"],
            data_type=column["type"].lower(),
            column_type=" ".join(
                [column["type"].lower()]
                + ([str(column["metadata"])] if column["metadata"] is not None else [])
                + (["unsigned"] if column["is_unsigned"] else [])
            ),
            character_set=column["charset"],
            is_nullable=column["is_nullable"],
            is_primary_key=bool(column["is_primary_key"]),
        )
        for column in table_map["columns"]
    )
    table = table_map["schema_name"], table_map["table_name"]
    version = TableVersion(source_id, table, columns, "table_map", table_map["table_map_id"])
    is_doubled = len(set(version.column_names)) != len(columns)
    reason, detail = ("column_count_mismatch", _DOUBLED) if is_doubled else (None, None)
    return Binding(FIRST, FOREVER, version, "exact", reason, detail)


_DOUBLED: Final = "two columns have the same name"


def _bound(of: _Range, columns: Sequence[Mapping[str, Any]]) -> Binding:
    """Choose the candidate that fits a table map; two that fit with other names are ambiguous."""
    if not of.candidates:
        return Binding(of.first, of.end, None, None, "unknown_table", of.gap)
    judged = [(version, is_certain, _misfit(version, columns)) for version, is_certain in of.candidates]
    fitting = [(version, is_certain) for version, is_certain, misfit in judged if misfit is None]
    if len({version.column_names for version, _ in fitting}) > 1 and any(is_certain for _, is_certain in fitting):
        detail = "what the table was before and what a later snapshot shows both fit, with other names"
        return Binding(of.first, of.end, fitting[-1][0], "ambiguous", "ambiguous_version", detail)
    if not fitting:
        version, _, misfit = judged[0]
        return Binding(of.first, of.end, version, None, *(misfit or ("column_type_mismatch", "")))
    version, is_certain = fitting[-1]
    return Binding(of.first, of.end, version, "in_force" if is_certain and len(of.candidates) == 1 else "inferred")


def _merged(bindings: Iterable[Binding]) -> list[Binding]:
    """Make one binding of consecutive ones with the same outcome."""
    found: list[Binding] = []
    for one in bindings:
        if found and replace(found[-1], first=one.first, end=one.end) == one:
            found[-1] = replace(found[-1], end=one.end)
        else:
            found.append(one)
    return found


def _misfit(version: TableVersion, columns: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Return why a definition cannot be that of a table map: a reason and a detail."""
    if len(version.columns) != len(columns):
        detail = f"the table map has {len(columns)} columns, the schema {len(version.columns)}"
        return "column_count_mismatch", detail + (_HIDDEN_KEY if _may_hide_key(version, columns) else "")
    if len(set(version.column_names)) != len(columns):
        return "column_count_mismatch", _DOUBLED
    details = [
        f"column {ordinal} {one.name} is {one.column_type}{_not_null(one.is_nullable)} in the schema"
        f" and {wire['type']}({wire['metadata']}){_not_null(wire['is_nullable'])} in the binlog"
        for ordinal, (wire, one) in enumerate(zip(columns, version.columns, strict=True), 1)
        if not _fits(wire, one, is_of_statement=version.evidence == "ddl")
    ]
    return ("column_type_mismatch", "; ".join(details)) if details else None


_HIDDEN_KEY: Final = (
    "; a key that the server generated may be hidden from information_schema, for example while"
    " show_gipk_in_create_table_and_information_schema is OFF"
)


def _may_hide_key(version: TableVersion, columns: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the table map has one number more than a definition without a primary key.

    MySQL generates the first column; MySQL of Alibaba Cloud the last one.
    """
    is_keyless = not version.primary_key_ordinals
    ends = columns[:1], columns[-1:]
    has_number = any(one["type"] == "LONGLONG" and not one["is_nullable"] for end in ends for one in end)
    return is_keyless and len(columns) == len(version.columns) + 1 and has_number


def _not_null(is_nullable: bool | None) -> str:
    return " not null" if is_nullable is False else ""


def _fits(wire: Mapping[str, Any], defined: NamedColumn, *, is_of_statement: bool) -> bool:
    """Compare types, the sizes in the metadata of the table map, and whether NULL is allowed."""
    name, metadata, data_type = wire["type"], wire["metadata"], defined.data_type
    if data_type is None:
        # A later statement changed the type.
        return True
    known = wire_metadata().get((name, data_type))
    if known is None:
        return False
    # The server enlarges a TEXT type when its character set needs more bytes.
    is_enlarged = is_of_statement and data_type.endswith("text") and known.isdigit() and (metadata or 0) > int(known)
    if known not in ("*", str(metadata)) and not is_enlarged:
        return False
    nullable = wire["is_nullable"], defined.is_nullable
    # information_schema shows each hash of a long unique key as nullable.
    if None not in nullable and nullable[0] != nullable[1] and not may_be_hash(defined.name):
        return False
    sizes = _SIZES.search(defined.column_type or "")
    first, second = (int(sizes[1]), int(sizes[2] or 0)) if sizes else (None, 0)
    if name in ("TIME2", "DATETIME2", "TIMESTAMP2"):
        return metadata is None or metadata == (first or 0)
    if first is None or metadata is None:
        return True
    if name == "NEWDECIMAL":
        return bool(metadata == first * 256 + second)
    # MariaDB counts the byte for the method in the size of a compressed column.
    size = metadata - (name == "VARCHAR_COMPRESSED")
    if name == "BIT" or data_type in ("binary", "varbinary"):
        return bool(size == first)
    # A character takes one to four bytes.
    return data_type not in ("char", "varchar") or bool(first <= size <= 4 * first)


@cache
def wire_metadata() -> dict[tuple[str, str], str]:
    """Return the metadata that a table map has, by the type in the table map and the type in information_schema."""
    with (own_project() / "seeds" / "column_types.csv").open(newline="") as file:
        return {(row["wire_type"], row["data_type"]): row["wire_metadata"] for row in csv.DictReader(file)}


# --- keys ---


def _definition_id(source_id: str, table: TableId, columns: Iterable[NamedColumn], *, with_ordinals: bool) -> str:
    shown = [
        {
            name: value
            for name, value in (
                ("ordinal", column.ordinal if with_ordinals else None),
                ("name", column.name),
                ("data_type", column.data_type),
                ("column_type", column.column_type),
                ("character_set", column.character_set),
                ("is_nullable", column.is_nullable),
                ("is_primary_key", column.is_primary_key),
            )
            if value is not None
        }
        for column in columns
    ]
    return _hash(_json({"source_id": source_id, "schema_name": table[0], "table_name": table[1], "columns": shown}))


def _version_id(definition: str, first: Position) -> str:
    names = ("valid_from_epoch", "valid_from_file_sequence", "valid_from_pos")
    return _hash(f"{definition}/{_json(dict(zip(names, first, strict=True)))}")


def _hash(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def _json(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)
