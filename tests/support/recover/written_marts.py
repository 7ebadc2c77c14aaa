"""The marts of a home, written from binlog files without Spark: for tests of commands that ask a warehouse."""

from pathlib import Path

from recover.sources.engine import literal
from recover.sources.log import VIEWS, Log
from recover.timeline.table_log import MARTS

_STATEMENTS_KEY = "source_id, epoch, binlog_file, segment_start"


def write_marts(log: Log, home: Path) -> Path:
    """Write the tables of a log of whole files as the marts of a home; return the home."""
    for schema, name in dict.fromkeys((*VIEWS, *MARTS)):
        if schema == "binloom_staging":
            continue
        write_mart(log, home, schema, name, f"select * from {schema}.{name}")
    # The statements are read from the raw table, those of completed segments.
    statements = "select *, 4::bigint as segment_start from binloom_staging.stg_binlog__statements"
    write_mart(log, home, "binlog_raw", "statements", statements)
    write_mart(
        log, home, "binloom_intermediate", "int_completed_segments",
        f"select distinct {_STATEMENTS_KEY} from ({statements})",
    )  # fmt: skip
    return home


def write_mart(log: Log, home: Path, schema: str, name: str, query: str) -> None:
    """Write the answer to a query of a log as a table of a home, with the mark of a complete one."""
    folder = home / "warehouse" / f"{schema}.db" / name
    folder.mkdir(parents=True)
    log.connection.execute(f"copy ({query}) to {literal(str(folder / 'part-0.parquet'))} (format parquet)")
    (folder / "_SUCCESS").touch()
