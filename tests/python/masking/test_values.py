"""Masked values, rows of tables and statements, without a warehouse."""

import hmac
import re

import numpy as np
import pyarrow as pa
import pytest

from ingest.binlog.batches import JSON_CHANGES, STATEMENTS
from ingest.ddl.actions import Action
from ingest.ddl.batches import statement_actions
from ingest.errors import UsageError
from ingest.masking.methods import Mask, Method, masked
from ingest.masking.rows import _masked_changes
from ingest.masking.rules import MaskedColumn, Masks, _Pattern
from ingest.masking.statement_texts import with_masked_texts
from ingest.masking.whole_tables import TableMasking
from ingest.sources.baselines.baseline_tables import BaselineTable

KEY = b"0123456789abcdef"


def hashed(text: str) -> str:
    """Return the hash of a value."""
    return hmac.digest(KEY, text.encode(), "sha256").hex()[:32]


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (Mask("t", "null"), [None, None, None, None]),
        (Mask("t", "drop"), [None, None, None, None]),
        (Mask("t", "partial", 0, 4), [None, "***", "***6789", "***🎁🎁🎁🎁"]),
        (Mask("t", "partial", 2, 1), [None, "***", "12***9", "🎁🎁***🎁"]),
        (Mask("t", "partial"), [None, "***", "***", "***"]),
        (Mask("t", "hash"), [None, *map(hashed, ("a", "123456789", "🎁" * 8))]),
    ],
)
def test_each_method(mask: Mask, expected: list[str | None]) -> None:
    values = pa.array([None, "a", "123456789", "🎁" * 8])
    assert masked(values, mask, KEY).to_pylist() == expected
    twice = masked(pa.concat_arrays([values, values]), mask, KEY).to_pylist()
    assert twice == expected * 2


def test_fingerprints_differ_where_masks_do() -> None:
    masks = [Mask("t", "hash"), Mask("t", "null"), Mask("t", "partial", 1, 2), Mask("t", "partial", 2, 1)]
    prints = [*(mask.fingerprint(KEY) for mask in masks), masks[0].fingerprint(b"another key of sixteen")]
    assert len(set(prints)) == len(prints)
    assert Mask("other", "null").fingerprint(KEY) == prints[1], "the name of the tag does not count"


def test_changes_of_masked_documents_have_no_paths_and_values() -> None:
    change = {"operation": "replace", "path": "$.a", "value": '"secret"'}
    changes = pa.array(
        [None, [{"column_ordinal": 1, **change}, {"column_ordinal": 2, **change}], [{"column_ordinal": 1, **change}]],
        JSON_CHANGES,
    )
    columns = {7: (MaskedColumn(1, "document", Mask("t", "hash")),)}
    shown = _masked_changes(changes, np.array([7, 7, 8], np.int32), columns).to_pylist()
    hidden = {"column_ordinal": 1, "operation": "replace", "path": "***", "value": "***"}
    assert shown == [None, [hidden, {"column_ordinal": 2, **change}], [{"column_ordinal": 1, **change}]]


def masks_for(**methods: Method) -> Masks:
    """Return masks of columns of any table."""
    anything = re.compile(".*")
    rules = ((_Pattern(*[anything] * 3, re.compile(name)), Mask(name, method)) for name, method in methods.items())
    return Masks(tuple(rules), KEY)


def test_rows_of_a_baseline() -> None:
    table = BaselineTable("shop", "t", ("a", "id", "b", "c"), ("int",) * 4, (1,))
    rows = pa.array([["x", "1", "p", "q"], [None, "2", "r", None]], pa.list_(pa.string()))
    masking = TableMasking(table, masks_for(a="drop", b="null", id="hash"))
    hashes = [hashed("1"), hashed("2")]
    assert masking.column_names == ["id", "b", "c"]
    assert masking.primary_key_ordinals == [0]
    assert masking.masked(rows.slice(0, 2)).to_pylist() == [[hashes[0], None, "q"], [hashes[1], None, None]]
    assert masking.masked(rows.slice(1, 1)).to_pylist() == [[hashes[1], None, None]]
    assert masking.record is not None
    assert [(one["column_name"], one["ordinal"], one["method"]) for one in masking.record] == [
        ("a", None, "drop"),
        ("id", 0, "hash"),
        ("b", 1, "null"),
    ]
    plain = TableMasking(table, masks_for(other="null"))
    assert plain.masked(rows) is rows
    assert plain.record is None
    for method in ("drop", "null", "partial"):
        with pytest.raises(UsageError, match=rf"Column id is in the primary key of shop\.t, .*{method}"):
            TableMasking(table, masks_for(id=method))


def row(text: str, kind: str = "QUERY") -> dict[str, object]:
    """Return a row of `statements`."""
    return {
        **dict.fromkeys(STATEMENTS.names),
        "start_pos": 4,
        "end_pos": 5,
        "payload_ordinal": 0,
        "kind": kind,
        "event_timestamp": 0,
        "sql_text": text,
        "default_schema": "shop",
    }


def texts(*statements: str, kind: str = "QUERY", key: bytes | None = KEY, version: str = "8.0.36") -> list[str]:
    """Return statements as they are landed."""
    batch = pa.RecordBatch.from_pylist([row(text, kind) for text in statements], STATEMENTS)
    found: list[str] = with_masked_texts(batch, "mysql", version, key)["sql_text"].to_pylist()
    return found


DDL = [
    "create table t (id int(11) unsigned, email varchar(200) default 'alice@x.y' comment 'mail of alice', "
    "s enum('a','b''c') default 'a', d decimal(10,2) default 12.50, key k (email(10))) auto_increment=4711 "
    "default charset='utf8mb4' comment='alice' "
    "/*!50100 partition by range (id) (partition p values less than (2000)) */",
    "alter table customers add column x int default 4711 after email -- alice",
    "alter table t modify c varchar(20) character set 'latin1' collate latin1_bin comment 'alice'",
    "create table a.b select 'alice' as x, 4711 as y from c where z = X'616C696365'",
    "create user 'alice'@'%' identified by 'alice'",
    "CREATE TRIGGER t BEFORE INSERT ON a FOR EACH ROW SET NEW.x = 'alice', NEW.engine = 'alice'",
    "rename table a to b, c to d",
    # Words of types are functions here, except of `double precision`.
    "create table t (`n` character varying(40) default (concat('alice', char(4711, 4711))), x double precision(8,2), "
    "m char(5) default char(4711), y int as (year(4711)) virtual, check (n <> char(4711) and not binary(4711)))",
    "create table t as select distinct char(4711) as c, cast('alice' as decimal(47110,2)) as d",
]


@pytest.mark.parametrize("statement", DDL)
def test_schema_changes_keep_their_effect_without_literals(statement: str) -> None:
    (text,) = texts(statement)
    for secret in ("alice", "4711", "2000", "12.50", "616C"):
        assert secret not in text
    assert statement_actions(row(text), "mysql", (8, 0, 36)) == statement_actions(row(statement), "mysql", (8, 0, 36))


@pytest.mark.parametrize(
    "statement",
    ["alter table customers add column ( alice 'bob", "create alice 'bob", "drop 'alice", "alter 'x' \x00'"],
)
def test_a_schema_change_that_is_not_understood_stays_one(statement: str) -> None:
    (text,) = texts(statement)
    assert "bob" not in text and "alice" not in text.replace("customers", "")
    before, after = (
        [_gist(one) for one in statement_actions(row(one), "mysql", (8, 0, 36))] for one in (statement, text)
    )
    assert {action for action, _ in after} == {"not_understood"}
    assert before == after


@pytest.mark.parametrize(
    "statement",
    [
        "create function f(n int) returns int language javascript as $$ return `alice's` $$",
        "create procedure p() language other as [[ it's alice ]]",
    ],
)
def test_a_routine_in_another_language_changes_no_table(statement: str) -> None:
    (text,) = texts(statement, version="9.7.4")
    assert "alice" not in text
    (action,) = statement_actions(row(text), "mysql", (9, 7, 4))
    assert (action.action, action.statement_type) == ("other", " ".join(statement.upper().split()[:2]))


@pytest.mark.parametrize("mode", ["ANSI_QUOTES", "NO_BACKSLASH_ESCAPES"])
@pytest.mark.parametrize("quoted", ['"alice"', r"'it\'alice'"])
def test_no_literal_is_left_by_a_statement_that_sets_the_mode(quoted: str, mode: str) -> None:
    text = f"set statement sql_mode={mode} for alter table t add a int comment {quoted}"
    batch = pa.RecordBatch.from_pylist([row(text) | {"sql_mode": mode}], STATEMENTS)
    (masked,) = with_masked_texts(batch, "mariadb", "10.11.18-MariaDB", KEY)["sql_text"].to_pylist()
    assert masked.startswith("ALTER TABLE `shop`.`t` (masked_")


def _gist(action: Action) -> tuple[str, str | None]:
    return action.action, action.table_name


def test_other_statements_become_a_digest() -> None:
    one, two, other = texts(
        "update t set a = 'it''s', b = \"x\\\"y\" where id = 1 /* 7 */",
        "update t  set a = '', b = \"\" where id = 0x1F",
        "update t set b = '' where id = 1",
    )
    assert one == two != other
    assert one.startswith("-- masked: UPDATE, digest ")
    assert texts("update t set a = ''", key=None) != texts("update t set a = ''")
    assert texts("alice@example.org has no verb")[0].startswith("-- masked: QUERY, digest ")
    assert texts("SET @`a`:=_utf8mb4 0x616C", kind="USER_VAR")[0].startswith("-- masked: SET, digest ")
    assert texts("# note: alice\nINSERT INTO t VALUES (1)", kind="ANNOTATE")[0].startswith("-- masked: INSERT")
