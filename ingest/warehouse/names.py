"""Names from people, files and servers, and the checks that the warehouse can keep them.

A name is data: it may contain quotes, line ends, `../` or a formula. It becomes a partition value of the raw tables,
so it is also the name of a folder and a value in queries to the metastore.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from ingest.binlog.byte_files import LogPath
from ingest.errors import BrokenStreamError, UsageError
from ingest.sources.files.directory import binlog_path

# Maximum bytes in the name of a file or folder on common file systems.
LONGEST_FILE_NAME = 255

# Characters that Hive and Spark escape in the names of partition folders.
_ESCAPED = set("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(1, 32)}

# End of the stem of a source in the name of a file.
_HASH = re.compile("-[0-9a-f]{8}(?=-)")

# Folder name of a NULL partition value.
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def escape(value: str) -> str:
    """Return a partition value as it is escaped in the name of a folder."""
    return "".join(f"%{ord(sign):02X}" if sign in _ESCAPED else sign for sign in value)


def partition_step(column: str, value: str | int) -> str:
    """Return the name of the folder of a partition value: `source_id=shop`."""
    return f"{column}={escape(str(value))}"


def source_stem(source_id: str) -> str:
    """Return a file name for a source: readable, and distinct for distinct sources."""
    # Spark skips files whose names begin with an underscore.
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", source_id)[:40].lstrip("_")
    return f"{readable or 'source'}-{hashlib.sha256(source_id.encode()).hexdigest()[:8]}"


def is_of_another_source(file_name: str, source_id: str) -> bool:
    """Return whether the name of a file tells that it was written for another source.

    The names of some files tell nothing: those of a source whose name has unusual characters, and of files that other
    programs wrote.
    """
    if file_name.startswith(f"{source_stem(source_id)}-"):
        return False
    return any(
        source_stem(file_name[: found.start()]) == file_name[: found.end()] for found in _HASH.finditer(file_name)
    )


def require_source_name(source_id: str) -> None:
    """Refuse a source name that the warehouse cannot keep.

    Raises
    ------
    UsageError
        The name is empty, too long, or Spark could not look it up.
    """
    if not source_id.strip():
        raise UsageError("The name of the source is empty.", hint="Give a name with --source, such as --source shop.")
    for reason in _reasons_against("source_id", source_id):
        raise UsageError(f"{source_id!r} cannot be the name of a source: {reason}.", hint="Give another --source.")


def require_file_name(path: LogPath) -> None:
    """Refuse a binlog file whose name the warehouse cannot keep.

    Raises
    ------
    UsageError
        The name is too long, or Spark could not look it up.
    """
    for reason in _reasons_against("binlog_file", path.name):
        raise UsageError(
            f"The file {str(path)!r} cannot be landed under its name: {reason}.",
            hint="Copy it under the name that its server gave it.",
        )


def require_server_file(binlog_file: str) -> None:
    """Refuse a binlog file name from a server that is not a plain file name: it becomes a file of the spool.

    Raises
    ------
    BrokenStreamError
        The name contains a folder, has no number at its end, or cannot be kept by the warehouse.
    """
    reasons = list(_reasons_against("binlog_file", binlog_file))
    if Path(binlog_file).name != binlog_file:
        reasons.append("it is not a plain file name")
    elif binlog_path(Path(binlog_file)).sequence is None:
        reasons.append("it has no number at its end")
    if reasons:
        raise BrokenStreamError(
            f"The server names its binlog file {binlog_file!r}, but {reasons[-1]}.",
            hint="Nothing is written under that name. Check that --server is the database server itself.",
        )


def _reasons_against(column: str, value: str) -> Iterator[str]:
    if value == _NULL_PARTITION:
        yield "Spark reads it as NULL"
    if "\0" in value or any("\ud800" <= sign <= "\udfff" for sign in value):
        yield "it has a byte that is not text in UTF-8"
    # In metastore queries, Spark quotes a name with the kind of quotes it does not contain, and escapes nothing.
    elif ('"' in value and "'" in value) or value.endswith("\\"):
        yield "Spark cannot look up a name with both kinds of quotes, or with a backslash at its end"
    elif len(partition_step(column, value).encode()) > LONGEST_FILE_NAME:
        yield "it is too long"
