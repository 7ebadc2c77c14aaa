"""Fields that are not encrypted in an encrypted binlog, such as the id of the key.

Sources: MySQL, sql/stream_cipher.h and sql/rpl_log_encryption.cc, `Rpl_encryption_header_v1`; MariaDB,
sql/log_event.h, `Start_encryption_log_event`.
"""

from typing import Final

from ingest.binlog.byte_files import LogPath, open_bytes
from ingest.binlog.events.format import MAGIC_ENCRYPTED
from ingest.binlog.events.reader import MalformedEventError, Reader
from ingest.binlog.text.charsets import decode_text

_HEADER_SIZE: Final = 512
_KEY_ID: Final = 1
_FIELD_SIZES: Final = {2: 32, 3: 16}


def encryption_header(path: LogPath) -> tuple[int | None, str | None]:
    """Return version and key id from the head of a file that MySQL encrypted as a whole.

    The magic is followed by the version (1 byte) and numbered fields: the key's id with its size (1 byte), the
    file's password (32 bytes, encrypted with that key) and the vector of that encryption (16 bytes). A result is
    None when the file is too short for it, or when an unknown version stores it in another way.
    """
    with open_bytes(path) as source:
        reader = Reader(source.read(_HEADER_SIZE, 0)[len(MAGIC_ENCRYPTED) :])
    version = None
    try:
        version = reader.byte()
        while version == 1:
            field = reader.byte()
            if field == _KEY_ID:
                return version, decode_text(reader.take(reader.byte()), None)
            reader.take(_FIELD_SIZES[field])
    except (MalformedEventError, KeyError):
        pass
    return version, None
