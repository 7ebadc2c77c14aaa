"""Find the epoch that a binlog file belongs to.

Within an epoch a file's name and its first bytes never change, and the file never gets smaller. If they do, the user
must confirm that the change is intended.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.binlog.byte_files import open_bytes
from ingest.errors import SourceIdentityError
from ingest.sources.files.directory import BinlogPath, binlog_path
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import FIRST_EVENT

if TYPE_CHECKING:
    from ingest.binlog import FormatDescription

_NEW_EPOCH_HINT = (
    "If the server was reset, restored, or replaced on purpose, run again with --new-epoch; "
    "if it is another server, give it a --source of its own."
)


class EpochBook:
    """Decides which epoch a file belongs to, and collects new facts about the source.

    Parameters
    ----------
    record
        Record of the source.
    new_epoch
        Whether a file series that starts over is intended: open the next epoch instead of raising an error.
        Changes nothing where there would be no error, so that the same command can be run again.
    """

    def __init__(self, record: SourceRecord, new_epoch: bool = False) -> None:
        self._record = record
        self._new_epoch_allowed = new_epoch
        self._server_ids: dict[int, int | None] = {}
        self._known: set[tuple[Any, ...]] = set()
        for row in record.identities:
            opening = record.opening(row["epoch"]) or row
            self._server_ids[row["epoch"]] = opening["server_id"]
            self._known.add((row["epoch"], row["server_id"], row["flavor"], row["server_version"]))
        # After a crash, the files of an epoch may be recorded while the epoch itself is not.
        for epoch, _ in record.files:
            self._server_ids.setdefault(epoch, None)
        self._current = max(self._server_ids, default=None)
        self.new_rows: list[dict[str, Any]] = []
        self.failovers: set[int] = set()

    def epoch_of(self, file: BinlogPath, log_format: "FormatDescription", file_size: int) -> int:
        """Return the epoch of a file; open the next epoch if necessary.

        Raises
        ------
        SourceIdentityError
            The file changed under its name, or another server writes to this source too.
        """
        epoch = self._recorded_epoch(file, log_format, file_size)
        if epoch is None:
            epoch = self._epoch_of_new(file, log_format)
        if self._server_ids.get(epoch) is None:
            self._server_ids[epoch] = _writer(log_format)
        self._note(epoch, log_format)
        return epoch

    def epoch_of_encrypted(self, file: BinlogPath) -> int:
        """Return the epoch of an encrypted file, whose writer is unknown: the recorded epoch, else the current one."""
        found = [
            epoch for (epoch, name), row in self._record.files.items() if name == file.name and row["is_encrypted"]
        ]
        return max(found, default=self._current or 0)

    def _recorded_epoch(self, file: BinlogPath, log_format: "FormatDescription", file_size: int) -> int | None:
        same = [
            (epoch, row)
            for (epoch, name), row in self._record.files.items()
            if name == file.name and row["fingerprint"] == log_format.fingerprint
        ]
        if not same:
            return None
        epoch, row = max(same, key=lambda item: item[0])
        # A decrypted copy is shorter.
        if file_size < row["file_size"] and not row["is_encrypted"]:
            if self._new_epoch_allowed:
                return None
            raise SourceIdentityError(
                f"{file.path} has {file_size:,} bytes, but had {row['file_size']:,} when it was last scanned: "
                "a binlog never gets smaller.",
                hint="Restore the whole file and run again. " + _NEW_EPOCH_HINT,
                path=str(file.path),
            )
        return epoch

    def _epoch_of_new(self, file: BinlogPath, log_format: "FormatDescription") -> int:
        if self._current is None:
            self._current = 0
            return self._current
        self._assert_not_renamed(file, log_format)
        current_id, writer = self._server_ids[self._current], _writer(log_format)
        is_failover = None not in (current_id, writer) and writer != current_id
        conflict = self._returned(file, log_format) if is_failover else self._started_over(file, log_format)
        if conflict is not None and not self._new_epoch_allowed:
            raise SourceIdentityError(conflict, hint=_NEW_EPOCH_HINT, path=str(file.path))
        if is_failover or conflict is not None:
            self._current += 1
        if is_failover:
            self.failovers.add(self._current)
        return self._current

    def _assert_not_renamed(self, file: BinlogPath, log_format: "FormatDescription") -> None:
        """Refuse a landed file under another name: its changes would be landed twice."""
        for (_, name), row in self._record.files.items():
            is_same = row["fingerprint"] == log_format.fingerprint and binlog_path(Path(name)).base != file.base
            if is_same and row["first_event_at"] == _first_timestamp(file):
                raise SourceIdentityError(
                    f"{file.path} begins with the same event as {name}, which is landed: it is this file under another"
                    " name.",
                    hint="Give the files the names that their server gave them.",
                    path=str(file.path),
                )

    def _returned(self, file: BinlogPath, log_format: "FormatDescription") -> str | None:
        """Return an error message if the file's server already wrote an earlier epoch, else None."""
        earlier = [epoch for epoch, server_id in self._server_ids.items() if server_id == log_format.server_id]
        if not earlier:
            return None
        return (
            f"{file.path} was written by the server with server_id {log_format.server_id}, which wrote epoch "
            f"{max(earlier)} of source {self._record.source_id!r}; since then the server with server_id "
            f"{self._server_ids[self._current or 0]} took over: two servers are writing under one source."
        )

    def _started_over(self, file: BinlogPath, log_format: "FormatDescription") -> str | None:
        """Return an error message if a file of the current epoch's server belongs to another series, else None."""
        assert self._current is not None
        taken = self._record.files.get((self._current, file.name))
        if taken is not None and taken["fingerprint"] is not None:
            return (
                f"{file.path} is not the file that was landed under this name: its format description event differs "
                f"(server {log_format.server_version}, created {_when(log_format.created_at)}; landed was "
                f"{taken['server_version']}, created {_when(taken['created_at'])})."
            )
        if file.sequence is None:
            return None
        written_at = _first_timestamp(file)
        for (epoch, name), row in self._record.files.items():
            other = binlog_path(Path(name))
            if epoch != self._current or other.base != file.base or other.sequence is None:
                continue
            if other.sequence > file.sequence and row["first_event_at"] and row["first_event_at"] < written_at:
                return (
                    f"{file.path} was created on {_when(written_at)}, after {name}, which has a higher number and is "
                    "landed: the server's files have started over."
                )
        return None

    def _note(self, epoch: int, log_format: "FormatDescription") -> None:
        identity = (epoch, _writer(log_format), log_format.flavor, log_format.server_version)
        is_first = not any(known[0] == epoch for known in self._known)
        if identity in self._known or (log_format.server_version is None and not is_first):
            return
        self._known.add(identity)
        self.new_rows.append(
            {
                "source_id": self._record.source_id,
                "epoch": epoch,
                "server_id": _writer(log_format),
                "flavor": log_format.flavor,
                "server_version": log_format.server_version,
                "change": "epoch_opened" if is_first else "server_changed",
            }
        )


def _writer(log_format: "FormatDescription") -> int | None:
    """Return the server_id of the server that wrote a file; None if no start event contains it.

    MySQL 4.0 and 4.1 write a start event only to the first file. The first event of a later file may be a replicated
    event.
    """
    return None if log_format.server_version is None else log_format.server_id


def _first_timestamp(file: BinlogPath) -> datetime:
    # Every event begins with its timestamp, and the first event follows the magic number.
    with open_bytes(file.path) as source:
        return datetime.fromtimestamp(int.from_bytes(source.read(4, FIRST_EVENT), "little"), UTC)


def _when(moment: datetime | None) -> str:
    return "at an unknown time" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def epoch_of_snapshot(row: Mapping[str, Any], record: SourceRecord) -> int | None:
    """Return the epoch in which a snapshot was taken, None if it has no position.

    Only snapshots by `binloom follow` record it; others have just the file. After a failover two epochs can have files
    of the same name: the right epoch is the one whose file was being written when the snapshot was taken. For a file
    that is not landed, it is the epoch that was open by then.

    Parameters
    ----------
    row
        Row of `schema_snapshots`.
    record
        Record of the source.
    """
    if row["epoch"] is not None or row["binlog_pos"] is None:
        epoch: int | None = row["epoch"]
        return epoch
    began = [
        (file["first_event_at"], epoch)
        for (epoch, name), file in record.files.items()
        if name == row["binlog_file"] and file["first_event_at"] is not None
        if file["first_event_at"] <= row["taken_at"]
    ]
    if began:
        return max(began)[1]
    opened = [(one["epoch"], one["observed_at"]) for one in record.identities]
    open_then = [epoch for epoch, observed_at in opened if observed_at <= row["taken_at"]]
    return max(open_then, default=min((epoch for epoch, _ in opened), default=0))
