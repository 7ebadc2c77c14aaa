"""Event types of MySQL and MariaDB: codes, names, and the kernel's action for each.

Sources: server, libs/mysql/binlog/event/binlog_event.h (`Log_event_type`); MariaDB, sql/log_event.h.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from ingest.binlog.kernel import layout

EVENT_NAMES: Final[dict[int, str]] = {
    0: "UNKNOWN",
    1: "START_V3",
    2: "QUERY",
    3: "STOP",
    4: "ROTATE",
    5: "INTVAR",
    6: "LOAD",
    7: "SLAVE",
    8: "CREATE_FILE",
    9: "APPEND_BLOCK",
    10: "EXEC_LOAD",
    11: "DELETE_FILE",
    12: "NEW_LOAD",
    13: "RAND",
    14: "USER_VAR",
    15: "FORMAT_DESCRIPTION",
    16: "XID",
    17: "BEGIN_LOAD_QUERY",
    18: "EXECUTE_LOAD_QUERY",
    19: "TABLE_MAP",
    20: "WRITE_ROWS_V0",
    21: "UPDATE_ROWS_V0",
    22: "DELETE_ROWS_V0",
    23: "WRITE_ROWS_V1",
    24: "UPDATE_ROWS_V1",
    25: "DELETE_ROWS_V1",
    26: "INCIDENT",
    27: "HEARTBEAT",
    28: "IGNORABLE",
    29: "ROWS_QUERY",
    30: "WRITE_ROWS",
    31: "UPDATE_ROWS",
    32: "DELETE_ROWS",
    33: "GTID",
    34: "ANONYMOUS_GTID",
    35: "PREVIOUS_GTIDS",
    36: "TRANSACTION_CONTEXT",
    37: "VIEW_CHANGE",
    38: "XA_PREPARE",
    39: "PARTIAL_UPDATE_ROWS",
    40: "TRANSACTION_PAYLOAD",
    41: "HEARTBEAT_V2",
    42: "GTID_TAGGED",
    160: "ANNOTATE_ROWS",
    161: "BINLOG_CHECKPOINT",
    162: "MARIA_GTID",
    163: "MARIA_GTID_LIST",
    164: "START_ENCRYPTION",
    165: "QUERY_COMPRESSED",
    166: "WRITE_ROWS_COMPRESSED_V1",
    167: "UPDATE_ROWS_COMPRESSED_V1",
    168: "DELETE_ROWS_COMPRESSED_V1",
    169: "WRITE_ROWS_COMPRESSED",
    170: "UPDATE_ROWS_COMPRESSED",
    171: "DELETE_ROWS_COMPRESSED",
    172: "PARTIAL_ROW_DATA",
}

START_V3: Final = 1
ROTATE: Final = 4
QUERY: Final = 2
STOP: Final = 3
FORMAT_DESCRIPTION: Final = 15
TABLE_MAP: Final = 19
PREVIOUS_GTIDS: Final = 35
MARIA_GTID_LIST: Final = 163
START_ENCRYPTION: Final = 164

INCIDENT: Final = 26
ROWS_QUERY: Final = 29
PARTIAL_UPDATE_ROWS: Final = 39
TRANSACTION_PAYLOAD: Final = 40
ANNOTATE_ROWS: Final = 160
QUERY_COMPRESSED: Final = 165
PARTIAL_ROW_DATA: Final = 172
ROWS_V0: Final = {20: 23, 21: 24, 22: 25}
"""Type code of each version 0 rows event, with the equivalent version 1 type code."""
ROWS_COMPRESSED: Final = {166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}
"""Type code of each compressed rows event, with its type code when uncompressed."""

_ACTIONS: Final[dict[int, int]] = {
    2: layout.ACT_QUERY,
    STOP: layout.ACT_CLOSE,
    ROTATE: layout.ACT_CLOSE,
    5: layout.ACT_CONTEXT,
    6: layout.ACT_LOAD,
    8: layout.ACT_CONTEXT,
    9: layout.ACT_LOAD_BLOCK,
    10: layout.ACT_LOAD_END,
    11: layout.ACT_LOAD_END,
    12: layout.ACT_LOAD,
    13: layout.ACT_CONTEXT,
    14: layout.ACT_CONTEXT,
    FORMAT_DESCRIPTION: layout.ACT_FORMAT,
    16: layout.ACT_XID,
    17: layout.ACT_LOAD_BLOCK,
    18: layout.ACT_LOAD_QUERY,
    TABLE_MAP: layout.ACT_TABLE_MAP,
    **dict.fromkeys(ROWS_V0, layout.ACT_ROWS_V0),
    **dict.fromkeys((23, 24, 25), layout.ACT_ROWS),
    INCIDENT: layout.ACT_INCIDENT,
    ROWS_QUERY: layout.ACT_ROWS_QUERY,
    **dict.fromkeys((30, 31, 32), layout.ACT_ROWS),
    33: layout.ACT_GTID,
    34: layout.ACT_ANONYMOUS_GTID,
    38: layout.ACT_XA_PREPARE,
    PARTIAL_UPDATE_ROWS: layout.ACT_ROWS,
    TRANSACTION_PAYLOAD: layout.ACT_PAYLOAD,
    42: layout.ACT_GTID_TAGGED,
    ANNOTATE_ROWS: layout.ACT_ANNOTATE,
    162: layout.ACT_MARIADB_GTID,
    START_ENCRYPTION: layout.ACT_ENCRYPTION,
    QUERY_COMPRESSED: layout.ACT_QUERY_COMPRESSED,
    **dict.fromkeys(ROWS_COMPRESSED, layout.ACT_ROWS_COMPRESSED),
    PARTIAL_ROW_DATA: layout.ACT_FRAGMENT,
}


def event_name(code: int) -> str:
    """Return the name of a type code; the number itself when neither server has such a type."""
    return EVENT_NAMES.get(code, str(code))


def counts_by_name(counts: npt.NDArray[np.int64]) -> dict[str, int]:
    """Return counts above 0 by type name, in the order of the type codes; `counts` has shape (256,)."""
    return {event_name(code): int(counts[code]) for code in np.flatnonzero(counts).tolist()}


def actions() -> npt.NDArray[np.uint8]:
    """Return the kernel's action for each type code: `layout.ACT_…`, shape (256,)."""
    table = np.full(256, layout.ACT_UNKNOWN, dtype=np.uint8)
    for code in EVENT_NAMES:
        if code:
            table[code] = _ACTIONS.get(code, layout.ACT_SILENT)
    return table
