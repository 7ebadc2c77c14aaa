"""The text of a digest is the one that MySQL itself writes, and hostile statements are only data."""

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import pymysql
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.ddl.digests.digest import DigestReader, digest_text
from ingest.ddl.digests.digest_words import FUNCTIONS, KEYWORDS
from ingest.ddl.sql_modes import ANSI_QUOTES, NO_BACKSLASH_ESCAPES
from tests.servers import Server

# Each line is a statement. The server only parses them: no table needs to exist.
STATEMENTS = r"""
select 'a' 'b', "c", 1, -1, +1, 1.5, .5, 1e5, 1.e3, 5., x'41', 0x41, b'1', 0b1, N'abc', _utf8mb4'abc', _latin1 'a'
select * from t where a=-1 and b - 1 = 2 and c in (1,2,3) and d in (1) and e not in (null) and f in (b) and g in (1, b)
select (1), ((1)), (1),(2), ((1,2)), (1,2),(3,4), f(1), f(1,2), f(null), f(), (null, 1), (b, 1)
insert into t values (1,'a',null),(2,'b',null),(3,'c',null),(4,'d',null)
insert into t values (null),(null)
insert into t (a, b) values (default,1),(default,2),(default,3)
insert into t values (now(),1),(now(),2)
insert into t(a) values (1,2),(3),(4,5),(6,7)
insert into t(a) values ((1),2,f(1))
insert into t values (-1,+2),(3,-4)
insert into t values (),()
insert ignore into t set a=null, b=default, c='x' on duplicate key update a=values(a), b=2
insert into t values (1,2) as new(x,y) on duplicate key update a=new.x
replace into t select 1, 2 from dual where 1=1 and(2=2)
update t set a=a+1, b=-1, c=- 1, d=(-1), e=e-1, f=--1, g=null, h='it''s' where i is not null and j is null limit 5
update `my table` t set t.`a b` = 5 where `x`.`y`.`z` = "str\"ing"
delete from t where id=1 limit 5 -- comment
delete a from a join b on a.x=b.x where b.y in (1,2) and (a, b) in ((1,2),(3,4))
select status, t.status, name, user, t.user, user.name, count, max, t.count, year, day, now, position from t
select count(*), now(), sum(a), substr('a',1), mid(a,1), substring(a from 1), std(a), variance(a) from t
select a != b, a <> b, a <=> b, a && b, a || b, !a, ~a, a->'$.x', a->>'$.x', a<<b, a>=b, a%b from t
select @a, @`q a`, @'x', @"y", @a.b, @a := 1, @@sql_mode, @@session.sql_mode, @@global.max_connections
select a.b,a . b,a. b, `a`.b, .5, t.5, a.1e5, a.5x, 1a, 0xzz, 0X1F, a$b, `we``ird`, Ünïcode from täble
select case when -1 then -1 else -1 end, a between -1 and -2, a <> -1, a like -1, a div -1, not -1, ! -1 from t
select 5 -1, (5)-1, -5-1, a -1, (a) -1, a*-1, a--1, 1--1, 1 - -1, - - 1, -null, -'5', -b'1' from t
select interval 1 day + a, date_add(a, interval -1 month), date '2020-01-01', {d '2020-01-01'}, timestamp(a) from t
select /*! 1 */ + /*!99999 2 */ 3, /*!50000 4, */ 5 /* plain */ # end
select /*+ MAX_EXECUTION_TIME(1) NO_INDEX_MERGE(t1 a, b) SET_VAR(sort_buffer_size=16) */ a /*+ MRR(t) */ from t
select if(a is null, null, 1), replace(a,'x','y'), left(a,1), cast(a as char(10)), convert(a using utf8mb4) from t
select true, false, unknown, current_timestamp, current_date(), database(), user(), utc_date() from t
select group_concat(distinct a order by b desc separator ',') over (partition by c) from t group by d with rollup
with recursive c as (select 1 union all select n+1 from c) select * from c where n regexp 'x' or n rlike 'y'
create table x (a int default null, b varchar(10) charset utf8mb4 null comment 'y', c enum('a','b'), key k (a(5)))
alter table x modify a double null, add b int not null default -1
alter table x add foreign key (a) references y(a) on delete set null
grant select on d.* to u@localhost, `u`@`h`, 'u'@'%'
load data infile 'x' into table t fields terminated by ',' (a, @b) set c = @b + 1
call p(1,2,@x)
set names utf8mb4
select 1;
"""


def statements() -> list[str]:
    lines = [*STATEMENTS.strip().splitlines(), "select 1 -- a\n + 2", "select 1 --\n + 2 #b\n -3", "select\t1\r\n,\f2"]
    wide = ["select " + ",".join(f"col{number}" for number in range(200)) + " from t"]
    wide += ["select " + "+".join("1" * 600), "select a, " + "'x'," * 600 + "1+1" * 400]
    wide += ["insert into t values " + ",".join(f"({number},'a''b',null)" for number in range(500))]
    wide += ["select a from t where b in (" + ", ".join(map(str, range(500))) + ") and c = 1"]
    return [*lines, *wide]


@pytest.fixture(scope="module")
def server(mysql_server: Server) -> Iterator[Any]:
    """Returns the text of a digest as the server writes it."""
    mysql_server.execute("create database if not exists digests")
    with mysql_server.connect(database="digests", init_command="set sql_mode = ''") as connection:

        def ask(text: str) -> str:
            with connection.cursor() as cursor:
                cursor.execute("select statement_digest_text(%s)", (text,))
                return str((cursor.fetchone() or ("",))[0])

        yield ask


def test_texts_are_those_of_the_server(server: Any) -> None:
    reader = DigestReader()
    compared = 0
    for text in statements():
        try:
            expected = server(text)
        except pymysql.err.MySQLError:
            continue
        assert digest_text(text) == expected, text
        assert reader.read(text)[0].text == expected, text
        compared += 1
    # Not all servers parse all of them.
    assert compared > 40


def test_each_keyword_is_written_as_the_server_does(mysql_server: Server, server: Any) -> None:
    found = 0
    known = {row[0] for row in mysql_server.execute("select word from information_schema.keywords")}
    assert known == KEYWORDS.keys() | (FUNCTIONS.keys() & known)
    for word in sorted(KEYWORDS.keys() | FUNCTIONS.keys()):
        for pattern in (
            "select 1 as {}",
            "select {}",
            "select {}()",
            "select {}(a) from t",
            "show {}",
            "create table x (a {})",
            "create table x (a {}(3))",
            "select 1 {} 2",
        ):
            text = pattern.format(word.lower())
            try:
                expected = server(text)
            except pymysql.err.MySQLError:
                continue
            assert digest_text(text) == expected
            found += 1
    assert found > 600


def test_a_mode_changes_what_is_a_value(server: Any) -> None:
    text = """update "t" set a = 'x\\', b = "c" where d = 'y'"""
    mode = ANSI_QUOTES | NO_BACKSLASH_ESCAPES
    expected = "UPDATE `t` SET `a` = ? , `b` = `c` WHERE `d` = ?"
    assert digest_text(text, mode) == DigestReader().read(text, mode)[0].text == expected
    assert server("select 1") == digest_text("select 1", mode)


def test_values_and_comments_do_not_count() -> None:
    reader = DigestReader()
    one, comments = reader.read("update t set a = 'x' where id = 5 /* a */ -- b")
    other, _ = reader.read("UPDATE t\n  SET a='it''s' WHERE id=0x1F")
    assert one == other
    assert one.hash == sha256(one.text.encode()).hexdigest()
    assert comments == ["/* a */", "-- b"]
    assert reader.read("update t set b = 'x' where id = 5")[0] != one


# Pieces of which statements are made: joined in any order, they are read in the same way at once and in two steps.
SPLIT = r"""
'a' "b" `c d` /* */ /*!50000 /*+ -- # 0 12 1.5 1e 0x1F x'41' N'a' _utf8mb4 null NULL in select count 1a \N (1,2)
"""
PIECES = st.lists(st.sampled_from([*SPLIT.split(), *"'\"`@.,()-+;?\\:{}$ \n\0é\ud800"]), max_size=25).map("".join)


@given(PIECES, st.sampled_from([0, ANSI_QUOTES, NO_BACKSLASH_ESCAPES, ANSI_QUOTES | NO_BACKSLASH_ESCAPES]))
def test_any_text_has_a_digest(text: str, mode: int) -> None:
    at_once = digest_text(text, mode)
    assert len(at_once) < 4096
    digest, _ = DigestReader().read(text, mode)
    assert re.fullmatch("[0-9a-f]{64}", digest.hash)
    # Comments that are opened in comments for the server are the only text that is read in another way.
    if "/*!" not in text and "/*+" not in text:
        assert digest.text == at_once


REPEATED = (
    "'",
    "/*",
    "(",
    "(0,",
    "1",
    "/*!99999",
    "@",
    "'\\",
    "1,",
    "(1,2),",
    "0x",
    "select /*+ ",
    "1e",
    "a",
    "`",
    "--",
)


@pytest.mark.parametrize("text", REPEATED)
def test_a_huge_text_has_a_short_digest(text: str) -> None:
    assert len(DigestReader().read(text * 100_001 + "x")[0].text) < 4096
