"""Column names for table maps that were not landed: the same bindings as `int_table_map_bindings` makes.

A table map has the names itself (binlog_row_metadata=FULL), or the definition of its table at the position of a row
gives them: from a schema snapshot and the statements after it.
"""

import csv
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from ingest.warehouse.project import own_project
from recover.selection.catalog import Column, TableVersion

if TYPE_CHECKING:
    from ingest.ddl.history import Version
    from ingest.ddl.shapes import TableId
    from ingest.landing.schema_history import SchemaHistory

Position = tuple[int, int, int]
"""Epoch, number of the file, offset."""

_FIRST: Final[Position] = (-1, -1, -1)
_FOREVER: Final[Position] = (2147483647, 2**63 - 1, 2**63 - 1)
_SIZES: Final = re.compile(r"\((\d+)(?:,(\d+)\))?")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A definition that a table may have in a range of positions."""

    version: TableVersion
    is_in_force: bool
    is_of_statement: bool


@dataclass(frozen=True, slots=True)
class Binding:
    """Names of a table map from one position on, or the reason why it has none.

    Attributes
    ----------
    first
        Position from which on it holds.
    version
        Version of the table, None if no version fits.
    confidence
        `exact`, `in_force` or `inferred`.
    reason, detail
        Reason why its rows are in quarantine; None if they are not.
    """

    first: Position
    version: TableVersion | None
    confidence: str | None
    reason: str | None = None
    detail: str | None = None


class Names:
    """The definitions of a source's tables, and the names that they give to table maps.

    Parameters
    ----------
    source_id
        Name of the source.
    history
        Snapshots and statements; None if there are none.
    epoch
        Epoch of the files.
    """

    def __init__(self, source_id: str, history: "SchemaHistory | None", epoch: int = 0) -> None:
        self._source_id = source_id
        self._ranges: dict[TableId, list[tuple[Position, list[Candidate]]]] = {}
        if history is not None:
            placed = {place[:3] for place in history.places_of_snapshots(epoch)}
            for table, versions in history.versions(epoch).items():
                self._ranges[table] = _with_runs(source_id, table, list(_ranges(versions, placed)))

    def candidates(self) -> Iterator[tuple[Position, Candidate]]:
        """Yield each definition that snapshots and statements give once, with the position from which on it holds."""
        seen: set[str] = set()
        for ranges in self._ranges.values():
            for first, candidates in ranges:
                for candidate in candidates:
                    if candidate.version.table_version_id not in seen:
                        seen.add(candidate.version.table_version_id)
                        yield first, candidate

    def bindings(self, table_map: Mapping[str, Any]) -> list[Binding]:
        """Return the bindings of a table map (a row of `table_maps`), ordered by their positions."""
        columns = table_map["columns"]
        if columns and all(column["name"] is not None for column in columns):
            return [_exact(self._source_id, table_map)]
        ranges = self._ranges.get((table_map["schema_name"], table_map["table_name"]))
        if not ranges:
            detail = "the table map has no column names, and nothing tells what the table looks like"
            return [Binding(_FIRST, None, None, "unknown_table", detail)]
        return [_bound(first, candidates, columns) for first, candidates in ranges]


def _ranges(
    versions: "Sequence[Version]", placed: set[tuple[int, ...]]
) -> "Iterator[tuple[Position, list[tuple[Version, bool]]]]":
    """Yield each position with the definitions that the table may have from there on, and whether each is certain."""
    steps = _steps(versions, placed)
    for number, (version, is_known) in enumerate(steps):
        following, is_following_known = steps[number + 1] if number + 1 < len(steps) else (None, False)
        # The columns in a later snapshot are valid since the last statement before it. A snapshot without a position is
        # assumed to show the beginning, too.
        later = following if following is not None and following.is_observed and following.columns else None
        if version.columns is None:
            found = [(later, False)] if later is not None else []
        elif later is not None and _shape(version.columns) == _shape(later.columns or ()):
            found = [(later, is_known or is_following_known)]
        else:
            found = [(version, is_known), *([(later, False)] if later is not None else [])]
        yield _position(version), found


def _steps(versions: "Sequence[Version]", placed: set[tuple[int, ...]]) -> "list[tuple[Version, bool]]":
    """Return the last version at each position, and whether it is certain.

    A snapshot that shows the same columns as the statement before it confirms them.
    """
    steps: list[tuple[Version, bool]] = []
    for version, is_known in zip(versions, _are_known(versions, placed), strict=True):
        if steps and _position(steps[-1][0]) == _position(version):
            stated, is_stated_known = steps.pop()
            is_confirmed = stated.columns is not None and _shape(stated.columns) == _shape(version.columns or ())
            steps.append((version, is_known or (is_confirmed and is_stated_known)))
        else:
            steps.append((version, is_known))
    return steps


def _are_known(versions: "Sequence[Version]", placed: set[tuple[int, ...]]) -> Iterator[bool]:
    """Yield whether each definition is certain. A snapshot without a position is only assumed to hold where it does."""
    is_known, had_columns = False, False
    for version in versions:
        if version.is_observed:
            is_known = version.place[:3] in placed
        elif version.is_doubtful:
            is_known = False
        elif not had_columns:
            # A statement created the table.
            is_known = True
        had_columns = version.columns is not None
        yield is_known and had_columns


def _position(version: "Version") -> Position:
    place = version.place
    return (place[0], place[1], place[2]) if len(place) >= 3 else (place[0], -1, -1) if place else _FIRST


def _shape(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, bool]]:
    return [
        (row["column_name"].lower(), row["data_type"].lower(), row["primary_key_ordinal"] is not None) for row in rows
    ]


def _with_runs(
    source_id: str, table: "TableId", ranges: "list[tuple[Position, list[tuple[Version, bool]]]]"
) -> list[tuple[Position, list[Candidate]]]:
    """Name the versions. Consecutive ranges with the same definition are one version, named by its first position."""
    starts: dict[str, Position] = {}
    found: list[tuple[Position, list[Candidate]]] = []
    for first, candidates in ranges:
        here: dict[str, Position] = {}
        named = []
        for version, is_known in candidates:
            columns = [_column(row, ordinal) for ordinal, row in enumerate(version.columns or ())]
            definition = _definition_id(source_id, table, columns, with_ordinals=False)
            here[definition] = starts.get(definition, first)
            named.append(
                Candidate(
                    version=_table_version(_version_id(definition, here[definition]), source_id, table, columns),
                    is_in_force=is_known,
                    is_of_statement=not version.is_observed,
                )
            )
        starts = here
        found.append((first, named))
    return found


def _column(row: Mapping[str, Any], ordinal: int) -> Column:
    return Column(
        ordinal=ordinal,
        name=row["column_name"],
        data_type=row["data_type"].lower(),
        column_type=row["column_type"],
        character_set=row["character_set"],
        is_nullable=row["is_nullable"],
        is_primary_key=row["primary_key_ordinal"] is not None,
    )


def _exact(source_id: str, table_map: Mapping[str, Any]) -> Binding:
    """Return the binding of a table map that has the names itself."""
    table = table_map["schema_name"], table_map["table_name"]
    columns = [
        Column(
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
    ]
    version = _table_version(_definition_id(source_id, table, columns, with_ordinals=True), source_id, table, columns)
    if len({column.name for column in columns}) != len(columns):
        return Binding(_FIRST, version, "exact", "column_count_mismatch", "two columns have the same name")
    return Binding(_FIRST, version, "exact")


def _bound(first: Position, candidates: Sequence[Candidate], columns: Sequence[Mapping[str, Any]]) -> Binding:
    """Choose the candidate that fits a table map; two that fit with other names are ambiguous."""
    if not candidates:
        detail = "the table map has no column names, and what the table looks like is not known at this position"
        return Binding(first, None, None, "unknown_table", detail)
    judged = [(candidate, _misfit(candidate, columns)) for candidate in candidates]
    fitting = [candidate for candidate, misfit in judged if misfit is None]
    names = {tuple(column.name for column in candidate.version.columns) for candidate in fitting}
    if len(names) > 1 and any(candidate.is_in_force for candidate in fitting):
        detail = "what the table was before and what a later snapshot shows both fit, with other names"
        return Binding(first, fitting[-1].version, "ambiguous", "ambiguous_version", detail)
    if not fitting:
        candidate, misfit = judged[0]
        reason, detail = misfit or ("column_type_mismatch", "")
        return Binding(first, candidate.version, None, reason, detail)
    chosen = fitting[-1]
    is_certain = chosen.is_in_force and len(candidates) == 1
    return Binding(first, chosen.version, "in_force" if is_certain else "inferred")


def _misfit(candidate: Candidate, columns: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Return why a definition cannot be that of a table map: a reason and a detail."""
    defined = candidate.version.columns
    if len(defined) != len(columns):
        detail = f"the table map has {len(columns)} columns, the schema {len(defined)}"
        return "column_count_mismatch", detail
    if len({column.name for column in defined}) != len(defined):
        return "column_count_mismatch", "two columns have the same name"
    details = [
        f"column {ordinal} {one.name} is {one.column_type}{_not_null(one.is_nullable)} in the schema"
        f" and {wire['type']}({wire['metadata']}){_not_null(wire['is_nullable'])} in the binlog"
        for ordinal, (wire, one) in enumerate(zip(columns, defined, strict=True), 1)
        if not _fits(wire, one, candidate.is_of_statement)
    ]
    return ("column_type_mismatch", "; ".join(details)) if details else None


def _not_null(is_nullable: bool | None) -> str:
    return " not null" if is_nullable is False else ""


def _fits(wire: Mapping[str, Any], defined: Column, is_of_statement: bool) -> bool:
    """Compare types, sizes, and whether NULL is allowed, as macro `column_fits` does."""
    name, metadata, data_type = wire["type"], wire["metadata"], defined.data_type or ""
    known = wire_metadata().get((name, data_type))
    if known is None:
        return False
    # The server enlarges a TEXT type when its character set needs more bytes.
    is_enlarged = is_of_statement and data_type.endswith("text") and known.isdigit() and (metadata or 0) > int(known)
    if known not in ("*", str(metadata)) and not is_enlarged:
        return False
    nullable = wire["is_nullable"], defined.is_nullable
    if None not in nullable and nullable[0] != nullable[1]:
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
    return data_type not in ("char", "varchar") or bool(first <= size <= 4 * first)


@cache
def wire_metadata() -> dict[tuple[str, str], str]:
    """Return the metadata that a table map has, by the type in the table map and the type in information_schema."""
    with (own_project() / "seeds" / "column_types.csv").open(newline="") as file:
        return {(row["wire_type"], row["data_type"]): row["wire_metadata"] for row in csv.DictReader(file)}


def _table_version(version_id: str, source_id: str, table: "TableId", columns: Sequence[Column]) -> TableVersion:
    key = tuple(column.name for column in columns if column.is_primary_key)
    return TableVersion(version_id, source_id, table[0], table[1], tuple(columns), key)


def _definition_id(source_id: str, table: "TableId", columns: Iterable[Column], *, with_ordinals: bool) -> str:
    """Return the same hash as macro `definition_id`: of JSON without the fields that are NULL."""
    shown = [
        {
            field: value
            for field, value in (
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
    return _hash({"source_id": source_id, "schema_name": table[0], "table_name": table[1], "columns": shown})


def _version_id(definition: str, first: Position) -> str:
    names = ("valid_from_epoch", "valid_from_file_sequence", "valid_from_pos")
    return hashlib.md5(f"{definition}/{_json(dict(zip(names, first, strict=True)))}".encode()).hexdigest()


def _hash(document: object) -> str:
    return hashlib.md5(_json(document).encode()).hexdigest()


def _json(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def spans(bindings: Sequence[Binding]) -> Iterator[tuple[Position, Position, Binding]]:
    """Yield each binding with the first position and the end of its range."""
    for (first, binding), (end, _) in pairwise([*((one.first, one) for one in bindings), (_FOREVER, None)]):
        if binding is not None:
            yield first, end, binding
