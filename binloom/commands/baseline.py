"""`binloom baseline`: land all rows of tables at one position of the binlog."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from binloom.commands.output import human_bytes, print_line, progress, say
from ingest.errors import EXIT_DONE
from ingest.words import counted

if TYPE_CHECKING:
    from ingest.binlog import TableFilter
    from ingest.landing.baselines import BaselineResult
    from ingest.sources.baselines.baseline_tables import BaselineTable
    from ingest.sources.baselines.beginnings import Beginning
    from ingest.sources.servers.address import ServerAddress
    from ingest.sources.snapshots.snapshot import SchemaSnapshot


def baseline_from_server(
    source: str,
    address: "ServerAddress",
    tables: "TableFilter | None",
    most_bytes: int | None,
    masks: Path | None = None,
    *,
    without_lock: bool = False,
) -> int:
    """Land the rows of tables of a live server, after checking that its binlog settings are sufficient."""
    from ingest.landing.baselines import land_baseline
    from ingest.sources.baselines.consistent_read import ConsistentRead
    from ingest.sources.servers.server import Server
    from ingest.sources.servers.server_check import require_usable

    address = replace(address, warn=lambda sentence: say(f"warning: {sentence}"))
    with progress(f"reading the schema of {address}"), Server(address) as server:
        findings = require_usable(server)
    for finding in findings:
        say(f"{finding.level}: {finding.message}")
    rate = _Rate(most_bytes)
    with ConsistentRead(address, tables, rate.received, without_lock=without_lock) as read:
        if read.refused_lock is not None:
            say(f"advice: the position is proved from the log, because the server grants no lock. {read.refused_lock}")
        estimate = sum(table.estimated_rows or 0 for table in read.tables)
        with _rows_bar(f"reading {len(read.tables)} tables of {address}", estimate) as advance:
            landed = land_baseline(
                source,
                read.snapshot,
                read.tables,
                read.rows,
                finish=read.assert_unchanged,
                progress=advance,
                position_proof=read.beginning.proof,
                masks=masks,
            )
    _print_proof(read.beginning)
    _print_baseline(source, read.snapshot, landed, f", {human_bytes(rate.bytes)} in {rate.seconds:.1f} s")
    return EXIT_DONE


def baseline_from_dump(
    source: str, path: "Path | str", schema: str | None, tables: "TableFilter | None", masks: Path | None = None
) -> int:
    """Land the rows of tables from a file of mysqldump."""
    from ingest.landing.baselines import land_baseline
    from ingest.sources.dumps.named_dump import open_dump

    with progress(f"reading the definitions in {path}"):
        dump = open_dump(path, schema, tables)
    with _rows_bar(f"reading {len(dump.tables)} tables of {path}", 0) as advance:
        landed = land_baseline(
            source, dump.snapshot, dump.tables, dump.rows, content=dump.content, progress=advance, masks=masks
        )
    _print_baseline(source, dump.snapshot, landed, "")
    return EXIT_DONE


class _Rate:
    """Counts the bytes that are read, and waits to keep to a maximum rate."""

    def __init__(self, most_bytes: int | None) -> None:
        self.bytes = 0
        self._most = most_bytes
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def received(self, count: int) -> None:
        """Count received bytes."""
        self.bytes += count
        if self._most is not None:
            time.sleep(max(self.bytes / self._most - self.seconds, 0))


@contextmanager
def _rows_bar(label: str, estimate: int) -> "Iterator[Callable[[BaselineTable, int], None]]":
    """Show the number of rows; the server's estimate of their number may be far too low."""
    counts: dict[Any, int] = {}
    with progress(label, estimate) as advance:

        def show(table: "BaselineTable", rows: int) -> None:
            counts[table] = rows
            done = sum(counts.values())
            advance(done, max(estimate, done))

        yield show


def _print_proof(beginning: "Beginning") -> None:
    """Print how the position was proved from the log, if it was."""
    if beginning.since is None:
        return
    name, offset, _ = beginning.since
    rows, transactions = beginning.changes.row_count, beginning.changes.transactions
    say(
        f"proved from the log: all transactions before {name}:{offset} are in the rows, and"
        f" {counted(rows, 'row')} that {counted(transactions, 'transaction')} behind it changed were compared with"
        " the log."
    )


def _print_baseline(source: str, snapshot: "SchemaSnapshot", landed: "BaselineResult", how: str) -> None:
    verb = "landed" if landed.is_new else "already landed"
    print_line(
        f"{source}: {verb} a baseline of {counted(landed.tables, 'table')} with {counted(landed.rows, 'row')} at"
        f" {snapshot.binlog_file}:{snapshot.binlog_pos}{how if landed.is_new else ''}"
    )
