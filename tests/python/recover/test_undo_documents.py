"""Undo of JSON documents with members of types that their text does not tell, on real servers."""

from dataclasses import replace
from pathlib import Path

import pytest

from ingest.binlog import open_binlog
from ingest.binlog.rows.json_types import OtherDocumentError, types_of
from recover.selection.filters import Filters
from recover.sources.files.document_types import DocumentTypes
from recover.sources.log import Log
from recover.timeline.as_of import moment_of
from recover.timeline.named_table import find_table
from recover.timeline.state import state_of
from recover.undo.options import NO_OPTIONS, Direction, UndoOptions
from recover.undo.plan.planner import Plan
from recover.undo.print.inserts import inserts_of
from recover.undo.print.script import script
from recover.undo.rows.documents import DocumentError, members_of
from recover.undo.rows.literals import literal
from recover.undo.tables.table import Column
from recover.undo.undoing import planned
from tests.servers import Server
from tests.support.recover.undo_servers import run, statements_of

SCHEMA = "documents"
# Columns whose values a document stores as they are, and as no text of JSON gives them. No two have the same text.
SOURCES = {
    "bit(1)": "b'1'",
    "bit(12)": "b'101010101010'",
    "bit(64)": "~0",
    "blob": "repeat(x'00ff', 50)",
    "mediumblob": "x'00'",
    "longblob": "''",
    "binary(5)": "x'01'",
    "varbinary(300)": "repeat('v', 300)",
    "year": "2024",
    "geometry": "point(1, 2.5)",
    "enum('a', 'ü')": "'ü'",
    "double": "2.5e0",
    "decimal(5,1)": "1.5",
    "decimal(30,10)": "0.5",
    "decimal(65,30)": "-99999999999999999999999999999999999.999999999999999999999999999999",
    "decimal(9)": "7",
    "smallint unsigned": "5",
    "int unsigned": "70000",
    "bigint unsigned": "18446744073709551615",
    "bigint": "-5",
    "date": "'2024-02-29'",
    "date null": "'0000-00-00'",
    "datetime(6)": "'2024-02-29 01:02:03.000001'",
    "datetime": "'0000-00-00'",
    "timestamp(3) null": "'2024-02-29 01:02:03.5'",
    "time(2)": "'-01:02:03.25'",
    "time(6)": "'838:59:59'",
    "varchar(90)": "'2024-02-28'",
    "varchar(91)": "'base64:type252:AP8='",
    "varchar(92)": "'12:00:00.000000'",
}
KEYS = ("''", "'é😀'", "'a\"b'", "'\\\\'", "'it''s'", "'\\n\\t\\0'", "'$.a[0]'", "'.'", "'c'")


def _forms(number: int) -> list[str]:
    """Return documents with a column at several places."""
    column = f"c{number}"
    nested = f"json_array(json_object('k', json_array(null, {column})), true)"
    deep = f"json_array({column})"
    for _ in range(60):
        deep = f"json_object('d', {deep})"
    return [
        f"json_array({column}, json_object({', '.join(f'{key}, {column}' for key in KEYS)}))",
        f"json_object('x', {nested}, 'yy', repeat('y', 70000), 'z', {column})",
        deep,
    ]


def _make(server: Server) -> list[tuple[int, str]]:
    """Make rows with documents of all types; return them as the log has them."""
    server.execute(f"drop database if exists {SCHEMA}", f"create database {SCHEMA} character set utf8mb4")
    server.flush()
    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(SOURCES))
    with server.connect(database=SCHEMA) as connection, connection.cursor() as cursor:
        cursor.execute("set session sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'")
        cursor.execute(f"create table sources ({columns})")
        cursor.execute(f"insert into sources values ({', '.join(SOURCES.values())})")
        cursor.execute("create table made (id int primary key auto_increment, document json)")
        for number in range(len(SOURCES)):
            for form in _forms(number):
                cursor.execute(f"insert into made (document) select {form} from sources")
        everything = ", ".join(f"'{kind.replace(chr(39), '')}', c{number}" for number, kind in enumerate(SOURCES))
        cursor.execute(f"insert into made (document) select json_object({everything}) from sources")
        for scalar in ("cast(c20 as json)", "cast(c3 as json)", "cast(c12 as json)", "cast(5 as json)", "'null'"):
            cursor.execute(f"insert into made (document) select {scalar} from sources")
    return _binary_documents(server.flush())


def _binary_documents(file: Path) -> list[tuple[int, str]]:
    """Return the documents of the inserted rows in their binary form."""
    log = open_binlog(file)
    log.json_as_bytes = True
    rows = [row for batch in log.row_batches() for row in batch.to_pylist()]
    return [
        (int(row["after_values"][0]), row["after_values"][1])
        for row in rows
        if (row["table_name"], row["event_type"]) == ("made", "INSERT")
    ]


def _scripted(log: Log, filters: Filters, options: UndoOptions = NO_OPTIONS) -> tuple[Plan, str]:
    with planned(log, filters, options) as (planner, plan, heading):
        text = "\n".join(script(planner, plan, heading, "commit")) + "\n" if plan.is_printable else ""
    return plan, text


def _printed(server: Server) -> object:
    return server.execute(f"select id, cast(document as char) from {SCHEMA}.made order by id")


def test_an_undo_from_files_gives_the_stored_bytes_back(mysql_server: Server) -> None:
    made = _make(mysql_server)
    files = sorted(mysql_server.binlog_dir.glob("binlog.0*"))[-2:-1]
    before = _printed(mysql_server)
    mysql_server.execute(f"delete from {SCHEMA}.made")
    files.append(mysql_server.flush())
    plan, text = _scripted(Log.of_whole_files(files), Filters(types=("DELETE",)))
    assert not plan.problems and not plan.refusals
    ran = run(mysql_server, text)
    assert ran.returncode == 0, ran.stderr
    assert _printed(mysql_server) == before
    assert sorted(_binary_documents(mysql_server.flush())) == made


def test_an_undo_sets_a_document_only_where_it_is_as_the_damage_left_it(mysql_server: Server) -> None:
    mysql_server.execute(f"drop database if exists {SCHEMA}", f"create database {SCHEMA}")
    mysql_server.flush()
    document = "json_object('day', date'2024-01-02', 'at', timestamp'2024-01-02 03:04:05', 'text', '2024-01-02')"
    mysql_server.execute(
        f"create table {SCHEMA}.made (id int primary key, document json)",
        f"insert into {SCHEMA}.made values (1, {document}), (2, {document})",
        f"update {SCHEMA}.made set document = json_set(document, '$.day', time'10:00:00')",
    )
    file = mysql_server.flush()
    mysql_server.execute(f"update {SCHEMA}.made set document = '[\"10:00:00.000000\"]' where id = 2")
    plan, text = _scripted(Log.of_whole_files([file]), Filters(types=("UPDATE",)))
    assert plan.counts[f"{SCHEMA}.made", "UPDATE"] == 2
    assert "CAST('2024-01-02' AS DATE)" in text and "CAST('2024-01-02 03:04:05.000000' AS DATETIME(6))" in text
    # Nothing is committed, because one of the two rows is another.
    assert run(mysql_server, text).returncode == 1
    query = "select json_type(document->'$.day'), json_type(document->'$.at'), json_type(document->'$.text')"
    assert mysql_server.execute(f"{query} from {SCHEMA}.made where id = 1") == [("TIME", "DATETIME", "STRING")]
    mysql_server.execute(f"update {SCHEMA}.made set document = (select d from (select document as d from {SCHEMA}.made"
        " where id = 1) as t)")  # fmt: skip
    assert run(mysql_server, text).returncode == 0
    assert mysql_server.execute(f"{query} from {SCHEMA}.made") == [("DATE", "DATETIME", "STRING")] * 2


def test_partial_updates_have_the_types_of_the_document_before(mysql_server: Server) -> None:
    document = "json_object('day', date'2024-01-02', 'n', 1, 'x', repeat('x', 99))"
    mysql_server.execute(f"drop database if exists {SCHEMA}", f"create database {SCHEMA}")
    mysql_server.flush()
    mysql_server.execute(
        f"create table {SCHEMA}.made (id int primary key, other json, document json)",
        f"insert into {SCHEMA}.made values (1, '{{}}', {document})",
        "set binlog_row_value_options = 'PARTIAL_JSON'",
        f"update {SCHEMA}.made set document = json_set(document, '$.n', 2, '$.day', '2024-01-02')",
        "set binlog_row_value_options = ''",
    )
    file = mysql_server.flush()
    _, text = _scripted(Log.of_whole_files([file]), Filters(types=("UPDATE",)))
    assert run(mysql_server, text).returncode == 0
    found = mysql_server.execute(f"select json_type(document->'$.day'), document->'$.n' from {SCHEMA}.made")
    assert found == [("DATE", "1")]
    # The log has only the change that the update made to the document.
    plan, _ = _scripted(Log.of_whole_files([file]), Filters(types=("UPDATE",)), UndoOptions(Direction.REDO))
    assert "--files" in plan.refusals[0].reason and "--json-as-text" in plan.refusals[0].reason
    _, text = _scripted(
        Log.of_whole_files([file]), Filters(types=("UPDATE",)), UndoOptions(Direction.REDO, json_as_text=True)
    )
    assert run(mysql_server, text).returncode == 0


def test_a_log_without_types_refuses_what_a_text_does_not_tell(mysql_server: Server) -> None:
    mysql_server.execute(f"drop database if exists {SCHEMA}", f"create database {SCHEMA}")
    mysql_server.flush()
    documents = ('\'{"day": "2024-01-02"}\'', '\'{"n": 5, "day": "2. 1. 2024"}\'')
    mysql_server.execute(f"create table {SCHEMA}.made (id int primary key, document json)")
    for number, document in enumerate(documents):
        mysql_server.execute(f"insert into {SCHEMA}.made values ({number}, {document})")
    mysql_server.execute(f"delete from {SCHEMA}.made")
    log = Log.of_whole_files([mysql_server.flush()])
    assert log.documents is not None and not log.documents.typed
    landed = replace(log, documents=None)
    plan, text = _scripted(landed, Filters(types=("DELETE",)))
    assert not text and [(one.key, one.column) for one in plan.refusals] == [("0", "")]
    assert "nothing tells whether '2024-01-02' at $.\"day\" is a text or a DATE" in plan.refusals[0].reason
    for found, as_text in ((landed, True), (log, False)):
        _, text = _scripted(found, Filters(types=("DELETE",)), UndoOptions(json_as_text=as_text))
        assert len(statements_of(text)) == 2 and "JSON_SET" not in text


def test_a_script_of_a_state_has_the_types_of_files_and_says_when_it_lacks_them(mysql_server: Server) -> None:
    mysql_server.execute(f"drop database if exists {SCHEMA}", f"create database {SCHEMA}")
    mysql_server.flush()
    mysql_server.execute(
        f"create table {SCHEMA}.made (id int primary key, document json)",
        f"insert into {SCHEMA}.made values (1, json_object('day', date'2024-01-02'))",
    )
    log = Log.of_whole_files([file := mysql_server.flush()])
    assert log.documents is not None and log.documents.typed == {file.name}
    remark = "dates, times and bytes in JSON documents are written as texts"
    for found, has_types in ((log, True), (replace(log, documents=None), False)):
        table = find_table(found, "made", None)
        state = state_of(found.connection, table, moment_of(found.connection, table.source_id, None))
        text = "\n".join(inserts_of(found, state).lines())
        assert ("CAST('2024-01-02' AS DATE)" in text) is has_types
        assert (remark in text) is not has_types


def test_types_that_differ_among_equal_texts_are_unknown() -> None:
    types = DocumentTypes()
    document = '{"n": 5, "d": "2024-01-02"}'
    types.add(document, {'$."n"': "UNSIGNED", '$."d"': "DATE"})
    assert [one.path for one in members_of(document, types)] == ['$."n"', '$."d"']
    types.add(document, {'$."d"': "DATE"})
    assert [one.path for one in members_of(document, types)] == ['$."d"']
    types.add(document, {})
    with pytest.raises(DocumentError, match="is a text or a DATE"):
        members_of(document, types)


def test_a_type_that_no_expression_gives_is_refused() -> None:
    types = DocumentTypes()
    types.add('["base64:type249:AP8="]', {"$[0]": "TINYBLOB"})
    with pytest.raises(DocumentError, match=r"it has a value of type TINYBLOB at \$\[0\]"):
        members_of('["base64:type249:AP8="]', types)


@pytest.mark.parametrize(
    ("digits", "is_double"),
    [
        *((digits, True) for digits in ("0.5", "-0.0", "1e15", "1.5e17", "1.5e-15", "0.0000000000000015", "123.25")),
        *((digits, True) for digits in ("999999999999999.0", "1234567890123456.5")),
        # A server prints such a DOUBLE with an exponent, or without the zeros.
        *((digits, False) for digits in ("1000000000000000.0", "100000000000000000000.0", "0.00000000000000015")),
        *((digits, False) for digits in ("0.50", "0.00", "12345678901234567.5")),
    ],
)
def test_a_number_is_a_double_if_a_server_prints_a_double_so(digits: str, is_double: bool) -> None:
    assert bool(members_of(f'{{"n": {digits}}}', None)) is not is_double


def test_a_number_with_more_digits_than_a_column_may_have_is_written_by_its_text() -> None:
    types = DocumentTypes()
    types.add("[1.50]", {"$[0]": "DECIMAL(81,30)"})
    assert "CAST('1.50' AS DECIMAL(3,2))" in literal(Column("d", "json", "json", documents=types), "[1.50]")


@pytest.mark.parametrize("data", ["", "00", "02", "0201000c000500", "0c0161", "ff", "0f0a08", "02ffffffff"])
def test_bytes_of_another_document_are_not_read(data: str) -> None:
    with pytest.raises(OtherDocumentError):
        types_of('["2024-01-02"]', bytes.fromhex(data))
