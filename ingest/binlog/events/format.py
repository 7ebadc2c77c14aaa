"""The head of a binlog file: magic, format, and facts that follow from the server's version.

Three formats exist. Version 1 (MySQL 3.23) has headers of 13 bytes, version 3 (4.0, 4.1) headers of 19 bytes. Files of
both begin with a start event, or without one: 4.0 and 4.1 write it only to the first file after a server start.
Version 4 (5.0 and later) begins with a format description, which records the sizes of headers and fixed parts.

Sources: MySQL internals, "Determining the Binary Log Version"; server, client/mysqlbinlog.cc (`check_header`) and
libs/mysql/binlog/event/control_events.cpp (`Format_description_event`).
"""

import hashlib
import re
import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ingest.binlog.byte_files import Bytes, LogPath, open_bytes
from ingest.binlog.events.moments import moment_of_seconds
from ingest.binlog.events.types import FORMAT_DESCRIPTION, ROTATE, START_V3
from ingest.errors import (
    CorruptBinlogError,
    NotABinlogError,
    TruncatedBinlogError,
    UnsupportedBinlogVersionError,
    encrypted_binlog,
)
from ingest.versions import Flavor, Version, says_mariadb, version_of

MAGIC: Final = b"\xfebin"
MAGIC_ENCRYPTED: Final = b"\xfdbin"
MAGIC_INNODB: Final = b"\xfe\xfe\x0d\x01"
"""MariaDB 12.3 with binlog_storage_engine=innodb: its files, such as binlog-000000.ibb, have pages and no events."""
HEADER_SIZE: Final = 19
"""Bytes of an event header in format 3, and the minimum in format 4."""
HEADER_SIZE_V1: Final = 13

FLAG_IN_USE: Final = 0x0001
FLAG_RELAY_LOG: Final = 0x0040

_HEAD_BYTES: Final = 4 + 512


# Sizes of the fixed parts of events known before MySQL 5.0, by type code from 1 (START_V3) to 14 (USER_VAR).
_OLD_FIXED_PARTS: Final = bytes([56, 11, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0])
_START_V3_BODY: Final = 56

# Development trees of 5.1 and 5.2 numbered the types after FORMAT_DESCRIPTION differently: server,
# sql/log_event.cc of 5.1, Format_description_log_event, `perm`.
_RENUMBERED_SERVERS: Final = re.compile(r"5\.(1\.[1-5]-a_drop5|1\.4-a_drop6|2\.[0-2]-a_drop6)")
_RENUMBERED: Final = bytes([*range(16), 19, 20, 21, 22, 16, 17, 18])

# Numbers of types that a format description lists, the size of what it has before and behind them.
_TYPES_OF_5_5: Final = 27
_TYPES_OF_5_6: Final = 35
_FIRST_OF_MARIADB: Final = 160
_FIXED_HEAD: Final = 57
_TAIL_SIZE: Final = 5


COMPRESSIONS: Final = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ": "xz",
    b"\x04\x22\x4d\x18": "lz4",
    b"BZh": "bz2",
}
"""Compressions of whole files by the first bytes, which the manual page `magic` lists."""
_PACKED: Final = {
    b"PK\x03\x04": "zip",
    b"\x1f\x9d": "compress",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!": "rar",
    b"LZIP": "lzip",
    b"\x89LZO": "lzop",
    b"Salted__": "openssl",
    b"age-encryption.org": "age",
    b"-----BEGIN PGP": "gpg",
}
"""Programs whose files binloom does not read, by the first bytes."""


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """Facts about a file from its first event.

    `server_version` is None when no start event names it; `flavor` does not depend on it. `checksum_algorithm` is
    CRC32, NONE, or None when the server predates checksums. `fingerprint` is the SHA-256 of the event without its
    flags and checksum: it does not change while the file grows and closes. `post_header_sizes` contains
    the size of each event type's fixed part, by type code from 1 on. `type_codes` (256 bytes) maps each code in the
    file to today's code.
    """

    format_version: int
    server_version: str | None
    flavor: Flavor
    checksum_algorithm: str | None
    server_id: int
    created_at: datetime | None
    is_in_use: bool
    is_relay_log: bool
    fingerprint: str
    header_size: int
    post_header_sizes: bytes
    type_codes: bytes

    @property
    def version(self) -> Version:
        """The numbers of the server's version; those of the newest when it has none, or none of its own."""
        return version_of(self.flavor, self.server_version)

    @property
    def has_checksums(self) -> bool:
        return self.checksum_algorithm == "CRC32"

    def post_header_size(self, code: int) -> int:
        """Return the bytes of an event type's fixed part; 0 for types that the server did not know."""
        return self.post_header_sizes[code - 1] if 0 < code <= len(self.post_header_sizes) else 0


def read_format(path: LogPath) -> FormatDescription:
    """Read magic and format description of a file.

    Raises
    ------
    BinlogNotFoundError, BinlogNotReadableError
        The file does not exist, or reading it is not permitted.
    NotABinlogError
        The file is empty, or has another magic.
    EncryptedBinlogError, UnsupportedBinlogVersionError
        The file is a binlog that cannot be decoded.
    TruncatedBinlogError
        The file ends inside its first event.
    """
    with open_bytes(path) as source:
        return format_of(source, path)


def format_of(source: Bytes, path: LogPath) -> FormatDescription:
    """Return the format of an open file; raise the errors of `read_format` that tell of its contents."""
    head = source.read(_HEAD_BYTES, 0)
    size = source.wait_for(4 + int.from_bytes(head[13:17], "little"))
    if source.damage is not None and size < _HEAD_BYTES:
        raise CorruptBinlogError(
            f"{path}: {source.damage}.",
            hint="Copy the archive again.",
            path=str(path),
            position=0,
            reason=source.damage,
        )
    return parse_format(head, size, path)


def parse_format(head: bytes, size: int, path: LogPath) -> FormatDescription:
    """Parse the first bytes of a file of `size` bytes; see `read_format`."""
    if not head:
        raise NotABinlogError(
            f"{path} is empty.", hint="A binlog begins with the bytes fe 62 69 6e; copy the file again.", path=str(path)
        )
    if head[:4] == MAGIC_ENCRYPTED:
        raise encrypted_binlog(path)
    if head[:4] != MAGIC:
        if MAGIC.startswith(head[:4]):
            raise _cut(path, 0, size)
        raise _no_binlog(path, head)
    if len(head) < 4 + HEADER_SIZE:
        raise _cut(path, 4, size)
    code, event_size = head[8], int.from_bytes(head[13:17], "little")
    if _is_altered(head[4:]):
        reason = "its type, size or checksum algorithm is not that of its checksum"
        raise CorruptBinlogError(
            f"{path}: the format description at position 4 is damaged: {reason}.",
            hint="The file's head is damaged; copy it again from the server.",
            path=str(path),
            position=4,
            reason=reason,
        )
    if code != FORMAT_DESCRIPTION:
        return _old_format(head, code, event_size, size, path)
    if event_size < HEADER_SIZE + 58 or event_size > _HEAD_BYTES - 4:
        raise NotABinlogError(
            f"{path}: the format description at position 4 has an impossible size of {event_size} bytes.",
            hint="The file's head is damaged; copy it again from the server.",
            path=str(path),
            position=4,
        )
    if len(head) < 4 + event_size:
        raise _cut(path, 4, size)
    return format_of_event(head[4 : 4 + event_size], path)


def is_binlog(head: bytes) -> bool:
    """Return whether a file is a binlog by its first bytes, also one that is encrypted, or cut off in its magic."""
    return head.startswith((MAGIC, MAGIC_ENCRYPTED)) or MAGIC.startswith(head[:4])


def compression_of(head: bytes) -> str | None:
    """Return the compression of a file by its first bytes; None if it is not compressed."""
    return next((name for magic, name in COMPRESSIONS.items() if head.startswith(magic)), None)


def innodb_binlog(path: LogPath) -> NotABinlogError:
    """Return the error for a file of a binlog that MariaDB keeps in InnoDB."""
    return NotABinlogError(
        f"{path} is a binlog that MariaDB keeps in InnoDB (binlog_storage_engine=innodb), which binloom does not read.",
        hint="Read it from the running server: with `binloom follow`, or convert it with `mariadb-binlog"
        " --read-from-remote-server --raw` and give the files that this writes.",
        path=str(path),
    )


def _no_binlog(path: LogPath, head: bytes) -> NotABinlogError:
    if head.startswith(MAGIC_INNODB):
        return innodb_binlog(path)
    if compression_of(head) is not None:
        return NotABinlogError(
            f"{path} is a compressed file, not a binlog.",
            hint="Decompress it first. The commands of binloom read a file that is compressed once.",
            path=str(path),
        )
    if (program := next((name for magic, name in _PACKED.items() if head.startswith(magic)), None)) is not None:
        return NotABinlogError(
            f"{path} is a file of {program}, which binloom does not read.",
            hint=f"Unpack or decrypt it with {program}, and give the binlog files.",
            path=str(path),
        )
    return NotABinlogError(
        f"{path} is not a binlog: it begins with {head[:4].hex(' ')}, but a binlog begins with fe 62 69 6e.",
        hint="Name the binlog files themselves (binlog.000001, not the .index file).",
        path=str(path),
    )


def format_of_event(event: bytes, path: LogPath) -> FormatDescription:
    """Return the format description in a whole event, header included."""
    body = event[HEADER_SIZE:]
    if len(body) < _FIXED_HEAD:
        raise NotABinlogError(
            f"{path}: the format description has only {len(event)} bytes.",
            hint="The file is damaged; copy it again from the server.",
            path=str(path),
        )
    format_version = int.from_bytes(body[:2], "little")
    server_version = body[2:52].split(b"\0")[0].decode("ascii", "backslashreplace")
    created, header_size = int.from_bytes(body[52:56], "little"), body[56]
    if format_version != 4 or header_size < HEADER_SIZE:
        raise UnsupportedBinlogVersionError(
            f"{path} has the unknown format version {format_version} with {header_size}-byte headers (server "
            f"{server_version!r}).",
            hint="The file's head is damaged, or its server is newer than binloom.",
            path=str(path),
            position=4,
        )
    algorithm: str | None = None
    tail = _TAIL_SIZE if _has_tail(event, server_version) else 0
    fixed_parts, type_codes = body[_FIXED_HEAD : len(body) - tail], bytes(range(256))
    flavor = _flavor(len(fixed_parts), server_version)
    if tail:
        number = event[-_TAIL_SIZE]
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
    if len(fixed_parts) <= _TYPES_OF_5_5 and _RENUMBERED_SERVERS.match(server_version):
        type_codes = _RENUMBERED + type_codes[len(_RENUMBERED) :]
        fixed_parts = bytes(
            fixed_parts[_RENUMBERED.index(code) - 1] if _RENUMBERED.index(code) <= len(fixed_parts) else 0
            for code in range(1, len(_RENUMBERED))
        )
    return FormatDescription(
        format_version=format_version,
        server_version=server_version,
        flavor=flavor,
        checksum_algorithm=algorithm,
        server_id=int.from_bytes(event[5:9], "little"),
        created_at=moment_of_seconds(created),
        is_in_use=bool(flags & FLAG_IN_USE),
        is_relay_log=bool(flags & FLAG_RELAY_LOG),
        fingerprint=hashlib.sha256(unflagged).hexdigest(),
        header_size=header_size,
        post_header_sizes=fixed_parts,
        type_codes=type_codes,
    )


def checksum_is_good(event: bytes, format: FormatDescription) -> bool:
    """Return whether a format description's own checksum is right; it is computed with the IN_USE flag cleared.

    In a file without checksums it may have any checksum that does not show damage: some servers leave its place empty.
    """
    return _ends_in_checksum(event) if format.has_checksums else not _is_altered(event)


def _is_altered(start: bytes) -> bool:
    """Return whether the format description that `start` begins with has another type, size or checksum algorithm
    than its checksum was computed for.

    These decide whether checksums are verified at all, so a damaged one would turn off the check that finds it. The
    servers write this checksum into files without checksums too.
    """
    size, next_position = (int.from_bytes(start[at : at + 4], "little") for at in (9, 13))
    for each in (size, next_position - 4):
        if not HEADER_SIZE + _FIXED_HEAD + _TAIL_SIZE <= each <= len(start):
            continue
        for algorithm in (0, 1):
            event = bytearray(start[:each])
            event[4], event[9:13], event[-_TAIL_SIZE] = FORMAT_DESCRIPTION, each.to_bytes(4, "little"), algorithm
            if _ends_in_checksum(event):
                return size != each or event != start[:each]
    return False


def _ends_in_checksum(event: bytes | bytearray) -> bool:
    cleared = event[:17] + bytes([event[17] & ~FLAG_IN_USE]) + event[18:-4]
    return zlib.crc32(cleared) == int.from_bytes(event[-4:], "little")


def _has_tail(event: bytes, server_version: str) -> bool:
    """Return whether a format description ends in a checksum algorithm and a checksum.

    It does in MySQL since 5.6.1 and in MariaDB since 5.3.0, whether the file has checksums or not. Their sizes tell
    them from older ones, also where the checksum is wrong; the versions matter only to trees between 5.5 and 5.6.1.
    """
    sizes = len(event) - HEADER_SIZE - _FIXED_HEAD
    if _ends_in_checksum(event):
        return True
    if _TYPES_OF_5_5 < sizes < _TYPES_OF_5_6 + _TAIL_SIZE:
        return version_of("mysql", server_version) >= (5, 6, 1)
    return sizes > _TYPES_OF_5_5


def _flavor(types: int, server_version: str) -> Flavor:
    """Return the flavor of a server by the number of event types that it knows.

    MariaDB numbers its own events from 160 on and has had some since 5.3. MySQL is far from that, even as Aurora, which
    lists 100. The logs of MySQL up to 5.5 and of MariaDB up to 5.2 are alike, and there the version may tell.
    """
    if types <= _TYPES_OF_5_5:
        is_old = says_mariadb(server_version) and version_of("mariadb", server_version) < (5, 3)
        return "mariadb" if is_old else "mysql"
    return "mariadb" if types >= _FIRST_OF_MARIADB else "mysql"


def _old_format(head: bytes, code: int, event_size: int, size: int, path: LogPath) -> FormatDescription:
    """Return the format of a file that does not begin with a format description: version 1 or 3."""
    is_start = code == START_V3
    format_version = 1 if is_start and event_size < HEADER_SIZE + _START_V3_BODY else 3
    header_size = HEADER_SIZE_V1 if format_version == 1 else HEADER_SIZE
    if not 0 < code <= len(_OLD_FIXED_PARTS) or event_size < header_size + (_START_V3_BODY if is_start else 0):
        raise NotABinlogError(
            f"{path} begins with an event of type {code} and {event_size} bytes at position 4, but no binlog does.",
            hint="The file's head is damaged; copy it again from the server.",
            path=str(path),
            position=4,
        )
    if event_size > size - 4:
        raise _cut(path, 4, size)
    event = head[4 : 4 + event_size]
    server_version, created = None, 0
    if is_start:
        body = event[header_size:]
        server_version = body[2:52].split(b"\0")[0].decode("ascii", "backslashreplace") or None
        created = int.from_bytes(body[52:56], "little")
    flags = 0 if format_version == 1 else int.from_bytes(event[17:19], "little")
    fixed_parts = bytearray(_OLD_FIXED_PARTS)
    if format_version == 1:
        fixed_parts[ROTATE - 1] = 0
    return FormatDescription(
        format_version=format_version,
        server_version=server_version,
        flavor="mysql",
        checksum_algorithm=None,
        server_id=int.from_bytes(event[5:9], "little"),
        created_at=moment_of_seconds(created),
        is_in_use=bool(flags & FLAG_IN_USE),
        is_relay_log=bool(flags & FLAG_RELAY_LOG),
        fingerprint=hashlib.sha256(event[:17] + event[19:] if format_version == 3 else event).hexdigest(),
        header_size=header_size,
        post_header_sizes=bytes(fixed_parts),
        type_codes=bytes(range(256)),
    )


def _cut(path: LogPath, position: int, size: int) -> TruncatedBinlogError:
    return TruncatedBinlogError(
        f"{path} is cut off inside its first event: it has {size} bytes.",
        hint="Copy the file again from the server.",
        path=str(path),
        position=position,
        reason="cut off inside the format description",
    )
