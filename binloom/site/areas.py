"""The areas of the data's way through binloom: what each is for, and which tables it has."""

from dataclasses import dataclass
from typing import Final

from binloom.site.lineage import Lineage, Table


@dataclass(frozen=True)
class Area:
    """A group of tables with one purpose, a box of the first page.

    Attributes
    ----------
    folder
        The group of its tables, or the beginning of it: a folder of models, `raw` or `seeds`.
    stage
        Index in `STAGES`; None if the data does not pass through it.
    """

    folder: str
    stage: int | None
    title: str
    purpose: str


STAGES: Final = ("The logs", "Raw tables", "Staging", "Intermediate", "Marts", "Proofs")
"""The columns of the first page, in the direction of the data."""

AREAS: Final = (
    Area(
        "raw",
        1,
        "Raw tables",
        "The decoded events of the binlogs, one row for each changed row, transaction and statement, and the snapshots "
        "of the servers' schemas. Row events have values by position: the log does not always name columns.",
    ),
    Area(
        "staging",
        2,
        "Staging",
        "The same rows, without those of segments that are not completely landed. Every other model reads these views.",
    ),
    Area(
        "intermediate/landed",
        3,
        "Landed segments",
        "Which parts of which files are landed, with the number of row events in each.",
    ),
    Area(
        "intermediate/baselines",
        3,
        "Baselines",
        "Baselines of the same table, and the changes between them.",
    ),
    Area(
        "intermediate/schema_history",
        3,
        "Schema history",
        "Which columns a table had at which position of the log, from snapshots, statements and table maps.",
    ),
    Area(
        "intermediate/row_changes",
        3,
        "Row changes",
        "Row events joined with the columns that their table had at that position.",
    ),
    Area(
        "intermediate/transactions",
        3,
        "Transactions",
        "The outcome of each transaction, also of prepared (XA) ones, and the ranges of GTIDs.",
    ),
    Area(
        "intermediate/chain",
        3,
        "Chain of images",
        "Each before image is compared with the previous after image of the same row. A difference shows a change that "
        "the log does not have.",
    ),
    Area("intermediate/files", 3, "Consecutive files", "Each file and its successor, compared for holes between them."),
    Area(
        "marts",
        4,
        "Changes and files",
        "The tables to ask: row changes, transactions, schema changes, table versions, files, activity.",
    ),
    Area("marts/history", 4, "History", "Every version of every row, and from when to when it was valid."),
    Area(
        "tables",
        4,
        "Typed tables",
        "Tables of a source with their own columns and types: current rows, history and changes. `binloom generate` "
        "writes these models.",
    ),
    Area("marts/governance", 4, "Governance", "Masked columns, with method and since when, and erasures."),
    Area("marts/statistics", 4, "Statistics", "Big and long transactions, and the load of each table by hour."),
    Area(
        "marts/quality",
        5,
        "Proofs",
        "Models that must be empty: each row is a violation, with its place. They show whether anything is missing or "
        "wrong. The table proofs has the results.",
    ),
    Area("seeds", None, "Seeds", "Lists of the event types and column types that binloom decodes."),
)
"""The areas in the order of the first page."""


def area_of(table: Table) -> Area:
    """Return the area of a table: that of the nearest folder. A project that uses binloom is an area with its name."""
    parts = table.group.split("/")
    for length in range(len(parts), 0, -1):
        folder = "/".join(parts[:length])
        if found := next((area for area in AREAS if area.folder == folder), None):
            return found
    return Area(parts[0], STAGES.index("Marts"), parts[0] or "Other tables", "Models that read those of binloom.")


def tables_by_area(lineage: Lineage) -> dict[Area, list[Table]]:
    """Return the areas that have tables, in the order of the first page, each with its tables by name."""
    tables: dict[Area, list[Table]] = {area: [] for area in AREAS}
    for table in sorted(lineage.tables, key=lambda one: one.name):
        tables.setdefault(area_of(table), []).append(table)
    return {area: found for area, found in tables.items() if found}


def feeding_areas(lineage: Lineage) -> dict[Area, list[Area]]:
    """Return the areas whose tables each area reads, without itself."""
    area_by_table = {table.name: area_of(table) for table in lineage.tables}
    feeding: dict[Area, list[Area]] = {area: [] for area in tables_by_area(lineage)}
    for table in lineage.tables:
        area = area_by_table[table.name]
        for parent in table.parents:
            found = area_by_table.get(parent)
            if found is not None and found != area and found not in feeding[area]:
                feeding[area].append(found)
    return feeding
