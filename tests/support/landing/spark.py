"""A separate Spark session for a test module, and the content of the raw tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ingest.landing import ingest_files
from ingest.landing.published import open_home
from ingest.warehouse.partitions import forget_lists_of_files, open_tables
from ingest.warehouse.spark import SparkLaunch
from ingest.warehouse.tables import RAW_TABLES
from tests.support.landing.stored import RUN_COLUMNS


@contextmanager
def spark_home(home: Path) -> Iterator[Any]:
    """Open a session with its warehouse in a folder; the JVM ends with the block."""
    with SparkLaunch(home, short_lived=True) as launch:
        session = launch.session()
        open_tables(session, home)
        yield session


@contextmanager
def without_session() -> Iterator[None]:
    """Let landings ignore the open session: to tell it of one takes seconds, and `show_landed` tells it of all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest_files, "active_session", lambda: None)
        yield


def show_landed(session: Any, home: Path) -> None:
    """Let a session know everything that is landed."""
    open_home(session, home)
    forget_lists_of_files(session)


def raw_rows(session: Any, table: str, source_id: str) -> list[Any]:
    """Return the sorted rows of a raw table of one source, without values that differ from run to run."""
    columns = [name for name in RAW_TABLES[table].columns.names if name not in RUN_COLUMNS]
    session.catalog.refreshTable(f"binlog_raw.{table}")
    frame = session.table(f"binlog_raw.{table}").where(f"source_id = '{source_id}'")
    if table == "segments":
        frame = frame.where("status <> 'in_progress'")
    return sorted((_plain(row) for row in frame.select(columns).collect()), key=repr)


def _plain(row: Any) -> tuple[Any, ...]:
    return tuple(sorted(value.items()) if isinstance(value, dict) else value for value in row)
