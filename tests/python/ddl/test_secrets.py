"""Passwords in statements on accounts."""

import pytest

from ingest.ddl.secrets import without_secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            r"CREATE USER 'ro'@'%' IDENTIFIED WITH 'caching_sha2_password' AS '$A$00\'A$Y' COMMENT 'for reports'",
            "CREATE USER 'ro'@'%' IDENTIFIED WITH 'caching_sha2_password' AS '…' COMMENT 'for reports'",
        ),
        ("create or replace user a identified by 'it''s'", "create or replace user a identified by '…'"),
        ("ALTER USER a IDENTIFIED BY 'new' REPLACE 'old'", "ALTER USER a IDENTIFIED BY '…' REPLACE '…'"),
        ("GRANT ALL ON *.* TO a IDENTIFIED BY PASSWORD '*A4B'", "GRANT ALL ON *.* TO a IDENTIFIED BY PASSWORD '…'"),
        ("SET PASSWORD FOR 'a'@'b'='*A4B'", "SET PASSWORD FOR 'a'@'b'='…'"),
        ('SET PASSWORD = PASSWORD("x")', "SET PASSWORD = PASSWORD('…')"),
        (
            "CREATE USER a IDENTIFIED VIA ed25519 USING 'b' OR x USING 'c'",
            "CREATE USER a IDENTIFIED VIA ed25519 USING '…' OR x USING '…'",
        ),
        ("CREATE USER a IDENTIFIED WITH 'p' AS 0x24412430", "CREATE USER a IDENTIFIED WITH 'p' AS '…'"),
        ("/* app:x */ -- y\nCREATE USER a IDENTIFIED BY 'b'", "/* app:x */ -- y\nCREATE USER a IDENTIFIED BY '…'"),
        ("CREATE USER a IDENTIFIED BY 'the text ends he", "CREATE USER a IDENTIFIED BY '…'"),
        ("CREATE SERVER s OPTIONS (USER 'u', PASSWORD 'p')", "CREATE SERVER s OPTIONS (USER 'u', PASSWORD '…')"),
    ],
)
def test_secrets_are_not_shown(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


def test_other_statements_are_shown_whole() -> None:
    text = "create table user (server int comment 'by', b varchar(9) as ('x'), password varchar(9) default 'y')"
    assert without_secrets(text) == text
