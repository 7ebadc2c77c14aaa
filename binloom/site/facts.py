"""Facts of the warehouse that the site shows: sources, results of proofs and tests, activity of tables."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from ingest.errors import BinloomError
from recover.sources.home.marts import built_at, open_marts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_Row = TypeVar("_Row")

# Commands of dbt that run tests; others write the same file without results of tests.
_TESTING: Final = ("build", "test", "retry")
# The page describes each of these tables in a line, and draws the first of them.
MOST_TABLES: Final = 200


@dataclass(frozen=True)
class Source:
    """A source and the files of it that were scanned.

    Attributes
    ----------
    hours_behind
        Hours from its last event to the newest event of all sources.
    """

    name: str
    server: str
    files: int
    incomplete_files: int
    bytes: int
    events: int
    transactions: int
    first_event_at: datetime | None
    last_event_at: datetime | None
    landed_at: datetime | None
    hours_behind: float | None


@dataclass(frozen=True)
class Proof:
    """The last result of a proof: how much it examined, in its unit, and the violations that it found.

    Attributes
    ----------
    by_source
        The number of violations of each source that has any.
    """

    name: str
    violation: str
    model: str
    severity: str
    violations: int
    checked: int
    unit: str
    by_source: dict[str, int]


@dataclass(frozen=True)
class Activity:
    """The row events of a table, as (start of the hour, inserts, updates, deletes) in the order of time."""

    source: str
    schema: str
    table: str
    hours: tuple[tuple[datetime, int, int, int], ...]

    @property
    def row_events(self) -> int:
        """The number of row events in all hours."""
        return sum(inserts + updates + deletes for _, inserts, updates, deletes in self.hours)


@dataclass(frozen=True)
class Outcome:
    """The last result of a test of dbt."""

    status: str
    failures: int


@dataclass(frozen=True)
class Facts:
    """Everything that the site shows about the data of a home.

    Attributes
    ----------
    missing
        By the name of a mart that could not be read: the reason.
    proofs_built_at
        When `proofs` was built.
    tests
        Results by the name of the test.
    tested_at
        When the tests ran.
    quiet_tables
        Number of tables with row events that are not in `activity`.
    """

    sources: tuple[Source, ...] = ()
    proofs: tuple[Proof, ...] = ()
    proofs_built_at: datetime | None = None
    activity: tuple[Activity, ...] = ()
    quiet_tables: int = 0
    tests: dict[str, Outcome] = field(default_factory=dict)
    tested_at: datetime | None = None
    missing: dict[str, str] = field(default_factory=dict)


def read_facts(home: Path, target: Path) -> Facts:
    """Return the facts of a home. Nothing is written, and marts that were not built are no error.

    Parameters
    ----------
    target
        Folder of dbt's last results in a project that uses binloom; those of binloom itself are in the home.
    """
    missing: dict[str, str] = {}
    runs = [read_tests(folder) for folder in dict.fromkeys((home / "target", target))]
    tests = {name: outcome for results, _ in runs for name, outcome in results.items()}
    tested_at = max((at for _, at in runs if at), default=None)
    activity, quiet_tables = _rows(home, ("binloom", "table_activity_hourly"), _activity, missing) or ((), 0)
    return Facts(
        sources=_rows(home, ("binloom", "binlog_files"), _sources, missing) or (),
        proofs=_rows(home, ("binloom_quality", "proofs"), _proofs, missing) or (),
        proofs_built_at=built_at(home, "binloom_quality", "proofs"),
        activity=activity,
        quiet_tables=quiet_tables,
        tests=tests,
        tested_at=tested_at,
        missing=missing,
    )


def read_tests(target: Path) -> tuple[dict[str, Outcome], datetime | None]:
    """Return the results of dbt's last tests by name, and when they ran; nothing if a folder does not have them."""
    try:
        run = json.loads((target / "run_results.json").read_bytes())
        manifest = json.loads((target / "manifest.json").read_bytes())
        if run["args"]["which"] not in _TESTING:
            return {}, None
        results = {
            # A test that was removed since has no name any more.
            manifest["nodes"][one["unique_id"]]["name"]: Outcome(one["status"], one["failures"] or 0)
            for one in run["results"]
            if one["unique_id"].startswith("test.") and one["unique_id"] in manifest["nodes"]
        }
        return results, datetime.fromisoformat(run["metadata"]["generated_at"])
    except (OSError, ValueError, KeyError):
        return {}, None


def _rows(
    home: Path, mart: tuple[str, str], read: "Callable[[DuckDBPyConnection], _Row]", missing: dict[str, str]
) -> _Row | None:
    """Return what a function reads from a mart; None, with the reason in `missing`, if the mart cannot be read."""
    import duckdb

    try:
        with open_marts(home, [mart]) as connection:
            return read(connection)
    except BinloomError as error:
        missing[mart[1]] = str(error)
    except duckdb.Error as error:
        missing[mart[1]] = f"{'.'.join(mart)} cannot be read: {str(error).splitlines()[0]}."
    return None


def _sources(connection: "DuckDBPyConnection") -> tuple[Source, ...]:
    rows = connection.execute(
        """
        select
            source_id,
            arg_max(flavor || ' ' || server_version, (epoch, file_sequence)),
            count(*),
            count_if(bytes_covered is distinct from file_size or failed_segments > 0),
            coalesce(sum(file_size), 0)::bigint,
            coalesce(sum(events), 0)::bigint,
            coalesce(sum(transactions), 0)::bigint,
            min(first_event_at),
            max(last_event_at),
            max(landed_at),
            epoch(max(max(last_event_at)) over () - max(last_event_at)) / 3600
        from binloom.binlog_files
        group by source_id
        order by source_id
        """
    ).fetchall()
    return tuple(Source(*row) for row in rows)


def _proofs(connection: "DuckDBPyConnection") -> tuple[Proof, ...]:
    rows = connection.execute(
        """
        select proof, violation, quality_model, severity, violations, checked, unit, violations_by_source
        from binloom_quality.proofs
        order by proof_number
        """
    ).fetchall()
    return tuple(Proof(*row) for row in rows)


def _activity(connection: "DuckDBPyConnection") -> tuple[tuple[Activity, ...], int]:
    """Return the busiest tables, busiest first, and the number of others."""
    rows = connection.execute(
        f"""
        with tables as (
            select source_id, schema_name, table_name, sum(row_events) as row_events
            from binloom.table_activity_hourly
            group by all
        ),
        busiest as (
            from tables order by row_events desc, source_id, schema_name, table_name limit {MOST_TABLES}
        )
        select
            source_id,
            schema_name,
            table_name,
            list((strptime(event_hour, '%Y-%m-%d-%H'), inserts, updates, deletes) order by event_hour),
            (select count(*) from tables)
        from binloom.table_activity_hourly
        inner join busiest using (source_id, schema_name, table_name)
        group by source_id, schema_name, table_name, busiest.row_events
        order by busiest.row_events desc, source_id, schema_name, table_name
        """
    ).fetchall()
    activity = tuple(
        Activity(source, schema, table, tuple((hour.replace(tzinfo=UTC), *counts) for hour, *counts in hours))
        for source, schema, table, hours, _ in rows
    )
    return activity, (rows[0][4] - len(rows) if rows else 0)
