"""The interface between the kernel and Python: words of the context block, statuses, codes, record shapes.

The context is one int64 array; a name here is an index into it. Python owns the arrays that words point to
(`ingest.binlog.buffers`, `ingest.binlog.decoder`).
"""

from typing import Final

PADDING: Final = 64
"""Readable bytes behind the end of each buffer, so that a fixed-width read may be checked afterwards."""

# --- statuses of `run`: the reason why it returned ---
NEED_BYTES: Final = 0
"""The window ends inside the event at POS."""
FULL: Final = 1
"""An output buffer is full: replace it and continue."""
NEW_TABLE_MAP: Final = 2
"""The TABLE_MAP at POS is not in the slot for its table id."""
DEFECT: Final = 3
"""The event at POS is broken: REASON gives the reason."""
END: Final = 4
"""END_POS reached."""
SEGMENT: Final = 5
"""A transaction ended SEGMENT_BYTES or more behind SEGMENT_START."""
ATTENTION: Final = 6
"""Python must look at the event at POS before the walk continues: see ATTENDED."""
CHANGED_INPUT: Final = 7
"""The walk entered or left an event that contains events; `run` continues by itself."""

# --- modes ---
WANT_ROWS: Final = 1
WANT_INDEX: Final = 2
WANT_STATEMENTS: Final = 8
KEEP_GOING: Final = 4
"""Count checksum failures and walk on (a scan) instead of stopping at the first (a decoder)."""
SKIP_BAD: Final = 16
"""Skip events with a wrong checksum as if they were not there, and report them."""
WANT_DDL: Final = 32
"""Record the statements that may be DDL, including those inside compressed events; no rows, no other statements."""

# --- how to handle an event type: one byte for each type code at ACTIONS ---
ACT_UNKNOWN: Final = 0
ACT_SILENT: Final = 1
ACT_QUERY: Final = 2
ACT_XID: Final = 3
ACT_GTID: Final = 4
ACT_ANONYMOUS_GTID: Final = 5
ACT_MARIADB_GTID: Final = 6
ACT_TABLE_MAP: Final = 7
ACT_ROWS: Final = 8
ACT_ROWS_QUERY: Final = 9
ACT_ANNOTATE: Final = 10
ACT_XA_PREPARE: Final = 11
ACT_CLOSE: Final = 12
ACT_FORMAT: Final = 13
ACT_PAYLOAD: Final = 14
ACT_ROWS_COMPRESSED: Final = 15
ACT_QUERY_COMPRESSED: Final = 16
ACT_ROWS_V0: Final = 17
ACT_GTID_TAGGED: Final = 18
ACT_CONTEXT: Final = 19
"""Contains a part of the statement that follows: a variable, or the LOAD DATA that a file belongs to."""
ACT_LOAD: Final = 20
"""LOAD DATA of servers before 4.0, a complete statement."""
ACT_LOAD_BLOCK: Final = 21
ACT_LOAD_END: Final = 22
ACT_LOAD_QUERY: Final = 23
ACT_INCIDENT: Final = 24
ACT_ENCRYPTION: Final = 25
ACT_FRAGMENT: Final = 26
"""A part of a rows event."""

# --- reasons of defects and problems ---
BAD_SIZE: Final = 1
BAD_CHECKSUM: Final = 2
UNKNOWN_TYPE: Final = 3
NESTED_TYPE: Final = 4
NO_TABLE_MAP: Final = 5
WIDTH_MISMATCH: Final = 6
MALFORMED_EVENT: Final = 7
MALFORMED_ROW: Final = 8
BAD_VALUE: Final = 9
UNSUPPORTED_COLUMN: Final = 10
BAD_TABLE_MAP: Final = 11
VALUE_TOO_LARGE: Final = 12
ENCRYPTED: Final = 13
BAD_PAYLOAD: Final = 14
INCIDENT: Final = 15
ROWS_V0: Final = 16
UNKNOWN_DIGITS: Final = 18
BAD_FRAGMENTS: Final = 19

# --- context words ---
_names = [
    "BUFFER",
    "BUFFER_SIZE",
    "POS",
    "BASE",
    "END_POS",
    "CHECKSUM",
    "COUNTS",
    "PAYLOAD_START",
    "PAYLOAD_END",
    "PAYLOAD_ORDINAL",
    *(f"OUTER_{number}" for number in range(10)),
    "INSIDE",
    "INSIDE_CAPACITY",
    "ZSTD_DECOMPRESS",
    "ZSTD_CONTEXT",
    "INNER_COUNTS",
    "MODE",
    "HEADER_SIZE",
    "TYPE_CODES",
    "POST_HEADERS",
    "ACTIONS",
    "CRC_TABLES",
    "POWERS",
    "SCRATCH",
    "REASON",
    "ATTENDED",
    "ATTENDED_GOOD",
    "IS_ENCRYPTED",
    "EVENTS",
    "FIRST_AT",
    "LAST_AT",
    "FIRST_BAD",
    "BAD_CHECKSUMS",
    "COMPLETE_END",
    "SEGMENT_START",
    "SEGMENT_BYTES",
    "CLOSED",
    "SLOTS",
    "MAPS",
    "ACTIVE",
    "ACTIVE_COUNT",
    "TXN_STATE",
    "TXN_RECORDS",
    "TXN_COUNT",
    "TXN_CAPACITY",
    "GTID_OFFSETS",
    "GTID_DATA",
    "XA_OFFSETS",
    "XA_DATA",
    "STMT_RECORDS",
    "STMT_COUNT",
    "STMT_CAPACITY",
    "STMT_SCHEMA_OFFSETS",
    "STMT_SCHEMA_DATA",
    "STMT_SCHEMA_CAPACITY",
    "STMT_TEXT_OFFSETS",
    "STMT_TEXT_DATA",
    "STMT_TEXT_CAPACITY",
    "STMT_STATUS_OFFSETS",
    "STMT_STATUS_DATA",
    "STMT_STATUS_CAPACITY",
    "PROBLEM_RECORDS",
    "PROBLEM_COUNT",
    "PROBLEM_CAPACITY",
    "INDEX_RECORDS",
    "INDEX_COUNT",
    "INDEX_CAPACITY",
    "ROW_COUNT",
    "ROW_CAPACITY",
    "ROW_STARTS",
    "ROW_ENDS",
    "ROW_PAYLOAD_ORDINALS",
    "ROW_ORDINALS",
    "ROW_TXN_POS",
    "ROW_KINDS",
    "ROW_TIMES",
    "ROW_SERVERS",
    "ROW_TXNS",
    "ROW_MAPS",
    "ROW_WIDTHS",
    "ROW_VALUE_OFFSETS",
    "VALUE_COUNT",
    "VALUE_CAPACITY",
    "BEFORE_OFFSETS",
    "BEFORE_VALID",
    "BEFORE_DATA",
    "BEFORE_OUT",
    "BEFORE_LIMIT",
    "AFTER_OFFSETS",
    "AFTER_VALID",
    "AFTER_DATA",
    "AFTER_OUT",
    "AFTER_LIMIT",
    "ORDINAL_CAPACITY",
    "PARTIAL_SEEN",
    "BEFORE_ORDINAL_OFFSETS",
    "BEFORE_ORDINALS",
    "BEFORE_IS_PARTIAL",
    "AFTER_ORDINAL_OFFSETS",
    "AFTER_ORDINALS",
    "AFTER_IS_PARTIAL",
    "RESUME",
    "RESUME_ROW",
    "RESUME_ORDINAL",
    "RESUME_MAP",
    "RESUME_KIND",
    "RESUME_END",
    "RESUME_BEFORE",
    "RESUME_AFTER",
    "RESUME_PARTIAL",
    "PATCHES",
    "PATCH_COUNT",
    "BAD_COLUMN",
    "BAD_REASON",
]

WORDS: Final = {name: index for index, name in enumerate(_names)}
INPUT_WORDS: Final = slice(WORDS["BUFFER"], WORDS["PAYLOAD_ORDINAL"] + 1)
"""The input of the walk: saved in the OUTER words while the walk is inside an event."""
OUTER_WORDS: Final = slice(WORDS["OUTER_0"], WORDS["OUTER_9"] + 1)
CONTEXT_WORDS: Final = len(_names)

# --- record shapes, in int64 words ---
TXN_WORDS: Final = 16
(
    TXN_START,
    TXN_END,
    TXN_XID,
    TXN_THREAD,
    TXN_SERVER,
    TXN_STARTED,
    TXN_COMMITTED,
    TXN_ORIGINAL,
    TXN_IS_DDL,
    TXN_OUTCOME,
    TXN_EVENTS,
    TXN_INSERTS,
    TXN_UPDATES,
    TXN_DELETES,
    TXN_HAS_GTID,
    TXN_HAS_XA,
) = range(TXN_WORDS)
NULL: Final = -0x8000000000000000
"""A missing number in a record."""

LATEST_MOMENT: Final = 253_402_300_799_999_999
"""The last microsecond of the year 9999, counted from 1970: later moments have no date."""

OUTCOME_NONE: Final = 0
OUTCOME_COMMIT: Final = 1
OUTCOME_ROLLBACK: Final = 2
OUTCOME_XA_PREPARE: Final = 3

STATE_NONE: Final = 0
STATE_ANNOUNCED: Final = 1
"""A GTID event came: the next event says whether it is one statement or a transaction."""
STATE_BEGUN: Final = 2
STATE_IMPLICIT: Final = 3
"""Row events without BEGIN (servers before 5.1.23 or non-transactional writers): one statement."""

STMT_WORDS: Final = 10
(
    STMT_START,
    STMT_END,
    STMT_PAYLOAD_ORDINAL,
    STMT_TXN,
    STMT_KIND,
    STMT_THREAD,
    STMT_ERROR,
    STMT_TIME,
    STMT_CHARSET,
    STMT_TYPE,
) = range(STMT_WORDS)
KIND_QUERY: Final = 0
KIND_ROWS_QUERY: Final = 1
KIND_ANNOTATE: Final = 2
KIND_EVENT: Final = 3
"""An event with a statement, or part of a statement, in fields: its text is the event's body."""

DATA_LIMIT: Final = (1 << 31) - 4096
"""Most bytes of text in one buffer: the limit of Arrow's 32-bit string offsets."""

PROBLEM_WORDS: Final = 7
(
    PROBLEM_START,
    PROBLEM_END,
    PROBLEM_TYPE,
    PROBLEM_MAP,
    PROBLEM_ROW,
    PROBLEM_COLUMN,
    PROBLEM_REASON,
) = range(PROBLEM_WORDS)

INDEX_WORDS: Final = 8
(
    INDEX_POS,
    INDEX_SIZE,
    INDEX_TYPE,
    INDEX_TIME,
    INDEX_SERVER,
    INDEX_FLAGS,
    INDEX_NEXT,
    INDEX_GOOD,
) = range(INDEX_WORDS)

SLOT_COUNT: Final = 256
SLOT_WORDS: Final = 4
SLOT_TABLE_ID, SLOT_MAP, SLOT_BODY, SLOT_BODY_SIZE = range(SLOT_WORDS)
"""A slot: table id, map number, address and size of the TABLE_MAP's body behind the table id."""
MAP_WORDS: Final = 5
MAP_PLAN, MAP_WIDTH, MAP_IS_SKIPPED, MAP_JSON_COLUMNS, MAP_LACKS_DIGITS = range(MAP_WORDS)
"""A map: address of its plan, column count, whether its rows are skipped, number of JSON columns, and whether the
fraction digits of its temporal columns are unknown."""
ACTIVE_CAPACITY: Final = 4096
ACTIVE_WORDS: Final = 2
ACTIVE_TABLE_ID, ACTIVE_MAP = range(ACTIVE_WORDS)
"""A current table map of a statement."""

# --- groups of context words, counted from the first word of the group ---
IMAGE_OFFSETS, IMAGE_VALID, IMAGE_DATA, IMAGE_OUT, IMAGE_LIMIT = range(5)
"""The images of one side, from BEFORE_OFFSETS or AFTER_OFFSETS on."""
TEXT_OFFSETS, TEXT_DATA, TEXT_CAPACITY = range(3)
"""Texts of statements, from STMT_…_OFFSETS on; texts of transactions have no word for the capacity."""
ORDINAL_OFFSETS, ORDINAL_VALUES, ORDINAL_IS_PARTIAL = range(3)
"""Lists of the ordinals in partial images, from BEFORE_ORDINAL_OFFSETS or AFTER_ORDINAL_OFFSETS on."""

# --- tables of labels of ENUM and SET ---
LABELS_COUNT, LABELS_FIRST = range(2)
"""The number of labels, and the first label."""
LABEL_WORDS: Final = 2
LABEL_ADDRESS, LABEL_SIZE = range(LABEL_WORDS)

# --- the header of an event: offsets in bytes ---
EVENT_TIME: Final = 0
EVENT_TYPE: Final = 4
EVENT_SERVER: Final = 5
EVENT_SIZE: Final = 9
EVENT_NEXT: Final = 13
EVENT_FLAGS: Final = 17
FLAG_IGNORABLE: Final = 0x0080
"""Readers who do not know the type of the event may ignore it: server, LOG_EVENT_IGNORABLE_F."""

# --- column plans: eight words a column ---
PLAN_WORDS: Final = 8
PLAN_OP, PLAN_A, PLAN_B, PLAN_TABLE, PLAN_CHARSET = range(5)
PLAN_SIGNED: Final = PLAN_TABLE

OPS: Final = {
    name: number
    for number, name in enumerate(
        [
            "INTEGER",
            "FLOAT",
            "DOUBLE",
            "DECIMAL",
            "YEAR",
            "DATE",
            "TIME2",
            "DATETIME2",
            "TIMESTAMP2",
            "OLD_TIME",
            "OLD_DATETIME",
            "OLD_TIMESTAMP",
            "BIT",
            "ENUM",
            "SET",
            "STRING",
            "BINARY",
            "JSON",
            "UNSUPPORTED",
            "HIRES_TIME",
            "HIRES_DATETIME",
            "HIRES_TIMESTAMP",
            "UUID",
            "INET4",
            "INET6",
            "COMPRESSED",
        ]
    )
}

INSERT: Final = 0
UPDATE: Final = 1
DELETE: Final = 2

# --- character sets of a column plan ---
CHARSET_UTF8: Final = 0
CHARSET_SINGLE_BYTE: Final = 1
CHARSET_UTF16: Final = 2
CHARSET_UTF16LE: Final = 3
CHARSET_UTF32: Final = 4
CHARSET_MULTI_BYTE: Final = 5
CHARSET_BINARY: Final = 6
CHARSET_UNKNOWN: Final = 7
CHARSET_NOT_ASCII: Final = 8
"""One byte a character; some of the lower 128 characters differ from ASCII (swe7)."""
CHARSET_GB18030: Final = 9
GB18030_BMP: Final = 39420
"""Number of gb18030's four-byte characters in the basic plane."""
GB18030_SUPPLEMENT: Final = 189000
"""Number of the four-byte character of gb18030 that encodes U+10000."""

# --- room for texts, in bytes ---
STRING_ROOM: Final = 64
STRING_EXPANSION: Final = 3
"""Most bytes of text for one byte of a string."""

# --- MariaDB's own temporal types with a fraction: bytes by the digits of the fraction ---
HIRES_TIME_BYTES: Final = (3, 4, 4, 5, 5, 5, 6)
"""Bytes of a TIME by the digits of its fraction; the first is the type without a fraction."""
HIRES_DATETIME_BYTES: Final = (8, 6, 6, 7, 7, 7, 8)
HIRES_TIMESTAMP_BYTES: Final = (4, 5, 5, 6, 6, 7, 7)

# --- open containers of a JSON document, at SCRATCH ---
JSON_DEPTH: Final = 128
"""More than the server's own limit of 100."""
FRAME_WORDS: Final = 5
JSON_IS_TYPED: Final = JSON_DEPTH * FRAME_WORDS * 8
"""Offset of the word that is set as soon as a member has a type that the text of its document does not tell."""
JSON_SCRATCH_BYTES: Final = JSON_IS_TYPED + 8
