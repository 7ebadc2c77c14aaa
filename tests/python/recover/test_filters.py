"""Filters select by the type of a column, in both images, by old and new keys; bad input is explained."""

import duckdb
import pytest
from sqlglot import exp

from ingest.errors import UsageError
from recover.selection import catalog
from recover.selection.catalog import TableVersion, UnknownNameError
from recover.selection.condition import select
from recover.selection.filters import Filters, key_parts, key_text
from recover.selection.gtids import gtid_ranges
from recover.sources.log import Log
from tests.support.recover.changes import numbers, row_changes, table
from tests.support.recover.filtered_types import TYPES


@pytest.mark.parametrize(("type_name", "values", "typed"), TYPES, ids=[one[0] for one in TYPES])
def test_values_compare_by_the_type_of_their_column(type_name: str, values: list[str], typed: list[str]) -> None:
    version = table("a.t", ("id", "int"), ("c", type_name))
    changes = [(version, None, {"id": str(n), "c": value}) for n, value in enumerate(values)]
    connection = row_changes(*changes, (version, None, {"id": "99", "c": None}))
    for place, text in enumerate(typed):
        expected = {
            "=": [place],
            "!=": [n for n in range(len(values)) if n != place],
            "<": list(range(place)),
            "<=": list(range(place + 1)),
            ">": list(range(place + 1, len(values))),
            ">=": list(range(place, len(values))),
        }
        for operator, found in expected.items():
            assert numbers(connection, [version], where=[f"c {operator} {text}"]) == found, f"{operator} {text}"
            turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
            assert numbers(connection, [version], where=[f"{text} {turned} c"]) == found
        assert numbers(connection, [version], where=[f"not c = {text}"]) == expected["!="]
    assert numbers(connection, [version], where=["c is null"]) == [len(values)]
    assert numbers(connection, [version], where=["c <=> null"]) == [len(values)]
    assert numbers(connection, [version], where=["c is not null"]) == list(range(len(values)))
    between = f"c between {typed[0]} and {typed[-1]}"
    assert numbers(connection, [version], where=[between]) == list(range(len(values)))
    assert numbers(connection, [version], where=[f"c in ({typed[0]}, {typed[1]})"]) == [0, 1]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("n > 1.004", [2]),
        ("n >= 1.001", [2]),
        ("n < 1.001", [0, 1]),
        ("n <= 0.999", [0]),
        ("n = 1.001", []),
        ("n != 1.001", [0, 1, 2]),
        ("not n = 1.001", [0, 1, 2]),
        ("n < 123456789012345678901234567890.12", [0, 1, 2]),
        ("n < 1e60", [0, 1, 2]),
        ("n > 1e60", []),
        ("n > -1e60", [0, 1, 2]),
        ("n <= -1e60", []),
    ],
)
def test_a_number_with_more_digits_than_its_column_keeps_its_meaning(condition: str, found: list[int]) -> None:
    version = table("a.t", ("id", "int"), ("n", "decimal(9,2)"))
    changes = [(version, None, {"id": str(n), "n": text}) for n, text in enumerate(["0.00", "1.00", "2.00"])]
    connection = row_changes(*changes, (version, None, {"id": "9", "n": None}))
    assert numbers(connection, [version], where=[condition]) == found


def test_a_condition_is_about_one_image() -> None:
    version = table("a.t", ("id", "int"), ("s", "varchar(9)"), ("n", "int"), ("m", "bigint"))
    connection = row_changes(
        (version, None, {"id": "1", "s": "new", "n": "5", "m": "4"}),
        (version, {"id": "1", "s": "new", "n": "5", "m": "4"}, {"id": "1", "s": "paid", "n": "6", "m": "9"}),
        (version, {"id": "1", "s": "paid", "n": "6", "m": None}, None),
    )
    assert numbers(connection, [version], where=["s = 'paid'"]) == [1, 2]
    assert numbers(connection, [version], where=["before.s = 'new'"]) == [1]
    assert numbers(connection, [version], where=["AFTER.S = 'new'"]) == [0]
    assert numbers(connection, [version], where=["before.s = 'new' and after.n > before.n"]) == [1]
    assert numbers(connection, [version], where=["s = 'new' and n = 6"]) == []
    assert numbers(connection, [version], where=["n > m"]) == [0, 1]
    assert numbers(connection, [version], where=["before.m is null"]) == [2]
    assert numbers(connection, [version], where=["s = 'new'", "s = 'paid'"]) == [1]


def test_a_column_that_a_partial_image_lacks_is_not_null() -> None:
    version = table("a.t", ("id", "int"), ("s", "varchar(9)"), ("n", "int"))
    connection = row_changes(
        (version, {"id": "1", "n": "1"}, {"id": "1", "n": None}),
    )
    assert numbers(connection, [version], where=["after.s is null"]) == []
    assert numbers(connection, [version], where=["after.s is not null"]) == []
    assert numbers(connection, [version], where=["after.s <=> 'x'"]) == []
    assert numbers(connection, [version], where=["not after.s <=> 'x'"]) == []
    assert numbers(connection, [version], where=["after.n is null"]) == [0]


def test_patterns_and_odd_texts() -> None:
    version = table("a.t", ("id", "int"), ("s", "varchar(9)"), ("order", "varchar(9)"))
    texts = ["100%", "100x", "a\\b", "it's", "é", 'quo"te', "line\nbreak"]
    connection = row_changes(*((version, None, {"id": str(n), "s": s, "order": s}) for n, s in enumerate(texts)))
    assert numbers(connection, [version], where=["s like '100%'"]) == [0, 1]
    assert numbers(connection, [version], where=[r"s like '100\\%'"]) == [0]
    assert numbers(connection, [version], where=["s not like '%e%'"]) == [0, 1, 2, 3, 4]
    for place, text in enumerate(texts):
        quoted = text.replace("\\", "\\\\").replace("'", "''")
        assert numbers(connection, [version], where=[f"`order` = '{quoted}'"]) == [place]


def test_versions_of_a_column_compare_by_their_own_types() -> None:
    narrow = table("a.t", ("id", "int"), ("c", "varchar(9)"), version="v1")
    wide = table("a.t", ("id", "int"), ("C", "int"), version="v2")
    without = table("a.t", ("id", "int"), version="v3")
    connection = row_changes(
        (narrow, None, {"id": "1", "c": "10"}), (wide, None, {"id": "2", "C": "10"}), (without, None, {"id": "3"})
    )
    versions = [narrow, wide, without]
    assert numbers(connection, versions, where=["c > 9"]) == [1]
    assert numbers(connection, versions, where=["c = '10'"]) == [0, 1]
    assert numbers(connection, versions, where=["c = '10' or id = 3"]) == [0, 1]


@pytest.mark.parametrize("connector", ["or", "and"])
def test_a_condition_may_have_many_terms(connector: str) -> None:
    version = table("a.t", ("id", "int"), ("s", "varchar(9)"))
    connection = row_changes((version, None, {"id": "1", "s": "299"}), (version, None, {"id": "2", "s": "x"}))
    terms = [f"s {'=' if connector == 'or' else '!='} '{number}'" for number in range(1200)]
    assert numbers(connection, [version], where=[f" {connector} ".join(terms)]) == [0 if connector == "or" else 1]


@pytest.mark.parametrize(
    "text", ["(" * 400 + "id = 1" + ")" * 400, "not " * 60 + "id = 1", "(id = 1 or " * 31 + "id = 2" + ")" * 31]
)
def test_a_condition_with_too_many_parts_within_each_other_is_explained(text: str) -> None:
    with pytest.raises(UsageError, match=r"…' has more than 30 parts within each other\. Leave out parentheses"):
        select(Filters.of(where=[text]), [ORDERS])


def test_a_condition_may_have_some_parts_within_each_other() -> None:
    version = table("a.t", ("id", "int"))
    connection = row_changes(*((version, None, {"id": str(number)}) for number in range(30)))
    nested = "(id = 1 or not (id != 2 and " * 8 + "id = 0" + "))" * 8
    for text, found in (("(" * 25 + "id = 1" + ")" * 25, [1]), ("not " * 24 + "id = 1", [1]), (nested, [0, 1, 2])):
        assert numbers(connection, [version], where=[text]) == found


NARROW = table("a.t", ("id", "int"), ("c", "enum('new','paid')"), version="v1")
WIDE = table("a.t", ("id", "int"), ("c", "enum('new','refunded')"), version="v2")
INTEGER = table("a.t", ("id", "int"), ("c", "int"), version="v3")
TEXT = table("a.t", ("id", "int"), ("c", "varchar(9)"), version="v4")
BYTES = table("a.u", ("id", "int"), ("c", "varbinary(9)"), version="v5")
UNKNOWN = "neither true nor false."
ENDS = (">= 'A'", "<= 'AZ'")
DAY = table("a.u", ("id", "int"), ("c", "date"), version="v6")


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("c = 'refunded'", [4]),
        ("'refunded' = c", [4]),
        ("c <=> 'refunded'", [4]),
        ("not c <=> 'refunded'", [0, 1, 2, 3, 5]),
        ("c != 'refunded'", [0, 1, 3]),
        ("not c = 'refunded'", [0, 1, 3]),
        ("not (c != 'refunded')", [4]),
        ("c in ('refunded', 'paid')", [1, 4]),
        ("c not in ('refunded', 'paid')", [0, 3]),
        ("c = 'refunded' or c = 'paid'", [1, 4]),
        ("c = 'refunded' or id = 0", [0, 4]),
        ("c != 'refunded' and id != 0", [1, 3]),
        ("c is null or c = 'refunded'", [2, 4, 5]),
    ],
)
def test_a_label_that_only_some_versions_have_hides_no_rows(condition: str, found: list[int]) -> None:
    rows = [(NARROW, "new"), (NARROW, "paid"), (NARROW, None), (WIDE, "new"), (WIDE, "refunded"), (WIDE, None)]
    changes = row_changes(*((version, None, {"id": str(id), "c": c}) for id, (version, c) in enumerate(rows)))
    assert numbers(changes, [NARROW, WIDE], where=[condition]) == found
    # Each value of the column then is another one, so there is nothing to tell.
    assert select(Filters.of(where=[condition]), [NARROW, WIDE]).notes == ()


@pytest.mark.parametrize(
    ("condition", "found", "notes"),
    [
        ("c = 'A1'", [3], ["where c is int in a.t, no value equals 'A1'."]),
        ("c != 'A1'", [0, 1, 4], ["where c is int in a.t, no value equals 'A1'."]),
        ("c in ('A1', '7')", [0, 3], ["where c is int in a.t, no value equals 'A1'."]),
        ("c = '7'", [0], []),
        ("c = 7", [0], []),
        ("c > 'A'", [3, 4], ["where c is int in a.t, c > 'A' is neither true nor false."]),
        ("not c > 'A'", [], ["where c is int in a.t, c > 'A' is neither true nor false."]),
        ("c > 'A' or id = 0", [0, 3, 4], ["where c is int in a.t, c > 'A' is neither true nor false."]),
        ("c between 'A' and 'AZ'", [3], [f"where c is int in a.t, c {one} is neither true nor false." for one in ENDS]),
        ("c > 6", [0, 1, 3, 4], ["where c is varchar(9) in a.t, c > 6 compares texts: '10' is less than '9'."]),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_a_former_type_hides_no_rows(
    condition: str, found: list[int], notes: list[str]
) -> None:
    rows = [(INTEGER, "7"), (INTEGER, "10"), (INTEGER, None), (TEXT, "A1"), (TEXT, "B")]
    changes = row_changes(*((version, None, {"id": str(id), "c": c}) for id, (version, c) in enumerate(rows)))
    assert numbers(changes, [INTEGER, TEXT], where=[condition]) == found
    assert list(select(Filters.of(where=[condition]), [INTEGER, TEXT]).notes) == notes


@pytest.mark.parametrize(
    ("condition", "found", "note"),
    [
        ("c = '2026/11/17'", [0], "where c is int in a.t or date in a.u, no value equals '2026/11/17'."),
        ("c like '2026%'", [0, 1], "where c is varbinary(9) in a.u, c LIKE '2026%' is neither true nor false."),
        ("c = id", [2], f"where c is varbinary(9) in a.u or varchar(9) in a.t or date in a.u, c = id is {UNKNOWN}"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_for_some_tables_is_told(condition: str, found: list[int], note: str) -> None:
    rows = [(TEXT, "2026/11/17"), (DAY, "2026-11-17"), (INTEGER, "2"), (BYTES, "0x32303236")]
    changes = row_changes(*((version, None, {"id": str(id), "c": c}) for id, (version, c) in enumerate(rows)))
    versions = [BYTES, TEXT, INTEGER, DAY]
    assert numbers(changes, versions, where=[condition]) == found
    assert select(Filters.of(where=[condition]), versions).notes == (note,)


def test_a_part_that_fits_no_version_is_refused() -> None:
    versions = [NARROW, WIDE, INTEGER]
    for text in ("c = 'payd'", "c = 'paid' or c = 'payd'", "c in ('paid', 'refunded', 'payd')"):
        with pytest.raises(UsageError, match="Column c has no label 'payd'"):
            select(Filters.of(where=[text]), versions)
    with pytest.raises(UsageError, match="is not supported: column c is varbinary"):
        select(Filters.of(where=["c like 'a%'"]), [BYTES])


def test_notes_of_many_values_and_tables_are_cut() -> None:
    tables = [table(f"a.t{number}", ("id", "int"), ("c", "int")) for number in range(5)]
    values = ", ".join(f"'x{number}'" for number in range(20))
    notes = select(Filters.of(where=[f"c in ({values})"]), [*tables, TEXT]).notes
    assert notes[0] == "where c is int in a.t0 or int in a.t1 or int in a.t2 (and 2 more), no value equals 'x0'."
    assert notes[5:] == ("the same is true of 15 more comparisons.",)


@pytest.mark.parametrize(
    ("type_name", "number", "hint"),
    [
        ("enum('new','paid')", "2", "Quote the label that you mean, such as 'new'."),
        ("enum('0','1')", "1", "Quote the label that you mean, such as '0'."),
        ("set('a','b')", "3", "Quote the label that you mean, such as 'a'."),
        ("varchar(9)", "01234", "Quote the text that you mean: '01234'."),
        ("varchar(9)", "-1e3", "Quote the text that you mean: '-1e3'."),
        ("char(4)", "true", "Quote the text that you mean: 'TRUE'."),
    ],
)
def test_a_number_without_quotes_that_may_mean_another_text_is_refused(type_name: str, number: str, hint: str) -> None:
    versions = [table("a.t", ("id", "int"), ("c", type_name), version="v1"), INTEGER]
    for text in (f"c = {number}", f"{number} < c", f"c in ('x', {number})", f"not c between 1 and {number}"):
        with pytest.raises(UsageError, match=r"is a number without quotes, and column c is \w+\(?") as caught:
            select(Filters.of(where=[text]), versions)
        assert caught.value.hint is not None and caught.value.hint == hint
    unknown = table("a.t", ("id", "int"), ("c", type_name.split("(")[0]))
    if type_name.startswith(("enum", "set")):
        # Without labels the log has their numbers.
        changes = row_changes((unknown, None, {"id": "1", "c": number}))
        assert numbers(changes, [unknown], where=[f"c = {number}"]) == [0]


ORDERS = table("shop.orders", ("id", "bigint unsigned"), ("status", "enum('new','paid')"))
LINES = table("shop.lines", ("order_id", "int"), ("part", "varchar(20)"), key=("order_id", "part"))
DAYS = table("shop.days", ("day", "datetime(3)"), key=("day",))
NOTES = table("shop.notes", ("text", "varchar(9)"), key=())


@pytest.fixture(scope="module")
def shop() -> object:
    """Changes of tables with keys of several kinds."""
    return row_changes(
        (ORDERS, None, {"id": "7", "status": "new"}),
        (ORDERS, {"id": "7", "status": "new"}, {"id": "8", "status": "new"}),
        (ORDERS, {"id": "8", "status": "new"}, None),
        (LINES, None, {"order_id": "7", "part": "a|b"}),
        (LINES, None, {"order_id": "7", "part": "c\\d=e"}),
        (LINES, None, {"order_id": "10", "part": "a"}),
        (DAYS, None, {"day": "2026-11-17 00:00:00.000"}),
        (NOTES, None, {"text": "x"}),
    )


ALL = [ORDERS, LINES, DAYS, NOTES]


@pytest.mark.parametrize(
    ("table_name", "keys", "found"),
    [
        ("orders", ["7"], [0, 1]),
        ("orders", ["8"], [1, 2]),
        ("orders", ["007", "id=8"], [0, 1, 2]),
        ("orders", ["9"], []),
        ("lines", [r"7|a\|b"], [3]),
        ("lines", [r"7|c\\d=e"], [4]),
        ("lines", [r"part=c\\d=e|order_id=7"], [4]),
        ("lines", ["ORDER_ID=7"], [3, 4]),
        ("lines", ["10|a", "part=a"], [5]),
        ("days", ["2026-11-17"], [6]),
        ("*", ["8"], [1, 2]),
    ],
)
def test_a_row_is_found_by_its_old_and_its_new_key(shop, table_name: str, keys: list[str], found: list[int]) -> None:  # type: ignore[no-untyped-def]
    assert numbers(shop, ALL, tables=[table_name], keys=keys) == found


@pytest.mark.parametrize("keys", [["7"], ["8"], ["7", "8"], ["id=007"]])
def test_the_scans_of_a_key_are_disjoint_and_together_its_condition(shop, keys: list[str]) -> None:  # type: ignore[no-untyped-def]
    selection = select(Filters.of(tables=["orders"], keys=keys), ALL)
    assert len(selection.alternatives) == 2
    whole = exp.select("number").from_("binloom.row_changes").where(selection.condition)
    scanned = sorted(row[0] for row in shop.execute(selection.sql("number")).fetchall())
    assert scanned == sorted(row[0] for row in shop.execute(whole.sql("duckdb")).fetchall())
    assert len(scanned) == len(set(scanned)) > 1


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"tables": ["orders"], "key_from": "8"}, [1, 2]),
        ({"tables": ["orders"], "key_to": "7"}, [0, 1]),
        ({"tables": ["lines"], "key_from": "7|b", "key_to": "9"}, [4]),
        ({"tables": ["lines"], "key_to": "7"}, [3, 4]),
        ({"tables": ["lines"], "key_from": "7|b", "key_to": "7"}, [4]),
        ({"tables": ["lines"], "key_from": "7", "key_to": "7|b"}, [3]),
        ({"tables": ["orders"], "key_from": "8", "key_to": "8.0"}, [1, 2]),
        ({"tables": ["orders", "lines"], "key_from": "9", "key_to": "10"}, [5]),
        ({"tables": ["lines"], "key_from": "8"}, [5]),
        ({"tables": ["shop.o*", "days"]}, [0, 1, 2, 6]),
        ({"schemas": ["sh*"], "types": ["delete"]}, [2]),
        ({"types": ["insert,delete"], "tables": ["orders"]}, [0, 2]),
        ({"changed": ["ID"]}, [1]),
        ({"since": "2026-11-17 08:05"}, [5, 6, 7]),
        ({"until": "2026-11-17T09:01+01:00"}, [0]),
        ({"threads": [2, 3]}, [2, 3]),
        ({"gtids": ["11111111-1111-1111-1111-111111111111:1-2:5"]}, [0, 1, 4]),
        ({"gtids": ["11111111-1111-1111-1111-111111111111:7-900"]}, [6, 7]),
        ({"transactions": ["11111111-1111-1111-1111-111111111111:3"]}, [2]),
    ],
)
def test_other_filters(shop, filters: dict[str, object], found: list[int]) -> None:  # type: ignore[no-untyped-def]
    assert numbers(shop, ALL, **filters) == found


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"tables": ["shop.order"]}, "There is no table 'shop.order'. The nearest names are shop.orders, "),
        ({"tables": ["ordrs"]}, "There is no table 'ordrs'. The nearest name is orders."),
        ({"sources": ["t"]}, "There is no source 't'. There are s."),
        ({"schemas": ["shp"]}, "There is no schema 'shp'. The nearest name is shop."),
        (
            {"changed": ["statuss"], "tables": ["orders"]},
            "no column 'statuss' in shop.orders. The nearest name is status.",
        ),
        ({"where": ["status = 'payed'"]}, "Column status has no label 'payed'. The nearest name is paid."),
        ({"where": ["part = 1 and status = 'new'"]}, "No selected table has all of the columns part, status."),
        ({"where": ["id > 'x'"]}, "'x' is not a number, and column id is bigint unsigned. Give a number for id."),
        ({"where": ["day > 'x'"]}, "'x' is not a date or time"),
        ({"where": ["status"]}, "status in 'status' is not supported"),
        ({"where": ["status = null"]}, "compares with NULL, which is never true. Write IS NULL"),
        ({"where": ["exists(select 1)"]}, "is not supported"),
        ({"where": ["status = (select 1)"]}, "is not supported"),
        ({"where": ["orders.status = 'new'"]}, "is not a column of a row image"),
        ({"where": ["status ="]}, "'status =' is not a condition"),
        ({"where": ["id = 1; drop table x"]}, "is not a condition"),
        ({"keys": ["abc"], "tables": ["orders"]}, "'abc' is not a number, and column id is bigint unsigned."),
        ({"keys": ["7"], "tables": ["lines"]}, "which has 2 columns. Give the values in the order order_id|part"),
        ({"keys": ["7"], "tables": ["notes"]}, "shop.notes has no primary key. Select its rows by --where"),
        ({"keys": ["7"]}, "A key belongs to a table. Give --table"),
        ({"key_from": "1|2", "tables": ["orders"]}, "which has 1 column. Give"),
        ({"key_from": "10", "key_to": "9", "tables": ["orders"]}, "--key-from 10 is after --key-to 9, so no key is"),
        ({"key_from": "7|b", "key_to": "7|a", "tables": ["lines"]}, "is after --key-to 7|a, so no key is in the range"),
        ({"key_from": "2026-11-18", "key_to": "2026-11-17", "tables": ["days"]}, "Give the first key of the range"),
        ({"gtids": ["5"]}, "'5' is neither a GTID nor a set of GTIDs. MySQL writes"),
        ({"gtids": ["11111111-1111-1111-1111-111111111111:0"]}, "is neither a GTID"),
        ({"change_ids": ["s/0/binlog.000001/4"]}, "'s/0/binlog.000001/4' does not name a row change. Give a change_id"),
        ({"change_ids": ["s/0/binlog.000001/4/0/x"]}, "does not name a row change. Give a change_id as"),
        ({"transactions": ["x"]}, "'x' does not name a transaction. Give a GTID, file:position"),
        ({"from_pos": 4}, "Give --file NAME with --from-pos"),
        ({"since": "yesterday"}, "--since 'yesterday' is not a time. Give"),
        ({"since": "2026-11-18", "until": "2026-11-17"}, "is not before --until"),
        ({"types": ["truncate"]}, "'TRUNCATE' is not a type of a row change. The types are INSERT"),
    ],
)
def test_bad_input_is_explained(filters: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        select(Filters.of(**filters), ALL)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_a_log_without_tables_says_what_to_do() -> None:
    with pytest.raises(UnknownNameError, match="The log has none: run `binloom ingest`"):
        select(Filters.of(tables=["t"]), list[TableVersion]())


def test_keys_are_read_as_they_are_written() -> None:
    for values in (["a"], ["a|b", "c\\"], ["\\|", ""], ["", ""], ["\\\\", "x"]):
        assert list(key_parts(key_text(values))) == values
    assert list(key_parts("C:\\x|y")) == ["C:\\x", "y"]


def test_one_gtid_of_mariadb_is_one_transaction() -> None:
    assert [(one.first, one.last) for one in gtid_ranges("0-1-9, 0-1-11 to 0-1-12,1-2-3 to 4")] == [
        (9, 9),
        (11, 12),
        (3, 4),
    ]
    tagged = gtid_ranges("11111111-1111-1111-1111-111111111111:1:tag:2-3")
    assert [one.stem[-4:] for one in tagged] == ["111:", "tag:"]


def test_a_log_without_any_names_has_its_own_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "NO_NAMES", "Land some.")
    nothing = catalog.unknown_name("There is no table a.b.", "a.b", ())
    near = catalog.unknown_name("There is no table a.b.", "a.b", ("a.c",))
    connection = duckdb.connect()
    assert Log(connection, ()).unknown(nothing).hint == catalog.NO_NAMES_IN_FILES
    assert Log(connection, (), is_landed=True).unknown(nothing).hint == "Land some."
    damaged = Log(connection, (), (UsageError("A file is damaged.", hint="Copy it again."),))
    assert damaged.unknown(nothing).hint == "Copy it again."
    assert damaged.unknown(near).hint == near.hint
