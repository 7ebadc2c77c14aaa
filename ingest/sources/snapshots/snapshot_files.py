"""Schema snapshots from a folder of files that hold the views of information_schema.

Each view is one file: `columns`, `key_column_usage`, `referential_constraints`, `tables`, `statistics` and `schemata`.
It is `.json` (a list of objects, or one object a line), `.csv` (a header line, quoted where needed) or `.tsv`
(as `mysql --batch` prints it).
"""

import csv
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ingest.errors import SnapshotInputError
from ingest.sources.snapshots.snapshot import (
    COLUMNS_NEEDED,
    COLUMNS_OPTIONAL,
    KEYS_NEEDED,
    KEYS_OPTIONAL,
    RULES_NEEDED,
    RULES_OPTIONAL,
    SCHEMATA_NEEDED,
    STATISTICS_NEEDED,
    STATISTICS_OPTIONAL,
    TABLES_NEEDED,
    TABLES_OPTIONAL,
    SchemaSnapshot,
    default_rows,
    schema_rows,
)

ENDINGS = (".json", ".csv", ".tsv")
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0", "\\": "\\", "r": "\r"}


def read_snapshot_dir(directory: Path) -> SchemaSnapshot:
    """Read a snapshot from files.

    Parameters
    ----------
    directory
        Folder with the files. `referential_constraints` may be missing when there is no foreign key. `tables` and
        `statistics` may be missing when no table of MariaDB is system-versioned or has a unique hash index, and no
        unique key has a prefix or an expression. `tables` and `schemata` give the default character sets of the tables
        and schemas that they list.

    Raises
    ------
    SnapshotInputError
        A file is missing, cannot be read, lacks a column, or contradicts another file.
    """
    if not directory.is_dir():
        raise SnapshotInputError(
            f"There is no directory {directory}.",
            hint="Give the folder that contains columns and key_column_usage as .json, .csv or .tsv, and"
            " referential_constraints if there are foreign keys.",
            path=str(directory),
        )
    columns_file = _find(directory, "columns")
    keys_file = _find(directory, "key_column_usage")
    rules_file = _find(directory, "referential_constraints", is_needed=False)
    tables_file = _find(directory, "tables", is_needed=False)
    statistics_file = _find(directory, "statistics", is_needed=False)
    schemata_file = _find(directory, "schemata", is_needed=False)
    columns = _read(columns_file, COLUMNS_NEEDED, COLUMNS_OPTIONAL)
    keys = _read(keys_file, KEYS_NEEDED, KEYS_OPTIONAL)
    rules = _read(rules_file, RULES_NEEDED, RULES_OPTIONAL) if rules_file else []
    tables = _read(tables_file, TABLES_NEEDED, TABLES_OPTIONAL) if tables_file else []
    statistics = _read(statistics_file, STATISTICS_NEEDED, STATISTICS_OPTIONAL) if statistics_file else []
    schemata = _read(schemata_file, SCHEMATA_NEEDED) if schemata_file else []
    if rules_file is None and any(row.get("REFERENCED_TABLE_NAME") for row in keys):
        raise _missing(directory, "referential_constraints")
    column_rows, key_rows, foreign_rows = schema_rows(columns, keys, rules, tables, statistics)
    taken = datetime.fromtimestamp(columns_file.stat().st_mtime, UTC)
    defaults = default_rows(schemata, tables)
    return SchemaSnapshot(
        "files", taken, columns=column_rows, keys=key_rows, foreign_keys=foreign_rows, defaults=defaults
    )


def _find(directory: Path, view: str, is_needed: bool = True) -> Any:
    found = [path for ending in ENDINGS if (path := directory / f"{view}{ending}").is_file()]
    if len(found) > 1:
        raise SnapshotInputError(
            f"{directory} holds {' and '.join(path.name for path in found)}: which one is meant?",
            hint="Keep one file for each view.",
            path=str(directory),
        )
    if not found and is_needed:
        raise _missing(directory, view)
    return found[0] if found else None


def _missing(directory: Path, view: str) -> SnapshotInputError:
    return SnapshotInputError(
        f"{directory} holds no {view}.json, {view}.csv or {view}.tsv.",
        hint=f"Export it with: mysql --batch -e 'select * from information_schema.{view}' > {view}.tsv",
        path=str(directory),
    )


def _read(path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> list[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SnapshotInputError(
            f"{path} cannot be read: {error.strerror}.", hint="Give read permission.", path=str(path)
        ) from error
    except UnicodeDecodeError as error:
        raise SnapshotInputError(
            f"{path} is not UTF-8 at byte {error.start}.", hint="Export it with utf8mb4.", path=str(path)
        ) from error
    rows = {".json": _json_rows, ".csv": _csv_rows, ".tsv": _tsv_rows}[path.suffix](path, text)
    wanted = {*needed, *optional}
    result = []
    for number, row in enumerate(rows, 1):
        upper = {str(name).upper(): value for name, value in row.items() if name is not None}
        missing = [name for name in needed if upper.get(name) is None]
        if missing:
            have = ", ".join(sorted(upper)) or "none"
            raise SnapshotInputError(
                f"{path} has no {missing[0]} in row {number}; its columns are {have}.",
                hint="Export the view as it is, with SELECT *; the columns carry the server's own names.",
                path=str(path),
            )
        result.append({name: upper[name] for name in wanted if name in upper})
    return result


def _json_rows(path: Path, text: str) -> list[dict[str, Any]]:
    try:
        rows = json.loads(text) if text.lstrip().startswith("[") else [json.loads(line) for line in text.splitlines()]
    except json.JSONDecodeError as error:
        raise SnapshotInputError(
            f"{path} is not JSON: {error.msg} in line {error.lineno}.",
            hint="It should be a list of objects, or one object a line.",
            path=str(path),
        ) from error
    except RecursionError:
        # Brackets in brackets, deeper than any list of rows.
        rows = [None]
    if not all(isinstance(row, dict) for row in rows):
        raise SnapshotInputError(
            f"{path} is not a list of objects.",
            hint='Each row is one object with the names of the view, such as {"TABLE_SCHEMA": "shop", …}.',
            path=str(path),
        )
    return rows


def _csv_rows(path: Path, text: str) -> list[dict[str, Any]]:
    try:
        rows = list(csv.DictReader(text.splitlines(keepends=True), strict=True))
    except csv.Error as error:
        raise SnapshotInputError(
            f"{path} is not CSV: {error}.", hint="Quote with double quotes.", path=str(path)
        ) from error
    return [{name: None if value in ("NULL", "\\N") else value for name, value in row.items()} for row in rows]


def _tsv_rows(path: Path, text: str) -> list[dict[str, Any]]:
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        return []
    names = lines[0].rstrip("\r").split("\t")
    rows = []
    for number, line in enumerate(lines[1:], 2):
        values = line.rstrip("\r").split("\t")
        if len(values) != len(names):
            raise SnapshotInputError(
                f"{path} has {len(values)} values in line {number}, but {len(names)} names in its header.",
                hint="Export it with `mysql --batch`, without --raw.",
                path=str(path),
            )
        rows.append(dict(zip(names, map(_tsv_value, values), strict=True)))
    return rows


def _tsv_value(text: str) -> str | None:
    if text in ("NULL", "\\N"):
        return None
    if "\\" not in text:
        return text
    parts = iter(text)
    return "".join(_ESCAPES.get(following := next(parts, ""), following) if sign == "\\" else sign for sign in parts)
