"""The standing of a source: the position up to which its log was received or landed."""

from pathlib import Path

from ingest.binlog.events.format import read_format
from ingest.binlog.gtid_sets import GtidSet, gtid_union
from ingest.binlog.scan import scan_binlog
from ingest.follow.handover import Received, Standing
from ingest.follow.lag import landed_gtids, last_landed
from ingest.follow.spool import Spool
from ingest.landing.transactions import transactions
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import FIRST_EVENT, done_upto, has_done


def find_standing(spool: Spool, record: SourceRecord) -> Standing | None:
    """Return the standing of a source from its spool or its landed files; None for a new source.

    Files from a backup that continue the received log count too, if they are landed without a missing file.
    """
    checkpoint = spool.checkpoint
    if checkpoint is None:
        landed = [key for key, states in record.states.items() if key in record.files and has_done(states)]
        last = max(landed, key=lambda key: (key[0], record.files[key]["file_sequence"] or 0), default=None)
        return None if last is None else _of_file(record, *last)
    last = checkpoint.epoch, _last_of_chain(record, checkpoint.epoch, checkpoint.binlog_file)
    return _of_spool(spool, record) if last[1] == checkpoint.binlog_file else _of_file(record, *last)


def _last_of_chain(record: SourceRecord, epoch: int, binlog_file: str) -> str:
    """Return the last file of the chain of fully landed files, each linked to the next by its ROTATE event."""
    while (row := record.files.get((epoch, binlog_file))) is not None:
        next_file = row["next_binlog_file"]
        is_next_landed = next_file and has_done(record.states.get((epoch, next_file), []))
        if not is_next_landed or not record.is_landed(epoch, binlog_file, row["file_size"]):
            break
        binlog_file = next_file
    return binlog_file


def _of_spool(spool: Spool, record: SourceRecord) -> Standing:
    checkpoint = spool.checkpoint
    assert checkpoint is not None
    end = checkpoint.server
    path = spool.path(checkpoint.epoch, checkpoint.binlog_file)
    # The checkpoint may name a file of which nothing is received yet.
    is_begun = path.exists()
    return Standing(
        checkpoint.epoch,
        checkpoint.binlog_file,
        checkpoint.position,
        read_format(path).fingerprint if is_begun else None,
        checkpoint.server_uuid,
        checkpoint.server_id,
        end is not None and checkpoint.is_at_least(end.binlog_file, end.position),
        lambda: (
            _read(path, checkpoint.position)
            if is_begun
            else _landed(record, checkpoint.epoch, checkpoint.binlog_file, None)
        ),
    )


def _read(path: Path, position: int) -> Received:
    """Read the next file name and the GTIDs from a received file, up to a position."""
    scan = scan_binlog(path, end=position)
    gtids = GtidSet.parse(scan.previous_gtids)
    is_anonymous = False
    for batch in transactions(path, FIRST_EVENT, position, ("gtid",)):
        gtids.add_all(batch["gtid"])
        if batch.num_rows:
            is_anonymous = not batch["gtid"][-1].is_valid
    has_gtids = scan.previous_gtids is not None or bool(gtids)
    return Received(
        scan.next_binlog_file, str(gtids) if has_gtids else None, rotated_at=scan.rotated_at, is_anonymous=is_anonymous
    )


def _of_file(record: SourceRecord, epoch: int, binlog_file: str) -> Standing:
    row, writer = record.files[epoch, binlog_file], record.identity(epoch) or record.identities[-1]
    position = done_upto(record.states[epoch, binlog_file])
    is_whole = position == row["file_size"]
    return Standing(
        epoch,
        binlog_file,
        position,
        row["fingerprint"],
        writer["server_uuid"],
        writer["server_id"],
        False,
        lambda: _landed(record, epoch, binlog_file, row["next_binlog_file"] if is_whole else None),
    )


def _landed(record: SourceRecord, epoch: int, binlog_file: str, next_file: str | None) -> Received:
    """Return what the record says about the landed files, and about the file that the standing is in."""
    states = record.states.get((epoch, binlog_file), [])
    previous = record.files.get((epoch, binlog_file), {}).get("previous_gtids")
    own = gtid_union([previous, *(state.gtids for state in states if state.is_done)])
    last = [state for state in record.states.get(last_landed(record), []) if state.status == "completed"]
    return Received(
        next_file,
        str(landed_gtids(record)) or None,
        own_gtids=str(own),
        is_anonymous=any(state.transactions and not state.gtids for state in last),
    )
