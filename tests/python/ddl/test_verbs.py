"""Statements that may be DDL are found by their first words, wherever these have comments."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ingest.ddl.verbs import DDL_PATTERN, DML_PATTERN, may_be_ddl, phrase, sets_sql_mode


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("set/**/statement sql_mode='' for drop table t", True),
        ("/* x */ set # y\n statement sql_mode='' for drop table t", True),
        ("/*!50000 set*/ /*M!100000 statement*/ sql_mode='' for drop table t", True),
        ("set statement_of = 'sql_mode'", False),
        ("set/* statement */ @sql_mode = 1", False),
    ],
)
def test_comments_may_be_between_the_words_before_settings(text: str, is_one: bool) -> None:
    assert may_be_ddl(text) is is_one
    for pattern in (DDL_PATTERN, DML_PATTERN):
        assert pc.match_substring_regex(pa.array([text]), pattern).to_pylist() == [is_one]
    assert sets_sql_mode(text)


def test_an_executed_comment_may_be_empty() -> None:
    text = "/*!50000 */ drop table t"
    assert may_be_ddl(text)
    assert pc.match_substring_regex(pa.array([text]), DDL_PATTERN).to_pylist() == [True]


@pytest.mark.parametrize("blank", ["\v", "\f", "\xa0"])
@pytest.mark.parametrize("text", ["set{}statement lock_wait_timeout=9 for drop table t", "-- x\n{}drop table t"])
def test_any_blank_of_a_server_may_be_before_the_verb(text: str, blank: str) -> None:
    text = text.format(blank)
    assert may_be_ddl(text)
    for pattern in (DDL_PATTERN, DML_PATTERN)[: 1 + text.startswith("set")]:
        assert pc.match_substring_regex(pa.array([text]), pattern).to_pylist() == [True]


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("create table if not exists t (a int)", True),
        ("create table IF/**/NOT/* x */\n-- y\n exists t (a int)", True),
        ("create table /*!50000 if*/ not # x\n/*!exists*/ t (a int)", True),
        ("create table if_not exists t (a int)", False),
    ],
)
def test_a_phrase_may_have_comments_between_its_words(text: str, is_found: bool) -> None:
    assert (phrase("if", "not", "exists").search(text) is not None) is is_found
