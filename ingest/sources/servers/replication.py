"""The replication protocol: streams a server's binlog as it is written, and reads the heads of the server's files.

mysql-replication does the handshake: it connects, announces binloom as a replica and asks for the stream. After that
the bytes are read from the socket directly.
"""

import secrets
import select
import ssl
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import pymysql
from pymysql.constants import ER
from pymysqlreplication import BinLogStreamReader

from ingest.binlog.events.describe import event_body, rotate_target
from ingest.binlog.events.format import FormatDescription, format_of_event
from ingest.binlog.events.gtid_events import gtid_set, maria_gtid_list
from ingest.binlog.events.types import FORMAT_DESCRIPTION, MARIA_GTID_LIST, PREVIOUS_GTIDS
from ingest.binlog.packets import Message, Packets, Run, Special
from ingest.errors import BinloomError, BrokenStreamError, NotABinlogError
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.connection import GuardedConnection
from ingest.sources.servers.server import Server, connect, log_name, source_error

FIRST_POSITION: Final = 4
HEARTBEAT_SECONDS: Final = 3.0
SILENCE_SECONDS: Final = 15.0
"""A connection without even a heartbeat for this long is dead."""
HEAD_SECONDS: Final = 60.0
"""A server that sends only heartbeats for this long has no file to send."""

POSITION_LIMIT: Final = (1 << 32) - 1
"""The command that asks for a stream has four bytes for the position."""

# Servers usually have small ids, so a replica draws from the upper half.
LOWEST_ID: Final = 1 << 31
HIGHEST_ID: Final = (1 << 32) - 1

# Every server sends this to a replica that another has replaced. Source: rpl_source.cc; MariaDB, sql_repl.cc.
_TAKEN_OVER: Final = "with the same server_"
_COM_BINLOG_DUMP: Final = 0x12
_SEND_ANNOTATE_ROWS: Final = 0x02


@dataclass(frozen=True, slots=True)
class Replica:
    """The identity of binloom as a replica.

    No other replica may use either value. A server recognizes a connection that replaces a broken one, MySQL by
    `server_uuid` and MariaDB by `server_id`, and ends the old connection.
    """

    server_id: int
    server_uuid: str

    @classmethod
    def drawn(cls) -> Self:
        """Return a random identity."""
        return cls(LOWEST_ID + secrets.randbelow(HIGHEST_ID - LOWEST_ID), str(uuid.uuid4()))


class ReplicationStream:
    """A connection on which a server sends its binlog, from a position in one of its files on through the next files.

    Parameters
    ----------
    address, flavor
        The server's address, and `mysql` or `mariadb`.
    replica
        Identity to connect with.
    binlog_file, position
        Start of the stream: the physical offset of an event.

    Raises
    ------
    SourceError
        The server cannot be reached, or refuses the user.
    """

    def __init__(
        self, address: ServerAddress, flavor: str, replica: Replica, binlog_file: str, position: int = FIRST_POSITION
    ) -> None:
        self.address = address
        self.packets = Packets(position)
        self.bytes_received = 0
        kind = _AnnotatedConnection if flavor == "mariadb" else _StreamConnection
        reader = BinLogStreamReader(
            {},
            server_id=replica.server_id,
            slave_uuid=replica.server_uuid,
            report_slave="binloom",
            blocking=True,
            resume_stream=True,
            log_file=binlog_file,
            log_pos=position,
            slave_heartbeat=HEARTBEAT_SECONDS,
            pymysql_wrapper=lambda **_: connect(address, kind),
            enable_logging=False,
        )
        try:
            # The library's own loop would decode every event; only its handshake is needed.
            reader._BinLogStreamReader__connect_to_stream()
        except BinloomError as error:
            raise _refusal(address, error) from None
        except Exception as error:  # neither library has a common class for its parse errors
            raise _refusal(address, source_error(address, error)) from None
        self._connection: Any = reader._stream_connection
        self._socket = self._connection._sock
        self._socket.settimeout(SILENCE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection without a farewell: the server is in the middle of sending."""
        self._connection._force_close()

    def wait(self, seconds: float) -> bool:
        """Wait for data at most this long; return False when none came."""
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return True
        return bool(select.select([self._socket], [], [], seconds)[0])

    def receive(self) -> Iterator[Run | Special]:
        """Read the data that has come and yield its events. Wait at most `SILENCE_SECONDS`.

        Raises
        ------
        BrokenStreamError
            The connection broke or was closed, or its bytes were damaged. Events yielded before are good.
        SourceError
            The server refuses to continue: `number` and the message give the reason.
        """
        try:
            count = self._socket.recv_into(self.packets.room())
        except OSError as error:
            why = "no more data arrived" if isinstance(error, TimeoutError) else str(error)
            raise BrokenStreamError(f"The connection to {self.address} broke: {why}.") from None
        if not count:
            raise BrokenStreamError(f"The server at {self.address} closed the connection.")
        self.bytes_received += count
        self.packets.received(count)
        for piece in self.packets.pieces():
            if isinstance(piece, Message):
                if not piece.number:
                    raise BrokenStreamError(f"The server at {self.address} ended the stream.")
                text = piece.text[6:] if piece.text.startswith("#") else piece.text
                if _TAKEN_OVER in text:
                    raise BrokenStreamError(
                        "Another replica with this one's server_id or UUID has connected to the server at "
                        f"{self.address}.",
                        hint="Give each its own --server-id. If this home is a copy, delete replica.json in its spool.",
                    )
                refused = source_error(self.address, pymysql.OperationalError(piece.number, text), "binlog dump")
                raise _refusal(self.address, refused)
            yield piece


def _refusal(address: ServerAddress, failure: BinloomError) -> BinloomError:
    """Return the error for a refusal of the server during the handshake.

    A server refuses a replica without the privilege to read the log as if its password were wrong, see `Server.lacks`.
    Connecting as an ordinary client shows which is the case.
    """
    if failure.context.get("number") in (ER.ACCESS_DENIED_ERROR, ER.SPECIFIC_ACCESS_DENIED_ERROR):
        with Server(address) as server:
            return server.lacks("stream")
    return failure


class _StreamConnection(GuardedConnection):
    """A connection that accepts checksums, whatever the server writes now: older files may have them."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        with self.cursor() as cursor:
            cursor.execute("set @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'")


class _AnnotatedConnection(_StreamConnection):
    """A connection to MariaDB that also asks for ANNOTATE_ROWS events; mysql-replication does not.

    Source: MariaDB, sql/sql_repl.cc, `mysql_binlog_send`, BINLOG_SEND_ANNOTATE_ROWS_EVENT.
    """

    def _write_bytes(self, data: bytes) -> None:
        # Packet head, command, position, flags.
        if len(data) > 10 and data[4] == _COM_BINLOG_DUMP:
            data = data[:9] + bytes([data[9] | _SEND_ANNOTATE_ROWS]) + data[10:]
        super()._write_bytes(data)  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class FileHead:
    """The head of a server's file.

    Attributes
    ----------
    format
        The file's format.
    previous_gtids
        GTIDs before the file, None when the file does not list them.
    written_at
        When the server began the file, None when it is unknown.
    """

    format: FormatDescription
    previous_gtids: str | None
    written_at: datetime | None = None


def read_head(address: ServerAddress, flavor: str, replica: Replica, binlog_file: str) -> FileHead:
    """Ask a server for the head of one of its files.

    Raises
    ------
    SourceError
        The server cannot be reached, or has no such file.
    """
    with ReplicationStream(address, flavor, replica, binlog_file) as stream:
        found: FormatDescription | None = None
        written_at: datetime | None = None
        deadline = time.monotonic() + HEAD_SECONDS
        while time.monotonic() < deadline:
            for piece in stream.receive():
                if isinstance(piece, Special):
                    if found is None and piece.code == FORMAT_DESCRIPTION and not piece.is_artificial:
                        found = stream_format(piece, binlog_file, address)
                        written_at = datetime.fromtimestamp(int.from_bytes(piece.event[:4], "little"), UTC)
                        stream.packets.has_checksums = found.has_checksums
                        stream.packets.position = FIRST_POSITION + len(piece.event)
                    elif found is not None:
                        return FileHead(found, None, written_at)
                elif found is not None:
                    return FileHead(found, _previous_gtids(bytes(piece.data), found), written_at)
    raise BrokenStreamError(f"The server at {address} did not send the beginning of {binlog_file}.")


def stream_format(event: Special, binlog_file: str, address: ServerAddress) -> FormatDescription:
    """Return the format that a format description gives for its file.

    Raises
    ------
    BrokenStreamError
        The event is too short.
    BinlogError
        The format of the file is not supported.
    """
    try:
        return format_of_event(event.event, Path(binlog_file))
    except NotABinlogError:
        raise BrokenStreamError(
            f"The server at {address} begins {binlog_file} with a format description of {len(event.event)} bytes."
        ) from None


def rotate_event_target(event: Special, address: ServerAddress) -> str:
    """Return the file that a ROTATE event names, behind the event's position of eight bytes.

    Raises
    ------
    SourceError
        It is not the name of a log file.
    """
    return log_name(address, rotate_target(event.body, 8))


def _previous_gtids(events: bytes, format: FormatDescription) -> str | None:
    code, size = events[4], int.from_bytes(events[9:13], "little")
    if code not in (PREVIOUS_GTIDS, MARIA_GTID_LIST):
        return None
    body = event_body(code, events[:size], format)
    return gtid_set(body) if code == PREVIOUS_GTIDS else maria_gtid_list(body)
