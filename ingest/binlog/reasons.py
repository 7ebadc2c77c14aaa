"""Reasons why something was not decoded: the kernel's codes as words for people and tables."""

from typing import Final

from ingest.binlog.kernel import layout

REASONS: Final[dict[int, str]] = {
    layout.UNKNOWN_TYPE: "unknown_event_type",
    layout.NESTED_TYPE: "misplaced_event",
    layout.NO_TABLE_MAP: "no_table_map",
    layout.WIDTH_MISMATCH: "column_count_mismatch",
    layout.MALFORMED_EVENT: "malformed_event",
    layout.MALFORMED_ROW: "malformed_row",
    layout.BAD_VALUE: "undecodable_value",
    layout.UNSUPPORTED_COLUMN: "unsupported_column_type",
    layout.BAD_TABLE_MAP: "malformed_table_map",
    layout.VALUE_TOO_LARGE: "value_too_large",
    layout.BAD_CHECKSUM: "bad_checksum",
    layout.BAD_PAYLOAD: "malformed_payload",
    layout.INCIDENT: "incident",
    layout.ROWS_V0: "rows_without_metadata",
    layout.UNKNOWN_DIGITS: "unknown_fraction_digits",
    layout.BAD_FRAGMENTS: "malformed_fragments",
}

DETAILS: Final[dict[int, str]] = {
    layout.UNKNOWN_TYPE: "binloom knows the types of MySQL up to 9.7 and of MariaDB up to 12.3, and this is none of "
    "them",
    layout.NESTED_TYPE: "no server writes an event of this type inside a compressed one",
    layout.NO_TABLE_MAP: "no TABLE_MAP event of this statement names its table",
    layout.WIDTH_MISMATCH: "its column count is not that of its TABLE_MAP",
    layout.MALFORMED_EVENT: "its fields do not fit into its bytes",
    layout.MALFORMED_ROW: "the columns of the table do not fit into the bytes of the row; this row and those behind it "
    "are left out",
    layout.BAD_VALUE: "the bytes are no value of the column's type; the row is left out",
    layout.UNSUPPORTED_COLUMN: "the column's type or character set is not decoded; the rows of this event are left out",
    layout.BAD_TABLE_MAP: "its fields do not fit into its bytes",
    layout.VALUE_TOO_LARGE: "a statement or a row of more than 2 GiB of text cannot be held; it and the rows "
    "behind it are left out",
    layout.BAD_CHECKSUM: "its checksum does not match; it was skipped",
    layout.BAD_PAYLOAD: "its data cannot be decompressed to the announced size",
    layout.INCIDENT: "the server lost events here: changes are missing from this log",
    layout.ROWS_V0: "MySQL 5.1 before 5.1.18 logs rows without the sizes of their columns; add a schema snapshot that "
    "has the table as it was then: where it fits the bytes in one way only, the rows are decoded",
    layout.UNKNOWN_DIGITS: "MariaDB logs TIME, DATETIME and TIMESTAMP of this format without the digits of their "
    "fraction, and these rows can be read with one or without; a schema snapshot that has the table tells",
    layout.BAD_FRAGMENTS: "the fragments of a rows event are not all here in their order, or do not add up to one; "
    "its rows are left out",
}
