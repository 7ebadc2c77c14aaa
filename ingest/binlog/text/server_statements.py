"""The texts of statements, of which some are not those of a client.

A server logs CREATE TABLE of its own for CREATE TABLE … SELECT and for … LIKE of a temporary table, and MySQL for a
table to which it adds a primary key. It writes this text in UTF-8, whatever the character set of the client is that the
event names, and with backslashes before special signs, whatever the SQL mode of the session is.

Source: `store_create_info` in sql/sql_show.cc of MySQL, `show_create_table` of MariaDB; tried with a client in latin1
on MySQL 9.7 and 5.6, and on MariaDB 10.11 and 11.8.
"""

import re
from typing import Final

from ingest.binlog.text.charsets import decode_text

_NAME: Final = rb'(?:`(?:[^`]|``)+`|"(?:[^"]|"")+")'
# As SHOW CREATE TABLE prints columns.
_CREATED: Final = re.compile(
    rb"CREATE (?:OR REPLACE )?TABLE (?:IF NOT EXISTS )?(?:%b\.)?%b \(\n  [`\"]" % (_NAME, _NAME)
)
# SHOW CREATE TABLE, and so a dump, always names the engine and the character set. What a server logs names only those
# that a statement gave.
_DUMPED: Final = re.compile(rb"\n\) ENGINE=[^\n]* CHARSET=")
# The end of CREATE TABLE … SELECT, from MySQL 8.0.21 on.
_SELECTED: Final = b" START TRANSACTION"


def is_of_server(text: bytes) -> bool:
    """Return whether a statement has the form of those that a server writes itself."""
    if _CREATED.match(text) is None:
        return False
    return text.endswith(_SELECTED) or _DUMPED.search(text) is None


def decode_statement(text: bytes, character_set_client: str | None) -> str:
    """Decode the text of a statement; invalid bytes become `\\xNN`.

    A text in the server's form that is no UTF-8 is one that a client sent.
    """
    if is_of_server(text):
        try:
            return text.decode()
        except UnicodeDecodeError:
            pass
    return decode_text(text, character_set_client)
