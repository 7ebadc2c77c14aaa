"""Literals and guards of every type on real servers: a guard is true for its own value only, and a literal sets it.

The script of a state, made from the binlog of the same rows, fills the tables again.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from recover.sources.log import Log
from recover.timeline.as_of import moment_of
from recover.timeline.named_table import find_table
from recover.timeline.state import state_of
from recover.undo.print.inserts import definition, inserts_of
from recover.undo.prove.session import SESSION
from recover.undo.rows.literals import UnprintableValueError, guard, literal, quoted
from recover.undo.tables.table import Column, Table, tables_of_snapshot
from tests.servers import Server
from tests.servers.marked import marked
from tests.servers.rows import table_rows
from tests.support.binlog import workload, workload_own, workload_tables
from tests.support.recover.undo_servers import is_new, run

pytestmark = pytest.mark.slow
SCHEMA = workload.SCHEMA
# Values that a server finds equal, or nearly so.
NEAR = {
    "varchar(9) character set latin1": ["'a'", "'A'", "'a '", "'á'", "''", "'0'", "'0e0'"],
    "varchar(9) character set utf8mb4": ["'a'", "'A'", "'a '", "'ａ'", "'ß'", "'ss'", "'\\0'", "''"],
    "varbinary(9)": ["'a'", "'A'", "'a '", "'a\\0'", "''"],
    "double": ["0e0", "-0e0", "1e0", "1.0000000000000002e0", "5e-324"],
    "float": ["0e0", "-0e0", "0.1", "0.10000001", "16777216", "16777218"],
    # Their texts have two digits, and leading zeros.
    "double(10,2)": ["0e0", "-0e0", "-0.001e0", "0.5e0", "-0.5e0"],
    "float(7,2)": ["0e0", "-0e0", "-0.001e0", "0.5e0", "-0.5e0"],
    "double(10,2) zerofill": ["0e0", "-0e0", "0.5e0"],
    "float zerofill": ["0e0", "-0e0", "1e0"],
    "time(3)": ["'00:00:00'", "'-00:00:00.001'", "'838:59:59'"],
    "datetime null": ["'0000-00-00 00:00:00'", "'2024-00-00 00:00:00'", "'2024-02-31 00:00:00'"],
    "bit(9)": ["b'0'", "b'1'", "b'100000000'"],
    "year": ["0", "'0'", "1970"],
}
# Documents with numbers that only a DECIMAL has: JSON of MySQL, which stores the type of each.
DECIMALS = [
    "json_object('price', cast('100.3000' as decimal(10,4)), 'n', 1)",
    "json_object('price', cast('100.3' as decimal(10,4)), 'zero', cast(0 as decimal(5,2)))",
    "json_array(cast('-0.10' as decimal(3,2)), json_object('a\"b', cast('7.70' as decimal(5,2)), '', 1, 'é', -1.5e0))",
    "json_object('a.b[0]', json_array(cast(repeat('9', 30) as decimal(30))), 'b', cast(1 as decimal(5,4)))",
    "cast(cast('1.50' as decimal(3,2)) as json)",
    "json_object('small', 8.218921728636065e-6, 'large', 1.5e17, 'tiny', 1.5e-15, 'tinier', 1.5e-16)",
    "json_object('a', cast('100000000000000000000.0' as decimal(22,1)), 'b', cast('1e15' as decimal(17,1)))",
    "json_object('text', '1.50', 'double', 1.5e0, 'big', 1e30, 'it''s', '\\\\ \\n')",
]
LEFT_OUT = frozenset({"charsets", "wide_300", "wide_65", "large_texts", "bits"})
"""Tables that take long, and whose types other tables have."""


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb", "mariadb118"))
def test_a_guard_is_true_for_its_own_value_and_a_literal_sets_it(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    server.flush()
    made = [*_make(server)]
    file = server.flush()
    snapshot = read_snapshot_dir(server.snapshot_dir(tmp_path))
    log = Log.of_whole_files([file], snapshot=snapshot)
    assert log.documents is not None
    types = log.documents.types({(SCHEMA, table_name) for table_name in made})
    tables = tables_of_snapshot(snapshot.columns, snapshot.keys)
    written: dict[str, Counter[tuple[str | None, ...]]] = {}
    for table_name in made:
        table = tables[SCHEMA, table_name].with_documents(types)
        names, rows = table_rows(server, SCHEMA, table_name)
        with server.connect() as connection, connection.cursor() as cursor:
            for setting, value in SESSION.items():
                cursor.execute(f"set session {setting} = {value}")
            _assert_guards(cursor, table, names, rows)
            copied = _copy(cursor, table, names, rows)
        found = Counter(table_rows(server, SCHEMA, f"copy_{table_name}")[1])
        assert found == copied, (table_name, found - copied, copied - found)
        written[table_name] = copied
    assert _fill_by_scripts(server, log, written) == {table_name: written[table_name] for table_name in made}


def test_a_document_gets_back_the_numbers_that_its_text_would_not_keep(mysql_server: Server) -> None:
    column = Column("document", "json", "json")
    mysql_server.execute(f"drop database if exists {SCHEMA}", f"create database {SCHEMA} character set utf8mb4")
    mysql_server.execute(f"create table {SCHEMA}.made (id int primary key, document json)")
    mysql_server.execute(f"create table {SCHEMA}.written like {SCHEMA}.made")
    for number, document in enumerate(DECIMALS):
        mysql_server.execute(f"insert into {SCHEMA}.made values ({number}, {document})")
        [(text,)] = mysql_server.execute(f"select cast(document as char) from {SCHEMA}.made where id = {number}")
        mysql_server.execute(f"insert into {SCHEMA}.written values ({number}, {literal(column, text)})")
    # A stored DECIMAL and a stored DOUBLE have other sizes, also if their texts are equal.
    query = f"select id, cast(document as char), json_storage_size(document) from {SCHEMA}.%s order by id"
    assert mysql_server.execute(query % "written") == mysql_server.execute(query % "made")


def test_a_number_that_no_decimal_can_hold_is_refused() -> None:
    column = Column("document", "json", "json")
    for digits in ("1" * 66, "1." + "0" * 31, "1e400"):
        with pytest.raises(UnprintableValueError, match="cannot be written as SQL"):
            literal(column, f'{{"a": [{digits}]}}')


def _make(server: Server) -> Iterator[str]:
    """Make tables of every type that the server has, and of near values; yield their names."""
    server.execute(f"drop database if exists {SCHEMA}", f"create database {SCHEMA} character set utf8mb4")
    tables = [*workload_tables.tables(server, ["latin1"]), *workload_own.tables(server)]
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"set session sql_mode = '{workload.SQL_MODE}', time_zone = '+00:00'")
        for table in tables:
            if table.is_versioned or table.name in LEFT_OUT or "versioned" in table.name:
                continue
            cursor.execute(table.ddl())
            for statement in table.statements():
                cursor.execute(statement)
            yield table.name
        for number, (kind, values) in enumerate(NEAR.items()):
            cursor.execute(f"create table {SCHEMA}.near_{number} (id int primary key, v {kind})")
            for id_, value in enumerate([*values, "null"]):
                cursor.execute(f"insert into {SCHEMA}.near_{number} values ({id_}, {value})")
            yield f"near_{number}"
        if is_new(server):
            cursor.execute(f"create table {SCHEMA}.decimal_documents (id int primary key, document json)")
            for id_, document in enumerate(DECIMALS):
                cursor.execute(f"insert into {SCHEMA}.decimal_documents values ({id_}, {document})")
            yield "decimal_documents"


def _assert_guards(cursor: Any, table: Table, names: list[str], rows: list[tuple[str | None, ...]]) -> None:
    for place, name in enumerate(names):
        guards: dict[str, int] = {}
        for value, count in Counter(row[place] for row in rows).items():
            try:
                guards[guard(table.by_name[name], value)] = count
            except UnprintableValueError:
                continue
        conditions = [*guards]
        for first in range(0, len(conditions), 50):
            some = conditions[first : first + 50]
            sums = ", ".join(f"sum({condition})" for condition in some)
            cursor.execute(f"select {sums} from {SCHEMA}.{quoted(table.name[1])}")
            assert [*cursor.fetchone()] == [guards[one] for one in some], (table.text, name, some)


def _copy(
    cursor: Any, table: Table, names: list[str], rows: list[tuple[str | None, ...]]
) -> "Counter[tuple[str | None, ...]]":
    """Insert rows by their literals into copies of their table; return those that could be written.

    One copy is made by the server, the other one by the definition that a script has. They get the same rows.
    """
    copy, defined = (f"{SCHEMA}.{quoted(f'{kind}_{table.name[1]}')}" for kind in ("copy", "defined"))
    cursor.execute(f"create table {copy} like {SCHEMA}.{quoted(table.name[1])}")
    cursor.execute(f"use {SCHEMA}")
    cursor.execute(definition(replace(table, name=(SCHEMA, f"defined_{table.name[1]}"))))
    columns = ", ".join(quoted(name) for name in table.stored_names)
    written: Counter[tuple[str | None, ...]] = Counter()
    for row in rows:
        values = dict(zip(names, row, strict=True))
        try:
            texts = [literal(column, values[column.name]) for column in table.stored]
        except UnprintableValueError:
            continue
        for one in (copy, defined):
            cursor.execute(f"insert into {one} ({columns}) values ({', '.join(texts)})")
        written[row] += 1
    found = []
    for one in (copy, defined):
        # A vector has no text.
        texts = (f"hex({'' if one.data_type == 'vector' else 'concat'}({quoted(one.name)}))" for one in table.stored)
        cursor.execute(f"select {', '.join(texts)} from {one}")
        found.append(Counter(cursor.fetchall()))
    assert found[0] == found[1], table.text
    return written


def _fill_by_scripts(
    server: Server, log: Log, written: "dict[str, Counter[tuple[str | None, ...]]]"
) -> "dict[str, Counter[tuple[str | None, ...]]]":
    """Empty tables, fill them by the scripts of their states, and return their rows."""
    lines: list[str] = []
    for table_name, rows in written.items():
        table = find_table(log, f"{SCHEMA}.{table_name}")
        inserts = inserts_of(log, state_of(log.connection, table, moment_of(log.connection, table.source_id, None)))
        lines += [f"DELETE FROM {SCHEMA}.{quoted(table_name)};", *inserts.lines()]
        assert inserts.written == sum(rows.values())
    result = run(server, "\n".join(lines) + "\n")
    assert result.returncode == 0, result.stderr
    return {table_name: Counter(table_rows(server, SCHEMA, table_name)[1]) for table_name in written}
