"""Parts of the log that decoded files lack: what could not be read, and files that do not continue each other."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import UsageError
from recover.sources.engine import insert_row

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ingest.binlog import Scan
    from ingest.sources.files.directory import BinlogPath

MARTS: Final = tuple(
    ("binloom_quality", name)
    for name in ("lost_events", "stream_gaps", "failed_segments", "uncovered_bytes", "file_breaks")
)
"""The marts of missing parts."""

TABLES: Final = """
create schema binloom_quality;
create table binloom_quality.lost_events (
    source_id varchar, epoch integer, binlog_file varchar, start_pos bigint, end_pos bigint, detail varchar
);
create table binloom_quality.stream_gaps (
    source_id varchar, from_epoch integer, from_file varchar, from_pos bigint, status varchar
);
create table binloom_quality.failed_segments (
    source_id varchar, epoch integer, binlog_file varchar, segment_start bigint
);
create table binloom_quality.uncovered_bytes (
    source_id varchar, epoch integer, binlog_file varchar, range_start bigint, range_end bigint, defect varchar
);
create table binloom_quality.file_breaks (
    source_id varchar, epoch integer, binlog_file varchar, following_epoch integer, following_binlog_file varchar,
    defect varchar
);
"""


def add_missing_parts(
    connection: "DuckDBPyConnection",
    source_id: str,
    scans: "Sequence[tuple[BinlogPath, Scan]]",
    failed: Mapping[str, int],
    *,
    has_all_transactions: bool,
) -> None:
    """Add the parts of files that could not be read, and the breaks between files.

    Parameters
    ----------
    connection
        It has decoded files and `TABLES`.
    source_id
        Name of the source.
    scans
        The files in the order of the log.
    failed
        By name, the position from which on a file could not be decoded.
    has_all_transactions
        Whether all transactions of the files are known, so that their GTIDs tell whether the next file continues them.
        Otherwise a file without an end is read for them: few logs have one before their last file.
    """

    def insert(table: str, *values: Any) -> None:
        insert_row(connection, f"binloom_quality.{table}", source_id, *values)

    for number, (file, scan) in enumerate(scans, start=1):
        # A server writes to its last file only: an earlier one with this mark is a copy from then.
        is_written = scan.format.is_in_use and number == len(scans)
        if file.name in failed:
            insert("failed_segments", 0, file.name, failed[file.name])
        elif scan.complete_end < scan.file_size and not is_written:
            insert("uncovered_bytes", 0, file.name, scan.complete_end, scan.file_size, "gap")
        if scan.first_misplaced_pos is not None:
            place = scan.first_misplaced_pos
            insert("uncovered_bytes", 0, file.name, place, place, "misplaced")
    for (file, scan), (next_file, next_scan) in pairwise(scans):
        gtids: Callable[[], list[str | None]] | None = None
        if file.name not in failed and has_all_transactions:
            gtids = partial(_known_gtids, connection, file.name)
        elif file.name not in failed and not _has_end(scan):
            gtids = partial(_gtids_in, scan)
        defect = _break((file, scan), (next_file, next_scan), gtids)
        if defect is not None:
            insert("file_breaks", 0, file.name, 0, next_file.name, defect)


def _has_end(scan: "Scan") -> bool:
    return scan.next_binlog_file is not None or scan.event_counts.get("STOP", 0) > 0


def _known_gtids(connection: "DuckDBPyConnection", binlog_file: str) -> list[str | None]:
    rows = connection.execute("select gtid from decoded_transactions where binlog_file = ?", [binlog_file]).fetchall()
    return [gtid for (gtid,) in rows]


def _gtids_in(scan: "Scan") -> list[str | None]:
    from ingest.landing.transactions import transactions

    batches = transactions(scan.path, 4, scan.complete_end, ["gtid"])
    return [gtid for batch in batches for gtid in batch["gtid"].to_pylist()]


def _break(
    one: "tuple[BinlogPath, Scan]",
    other: "tuple[BinlogPath, Scan]",
    gtids_of_one: "Callable[[], list[str | None]] | None",
) -> str | None:
    """Return why one file does not continue the other, as the model `file_breaks` names it; None if it does.

    Without the GTIDs of the first file, only its head and its end are compared.
    """
    (file, scan), (next_file, next_scan) = one, other
    is_next = next_file.sequence == (file.sequence or 0) + 1 or scan.next_binlog_file == next_file.name
    if not is_next:
        return "missing_files"
    if scan.format.is_relay_log:
        return None
    if scan.next_binlog_file not in (None, next_file.name):
        return "other_next_file"
    if gtids_of_one is None:
        return None
    gtids = gtids_of_one()
    is_compared = None not in (scan.previous_gtids, next_scan.previous_gtids)
    if is_compared and not leads_to(scan.previous_gtids or "", gtids, next_scan.previous_gtids or ""):
        return "other_gtids"
    if not _has_end(scan) and (not is_compared or None in gtids):
        return "no_end"
    return None


def assert_same_server(scan: "Scan", other: "Scan") -> None:
    """Refuse files that different servers wrote."""
    if scan.format.is_relay_log or other.format.is_relay_log:
        return
    writers = [f"{one.format.flavor} with server_id {one.format.server_id}" for one in (scan, other)]
    if writers[0] != writers[1]:
        raise UsageError(
            f"{writers[0]} wrote {scan.path}, and {writers[1]} wrote {other.path}.",
            hint="Give the files of one server, or land both with `binloom ingest`.",
        )


def leads_to(before: str, gtids: Sequence[str | None], after: str) -> bool:
    """Return whether the GTIDs in the head of a file and in the file are those in the head of the next file."""
    import pyarrow as pa

    from ingest.binlog.gtid_sets import GtidSet

    numbers = [one for one in gtids if one is not None]
    if any(":" in text for text in (before, after, *numbers[:1])):
        had, has = GtidSet.parse(before), GtidSet.parse(after)
        had.add_all(pa.array(numbers, pa.string()))
        return not str(had - has) and not str(has - had)
    had_numbers, has_numbers = positions_of(before, numbers), positions_of(after)
    domains = {stem.split("-")[0] for stem in has_numbers}
    # A domain that the whole list lacks was deleted from it (FLUSH BINARY LOGS DELETE_DOMAIN_ID).
    return all(
        had_numbers.get(stem) == has_numbers.get(stem)
        for stem in {*had_numbers, *has_numbers}
        if stem.split("-")[0] in domains
    )


def positions_of(gtids: str, more: Iterable[str] = ()) -> dict[str, int]:
    """Return the highest number of each domain and server of MariaDB in a list of GTIDs and in more of them."""
    found: dict[str, int] = defaultdict(int)
    for gtid in (*filter(None, map(str.strip, gtids.split(","))), *more):
        stem, _, number = gtid.rpartition("-")
        found[stem] = max(found[stem], int(number))
    return found
