"""Names that people, files and servers give, and which of them the warehouse can keep.

A name is data: it may have quotes, line ends, `../` or a formula in it. It becomes a partition value of the raw tables,
and with that the name of a folder and a text that the metastore is asked for.
"""

from collections.abc import Iterator
from pathlib import Path

from ingest.errors import BrokenStreamError, UsageError
from ingest.sources.directory import binlog_path

# Bytes in the name of a file or folder, on the file systems in use.
LONGEST_FILE_NAME = 255

# What Hive, and Spark with it, escapes in the names of partition folders.
_ESCAPED = set("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(1, 32)}

# The folder of NULL.
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def escape(value: str) -> str:
    """Return a partition value as it stands in a folder's name."""
    return "".join(f"%{ord(sign):02X}" if sign in _ESCAPED else sign for sign in value)


def partition_step(column: str, value: str | int) -> str:
    """Return the name of the folder of a partition value: `source_id=shop`."""
    return f"{column}={escape(str(value))}"


def require_source_name(source_id: str) -> None:
    """Refuse a name of a source that the warehouse cannot keep.

    Raises
    ------
    UsageError
        It is empty, too long, or such that Spark could not find it again.
    """
    if not source_id.strip():
        raise UsageError("The name of the source is empty.", hint="Give a name with --source, such as --source shop.")
    for reason in _reasons_against("source_id", source_id):
        raise UsageError(f"{source_id!r} cannot be the name of a source: {reason}.", hint="Give another --source.")


def require_file_name(path: Path) -> None:
    """Refuse a binlog file whose name the warehouse cannot keep.

    Raises
    ------
    UsageError
        The name is too long, or such that Spark could not find it again.
    """
    for reason in _reasons_against("binlog_file", path.name):
        raise UsageError(
            f"The file {str(path)!r} cannot be landed under its name: {reason}.",
            hint="Copy it under the name that its server gave it.",
        )


def require_server_file(binlog_file: str) -> None:
    """Refuse a name of a binlog file, given by a server, that is not a plain one: it becomes a file of the spool.

    Raises
    ------
    BrokenStreamError
        It has a folder in it, no number at its end, or is such that the warehouse cannot keep it.
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
    # Spark asks the metastore for a name in quotes of the kind that the name has not, and escapes nothing in it.
    elif ('"' in value and "'" in value) or value.endswith("\\"):
        yield "Spark cannot look up a name with both kinds of quotes, or with a backslash at its end"
    elif len(partition_step(column, value).encode()) > LONGEST_FILE_NAME:
        yield "it is too long"
