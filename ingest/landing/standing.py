"""Where a source stands: what was received of a server, or landed of its files."""

from pathlib import Path

from ingest.binlog.format import read_format
from ingest.binlog.gtid_sets import GtidSet
from ingest.binlog.scan import scan_binlog
from ingest.landing.handover import Received, Standing
from ingest.landing.lag import done_upto, landed_gtids
from ingest.landing.record import SourceRecord
from ingest.landing.spool import FIRST_EVENT, Spool
from ingest.landing.transactions import transactions


def find_standing(spool: Spool, record: SourceRecord) -> Standing | None:
    """Return where a source stands: by its spool, without one by what is landed of files; None for a new source."""
    return _of_files(record) if spool.checkpoint is None else _of_spool(spool, record)


def _of_spool(spool: Spool, record: SourceRecord) -> Standing:
    checkpoint = spool.checkpoint
    assert checkpoint is not None
    end = checkpoint.server
    path = spool.path(checkpoint.epoch, checkpoint.binlog_file)
    # The file may be about to begin, and nothing of it be there yet.
    is_begun = path.exists()
    return Standing(
        checkpoint.epoch,
        checkpoint.binlog_file,
        checkpoint.position,
        read_format(path).fingerprint if is_begun else None,
        checkpoint.server_uuid,
        checkpoint.server_id,
        end is not None and checkpoint.is_at_least(end.binlog_file, end.position),
        lambda: _read(path, checkpoint.position) if is_begun else Received(None, str(landed_gtids(record)) or None),
    )


def _read(path: Path, position: int) -> Received:
    """Read what a received file says of itself, up to a position."""
    scan = scan_binlog(path, end=position)
    gtids = GtidSet.parse(scan.previous_gtids)
    for batch in transactions(path, FIRST_EVENT, position, ("gtid",)):
        gtids.add_all(batch["gtid"])
    has_gtids = scan.previous_gtids is not None or bool(gtids)
    return Received(scan.next_binlog_file, str(gtids) if has_gtids else None)


def _of_files(record: SourceRecord) -> Standing | None:
    ends = {key: done_upto(states) for key, states in record.states.items() if key in record.files}
    landed = [key for key, end in ends.items() if end]
    if not landed:
        return None
    epoch, name = max(landed, key=lambda key: (key[0], record.files[key]["file_sequence"] or 0))
    row, writer = record.files[epoch, name], record.identities[-1]
    is_whole = ends[epoch, name] == row["file_size"]
    return Standing(
        epoch,
        name,
        ends[epoch, name],
        row["fingerprint"],
        writer["server_uuid"],
        writer["server_id"],
        False,
        lambda: Received(row["next_binlog_file"] if is_whole else None, str(landed_gtids(record)) or None),
    )
