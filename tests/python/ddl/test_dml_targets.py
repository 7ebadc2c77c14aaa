"""The tables that a statement changes, as its text shows them."""

import random

import pyarrow as pa
import pytest

from ingest.binlog.batches import STATEMENTS
from ingest.ddl.dml.dml_batches import DML_TARGETS, TargetReader
from ingest.ddl.dml.dml_targets import read_targets
from ingest.ddl.sql_modes import ANSI_QUOTES, NO_BACKSLASH_ESCAPES
from ingest.ddl.verbs import is_plain_create
from ingest.versions import Flavor
from tests.support.work import calls_during

FLAVORS: tuple[Flavor, ...] = ("mysql", "mariadb")

INSERTS = {
    "INSERT INTO t1 VALUES (1)": "shop.t1",
    "insert t2 set a = 1": "shop.t2",
    "INSERT LOW_PRIORITY IGNORE INTO `my db`.`t``3` SELECT * FROM t0": "my db.t`3",
    "INSERT INTO t4(a) VALUES (1)": "shop.t4",
    "INSERT INTO`t5` VALUES (1)": "shop.t5",
    "insert delayed into other . t6 values (1)": "other.t6",
    "INSERT HIGH_PRIORITY t7 PARTITION (p0) VALUES (1)": "shop.t7",
    "/* app: billing */ -- why\n# and who\nINSERT /* hint */ INTO/**/t8 VALUES (1)": "shop.t8",
    "INSERT INTO data VALUES (1)": "shop.data",
    "INSERT INTO größe$1 VALUES (1)": "shop.größe$1",
    "insert into 2020_t values (1)": "shop.2020_t",
    "insert into .t values (1)": "shop.t",
    "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = (SELECT 1 FROM t0)": "shop.t",
    "INSERT INTO t WITH c AS (SELECT 1) SELECT * FROM c": "shop.t",
    "INSERT INTO t (a) VALUES (1) RETURNING a": "shop.t",
    "WITH c AS (SELECT 1) INSERT INTO t SELECT * FROM c": "shop.t",
    "SET STATEMENT max_statement_time=60, sort_buffer_size=(1+1) FOR INSERT INTO t VALUES (1)": "shop.t",
    "INSERT /*+ SET_VAR(sort_buffer_size = 1) */ INTO t VALUES (1)": "shop.t",
    "INSERT IGNORE t (a) select 1": "shop.t",
    "insert into`t`values (1)": "shop.t",
    "insert into `t`.`insert` values ('update x')": "t.insert",
}
REPLACES = {
    "REPLACE INTO t1 VALUES (1)": "shop.t1",
    "REPLACE LOW_PRIORITY other.t2 SET a = 1": "other.t2",
    "replace  into crm . t set a = 1": "crm.t",
    "replace delayed t select * from t0": "shop.t",
    "with c as (select 1) replace into t select * from c": "shop.t",
}
UPDATES = {
    "UPDATE t1 SET a = (SELECT 1 FROM t2)": "shop.t1",
    "UPDATE LOW_PRIORITY IGNORE other.t2 SET a = 1": "other.t2",
    "UPDATE t3 AS x, t4 AS y SET x.a = y.a": "shop.t3",
    "UPDATE (t5 INNER JOIN t6 USING (id)) SET a = 1": "shop.t5 shop.t6",
    "WITH c AS (SELECT id FROM t0 WHERE a IN (1, 2)) UPDATE t7 SET a = 1 WHERE id IN (SELECT id FROM c)": "shop.t7",
    "-- a line\n# another\nupdate `a``b`.`c d` set x = 1": "a`b.c d",
    "update low_priority ignore t set a = 1": "shop.t",
    "update quick set a = 1": "shop.quick",
    "update t partition (p0, p1) as x set x.a = 1": "shop.t",
    "update t for portion of p from '2020-01-01' to '2021-01-01' set a = 1": "shop.t",
    "UPDATE a JOIN b ON a.id = b.id SET a.x = 1, b.y = 2": "shop.a shop.b",
    "UPDATE a JOIN b ON a.id = b.id SET b.x = a.x": "shop.b",
    "UPDATE a JOIN b ON a.id = b.id SET b.x = 1, y = 2": "shop.a shop.b",
    "UPDATE a x JOIN crm.b AS `Y Z` USING (id) SET `Y Z`.n = x.n + 1 WHERE x.m = 1": "crm.b",
    "UPDATE a JOIN crm.b SET crm.b.n = 1, crm.b.m = 2": "crm.b",
    "UPDATE t x JOIN t y ON x.id = y.up SET x.a = 1, y.a = 2": "shop.t",
    "UPDATE a LEFT JOIN (b CROSS JOIN c) ON a.id = c.id STRAIGHT_JOIN d SET c.n = 1, d.n = f(a.n, 2)": "shop.c shop.d",
    "UPDATE t JOIN (SELECT id, max(n) n FROM s GROUP BY id) m USING (id) SET t.n = m.n": "shop.t",
    "UPDATE t JOIN (SELECT id FROM s UNION (SELECT 1)) m USING (id) SET n = 1": "shop.t",
    "UPDATE (SELECT 1 AS id) m JOIN t JOIN u SET u.n = 1": "shop.u",
    "UPDATE t, JSON_TABLE('[1]', '$[*]' COLUMNS (n int PATH '$')) AS j SET t.n = j.n": "shop.t",
    "UPDATE t JOIN LATERAL (SELECT 1 AS n) AS j SET n = j.n": "shop.t",
    "WITH RECURSIVE c (id) AS (SELECT 1), d AS (SELECT 2) UPDATE t JOIN c JOIN d SET a = 1": "shop.t",
    "WITH c AS (SELECT 1) CYCLE (a) RESTRICT UPDATE t JOIN C SET a = 1": "shop.t",
    "WITH c AS (SELECT 1) UPDATE t JOIN other.c SET a = 1": "shop.t other.c",
    "UPDATE a USE INDEX (i) JOIN b FORCE INDEX FOR JOIN (j) IGNORE KEY (k) SET a.x = 1 ORDER BY a.y, a.z": "shop.a",
    "UPDATE { OJ a LEFT OUTER JOIN b ON a.id = b.id } SET b.x = 1": "shop.b",
    "UPDATE a NATURAL JOIN b SET a.`set` = 1, a.where = 'b.x', a.c = @set, a.d = a.limit": "shop.a",
    "UPDATE a JOIN b ON a.set = b.join SET A.x = 1": "shop.a",
    "UPDATE a x JOIN b X ON x.id = X.id SET X.n = 1": "shop.b",
    "UPDATE a JOIN b SET a.x := CASE WHEN b.y IN (1, 2) THEN 3 ELSE 4 END WHERE (a.x, b.y) = (1, 2)": "shop.a",
    "UPDATE a JOIN b SET gone.x = 1": "shop.a shop.b",
}
DELETES = {
    "DELETE FROM t1 WHERE id = 1": "shop.t1",
    "DELETE LOW_PRIORITY QUICK IGNORE FROM other.t2 LIMIT 1": "other.t2",
    "DELETE t3, t4 FROM t3 INNER JOIN t4 USING (id)": "shop.t3 shop.t4",
    "DELETE t5.* FROM t5, t6 WHERE t5.id = t6.id": "shop.t5",
    "DELETE x FROM t0 AS y INNER JOIN other.t7 AS x ON x.id = y.id WHERE x.a = 1": "other.t7",
    "DELETE FROM `x` USING t8 x, t9 WHERE x.id = t9.id": "shop.t8",
    "DELETE FROM t10 AS x WHERE x.id IN (SELECT id FROM t0 t10)": "shop.t10",
    "DELETE FROM t11 WHERE id IN (SELECT id FROM t0 JOIN t11 USING (id))": "shop.t11",
    "DELETE t12 FROM t12 WHERE id IN (SELECT id FROM t0 t12)": "shop.t12",
    "DELETE HISTORY FROM t13 BEFORE SYSTEM_TIME NOW()": "shop.t13",
    "DELETE FROM `shop2`.`memory`": "shop2.memory",
    "delete quick from t": "shop.t",
    "DELETE a, b.* FROM a JOIN b": "shop.a shop.b",
    "DELETE FROM a USING a JOIN b": "shop.a",
    "DELETE FROM a, x.* USING a JOIN crm.b x": "shop.a crm.b",
    "DELETE crm.b.*, a FROM a JOIN crm.b": "crm.b shop.a",
    "DELETE X FROM t0 AS x JOIN u": "shop.t0",
    "DELETE history, a FROM a JOIN history": "shop.history shop.a",
    "DELETE FROM t PARTITION (p0) WHERE a = 1 ORDER BY b LIMIT 2": "shop.t",
    "DELETE FROM t FOR PORTION OF p FROM '2020-01-01' TO '2021-01-01'": "shop.t",
    "DELETE FROM t RETURNING a, b": "shop.t",
    "WITH c AS (SELECT id FROM t0) DELETE FROM t WHERE id IN (SELECT id FROM c)": "shop.t",
    "WITH c AS (SELECT id FROM t0) DELETE t FROM t JOIN c USING (id)": "shop.t",
    "DELETE FROM .t": "shop.t",
}
LOADS = {
    "LOAD DATA LOCAL INFILE '/tmp/SQL_LOAD_MB-1-0' IGNORE INTO TABLE `t1` FIELDS TERMINATED BY ',' (a, b)": "shop.t1",
    "load data low_priority infile 'it\\'s.csv' into table other.t2": "other.t2",
    "LOAD XML INFILE 'x.xml' REPLACE INTO TABLE t3": "shop.t3",
    "LOAD DATA INFILE 'a.txt' INTO TABLE `t4` (a)": "shop.t4",
    "load data local infile 'into table x' replace into table t": "shop.t",
    "LOAD DATA CONCURRENT INFILE 'a' INTO TABLE t PARTITION (p0) SET a = 1": "shop.t",
    "LOAD DATA FROM S3 'url' COUNT 5 IN PRIMARY KEY ORDER INTO TABLE t ALGORITHM = BULK": "shop.t",
}
CREATED = {
    "CREATE TABLE t1 AS SELECT * FROM t0": "shop.t1",
    "CREATE TABLE IF NOT EXISTS other.t2 (id int) IGNORE SELECT 1 AS id": "other.t2",
    "create or replace table t3 (select 1 as a)": "shop.t3",
    "CREATE TABLE t (a int COMMENT 'x', KEY (a)) ENGINE=InnoDB REPLACE AS SELECT 1 AS a": "shop.t",
    "/*!50000 CREATE TABLE t */ SELECT 1": "shop.t",
    "CREATE TABLE t WITH c AS (SELECT 1) SELECT * FROM c": "shop.t",
    "CREATE TABLE t AS VALUES ROW(1)": "shop.t",
    "SET STATEMENT sql_mode='' FOR CREATE TABLE t AS SELECT 1": "shop.t",
}
NOTHING = [
    *("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT insert_1", "XA START X'6162',X'',1", "XA COMMIT X'6162',X'',1"),
    "SET PASSWORD FOR u = 'insert into t'",
    "CREATE TABLE n1 (id int COMMENT 'please select one', `select` int) /* select */",
    "CREATE TABLE n2 LIKE t0",
    "CREATE TEMPORARY TABLE n3 AS SELECT 1",
    "CREATE TABLE t (a int)",
    "ALTER TABLE n4 ADD COLUMN a int",
    "TRUNCATE n5",
    "DROP TABLE n6",
    "CREATE TRIGGER tr AFTER INSERT ON n7 FOR EACH ROW INSERT INTO n8 VALUES (1)",
    "CREATE VIEW v AS SELECT 1",
    "CREATE PROCEDURE p() DELETE FROM n9",
    "GRANT INSERT ON n10 TO u",
    *("inserted := 1", "updates", "`insert` into t", "/* insert into n11 values (1) */", "ANALYZE TABLE n12"),
    *("LOAD INDEX INTO CACHE t", "", " ", ";", "SET STATEMENT a=1 FOR ANALYZE TABLE t", "/*!999999 INSERT */ x"),
]
UNREADABLE = {
    "INSERT": "INSERT",
    "INSERT INTO": "INSERT",
    "INSERT INTO 'text' VALUES (1)": "INSERT",
    "DELETE FROM (": "DELETE",
    "UPDATE": "UPDATE",
    "UPDATE ((((": "UPDATE",
    "LOAD DATA INFILE 'x": "LOAD DATA",
    "REPLACE INTO `t": "REPLACE",
}
CUT = {
    "INSERT INTO t VALUES ('": "shop.t",
    "UPDATE t SET a = 'it": "shop.t",
    "UPDATE a JOIN b ON a.id": "shop.a shop.b",
    "UPDATE a JOIN b SET b.x = 1, b.": "shop.a shop.b",
    "DELETE x, y FROM a x JOIN": "shop.a shop.y",
    "DELETE FROM a, b": "shop.a shop.b",
    "DELETE a": "shop.a",
    "INSERT INTO t VALUES (x'not a number')": "shop.t",
    "UPDATE a JOIN b ON a.id = b'3' SET a.x = 1": "shop.a shop.b",
}


def named(
    text: str, sql_mode: int = 0, flavor: Flavor = "mysql", schema: str | None = "shop"
) -> tuple[set[str], list[tuple[str | None, str | None]]]:
    """Return the verbs and tables of a statement's targets."""
    targets = read_targets(text, schema, sql_mode, flavor).targets
    return {target.verb for target in targets}, [(target.schema_name, target.table_name) for target in targets]


def tables(names: str) -> list[tuple[str | None, str | None]]:
    """Return the tables of a text such as `shop.a shop.b`, in which a name of two words may have blanks."""
    if "my db" in names or "c d" in names:
        schema, _, name = names.rpartition(".")
        return [(schema, name)]
    return [(one.rpartition(".")[0], one.rpartition(".")[2]) for one in names.split()]


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize(
    ("verb", "text", "expected"),
    [
        (verb, text, expected)
        for verb, cases in (
            ("INSERT", INSERTS),
            ("REPLACE", REPLACES),
            ("UPDATE", UPDATES),
            ("DELETE", DELETES),
            ("LOAD DATA", LOADS),
            ("CREATE TABLE SELECT", CREATED),
        )
        for text, expected in cases.items()
    ],
)
def test_tables_of_a_statement(verb: str, text: str, expected: str, flavor: Flavor) -> None:
    assert named(text, flavor=flavor) == ({verb}, tables(expected))


@pytest.mark.parametrize("text", NOTHING)
def test_statements_that_change_no_rows(text: str) -> None:
    assert named(text) == (set(), [])


@pytest.mark.parametrize(("text", "verb"), UNREADABLE.items())
def test_a_table_that_cannot_be_read_is_unknown(text: str, verb: str) -> None:
    assert named(text) == ({verb}, [(None, None)])


@pytest.mark.parametrize(("text", "expected"), CUT.items())
def test_text_that_ends_early(text: str, expected: str) -> None:
    assert named(text)[1] == tables(expected)


def test_the_call_of_a_function_names_no_table() -> None:
    assert named("SELECT `shop`.`spend`(1)") == ({"SELECT"}, [(None, None)])


def test_a_name_without_a_schema_is_in_the_default_schema() -> None:
    for schema in (None, ""):
        assert named("insert into t values (1)", schema=schema)[1] == [(None, "t")]
        assert named("delete x from a.t x join u", schema=schema)[1] == [("a", "t")]


def test_executed_comments_are_those_of_the_server() -> None:
    text = "/*!50003 INSERT */ /*M!100100 IGNORE */ INTO t9 VALUES (1)"
    assert [named(text, flavor=flavor) for flavor in FLAVORS] == [({"INSERT"}, [("shop", "t9")])] * 2
    text = "UPDATE a /*M! , b */ SET x = 1"
    assert named(text)[1] == [("shop", "a")]
    assert named(text, flavor="mariadb")[1] == [("shop", "a"), ("shop", "b")]


def test_quotes_and_backslashes_are_those_of_the_sql_mode() -> None:
    assert named('INSERT INTO "t10" VALUES (1)', ANSI_QUOTES)[1] == [("shop", "t10")]
    assert named('DELETE "x y" FROM "s"."t" "x y" JOIN u', ANSI_QUOTES)[1] == [("s", "t")]
    assert named('INSERT INTO "t\\" /* " */ VALUES (1)', ANSI_QUOTES)[1] == [("shop", "t\\")]
    text = "UPDATE a JOIN b SET a.x = '\\', b.y = ' WHERE 1"
    assert named(text)[1] == [("shop", "a")]
    assert named(text + "'", NO_BACKSLASH_ESCAPES)[1] == [("shop", "a"), ("shop", "b")]


def test_a_long_statement_has_the_targets_of_a_short_one() -> None:
    """The beginning that is read first may end anywhere."""
    cases = {**INSERTS, **REPLACES, **UPDATES, **DELETES, **LOADS, **CREATED}
    for text, expected in cases.items():
        for size in (*range(1, 70), 500, 5_000):
            assert named(f"/*{'x' * size}*/ {text}")[1] == tables(expected), (size, text)


HOSTILE = {
    "parentheses": "UPDATE " + "(" * 16_000,
    "escaped quotes": "UPDATE a, b SET x = " + "'\\'" * 16_000,
    "comments": "/*" * 16_000,
    "executed comments": "/*!" * 16_000,
    "tables": f"UPDATE {','.join(f't{n}' for n in range(2_400))} SET {','.join(f't{n}.a=1' for n in range(2_400))}",
    "targets": "DELETE " + "a," * 8_000,
    "names": "UPDATE a, b SET " + "`" * 16_001,
    "common tables": "WITH " + "a AS (select 1)," * 1_000,
    "dots": "UPDATE a, b SET x" + ".a" * 8_000,
    "definition": "CREATE TABLE t (" + "(" * 16_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_work_in_proportion_to_its_size(name: str) -> None:
    text = HOSTILE[name]
    # Quadratic work would be 64 times as much.
    assert calls_to_read(text) < 20 * calls_to_read(text[: len(text) // 8]) + 10_000


def calls_to_read(text: str) -> int:
    """Return the number of function calls that reading a text takes."""
    return calls_during(lambda: read_targets(text, "shop"))


def test_no_text_raises_an_error() -> None:
    chance = random.Random(5)
    words = "insert update delete replace load data create table with as select set from using join into ( ) , . * = @"
    pieces = [*words.split(), *";'\"`\\#\n{té", "/*", "*/", "/*!", "--", "`a`", "'b'", "x'0", "0b"]
    for _ in range(3_000):
        text = chance.choice(["update ", "delete ", "insert ", "with ", ""]) + " ".join(
            chance.choices(pieces, k=chance.randrange(40))
        )
        for mode in (0, ANSI_QUOTES):
            read_targets(text, "shop", mode, chance.choice(FLAVORS))


def batch(rows: list[tuple[str, str | None, str | None]]) -> pa.RecordBatch:
    """Return statements of these kinds, texts and SQL modes."""
    return pa.RecordBatch.from_pylist(
        [
            dict.fromkeys(STATEMENTS.names)
            | {"kind": kind, "sql_text": text, "sql_mode": mode, "default_schema": "shop"}
            for kind, text, mode in rows
        ],
        pa.schema([field.with_nullable(True) for field in STATEMENTS]),
    )


def test_the_targets_of_a_batch() -> None:
    insert = [{"verb": "INSERT", "schema_name": "shop", "table_name": "t"}]
    update = [{"verb": "UPDATE", "schema_name": "shop", "table_name": name} for name in "ab"]
    rows = {
        ("QUERY", "insert into t values (1)", ""): insert,
        ("QUERY", "insert into t values (2)", None): insert,
        ("ROWS_QUERY", "insert into t values (1)", ""): [],
        ("ANNOTATE", "insert into t values (1)", ""): [],
        ("QUERY", "BEGIN", ""): [],
        ("QUERY", None, ""): [],
        ("INTVAR", "SET INSERT_ID=5", None): [],
        ("QUERY", "/*!50000 update */ a, b set x = 1", ""): update,
        ("LOAD", "LOAD DATA INFILE 'x' INTO TABLE t", None): [{**insert[0], "verb": "LOAD DATA"}],
        ("QUERY", 'insert into "t" values (1)', "STRICT_TRANS_TABLES,ANSI_QUOTES"): insert,
        ("QUERY", 'insert into "t" values (1)', ""): [{"verb": "INSERT", "schema_name": None, "table_name": None}],
    }
    reader = TargetReader("mysql", "8.0.30")
    for _ in range(2):
        found = reader.column(batch(list(rows)))
        assert found.type == DML_TARGETS.type and found.null_count == 0
        assert found.to_pylist() == list(rows.values())
    assert reader.column(batch([])).to_pylist() == []


def test_remembered_beginnings_decide_only_what_they_decide_alone() -> None:
    chance = random.Random(7)
    cases = [*INSERTS, *REPLACES, *UPDATES, *DELETES, *LOADS, *CREATED, *NOTHING, *UNREADABLE, *CUT]
    texts = [text[: chance.randrange(len(text) + 1)] for text in chance.choices(cases, k=4_000)] + cases
    chance.shuffle(texts)
    reader = TargetReader("mysql", "8.0.30")
    for text in texts:
        expected = read_targets(text, "shop").targets
        # A function in the text adds an unknown table.
        assert reader.targets(text, "shop", "")[: len(expected)] == expected, text


CREATES = {
    "CREATE TABLE t (a INT, b VARCHAR(9) DEFAULT 'tab' COMMENT 'x')": [],
    "create index i on t (a)": [],
    "/*!50001 CREATE VIEW v AS /* */ SELECT 1 */": [],
    "CREATE TABLE t AS SELECT 1": ["shop.t"],
    "create/**/table t(a int)select 1": ["shop.t"],
    "CREATE TABLE t AS TABLE s": ["shop.t"],
    "CREATE TABLE t AS WITH c AS (SELECT 1) SELECT * FROM c": ["shop.t"],
    "/*!40000 CREATE TABLE t */ /*!40000 VALUES ROW(1) */": ["shop.t"],
}


@pytest.mark.parametrize("text", CREATES)
def test_a_create_without_a_query_is_not_parsed(text: str) -> None:
    reader = TargetReader("mysql", "9.7.4")
    assert [f"{one.schema_name}.{one.table_name}" for one in reader.targets(text, "shop", None)] == CREATES[text]
    assert list(read_targets(text, "shop").targets) == list(reader.targets(text, "shop", None))


def test_any_text_is_recognized_in_one_pass() -> None:
    assert not is_plain_create("/* */" * 50_000 + "x")
