"""Expectations on the landed data, declared as code.

They check the raw tables. dbt tests check keys and invariants of the models, and model uncovered_bytes checks that
segments cover every byte of a file.
"""

from typing import Any

import great_expectations.expectations as gxe
from great_expectations import ExpectationSuite

SEGMENTS_SUITE = "landed_segments"
FILES_SUITE = "landed_files"
DEFINITIONS_SUITE = "landed_definitions"


def _none(column: str, why: str) -> Any:
    return gxe.ExpectColumnValuesToBeInSet(column=column, value_set=[0], description=why)


def _same(left: str, right: str, why: str) -> Any:
    return gxe.ExpectColumnPairValuesToBeEqual(column_A=left, column_B=right, description=why)


def suites() -> list[ExpectationSuite]:
    """Return all suites, in the order in which they run."""
    return [segments_suite(), files_suite(), definitions_suite()]


def segments_suite() -> ExpectationSuite:
    """Return the expectations on the rows of each landed segment."""
    return ExpectationSuite(
        name=SEGMENTS_SUITE,
        expectations=[
            _none("value_count_mismatches", "Both value arrays of every row have column_count elements"),
            _none("table_map_mismatches", "Every row has the column count of its table map"),
            _none("null_positions", "No row lacks a position"),
            _none("null_keys", "No row lacks its table, table map, server or timestamp"),
            _none("unknown_event_types", "Every row is an INSERT, UPDATE or DELETE"),
            _same("landed_row_events", "counted_row_events", "Every row that the decoder counted is in row_events"),
            _same(
                "landed_transactions",
                "counted_transactions",
                "Every transaction that the decoder counted is in transactions",
            ),
            gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A="first_start_pos",
                column_B="segment_start",
                or_equal=True,
                description="No row is before its segment",
            ),
            gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A="segment_end",
                column_B="last_end_pos",
                or_equal=True,
                description="No row is after its segment",
            ),
        ],
    )


def files_suite() -> ExpectationSuite:
    """Return the expectations on the bytes of each scanned file."""
    return ExpectationSuite(
        name=FILES_SUITE,
        expectations=[
            _none(
                "unexplained_uncovered_bytes",
                "Whole events cover every byte of a file, unless it is in use or a segment failed",
            ),
        ],
    )


def definitions_suite() -> ExpectationSuite:
    """Return the expectations on the descriptions of columns."""
    return ExpectationSuite(
        name=DEFINITIONS_SUITE,
        expectations=[
            _same(
                "described_columns",
                "counted_columns",
                "Table maps and snapshots describe every column of a table",
            ),
        ],
    )
