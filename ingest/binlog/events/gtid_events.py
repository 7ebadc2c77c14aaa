"""Events that carry GTIDs: one before each transaction, and sets of them at the start of a file.

Sources: server, libs/mysql/binlog/event/control_events.cpp, `Gtid_event::Gtid_event`, and sql/rpl_gtid_set.cc,
`Gtid_set::add_gtid_encoding`; MariaDB, sql/log_event.cc, `Gtid_log_event` and `Gtid_list_log_event`.
"""

import uuid
from typing import Any, Final

from ingest.binlog.events.moments import moment
from ingest.binlog.events.reader import MalformedEventError, Reader
from ingest.binlog.events.tagged_gtid import parse_tagged_gtid, varlen

Detail = dict[str, Any]

_MAY_HAVE_STATEMENTS: Final = 1
_LOGICAL_CLOCK: Final = 2
_TWO_TIMESTAMPS: Final = 1 << 55
_TWO_VERSIONS: Final = 1 << 31
_UNKNOWN_VERSION: Final = 999999
_TAGGED: Final = 1


# --- MySQL ---


def describe_gtid(body: bytes) -> Detail:
    """Describe GTID (33) and ANONYMOUS_GTID (34). Later servers appended fields, which are read when present.

    5.6 ends after the number, 5.7 after the logical clock. 8.0 adds commit times (two of 7 bytes when they
    differ, which the top bit of the first indicates) and the transaction's length. 8.0.14 adds server versions
    in the same manner, 8.0.26 a commit group ticket.
    """
    reader = Reader(body)
    flags = reader.byte()
    source, number = str(uuid.UUID(bytes=reader.take(16))), reader.number(8)
    detail: Detail = {
        "gtid": f"{source}:{number}" if number else None,
        "is_rows_only": not flags & _MAY_HAVE_STATEMENTS,
    }
    if reader.left < 17 or reader.byte() != _LOGICAL_CLOCK:
        return detail
    detail |= {"last_committed": reader.number(8), "sequence_number": reader.number(8)}
    if reader.left < 7:
        return detail
    immediate = reader.number(7)
    original = reader.number(7) if immediate & _TWO_TIMESTAMPS else immediate
    detail |= {
        "immediate_commit_at": moment(immediate & ~_TWO_TIMESTAMPS),
        "original_commit_at": moment(original & ~_TWO_TIMESTAMPS),
    }
    if reader.left:
        detail["transaction_length"] = reader.packed()
    if reader.left >= 4:
        version = reader.number(4)
        original_version = reader.number(4) if version & _TWO_VERSIONS else version
        detail |= {
            "immediate_server_version": version_text(version & ~_TWO_VERSIONS),
            "original_server_version": version_text(original_version & ~_TWO_VERSIONS),
        }
    if reader.left >= 8:
        detail["commit_group_ticket"] = reader.number(8)
    return detail


def describe_tagged_gtid(body: bytes) -> Detail:
    """Describe GTID_TAGGED (42): the fields of a GTID event, and a tag."""
    gtid = parse_tagged_gtid(body)
    return {
        "gtid": f"{uuid.UUID(bytes=gtid.uuid)}:{gtid.tag}:{gtid.number}",
        "is_rows_only": not gtid.flags & _MAY_HAVE_STATEMENTS,
        "last_committed": gtid.last_committed,
        "sequence_number": gtid.sequence_number,
        "immediate_commit_at": moment(gtid.immediate_commit_timestamp),
        "original_commit_at": moment(gtid.original_commit_timestamp),
        "transaction_length": gtid.transaction_length,
        "immediate_server_version": version_text(gtid.immediate_server_version),
        "original_server_version": version_text(gtid.original_server_version),
        **({"commit_group_ticket": gtid.commit_group_ticket} if gtid.commit_group_ticket else {}),
    }


def version_text(number: int) -> str | None:
    """Return `9.7.4` for 90704; None when the server did not know the version."""
    if number == _UNKNOWN_VERSION:
        return None
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def gtid_set(body: bytes) -> str | None:
    """Return a PREVIOUS_GTIDS event's body as the server prints a set: `uuid:1-5:7:tag:1,uuid:…`; None when malformed.

    The body is a count of sources (8 bytes), then the sources. A source is a UUID (16), a count of intervals (8), and
    the intervals [start, end), 8 bytes for each bound. In a set with tags (MySQL 8.3) the count of sources has 6 bytes
    between two bytes of value 1, and a tag follows each UUID; its sources are sorted by UUID and tag.
    """
    reader = Reader(body)
    ranges_of: dict[str, list[str]] = {}
    try:
        count = reader.number(8)
        is_tagged = count >> 56 == _TAGGED
        for _ in range(count >> 8 & 0xFFFFFFFFFFFF if is_tagged else count):
            texts = ranges_of.setdefault(str(uuid.UUID(bytes=reader.take(16))), [])
            tag = reader.take(varlen(reader)).decode("ascii") if is_tagged else ""
            texts += [tag] * bool(tag)
            for _ in range(reader.number(8)):
                first, behind = reader.number(8), reader.number(8)
                texts.append(str(first) if behind == first + 1 else f"{first}-{behind - 1}")
    except (MalformedEventError, UnicodeDecodeError):
        return None
    return ",".join(":".join([source, *texts]) for source, texts in ranges_of.items())


# --- MariaDB ---

_FLAGS: Final = {
    1: "standalone",
    2: "group_commit",
    4: "transactional",
    8: "allow_parallel",
    16: "waited",
    32: "ddl",
    64: "xa_prepared",
    128: "xa_completed",
}
_EXTRA_FLAGS: Final = {1: "several_engines", 2: "start_alter", 4: "commit_alter", 8: "rollback_alter", 16: "thread_id"}
_GROUP_COMMIT, _XA = 2, 64 | 128
_SEVERAL_ENGINES, _ALTER_ENDS, _THREAD_ID = 1, 4 | 8, 16
_LIST_FLAGS: Final = {1 << 28: "until_reached", 1 << 29: "ignore_gtids"}


def describe_maria_gtid(body: bytes, server_id: int) -> Detail:
    """Describe MARIA_GTID (162). Each flag announces a field; the fields follow in the order of the flags.

    Zeros fill the body up to 19 bytes.
    """
    reader = Reader(body)
    number, domain, flags = reader.number(8), reader.number(4), reader.byte()
    detail: Detail = {"gtid": f"{domain}-{server_id}-{number}", "flags": names_of(flags, _FLAGS)}
    if flags & _GROUP_COMMIT:
        detail["commit_id"] = reader.number(8)
    if flags & _XA:
        form, global_size, branch_size = reader.number(4), reader.byte(), reader.byte()
        detail["xid"] = xa_text(form, reader.take(global_size), reader.take(branch_size))
    extra = reader.byte() if reader.left else 0
    if extra:
        detail["flags_extra"] = names_of(extra, _EXTRA_FLAGS)
    if extra & _SEVERAL_ENGINES:
        detail["further_engines"] = reader.byte()
    if extra & _ALTER_ENDS:
        detail["start_alter_gtid_number"] = reader.number(8)
    if extra & _THREAD_ID:
        detail["thread_id"] = reader.number(4)
    return detail


def describe_maria_gtid_list(body: bytes) -> Detail:
    """Describe MARIA_GTID_LIST (163): the last GTID of each domain and server before this file."""
    flags = Reader(body).number(4) & ~0x0FFFFFFF
    gtids = maria_gtid_list(body)
    if gtids is None:
        raise MalformedEventError("its GTIDs do not fit into the event")
    return {"gtids": gtids, **({"flags": names_of(flags, _LIST_FLAGS)} if flags else {})}


def maria_gtid_list(body: bytes) -> str | None:
    """Return a MariaDB GTID list as `domain-server-number,…`; None when malformed.

    The list is a count (28 bits of 4 bytes), then 16 bytes per GTID.
    """
    reader = Reader(body)
    try:
        count = reader.number(4) & 0x0FFFFFFF
        return ",".join(f"{reader.number(4)}-{reader.number(4)}-{reader.number(8)}" for _ in range(count))
    except MalformedEventError:
        return None


# --- both ---


def names_of(flags: int, names: dict[int, str]) -> list[str]:
    """Return the names of the bits that are set; a bit without a name as its value in hex."""
    return [names.get(1 << bit, f"{1 << bit:#x}") for bit in range(flags.bit_length()) if flags >> bit & 1]


def xa_text(form: int, global_part: bytes, branch_part: bytes) -> str:
    """Return an XA transaction's id as the servers write it: `X'6162',X'',1`."""
    return f"X'{global_part.hex()}',X'{branch_part.hex()}',{form}"
