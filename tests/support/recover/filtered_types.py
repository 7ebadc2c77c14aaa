"""A column of each type, and conditions on it as a person types them."""

from typing import TYPE_CHECKING

from sqlglot import exp

from recover.selection.condition import select
from recover.selection.filters import Filters
from tests.support.recover.changes import row_changes, table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# One column of a type, its values in ascending order as the log shows them, and how a person may write each.
TYPES = [
    ("int", ["-10", "-9", "0", "9", "10", "100"], ["-10", "-9.0", "0", "09", "1e1", "'100'"]),
    (
        "bigint unsigned",
        ["9223372036854775808", "18446744073709551615"],
        ["9223372036854775808", "18446744073709551615"],
    ),
    ("decimal(12,2)", ["-1.50", "0.00", "1.50", "1.51", "10.00"], ["-1.5", "0", "1.500", "1.51", "10"]),
    ("float", ["-0.5", "0.1", "2.5", "10.0"], ["-0.5", "0.1", "2.5", "10"]),
    ("double", ["-1e300", "0.1", "1.7976931348623157e308"], ["-1e300", "0.1", "1.7976931348623157e308"]),
    ("date", ["0000-00-00", "2026-02-31", "2026-11-17"], ["'0000-00-00'", "'2026-02-31'", "'2026-11-17'"]),
    (
        "datetime",
        ["2026-11-17 00:00:00", "2026-11-17 09:30:00"],
        ["'2026-11-17'", "'2026-11-17 09:30'"],
    ),
    (
        "timestamp(3)",
        ["2026-11-17 09:30:00.001", "2026-11-17 09:30:00.500"],
        ["'2026-11-17T09:30:00.001'", "'2026-11-17 09:30:00.5'"],
    ),
    (
        "time(1)",
        ["-838:59:59.0", "-01:00:00.5", "00:00:00.0", "09:00:00.0", "100:00:00.0"],
        ["'-838:59:59'", "'-01:00:00.5'", "'00:00'", "'9:00:00'", "'100:00:00'"],
    ),
    ("year", ["0000", "1999", "2026"], ["0", "1999", "'2026'"]),
    ("bit(64)", ["0", "18446744073709551615"], ["0", "18446744073709551615"]),
    ("varbinary(9)", ["0x", "0x00", "0x41", "0xFF"], ["''", "x'00'", "'A'", "0xff"]),
    ("binary(3)", ["0x000000", "0x410000"], ["''", "'A'"]),
    ("varchar(9)", ["", "0x41", "10", "9", "a"], ["''", "'0x41'", "10", "'9'", "'a'"]),
]


def all_conditions() -> "tuple[DuckDBPyConnection, exp.Select]":
    """Return `binloom.row_changes` with a row for each value, and a query that has a column for each condition."""
    versions = [table(f"a.t{place}", ("id", "int"), ("c", one[0])) for place, one in enumerate(TYPES)]
    changes = [
        (version, None, {"id": str(place), "c": value})
        for version, (_, values, _) in zip(versions, TYPES, strict=True)
        for place, value in enumerate([*values, None])
    ]
    partial = [(version, None, {"id": "99"}) for version in versions]
    query = exp.select("number").from_("binloom.row_changes").order_by("number")
    for version, (_, _, typed) in zip(versions, TYPES, strict=True):
        texts = [*(f"c < {text}" for text in typed), f"c = {typed[1]}", f"c != {typed[0]}", "c is null"]
        for text in texts:
            condition = select(Filters(tables=(version.name,), where=(text,)), versions).condition
            query = query.select(exp.alias_(condition, f"{version.table_name} {text}", quoted=True))
    # These fit only some of the types.
    for text in ("c = 'a'", "c != 'a'", "c > 'a'", "not c > 'a'", "c like 'a%'"):
        condition = select(Filters(where=(text,)), versions).condition
        query = query.select(exp.alias_(condition, f"all {text}", quoted=True))
    return row_changes(*changes, *partial), query
