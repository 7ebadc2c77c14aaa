"""The head of a binlog file: magic, format description, and what follows from the server's version."""

import hashlib
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ingest.binlog.events import FORMAT_DESCRIPTION
from ingest.errors import (
    BinlogNotFoundError,
    BinlogNotReadableError,
    EncryptedBinlogError,
    NotABinlogError,
    TruncatedBinlogError,
    UnsupportedBinlogVersionError,
)

MAGIC: Final = b"\xfebin"
MAGIC_ENCRYPTED: Final = b"\xfdbin"
HEADER_SIZE: Final = 19
"""Bytes of a v4 event header."""

FLAG_IN_USE: Final = 0x0001
FLAG_RELAY_LOG: Final = 0x0040

_HEAD_BYTES: Final = 4 + 512


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """What the first event of a file says of the file.

    `checksum_algorithm` is CRC32, NONE, or None where the server predates checksums. `fingerprint` is the
    SHA-256 of the event without its flags and checksum: it stays as it is while the file grows and closes.
    `post_header_sizes` has the size of each event type's fixed part, by type code from 1 on.
    """

    format_version: int
    server_version: str
    flavor: str
    checksum_algorithm: str | None
    server_id: int
    created_at: datetime | None
    is_in_use: bool
    is_relay_log: bool
    is_encrypted: bool
    fingerprint: str
    header_size: int
    post_header_sizes: bytes
    size: int

    @property
    def has_checksums(self) -> bool:
        return self.checksum_algorithm == "CRC32"

    def post_header_size(self, code: int) -> int:
        """Bytes of the fixed part of an event type; 0 for types that the server did not know."""
        return self.post_header_sizes[code - 1] if 0 < code <= len(self.post_header_sizes) else 0


def version_number(server_version: str) -> tuple[int, int, int]:
    """Major, minor and patch of a server version such as `10.11.19-MariaDB-log`."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", server_version)
    return (int(match[1]), int(match[2]), int(match[3])) if match else (0, 0, 0)


def flavor_of(server_version: str) -> str:
    return "mariadb" if "mariadb" in server_version.lower() else "mysql"


def knows_checksums(server_version: str) -> bool:
    """Whether a format description of this version ends in a checksum algorithm and a checksum.

    MySQL since 5.6.1, MariaDB since 5.3.0.
    """
    first = (5, 3, 0) if flavor_of(server_version) == "mariadb" else (5, 6, 1)
    return version_number(server_version) >= first


def read_format(path: Path) -> FormatDescription:
    """Reads magic and format description of a file.

    Raises
    ------
    BinlogNotFoundError, BinlogNotReadableError
        No such file, or no permission.
    NotABinlogError
        Empty, or other magic.
    EncryptedBinlogError, UnsupportedBinlogVersionError
        A binlog, but not one that can be decoded.
    TruncatedBinlogError
        The file ends inside its first event.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise BinlogNotFoundError(f"{path}: no such file.", hint="Check the path.", path=str(path)) from None
    except IsADirectoryError:
        raise BinlogNotFoundError(
            f"{path} is a directory, not a binlog file.",
            hint="Name its files, or land it with `binloom ingest --binlog-dir`.",
            path=str(path),
        ) from None
    except OSError as error:
        raise BinlogNotReadableError(
            f"{path} cannot be read: {error.strerror}.",
            hint="Read it as the user that the server runs as, or as root.",
            path=str(path),
        ) from None
    return parse_format(head, size, path)


def parse_format(head: bytes, size: int, path: Path) -> FormatDescription:
    """Parses the first bytes of a file of `size` bytes; see `read_format`."""
    if not head:
        raise NotABinlogError(
            f"{path} is empty.", hint="A binlog begins with the bytes fe 62 69 6e; copy the file again.", path=str(path)
        )
    if head[:4] == MAGIC_ENCRYPTED:
        raise EncryptedBinlogError(
            f"{path} is encrypted by its server (binlog_encryption=ON, magic fd 62 69 6e).",
            hint="Stream it from the server, which decrypts it: `mysqlbinlog --read-from-remote-server --raw`.",
            path=str(path),
        )
    if head[:4] != MAGIC:
        if MAGIC.startswith(head[:4]):
            raise _cut(path, 0, size)
        raise NotABinlogError(
            f"{path} is not a binlog: it begins with {head[:4].hex(' ')}, a binlog with fe 62 69 6e.",
            hint="Name the binlog files themselves (binlog.000001, not the .index file).",
            path=str(path),
        )
    if len(head) < 4 + HEADER_SIZE:
        raise _cut(path, 4, size)
    code, event_size = head[8], int.from_bytes(head[13:17], "little")
    if code != FORMAT_DESCRIPTION:
        raise UnsupportedBinlogVersionError(
            f"{path} begins with an event of type {code} at position 4, not with a format description: "
            "it was written before MySQL 5.0.",
            hint="Only format version 4 is decoded; read it with mysqlbinlog.",
            path=str(path),
            position=4,
        )
    if event_size < HEADER_SIZE + 58 or event_size > _HEAD_BYTES - 4:
        raise NotABinlogError(
            f"{path}: the format description at position 4 says that it has {event_size} bytes.",
            hint="The file's head is damaged; copy it again from the server.",
            path=str(path),
            position=4,
        )
    if len(head) < 4 + event_size:
        raise _cut(path, 4, size)
    return format_of_event(head[4 : 4 + event_size], path)


def format_of_event(event: bytes, path: Path) -> FormatDescription:
    """The format description in a whole event, header included."""
    body = event[HEADER_SIZE:]
    format_version = int.from_bytes(body[:2], "little")
    server_version = body[2:52].split(b"\0")[0].decode("ascii", "backslashreplace")
    created, header_size = int.from_bytes(body[52:56], "little"), body[56]
    if format_version != 4 or header_size < HEADER_SIZE:
        raise UnsupportedBinlogVersionError(
            f"{path} says format version {format_version} with {header_size}-byte headers (server {server_version!r}).",
            hint="Only format version 4 is decoded; read it with mysqlbinlog.",
            path=str(path),
            position=4,
        )
    algorithm: str | None = None
    tail = 0
    if knows_checksums(server_version):
        tail = 5
        number = event[-5]
        algorithm = {0: "NONE", 1: "CRC32"}.get(number)
        if algorithm is None:
            raise UnsupportedBinlogVersionError(
                f"{path} uses checksum algorithm {number}, which no known server has.",
                hint="The file's head is damaged, or its server is newer than binloom.",
                path=str(path),
                position=4,
            )
    flags = int.from_bytes(event[17:19], "little")
    unflagged = event[:17] + event[19 : len(event) - (4 if tail else 0)]
    return FormatDescription(
        format_version=format_version,
        server_version=server_version,
        flavor=flavor_of(server_version),
        checksum_algorithm=algorithm,
        server_id=int.from_bytes(event[5:9], "little"),
        created_at=datetime.fromtimestamp(created, UTC) if created else None,
        is_in_use=bool(flags & FLAG_IN_USE),
        is_relay_log=bool(flags & FLAG_RELAY_LOG),
        is_encrypted=False,
        fingerprint=hashlib.sha256(unflagged).hexdigest(),
        header_size=header_size,
        post_header_sizes=body[57 : len(body) - tail],
        size=len(event),
    )


def _cut(path: Path, position: int, size: int) -> TruncatedBinlogError:
    return TruncatedBinlogError(
        f"{path} is cut off inside its first event: it has {size} bytes.",
        hint="Copy the file again from the server.",
        path=str(path),
        position=position,
        reason="cut off inside the format description",
    )
