"""The masks that the rows of a table have, for the baseline that carries these rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ingest.errors import UsageError
from ingest.warehouse.files import data_files, read_part, read_rows, segment_folder
from ingest.warehouse.segments import log_place
from ingest.warehouse.tables import BASELINES, ROW_EVENTS, TABLE_MAPS
from recover.timeline.baselines import Baseline
from recover.timeline.events import Place, Table

if TYPE_CHECKING:
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from ingest.warehouse.record import SourceRecord

MaskRecord = Mapping[str, Any]
"""A masked column as `table_maps` and `baselines` record it: ordinal, column_name, tag, method and fingerprint."""


@dataclass(frozen=True)
class _Rows:
    """Rows with the same masks.

    Attributes
    ----------
    names
        Columns of the table in these rows; None if they are not known.
    masks
        The masked columns by name.
    """

    names: frozenset[str] | None
    masks: Mapping[str, MaskRecord]


class LandedMaps:
    """The table maps of the landed row events of a source; read once for all tables, when the first one asks.

    Parameters
    ----------
    record, home
        The source, and the home in which it is landed.
    """

    def __init__(self, record: "SourceRecord", home: "Path") -> None:
        self.home = home
        self._record = record

    def between(self, table: Table, since: Place | None, until: Place | None) -> dict[str, tuple[int, str, int]]:
        """Return the maps of a table between two places, each with epoch, file and position of one of its rows.

        The second place is the beginning of a file.
        """
        found: dict[str, tuple[int, str, int]] = {}
        for file, name, row in self._rows.get((table.schema_name, table.table_name), ()):
            is_early = since is not None and (*file, row["transaction_pos_max"]) < since
            if not is_early and (until is None or file < until[:2]):
                found[row["table_map_id"]] = (file[0], name, row["start_pos_max"])
        return found

    @cached_property
    def _rows(self) -> dict[tuple[str, str], list[tuple[tuple[int, int], str, dict[str, Any]]]]:
        columns = ["schema_name", "table_name", "table_map_id", "transaction_pos", "start_pos"]
        found: dict[tuple[str, str], list[tuple[tuple[int, int], str, dict[str, Any]]]] = {}
        for (epoch, name), states in self._record.states.items():
            file = (epoch, log_place(name, 0)[0])
            folders = [
                segment_folder(ROW_EVENTS, one.segment, self.home) for one in states if one.status == "completed"
            ]
            for path in (path for folder in folders for path in data_files(folder)):
                rows = read_part(ROW_EVENTS, path, columns).group_by(columns[:3])
                for row in rows.aggregate([("transaction_pos", "max"), ("start_pos", "max")]).to_pylist():
                    found.setdefault((row["schema_name"], row["table_name"]), []).append((file, name, row))
        return found


def masks_of_rows(
    connection: "DuckDBPyConnection",
    table: Table,
    columns: Sequence[str],
    landed: LandedMaps,
    beginning: Baseline | None,
    until: Place | None,
) -> list[dict[str, Any]]:
    """Return the masks that all rows of a table have, in the order of its columns; empty without any.

    Parameters
    ----------
    connection
        It has the marts `row_changes`, `table_versions` and `schema_changes`.
    table
        The table.
    columns
        Its columns now. The masks of other columns are left out.
    landed
        The table maps of the source.
    beginning, until
        The rows are those of this baseline and of the changes since, up to a place.

    Raises
    ------
    UsageError
        A column has different masks in these rows, or may have another name now.
    """
    names = {"schema_name": table.schema_name, "table_name": table.table_name}
    home = landed.home
    maps = {row["table_map_id"]: row for row in read_rows(TABLE_MAPS, home, source_id=table.source_id, **names)}
    carried = read_rows(BASELINES, home, baseline_id=beginning.baseline_id, **names) if beginning is not None else []
    if not any(row["masked_columns"] for row in (*maps.values(), *carried)):
        return []
    found = [_Rows(frozenset(row["column_names"]), _by_name(row)) for row in carried]
    since = None if beginning is None else beginning.place
    for map_id, place in landed.between(table, since, until).items():
        table_map = maps[map_id]
        found.append(_Rows(_names_of(connection, table, table_map, *place), _by_name(table_map)))
    masks = {name: one for rows in found for name, one in rows.masks.items()}
    if differing := sorted(name for name in masks if _differs(name, found)):
        raise UsageError(
            f"The masks of {table} changed among the rows that must be kept: {', '.join(differing)}.",
            hint="Files before that change expire with an earlier --before. For later ones, land a `binloom baseline`:"
            " they expire together with the file that it is in.",
        )
    if (gone := sorted(masks.keys() - {*columns})) and _has_renamed_columns(connection, table):
        raise UsageError(
            f"Masked columns of {table} may have another name since an ALTER TABLE: {', '.join(gone)}.",
            hint="Land a baseline with `binloom baseline`: the files expire together with the file that it is in.",
        )
    return [dict(masks[name]) for name in columns if name in masks]


def _by_name(row: Mapping[str, Any]) -> dict[str, MaskRecord]:
    return {one["column_name"]: one for one in row["masked_columns"] or ()}


def _differs(name: str, found: Sequence[_Rows]) -> bool:
    """Return whether a column has several masks, or a mask in some rows and none in others that have the column."""
    masks = {(one["method"], one["fingerprint"]) for rows in found if (one := rows.masks.get(name)) is not None}
    is_plain = any(name not in rows.masks and (rows.names is None or name in rows.names) for rows in found)
    return len(masks) > 1 or is_plain


def _names_of(
    connection: "DuckDBPyConnection",
    table: Table,
    table_map: Mapping[str, Any],
    epoch: int,
    binlog_file: str,
    position: int,
) -> frozenset[str] | None:
    """Return the columns of a table map: by itself, or by the table version of a row at a position."""
    own = [column["name"] for column in table_map["columns"] or ()]
    if own and None not in own:
        return frozenset(own)
    row = connection.execute(
        """select versions.column_names from binloom.row_changes as changes
        inner join binloom.table_versions as versions using (table_version_id)
        where changes.source_id = $source and changes.schema_name = $schema and changes.table_name = $table
            and epoch = $epoch and binlog_file = $file and start_pos = $pos limit 1""",
        {**table.parameters, "epoch": epoch, "file": binlog_file, "pos": position},
    ).fetchone()
    return None if row is None or row[0] is None else frozenset(row[0])


def _has_renamed_columns(connection: "DuckDBPyConnection", table: Table) -> bool:
    # CHANGE COLUMN modifies a column, and may give it another name.
    row = connection.execute(
        """select count(*) from binloom.schema_changes where source_id = $source and schema_name = $schema
            and table_name = $table and list_has_any(actions, ['rename_column', 'modify_column'])""",
        table.parameters,
    ).fetchone()
    return bool(row and row[0])
