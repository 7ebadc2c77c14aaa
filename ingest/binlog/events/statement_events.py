"""Events that represent a statement: QUERY, the variables that a QUERY uses, and LOAD DATA.

INTVAR, RAND and USER_VAR precede the QUERY that uses them. LOAD DATA is LOAD or NEW_LOAD in MySQL 3.23;
CREATE_FILE, APPEND_BLOCK and EXEC_LOAD or DELETE_FILE in 4.0 and 4.1; BEGIN_LOAD_QUERY, APPEND_BLOCK and
EXECUTE_LOAD_QUERY since 5.0.3.

Sources: server, libs/mysql/binlog/event/statement_events.cpp and load_data_events.h; for LOAD, NEW_LOAD and
CREATE_FILE, which MySQL 8 no longer reads, MariaDB, sql/log_event.cc, `Load_log_event::copy_log_event`,
`sql_ex_info::init` and `Create_file_log_event`. Statements are written as sql/log_event_client.cc prints them.
"""

import struct
from typing import Any, Final

from ingest.binlog.events.reader import MalformedEventError, Reader
from ingest.binlog.events.status_variables import Status, parse_status
from ingest.binlog.text.charsets import BINARY, charset_of, decode_text
from ingest.binlog.text.collations import collation_names
from ingest.binlog.text.server_statements import decode_statement

Detail = dict[str, Any]

INTVAR: Final = 5
LOAD: Final = 6
CREATE_FILE: Final = 8
NEW_LOAD: Final = 12
RAND: Final = 13
USER_VAR: Final = 14
EXECUTE_LOAD_QUERY: Final = 18

_QUERY_HEADER_SIZE: Final = 13
_QUERY_HEADER_SIZE_BEFORE_5_0: Final = 11


def statement_text(code: int, body: bytes, post_header_size: int) -> str | None:
    """Return the SQL that an event other than QUERY represents; None for a type without SQL.

    Parameters
    ----------
    code
        The event's type. INTVAR, RAND, USER_VAR, LOAD, NEW_LOAD, CREATE_FILE and EXECUTE_LOAD_QUERY have SQL.
    body
        The bytes between the event's header and its checksum.
    post_header_size
        Size of the fixed part of this type, from the format description.

    Raises
    ------
    MalformedEventError
        When the fields do not fit into the body.
    """
    if code == INTVAR:
        return intvar_statement(body)
    if code == RAND:
        return rand_statement(body)
    if code == USER_VAR:
        return user_var_statement(body)
    if code in (LOAD, NEW_LOAD, CREATE_FILE):
        return load_statement(code, body)
    if code == EXECUTE_LOAD_QUERY:
        return str(describe_query(body, post_header_size, "mysql")["sql"])
    return None


# --- QUERY ---


def describe_query(body: bytes, post_header_size: int, flavor: str) -> Detail:
    """Describe a QUERY event, or the QUERY part of an EXECUTE_LOAD_QUERY, of a server of a flavor.

    The text is in the character set of the client, which the status variables name. Before format version 4 there
    are no status variables, and the fixed part does not contain their size.
    """
    reader = Reader(body)
    detail: Detail = {"thread_id": reader.number(4), "seconds": reader.number(4)}
    schema_size = reader.byte()
    detail["error_code"] = reader.number(2)
    status_size = reader.number(2) if post_header_size >= _QUERY_HEADER_SIZE else 0
    reader.at = max(post_header_size, _QUERY_HEADER_SIZE_BEFORE_5_0)
    status = parse_status(reader.take(status_size), flavor)
    detail["schema"] = decode_text(reader.take(schema_size), None)
    reader.take(1)
    detail["sql"] = decode_statement(reader.rest(), status.character_set_client)
    if status != Status():
        detail["status"] = present_variables(status)
    return detail


def present_variables(status: Status) -> Detail:
    """Return the status variables that are present, and `is_complete` only if it is false."""
    values = {name: getattr(status, name) for name in Status.__slots__}
    return {
        name: value for name, value in values.items() if value is not None and (name, value) != ("is_complete", True)
    }


def describe_execute_load_query(body: bytes, post_header_size: int, flavor: str) -> Detail:
    """Describe a LOAD DATA statement; its file name is at `file_name_start` to `file_name_end` of the text."""
    reader = Reader(body)
    reader.take(_QUERY_HEADER_SIZE)
    file_id, start, end, duplicates = reader.number(4), reader.number(4), reader.number(4), reader.byte()
    return {
        **describe_query(body, post_header_size, flavor),
        "file_id": file_id,
        "file_name_start": start,
        "file_name_end": end,
        "duplicates": {0: "error", 1: "ignore", 2: "replace"}.get(duplicates, str(duplicates)),
    }


# --- variables ---

_INTVAR_NAMES: Final = {1: "LAST_INSERT_ID", 2: "INSERT_ID"}
_VALUE_TYPES: Final = {0: "string", 1: "real", 2: "integer", 3: "row", 4: "decimal"}
_STRING, _REAL, _INTEGER, _DECIMAL = 0, 1, 2, 4
_UNSIGNED_FLAG: Final = 1


def describe_intvar(body: bytes) -> Detail:
    """Describe the value that LAST_INSERT_ID() or an AUTO_INCREMENT column takes in the next statement."""
    reader = Reader(body)
    kind = reader.byte()
    return {"variable": _INTVAR_NAMES.get(kind, "INVALID_INT"), "value": reader.number(8)}


def intvar_statement(body: bytes) -> str:
    """Return `SET INSERT_ID=7`. The number is unsigned; the servers' tools print numbers above 2^63 as negative."""
    return "SET {variable}={value}".format(**describe_intvar(body))


def describe_rand(body: bytes) -> Detail:
    """Describe the seeds of RAND() in the next statement."""
    reader = Reader(body)
    return {"seed1": reader.number(8), "seed2": reader.number(8)}


def rand_statement(body: bytes) -> str:
    """Return `SET @@RAND_SEED1=1, @@RAND_SEED2=2`."""
    return "SET @@RAND_SEED1={seed1}, @@RAND_SEED2={seed2}".format(**describe_rand(body))


def describe_user_var(body: bytes) -> Detail:
    """Describe the value that a user variable has in the next statement.

    `value` is None for NULL, text for a string in a known character set, hex for other strings; numbers are text too.
    """
    name, kind, collation, value, flags = _user_var(body)
    if kind is None:
        return {"name": name, "value": None}
    detail: Detail = {"name": name, "type": _VALUE_TYPES[kind], "value": _value_text(kind, value, flags)}
    if kind == _STRING:
        charset = charset_of(collation)
        is_text = charset is not None and charset != BINARY
        detail |= {
            "charset": charset or str(collation),
            "collation": collation_names().get(collation),
            "value": decode_text(value, charset) if is_text else f"0x{value.hex().upper()}",
        }
    if kind == _INTEGER:
        detail["is_unsigned"] = bool(flags & _UNSIGNED_FLAG)
    return detail


def user_var_statement(body: bytes) -> str:
    """Return ``SET @`name`:=value``; a string is written as an introducer, hex and its collation.

    Reals have all their digits; the servers' tools print fourteen. COLLATE is omitted for ids that MySQL and MariaDB
    name differently.
    """
    name, kind, collation, value, flags = _user_var(body)
    quoted = "`" + name.replace("`", "``") + "`"
    if kind is None:
        return f"SET @{quoted}:=NULL"
    if kind != _STRING:
        return f"SET @{quoted}:={_value_text(kind, value, flags)}"
    charset, collation_name = charset_of(collation), collation_names().get(collation)
    if charset is None:
        raise MalformedEventError(f"no server has a collation {collation}")
    clause = f" COLLATE `{collation_name}`" if collation_name else ""
    return f"SET @{quoted}:=_{charset} X'{value.hex().upper()}'{clause}"


def _user_var(body: bytes) -> tuple[str, int | None, int, bytes, int]:
    """Return name, type (None for NULL), collation, value and flags; old servers wrote no flags."""
    reader = Reader(body)
    name = decode_text(reader.take(reader.number(4)), None)
    if reader.byte():
        return name, None, 0, b"", 0
    kind = reader.byte()
    if kind not in (_STRING, _REAL, _INTEGER, _DECIMAL):
        raise MalformedEventError(f"a variable of type {kind}")
    collation = reader.number(4)
    value = reader.take(reader.number(4))
    return name, kind, collation, value, reader.byte() if reader.left else 0


def _value_text(kind: int, value: bytes, flags: int) -> str:
    reader = Reader(value)
    if kind == _REAL:
        (real,) = struct.unpack("<d", reader.take(8))
        return repr(real)
    if kind == _INTEGER:
        return str(int.from_bytes(reader.take(8), "little", signed=not flags & _UNSIGNED_FLAG))
    if kind == _DECIMAL:
        precision, scale = reader.byte(), reader.byte()
        return _decimal_text(reader, precision, scale)
    return ""


_DIGIT_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def _decimal_text(reader: Reader, precision: int, scale: int) -> str:
    """Return the text of a packed DECIMAL.

    Nine digits take four bytes, the rest of either side fewer. The bytes of negative numbers are inverted. Source:
    server, strings/decimal.cc, `bin2decimal`.
    """
    if not scale <= precision <= 65:
        raise MalformedEventError(f"no decimal has {precision} digits, {scale} of them behind the point")
    whole = precision - scale
    groups = [whole % 9] * bool(whole % 9) + [9] * (whole // 9) + [9] * (scale // 9) + [scale % 9] * bool(scale % 9)
    data = bytearray(reader.take(sum(_DIGIT_BYTES[digits] for digits in groups)))
    if not data:
        return "0"
    is_negative = not data[0] & 0x80
    data[0] ^= 0x80
    packed = Reader(bytes(byte ^ 0xFF for byte in data) if is_negative else bytes(data))
    digits = "".join(
        str(int.from_bytes(packed.take(_DIGIT_BYTES[size]), "big")).rjust(size, "0")[-size:] for size in groups
    )
    text = (digits[:whole].lstrip("0") or "0") + (f".{digits[whole:]}" if scale else "")
    return f"-{text}" if is_negative else text


# --- LOAD DATA before MySQL 5.0.3 ---

_CLAUSES: Final = ("field_term", "enclosed", "line_term", "line_start", "escaped")
_OPTIONALLY_ENCLOSED, _REPLACE, _IGNORE = 2, 4, 8
_ESCAPES: Final = {0: "\\0", 8: "\\b", 9: "\\t", 10: "\\n", 13: "\\r", 39: "\\'", 92: "\\\\"}


def describe_load(code: int, body: bytes) -> Detail:
    """Describe LOAD, NEW_LOAD, or the head of a CREATE_FILE: the clauses of a LOAD DATA statement.

    NEW_LOAD and CREATE_FILE contain the size and the text of each clause. LOAD contains one byte for each clause, and
    bits that mark the empty clauses. In CREATE_FILE the first block of the file follows.
    """
    reader = Reader(body)
    detail: Detail = {"thread_id": reader.number(4), "seconds": reader.number(4), "skipped_lines": reader.number(4)}
    table_size, schema_size, column_count = reader.byte(), reader.byte(), reader.number(4)
    if code == CREATE_FILE:
        detail["file_id"] = reader.number(4)
    clauses, options = _clauses(reader, one_byte_each=code == LOAD)
    columns = [_zero_ended(reader, size) for size in reader.take(column_count)]
    detail |= {
        "table": _zero_ended(reader, table_size),
        "schema": _zero_ended(reader, schema_size),
        "file_name": decode_text(reader.until_zero() if 0 in reader.data[reader.at :] else reader.rest(), None),
        "duplicates": "replace" if options & _REPLACE else "ignore" if options & _IGNORE else "error",
        "is_optionally_enclosed": bool(options & _OPTIONALLY_ENCLOSED),
        **dict(zip(_CLAUSES, clauses, strict=True)),
        "columns": columns,
    }
    if code == CREATE_FILE:
        detail["block_size"] = reader.left
    return detail


def load_statement(code: int, body: bytes) -> str:
    """Return the LOAD DATA statement of a LOAD, NEW_LOAD or CREATE_FILE event."""
    load = describe_load(code, body)
    keyword = {"replace": "REPLACE ", "ignore": "IGNORE "}.get(load["duplicates"], "")
    quoted = {name: _quoted(load[name]) for name in ("file_name", *_CLAUSES)}
    text = (
        f"LOAD DATA INFILE {quoted['file_name']} {keyword}INTO TABLE `{load['table']}`"
        f" FIELDS TERMINATED BY {quoted['field_term']}{' OPTIONALLY' * load['is_optionally_enclosed']}"
        f" ENCLOSED BY {quoted['enclosed']} ESCAPED BY {quoted['escaped']}"
        f" LINES TERMINATED BY {quoted['line_term']} STARTING BY {quoted['line_start']}"
    )
    if load["skipped_lines"]:
        text += f" IGNORE {load['skipped_lines']} LINES"
    if load["columns"]:
        text += " (" + ",".join(f"`{column}`" for column in load["columns"]) + ")"
    return text


def _clauses(reader: Reader, *, one_byte_each: bool) -> tuple[list[str], int]:
    """Return the five clauses of `_CLAUSES`, and the option bits."""
    if not one_byte_each:
        return [decode_text(reader.take(reader.byte()), "latin1") for _ in _CLAUSES], reader.byte()
    clauses, options, empty = reader.take(len(_CLAUSES)), reader.byte(), reader.byte()
    texts = [decode_text(clauses[number : number + 1], "latin1") for number in range(len(_CLAUSES))]
    return ["" if empty >> number & 1 else text for number, text in enumerate(texts)], options


def _zero_ended(reader: Reader, size: int) -> str:
    return decode_text(reader.take(size + 1)[:-1], None)


def _quoted(text: str) -> str:
    return "'" + text.translate(_ESCAPES) + "'"


def describe_block(body: bytes) -> Detail:
    """Describe a block of a file (APPEND_BLOCK, BEGIN_LOAD_QUERY), or its use or removal (EXEC_LOAD, DELETE_FILE)."""
    reader = Reader(body)
    return {"file_id": reader.number(4), "block_size": reader.left}
