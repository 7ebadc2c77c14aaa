"""Where the log of a source begins, if older files expired."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.warehouse.home import raw_table_dir
from recover.sources.engine import escaped, literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class Beginning:
    """The end of what expired.

    Attributes
    ----------
    after_file
        The last file that expired.
    last_event_at
        Time of the last row change or transaction in the expired files; None if they had none.
    """

    source_id: str
    after_file: str
    last_event_at: datetime | None

    def __str__(self) -> str:
        until = "" if self.last_event_at is None else f", up to {self.last_event_at:%Y-%m-%d %H:%M:%S} UTC"
        return (
            f"the log of {self.source_id} begins after {self.after_file}: older files have expired{until}."
            " Nothing is known before, except the rows that a baseline kept."
        )


def beginnings_of(connection: "DuckDBPyConnection", home: Path) -> dict[str, Beginning]:
    """Return the beginnings of the sources with expired files."""
    folder = raw_table_dir("segments", home)
    if not any(folder.glob("*.parquet")):
        return {}
    rows = connection.execute(
        f"""select source_id, arg_max(binlog_file, [epoch, number]), max(max_event_at at time zone 'UTC')
        from (
            select *, try_cast(regexp_extract(binlog_file, '([0-9]+)$', 1) as bigint) as number
            from read_parquet({literal(f"{escaped(str(folder))}/*.parquet")}, union_by_name = true)
        )
        where status = 'expired' group by source_id"""
    ).fetchall()
    return {
        source: Beginning(source, name, None if last is None else last.replace(tzinfo=UTC))
        for source, name, last in rows
    }
