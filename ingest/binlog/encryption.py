"""What an encrypted binlog says in clear: by whom and with which key it was encrypted.

Sources: MySQL, sql/stream_cipher.h and sql/rpl_log_encryption.cc, `Rpl_encryption_header_v1`; MariaDB,
sql/log_event.h, `Start_encryption_log_event`.
"""

from pathlib import Path
from typing import Final

from ingest.binlog.charsets import decode_text
from ingest.binlog.format import MAGIC_ENCRYPTED
from ingest.binlog.reader import MalformedEventError, Reader

_HEADER_SIZE: Final = 512
_KEY_ID: Final = 1
_FIELD_SIZES: Final = {2: 32, 3: 16}


def encryption_header(path: Path) -> tuple[int | None, str | None]:
    """Version and key id in the head of a file that MySQL encrypted as a whole.

    Behind the magic stand the version (1 byte) and numbered fields: the key's id with its size (1 byte), the
    file's password (32 bytes, encrypted with that key) and the vector that this was done with (16 bytes). What
    the file is too short for, or an unknown version writes in another way, is None.
    """
    with path.open("rb") as file:
        reader = Reader(file.read(_HEADER_SIZE)[len(MAGIC_ENCRYPTED) :])
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
