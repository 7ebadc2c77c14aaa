"""Whether a statement calls a stored function, which may change any table."""

import pymysql
import pytest

from ingest.ddl.dml.dml_batches import TargetReader
from ingest.ddl.dml.own_words import own_words
from ingest.ddl.dml.stored_calls import calls_stored_function
from ingest.ddl.sql_modes import ANSI_QUOTES, NO_BACKSLASH_ESCAPES
from ingest.versions import Flavor, version_of
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.work import calls_during

SERVERS: list[tuple[Flavor, tuple[int, ...]]] = [
    *(("mysql", version) for version in ((5, 6), (5, 7), (8, 0), (9, 7))),
    *(("mariadb", version) for version in ((10, 11), (11, 8))),
]

CALLS = [
    "insert into r values(f(),'s')",
    "insert into r values(`f` ( ),'s')",
    "insert into r values(now(), s . f(1))",
    "insert into r values (concat('it''s', f()))",
    'insert into r values ("a\\"b", `s`.`f`(1))',
    "insert into s.f(a) values (f(a))",
    "insert into r select (f(1))",
    "insert into r (a) values (1) on duplicate key update a = f()",
    "replace r (a) select f(a) from (select 1) d (a)",
    "update r set a = f/* x */(1)",
    "update r set a = f -- now\n (1)",
    "update a left join b on a.id = b.id and f(a.id) set b.n = 1",
    "update r join (select f(1) as n) q set a = q.n",
    "delete from r where a in (1) and f(a)",
    "with c (id) as (select 1), d (b) as (select g(1)) update r set a = 1",
    "set statement max_statement_time = 1 for update r set a = größe(1)",
    "/*!50000 insert into r values (f(1)) */",
    "load data infile 'x' into table f (a, @b) set c = f(@b)",
]
OTHERS = [
    "insert into f (a) values (now(), 'f(1)', \"f(2)\")",
    "insert into `f` (a) values (-1)",
    "insert ignore f (a) value (1)",
    "insert into f value (1)",
    "insert into s . f (a) select 1",
    "insert into .f (a) select 1",
    "insert into r (`f`, g) select 1 from (select 1) as f (a)",
    "insert into r (a) select * from (select 1) f (a)",
    "insert into r with c (id) as (select 1), `d e` (x, `y`) as (select 1) select * from c",
    "insert into r select cast(a as char(10)), convert(b, decimal(10, 2)) from x use index (i)",
    "insert into r select 1 from x where match (a) against ('x' in boolean mode)",
    "insert into r select group_concat(a order by b separator ','), count(*) from x group by (a) having (b) limit 1",
    "insert into r select 1 where exists (select 1) and not (a) or (a) in (1) union all (select 1) union (select 2)",
    "insert into r set a = (select max(b) from x), c = case when (1) then (2) else (3) end",
    "insert into r select a from x where a = any (select 1) and b > all (select 2)",
    "insert into r select * from a join b using (id) left join (c, d) on (a.x = c.y)",
    "insert into r values (NAME_CONST('x',_utf8mb4'abc' COLLATE 'utf8mb4_general_ci'))",
    "insert into r select a - interval (1) day, if(a, b, c), left(a, 1), extract(year from b), point(1, 2)",
    "insert into r select char(1 using utf8), trim(both from a), timestampdiff(second, a, b), md5(a), sha1(a)",
    "update r set a = 1 /* f(1) */ where b = 2 -- f(2)",
    "update r partition (p0) as x set x.a = @f := 1 where (a, b) = (1, 2)",
    "delete from r where a between (1) and (2) and b like ('x') and c div (1) = 0 and d regexp ('x')",
    "load data local infile 'x' into table f character set utf8 fields terminated by ',' ignore 1 lines (a, b)",
    "load data infile 'x' into table f partition (p0) lines terminated by ',' (a, b)",
]
OF_NEW_SERVERS = [
    "insert into r values (json_set('{}', '$.a', 1), regexp_replace('a', 'b', 'c'))",
    "insert into r select row_number() over (partition by b order by (c)) from x",
    "update r join json_table('[]', '$[*]' columns (n int path '$')) j set a = 1",
]
CREATED = {
    "create table c (id int, key k (id)) select f(1)": True,
    "create table c (id int, key k (id)) partition by list (id) (partition p values in (1)) as select 1 as id": False,
    "create table c (v varchar(9) default (uuid()) comment 'to select', unique k (v)) as select now() as v": False,
    "create table c as select (f(1))": True,
    "create table c values row(f(1))": True,
}


@pytest.mark.parametrize(("flavor", "version"), SERVERS)
def test_calls_of_stored_functions(flavor: Flavor, version: tuple[int, ...]) -> None:
    assert [text for text in CALLS if not calls_stored_function(text, 0, flavor, version)] == []


@pytest.mark.parametrize(("flavor", "version"), SERVERS)
def test_statements_without_such_calls(flavor: Flavor, version: tuple[int, ...]) -> None:
    others = OTHERS if version in ((5, 6), (5, 7)) else OTHERS + OF_NEW_SERVERS
    assert [text for text in others if calls_stored_function(text, 0, flavor, version)] == []


@pytest.mark.parametrize("text", CREATED)
def test_only_the_query_of_a_create_has_calls(text: str) -> None:
    assert calls_stored_function(text, 0, "mysql", (9, 7), is_create=True) is CREATED[text]


def test_quotes_and_backslashes_are_those_of_the_sql_mode() -> None:
    text = """insert into "f" (a) values ('\\', "g"(1), 'x')"""
    assert not calls_stored_function('insert into "f" (a) values ("g", "h(1)")', ANSI_QUOTES, "mysql", (9,))
    assert calls_stored_function(text, ANSI_QUOTES | NO_BACKSLASH_ESCAPES, "mysql", (9,))
    assert not calls_stored_function("insert into f values ('\\' f(1), ')", 0, "mysql", (9,))
    assert calls_stored_function("insert into f values ('\\', f(1), ')", NO_BACKSLASH_ESCAPES, "mysql", (9,))


def test_a_statement_that_calls_a_function_has_an_unknown_target() -> None:
    reader = TargetReader("mysql", "9.7.4")

    def targets(text: str) -> list[tuple[str, str | None, str | None]]:
        return [(one.verb, one.schema_name, one.table_name) for one in reader.targets(text, "shop", "")]

    for _ in range(2):
        assert targets("insert into r values (1)") == [("INSERT", "shop", "r")]
        assert targets("insert into r values (f())") == [("INSERT", "shop", "r"), ("INSERT", None, None)]
        assert targets("select f()") == [("SELECT", None, None)]


HOSTILE = {
    "parentheses": "insert into r values " + "(" * 16_000,
    "quotes": "insert into r values (" + "'\\'" * 16_000,
    "comments": "insert into r values f" + "/*" * 16_000 + "(1)",
    "blanks": "insert into r values " + "a " * 8_000 + " " * 8_000,
    "dots": "insert into r values (x" + " . a" * 4_000,
    "words": "insert into r " + "insert ignore " * 1_000,
    "lists": "insert into r values " + "now(a, " * 2_000,
    "columns": "with " + "c(a) as (" * 2_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_work_in_proportion_to_its_size(name: str) -> None:
    text = HOSTILE[name]
    # Quadratic work would be 64 times as much.
    assert calls_to_read(text) < 20 * calls_to_read(text[: len(text) // 8]) + 10_000


def calls_to_read(text: str) -> int:
    """Return the number of function calls that reading a text takes."""
    return calls_during(lambda: calls_stored_function(text, 0, "mysql", (9, 7)))


@pytest.mark.parametrize("name", marked("mysql", "mysql56", "mariadb118"))
def test_the_words_are_those_of_the_servers(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    flavor: Flavor = "mariadb" if server.flavor == "mariadb" else "mysql"
    candidates = {word for one in SERVERS for word in own_words(*one)}
    unknown = set()
    with server.connect(database="mysql", autocommit=True) as connection, connection.cursor() as cursor:
        for word in candidates:
            if not any(_has(cursor, f"{word}({value})") for value in ("", "1", "1, 2")):
                unknown.add(word)
    own = own_words(flavor, version_of(flavor, server.version))
    tolerated = {"mysql": {"md5", "sha", "sha1"}, "mariadb": {"against", "columns", "json_table", "minus"}}[flavor]
    # MariaDB 10.11 has words that MariaDB 11 lacks.
    tolerated |= {"host", "owner", "socket", "master_ssl_verify_server_cert"} if flavor == "mariadb" else set()
    assert own & unknown <= tolerated
    assert candidates - unknown <= own


def _has(cursor: "pymysql.cursors.Cursor", call: str) -> bool:
    """Return whether a server does not take a call for one of a stored function."""
    try:
        cursor.execute(f"select {call}")
    except pymysql.Error as error:
        # Both say that there is no such function.
        return error.args[0] not in (1305, 1630)
    return True
