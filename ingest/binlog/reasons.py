"""Why something was not decoded: the kernel's codes as the words that people and tables get."""

from typing import Final

from ingest.binlog.kernel import layout

REASONS: Final[dict[int, str]] = {
    layout.UNKNOWN_TYPE: "unknown_event_type",
    layout.UNSUPPORTED_TYPE: "unsupported_event_type",
    layout.NO_TABLE_MAP: "no_table_map",
    layout.WIDTH_MISMATCH: "column_count_mismatch",
    layout.MALFORMED_EVENT: "malformed_event",
    layout.MALFORMED_ROW: "malformed_row",
    layout.BAD_VALUE: "undecodable_value",
    layout.UNSUPPORTED_COLUMN: "unsupported_column_type",
    layout.BAD_TABLE_MAP: "malformed_table_map",
    layout.VALUE_TOO_LARGE: "value_too_large",
}

DETAILS: Final[dict[int, str]] = {
    layout.UNKNOWN_TYPE: "neither MySQL nor MariaDB has an event of this type",
    layout.UNSUPPORTED_TYPE: "events of this type are not decoded",
    layout.NO_TABLE_MAP: "no TABLE_MAP event of this statement names its table",
    layout.WIDTH_MISMATCH: "its column count is not that of its TABLE_MAP",
    layout.MALFORMED_EVENT: "its fields do not fit into its bytes",
    layout.MALFORMED_ROW: "the columns of the table do not fit into the bytes of the row; this row and those behind it "
    "are left out",
    layout.BAD_VALUE: "the bytes are no value of the column's type; the row is left out",
    layout.UNSUPPORTED_COLUMN: "the column's type or character set is not decoded; the rows of this event are left out",
    layout.BAD_TABLE_MAP: "its fields do not fit into its bytes",
    layout.VALUE_TOO_LARGE: "a row of more than 2 GiB of text cannot be held; it and those behind it are left out",
}
