"""Whether statements show that a server tells names apart by their case."""

import pytest

from ingest.ddl.letter_case import lowered
from ingest.ddl.spelling import distinguishes_case
from ingest.ddl.statements import actions_of


@pytest.mark.parametrize(("name", "expected"), [
    ("ÄÖ Straße", "äö straße"), ("İıI", "iıi"), ("ẞ ſ", "ẞ ſ"), ("ΑΣ", "ασ"),
    # Pairs of letters that are younger than the tables of the servers.
    ("Ⴀ Ꭰ Ӏ Ȼ", "Ⴀ Ꭰ Ӏ Ȼ"), ("Ƞ Ϙ ϴ Ҋ Ӆ Ӊ Ӎ Ԁ Ԏ", "Ƞ Ϙ ϴ Ҋ Ӆ Ӊ Ӎ Ԁ Ԏ"),
])  # fmt: skip
def test_letters_are_those_of_the_servers(name: str, expected: str) -> None:
    assert lowered(name) == expected


BOTH = "create table s.orders (a int); create table s.Orders (b int)"


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("create table s.Orders (a int); alter table s.orders add b int; drop table s.ORDERS", False),
        (BOTH, True),
        ("create table s.orders (a int); drop table s.ORDERS; create table s.Orders (b int)", False),
        ("create table s.orders (a int); create table if not exists s.Orders (b int)", False),
        ("create table s.orders (a int); drop database S; create table s.Orders (b int)", False),
        ("create table s.orders (a int); rename table s.orders to s.old; create table s.Orders (b int)", False),
        ("create table s.orders (a int); create table s.n (b int); rename table s.n to s.Orders", True),
        ("create table s.a (a int); create table S.a (b int)", True),
        ("create table s.orders (a int); rename table s.Orders to s.orders_", False),
    ],
)
def test_two_tables_that_differ_in_case_exist_at_once(statements: str, expected: bool) -> None:
    actions = [action for statement in statements.split("; ") for action in actions_of(statement, "s")]
    assert distinguishes_case(actions) is expected
