"""The masks of a source: those of the file, and a check that they were not forgotten."""

from pathlib import Path
from typing import Any

from ingest.errors import UsageError
from ingest.masking.rules import FILE_NAME, FILE_VARIABLE, Masks, masks_file, read_masks
from ingest.warehouse.files import read_table
from ingest.warehouse.tables import BASELINES, TABLE_MAPS


def masks_of(source_id: str, home: Path, given: Path | None = None) -> Masks | None:
    """Return the masks with which rows of a source are landed, None without any.

    Parameters
    ----------
    source_id
        Name of the source.
    home
        Folder of all data of binloom.
    given
        File with the masks; None: the file of the variable, or that of the home, if there is one.

    Raises
    ------
    UsageError
        The file has a mistake, or no file is found although the source was landed with masks before.
    """
    path = masks_file(given, home)
    if path is not None:
        return read_masks(path, home, source_id)
    if recorded_masks(source_id, home):
        raise UsageError(
            f"Source {source_id!r} was landed with masks, and now there is no file with masks.",
            hint=f"Give --masks, set {FILE_VARIABLE}, or put {FILE_NAME} into {home}. A file with `rules: []` lands all"
            " values from now on.",
        )
    return None


def recorded_masks(source_id: str, home: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Return the methods of the columns that are masked in any landed row or baseline, by schema and table."""
    return {
        table: {name: masks[-1]["method"] for name, masks in columns.items()}
        for table, columns in landed_masks(source_id, home).items()
    }


def landed_masks(source_id: str, home: Path) -> dict[tuple[str, str], dict[str, list[dict[str, Any]]]]:
    """Return all masks that landed rows and baselines have, by schema and table, and by column."""
    found: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for table in (TABLE_MAPS, BASELINES):
        rows = read_table(table, home, ["schema_name", "table_name", "masked_columns"], source_id=source_id)
        for row in rows.filter(rows["masked_columns"].is_valid()).to_pylist():
            columns = found.setdefault((row["schema_name"], row["table_name"]), {})
            for one in row["masked_columns"]:
                columns.setdefault(one["column_name"], []).append(one)
    return found
