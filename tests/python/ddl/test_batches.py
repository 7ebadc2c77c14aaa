"""Logged statements as actions: the effect of the session that ran them."""

from typing import Any

import pytest

from ingest.ddl.batches import statement_actions
from ingest.versions import Flavor


@pytest.mark.parametrize(
    ("text", "flavor", "collation_server", "expected"),
    [
        ("create database d", "mysql", "koi8u_bin", ("koi8u", "koi8u_bin")),
        ("create schema if not exists d", "mysql", "koi8u_bin", ("koi8u", "koi8u_bin")),
        ("create database d charset latin1", "mysql", "koi8u_bin", ("latin1", None)),
        ("create database d", "mysql", None, (None, None)),
        ("create database d", "mysql", "utf8mb3_bin", ("utf8", "utf8_bin")),
        ("create database d charset default", "mariadb", "koi8u_bin", ("koi8u", None)),
        ("create database d collate uca1400_ai_ci", "mariadb", "utf8mb4_bin", ("utf8mb4", "utf8mb4_uca1400_ai_ci")),
        ("alter database d charset default", "mariadb", "koi8u_bin", ("koi8u", None)),
        ("alter database d collate latin1_bin", "mariadb", "koi8u_bin", ("latin1", "latin1_bin")),
        ("create table t (a int)", "mysql", "koi8u_bin", (None, None)),
    ],
)
def test_a_database_takes_the_collation_of_its_session(
    text: str, flavor: Flavor, collation_server: str | None, expected: tuple[str | None, str | None]
) -> None:
    statement: dict[str, Any] = {
        "sql_text": text,
        "default_schema": "d",
        "sql_mode": "",
        "collation_server": collation_server,
    }
    (action,) = statement_actions(statement, flavor, (5, 6))
    assert (action.character_set, action.collation) == expected


@pytest.mark.parametrize(
    ("flavor", "default_schema", "expected"),
    [
        ("mysql", None, ("koi8u", None, None)),
        ("mysql", "d", (None, "default", None)),
        ("mysql", "e", (None, "default", "e")),
        ("mariadb", "e", (None, "default", None)),
    ],
)
def test_mysql_converts_to_the_default_of_the_session(
    flavor: Flavor, default_schema: str | None, expected: tuple[str | None, ...]
) -> None:
    statement: dict[str, Any] = {
        "sql_text": "alter table d.t convert to character set default",
        "default_schema": default_schema,
        "sql_mode": "",
        "collation_server": "koi8u_bin",
    }
    (action,) = statement_actions(statement, flavor, (9, 7))
    assert (action.character_set, action.collation, action.other_schema_name) == expected


@pytest.mark.parametrize(("error_code", "is_conditional"), [(0, False), (1347, True)])
def test_a_statement_on_a_view_that_failed_may_have_left_a_table_alone(error_code: int, is_conditional: bool) -> None:
    for text in ("drop view v, t", "create or replace view t as select 1"):
        statement: dict[str, Any] = {
            "sql_text": text,
            "default_schema": "d",
            "sql_mode": "",
            "collation_server": None,
            "error_code": error_code,
        }
        actions = statement_actions(statement, "mysql", (5, 6))
        assert {action.is_conditional for action in actions} == {is_conditional}
