"""DDL that binloom applies gives the same tables as a real server."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pymysql
import pytest

from ingest.binlog import open_binlog
from ingest.ddl.history import versions_of
from ingest.ddl.letter_case import lowered
from ingest.ddl.shapes import Shapes
from ingest.ddl.statements import actions_of
from ingest.versions import version_of
from tests.python.ddl.test_statements import TYPES
from tests.servers import Server
from tests.servers.marked import marked
from tests.servers.names import quoted
from tests.servers.random_ddl import RandomDdl, run_step
from tests.support.ddl.folded import (
    described,
    described_collations,
    described_databases,
    folded,
    logged_actions,
    observed,
    stated_actions,
)

STEPS = 200
STEPS_A_LOOK = 20

OF_ONE = {
    "mysql": ["vector", "vector(3)", "point srid 4326", "multilinestring not null srid 0"],
    "mariadb": [
        *("inet6", "inet4", "uuid default uuid()", "varchar(9) compressed", "blob compressed=zlib"),
        *("text default concat('a',',')", "int default 5 check (1 < 2)", "geometry ref_system_id=4326", "bit(0)"),
    ],
}
MORE_TYPES = [
    *("timestamp", "text charset binary", "varchar(9) ascii", "char(3) unicode", "tinytext binary", "nchar(3)"),
    *("text(0)", "blob(0)", "text(0) charset latin1", "decimal(0)", "dec(0, 0) unsigned"),
    *("date default '2020-01-01'", "int default (1+1)", "int as (1+1) stored", "int comment 'x' check (1 < 2)"),
    *("multipolygon", "enum('a', 'b ', 'it''s', \"q\\\"\", 'c\\\\d', 'e\\nf')", "serial primary key"),
]
ALTERED = [
    ("a text, b tinytext, c varchar(9), d mediumtext", "convert to character set utf8mb4"),
    ("a text charset utf8mb3, b tinytext", "convert to character set utf8mb4"),
    ("a int, b int, c int, primary key (a, b)", "modify a int, modify b bigint first"),
    ("a int primary key, b int", "drop primary key"),
    ("a int, b int, c int", "add x int, modify a int after c, add y int after x, change b z text first"),
    ("a int, b int, c int", "rename column a to b, rename column b to a, add q int after a"),
    ("a int, b int, c int", "change a b int, change b c int, change c a int first"),
    ("a int, b int, c int", "modify A bigint, change B B2 int"),
    ("a int, b int", "add (c int, d int, key (c)), add e int primary key first"),
    # Servers compare names letter by letter.
    ("strasse int, `straße` int, c int", "drop `STRAßE`, change strasse `ﬁ` int, add fi int"),
    ("ss int primary key, ß int unsigned, `ÄÖ` int", "change ß x int unsigned, drop `äö`"),
    ("a int", "add b serial, add c int"),
    ("a int, b int, c int", "add x int first, add y int first, add z int after a, drop b"),
]

PARTITIONED = [
    ("a int primary key, d datetime not null", "drop primary key, add primary key (a, d) {by_day}"),
    ("a int, d datetime", "add unique key u (a, d) comment 'x' {by_day}"),
    ("a int, d datetime", "add column e int not null {by_day}"),
    ("a int, d datetime", "add e int default 3 comment 'x' {by_day}"),
    ("a int, d datetime", "add e int first, add f int default 3 partition by hash (a)"),
    ("a int, d datetime", "modify d datetime not null partition by hash (a)"),
    ("a int, d datetime", "modify d datetime not null, add key k (d) partition by hash (a) partitions 4"),
    ("a int, d datetime", "change a `partition` int after d partition by hash (`partition`)"),
    ("a int, remove int", "add upgrade int default 3 after remove, modify a int after upgrade partition by hash (a)"),
    ("a int) partition by hash (a", "add column e int remove partitioning"),
    ("a int) partition by hash (a", "add e varchar(3) collate latin1_bin remove partitioning"),
    ("a int, remove int) partition by hash (a", "add key (a), add e int after remove remove partitioning"),
    ("a int, b int) partition by hash (a", "drop b, order by a remove partitioning"),
    ("a int, b int) partition by hash (a", "add e int, order by a, b remove partitioning"),
]

BEFORE_THE_SNAPSHOT = [
    "create database db_latin character set latin1",
    "create database db_bin character set utf8 collate utf8_bin",
    "create database db_bytes character set binary",
    "create table db_latin.model (a varchar(9) character set greek, b text) character set koi8r",
    "create table db_latin.changed (a varchar(9) character set greek, b int) character set koi8r collate koi8r_bin",
    "create table db_latin.converted (a varchar(9) character set greek, b text, c int) character set koi8r",
    "create table db_latin.defaulted (a varchar(9) character set greek, b text)",
    "create table db_latin.moved (a varchar(9))",
]
DEFAULTS = [
    # Texts without a character set take the table's default; others have their own.
    "create table db_latin.texts (a varchar(9), b varchar(9) charset greek, c text binary, d national varchar(3),"
    " e char(3) ascii, f char(3) unicode, g char(3) byte, h enum('a'), i set('a') charset binary,"
    " j varchar(9) collate cp1251_bin, k varchar(3) charset utf8 binary, l nchar(3), m long varchar, n int)",
    "create table db_bin.texts (a text, b text binary, c text charset utf8, d enum('a'), e varchar(9) charset latin1)",
    "create table db_bytes.texts (a text, b varchar(9), c enum('a'), d char(3), e varchar(9) charset latin1,"
    " f tinytext, g set('x'), h text(300))",
    # The type of a TEXT with a length follows from its character set.
    "create table db_latin.sized (a text(100), b text(70), c text(300), d blob(100))",
    "create table db_bin.sized (a text(100), b text(70), c text(30000), d blob(30000))",
    "alter table db_bin.sized add e text(100), add f text(70)",
    # A modified column takes the default of the table, not its previous character set.
    "alter table db_latin.changed modify a varchar(10)",
    "alter table db_latin.changed change b c text",
    "create table db_bin.like_model like db_latin.model",
    "alter table db_bin.like_model add c text",
    "create table db_latin.by_session (a text)",
    "alter table db_latin.converted convert to character set default",
    "use db_bin",
    "alter table db_latin.by_session convert to character set default",
    "create table db_latin.converted_2 (a text, b varchar(9) charset greek, c enum('a') charset binary, d text(70))",
    "alter table db_latin.converted_2 convert to character set utf8, add e text, add f text(100)",
    "create table db_latin.bytes (a varchar(9), b varchar(9) charset greek, c text, d enum('a'))",
    "alter table db_latin.bytes convert to character set binary",
    "alter table db_latin.bytes add e text",
    "alter table db_latin.defaulted default character set cp1251",
    "alter table db_latin.defaulted add c text",
    "alter table db_latin.defaulted collate cp1251_bin",
    "alter table db_latin.defaulted add d text, default character set utf8, add e text, modify b varchar(20)",
    "alter table db_latin.defaulted default character set binary",
    "alter table db_latin.defaulted add f text, modify a varchar(10)",
    "rename table db_latin.moved to db_bin.moved",
    "alter table db_bin.moved add b text",
    "alter database db_bin character set greek",
    "create table db_bin.after (a text)",
    "alter database db_bin collate cp1251_bin",
    "create table db_bin.after_2 (a text)",
    # A new database takes the session's value of the server's collation.
    "create database db_server",
    "create table db_server.texts (a text)",
    "set session collation_server = koi8u_bin",
    "create database db_session",
    "create table db_session.texts (a text, b text charset latin1)",
    "create database if not exists db_latin charset greek",
    "create table db_latin.after (a text)",
    "drop database db_session",
    "create database if not exists db_session",
    "create table db_session.again (a text)",
]
DEFAULTS_OF = {
    "mysql": ["create table db_latin.documents (a json)"],
    "mariadb": [
        "create table db_latin.documents (a json, b text)",
        "alter table db_latin.documents convert to character set greek",
        "create table db_latin.document (a json)",
        "create table db_bin.unsaid (a text) charset default",
        "create table db_bin.uncollated (a text) collate default",
        "create table db_bin.utf8 (a text charset utf8mb4 collate default, b text) charset utf8mb4 collate utf8mb4_bin",
        "alter table db_bin.utf8 collate default, add c text",
        "alter table db_bin.utf8 default charset default",
        "alter table db_bin.utf8 add d text",
        "alter table db_latin.model convert to character set default collate latin1_bin",
        "create or replace database db_session charset default",
        "set statement collation_server = greek_bin for create database db_statement",
        "create table db_statement.texts (a text)",
        "alter database db_statement character set default",
        "create table db_statement.after (a text)",
        "create database db_uca character set utf8mb4 collate uca1400_ai_ci",
        "alter database db_uca collate uca1400_as_ci",
        "create table db_uca.texts (a text, b text collate uca1400_ai_cs, c text charset latin1) collate uca1400_as_cs",
        "alter table db_uca.texts add d text, collate uca1400_ai_ci",
        "alter table db_uca.texts convert to charset utf8mb3 collate uca1400_as_ci",
    ],
}


def each_server() -> Any:
    """Parametrize a test with the fixture of each kind of server."""
    return pytest.mark.parametrize("name", marked("mysql", "mariadb"))


@pytest.fixture
def server(name: str, request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server without databases of earlier tests."""
    server: Server = request.getfixturevalue(f"{name}_server")
    drop_databases(server)
    yield server
    drop_databases(server)


@each_server()
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_ddl_comes_to_the_tables_that_the_server_has(server: Server, seed: int) -> None:
    ddl, shapes = RandomDdl(seed, server.flavor), Shapes(begins_empty=True)
    server.flush()
    with server.connect() as connection, connection.cursor() as cursor:
        for number, step in enumerate(ddl.steps(STEPS), 1):
            run_step(cursor, step)
            if number == STEPS_A_LOOK:
                server.flush()
                observed(shapes, server, ddl.databases)
            elif number % STEPS_A_LOOK == 0:
                for action in logged_actions(server.flush()):
                    shapes.apply(action)
                assert folded(shapes) == described(server, ddl.databases)
                assert {name: shapes.schemas[name][0] for name in ddl.databases} == {
                    name: character_set
                    for name, (character_set, _) in described_databases(server, ddl.databases).items()
                }


@each_server()
def test_each_type_is_shown_as_the_server_shows_it(server: Server) -> None:
    # Each of two types exists on only one of the servers.
    both = [written for written, shown in TYPES if shown[0] not in ("vector(3)", "inet6", "uuid")]
    own = "ref_system_id" if server.flavor == "mysql" else "srid"
    types = [*(one for one in both if own not in one), *MORE_TYPES, *OF_ONE[server.flavor]]
    check(server, [[f"create table db.t{number} (a {one}) charset utf8mb4"] for number, one in enumerate(types)])


@each_server()
def test_letters_are_the_same_that_the_server_does_not_tell_apart(server: Server) -> None:
    alike: dict[str, set[str]] = {}
    for letter in map(chr, (*range(0x41, 0x7B), *range(0x80, 0xD800), *range(0xE000, 0xFFFE))):
        for folded_so in (letter.lower(), letter.upper(), letter.casefold(), letter.upper().lower()):
            alike.setdefault(folded_so, set()).add(letter)
    pairs = {pair for letters in alike.values() for pair in combinations(sorted(letters), 2)}
    assert len(pairs) > 1000
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        for one, other in sorted(pairs):
            is_same = False
            try:
                cursor.execute(f"select * from (select 1 as `x{one}`, 2 as `x{other}`) as found")
            except pymysql.err.OperationalError as error:
                assert error.args[0] == pymysql.constants.ER.DUP_FIELDNAME
                is_same = True
            assert is_same == (lowered(one) == lowered(other)), (one, other)


@each_server()
def test_what_is_altered_comes_to_what_the_server_has(server: Server) -> None:
    check(
        server,
        [
            [f"create table db.t{number} ({columns}) charset latin1", f"alter table db.t{number} {alter}"]
            for number, (columns, alter) in enumerate(ALTERED)
        ],
    )


@pytest.mark.parametrize("name", marked("mysql", "mariadb", "mysql56", "mariadb118"))
def test_partitions_that_follow_a_definition_change_no_column(server: Server) -> None:
    by_day = (
        "partition by range (to_days(d))"
        " (partition p0 values less than (738000), partition p1 values less than maxvalue)"
    )
    check(
        server,
        [
            [
                f"create table db.t{number} (x text charset latin1, {columns})",
                f"alter table db.t{number} {alter.format(by_day=by_day)}",
            ]
            for number, (columns, alter) in enumerate(PARTITIONED)
        ],
    )


@pytest.mark.parametrize(
    "name",
    marked("mysql", "mariadb", "mysql56", "mariadb118"),
)
def test_what_is_left_unsaid_has_the_character_set_that_the_server_gives_it(server: Server) -> None:
    own = DEFAULTS_OF[server.flavor] if not server.version.startswith("5.") else []
    collation = server.execute("select @@collation_server")[0][0]
    for statement in BEFORE_THE_SNAPSHOT:
        server.execute(statement)
    server.flush()
    shapes = Shapes()
    observed(shapes, server, databases_on(server))
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in [*DEFAULTS, *own]:
            cursor.execute(statement)
    assert server.execute("select @@collation_server")[0][0] == collation
    for action in stated_actions(server.flush()):
        shapes.apply(action)
    names = databases_on(server)
    mine, theirs = folded(shapes), described(server, names)
    for table in theirs:
        assert mine[table] == theirs[table], table
    assert mine.keys() == theirs.keys()
    for name, (character_set, default) in described_databases(server, names).items():
        assert shapes.schemas[name][0] == character_set, name
        assert shapes.schemas[name][1] in (None, default), name
    collations = described_collations(server, names)
    for (schema, table), shape in shapes.tables.items():
        for column in shape.columns:
            assert column.collation in (None, "binary", collations.get((schema, table, column.name))), (table, column)


ROUTINES = [
    "create library db.l language javascript as $mle$ export function f(n) { return `it's ${n}` } $mle$",
    "create library db.m language javascript as $js$ '$$' \" $js$",
    "create function db.f(n int) returns int deterministic language javascript as $$\n // don't round\n return n $$",
    "create procedure db.p() language javascript as '// don\\'t $$ $javascript$ $javascript0$'",
    "set session sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
    'create function db.g(n int) returns int deterministic language javascript as $é$ let x = "\\\'" // ` $é$',
    "alter library db.l comment 'it''s'",
    "drop library db.m",
]


CONDITIONAL_KEYS = (
    "modify column if exists a int primary key",
    "change if exists a c int key, add a int",
    "add column if not exists d int primary key",
    "add column if not exists (d int primary key)",
    "add primary key if not exists (a)",
)

OF_MARIADB = [
    ["create sequence db.t0 as smallint unsigned", "alter sequence if exists db.t0 as int unsigned"],
    ["create sequence db.t1 as bigint unsigned", "alter sequence db.t1 increment by 2"],
    ["create sequence db.t2 as mediumint"],
    ["create sequence db.t3 as tinyint unsigned"],
    ["create table db.t4 (t4.a int, db.t4.b varchar(9))", "alter table db.t4 modify column t4.b bigint first"],
    ["create table db.t5 (a int, b varchar(9))", "alter table db.t5 change t5.b bb varchar(20), drop column t5.a"],
    ["create table db.t6 (a int, b int)", "alter table db.t6 add column if not exists (a bigint, c date, d int)"],
    ["create table db.t7 (id int, s date, e date, period for p (s, e))"],
    ["create table db.t8 (id int, s datetime, E datetime)", "alter table db.t8 add period for p (S, e), add x int"],
    [
        "create table db.t13 (id int, s date, e date)",
        "alter table db.t13 add period if not exists for p (s, e), add x int",
        "alter table db.t13 drop period if exists for p, add y int",
    ],
    *(
        [
            f"create table db.t{number} (k int{key}, a int, b int)",
            f"alter table db.t{number} {alter}",
            f"alter table db.t{number} modify k int, modify a int",
        ]
        for number, (key, alter) in enumerate(
            (
                *((key, alter) for key in ("", " primary key") for alter in CONDITIONAL_KEYS),
                *((" primary key", f"drop primary key, {alter}") for alter in CONDITIONAL_KEYS),
            ),
            14,
        )
    ),
    *(
        [
            f"create table db.t{number} (k int, a text, b varchar(9) charset latin2) charset latin1",
            f"alter table db.t{number} {alter}",
            f"alter table db.t{number} add e text",
        ]
        for number, alter in enumerate(
            [
                *("collate latin1_bin, convert to charset utf8mb4", "convert to charset utf8mb4, charset latin1"),
                *(
                    "convert to charset latin2, charset cp1251, add d text",
                    "convert to charset utf8mb4, collate utf8mb4_bin",
                ),
            ],
            9,
        )
    ),
]


# The ends of a period stay NOT NULL.
PERIODS = [
    ["create table db.t0 (s date, e date, a int, period for p (s, e))", "alter table db.t0 modify S date after a"],
    [
        "create table db.t1 (s date, e date, a int)",
        "alter table db.t1 add period for p (s, e)",
        "alter table db.t1 change s S date default '2020-01-01', modify e date null comment 'c'",
    ],
    ["create table db.t2 (s date, e date, a int, period for p (s, e))"],
    ["create table db.t3 like db.t2", "alter table db.t3 modify s date comment 'c'"],
    [
        "create table db.t4 (s date, e date, a date, period for p (s, e))",
        "alter table db.t4 modify s date comment 'c', drop period for p",
        "alter table db.t4 add period for q (e, a)",
        "alter table db.t4 modify e date comment 'c'",
    ],
    [
        "create table db.t5 (s date, e date, period for p (s, e))",
        "alter table db.t5 drop period for p",
        "alter table db.t5 modify e date",
    ],
]


@pytest.mark.parametrize("name", marked("mariadb", "mariadb118"))
def test_the_ends_of_a_period_take_no_null(server: Server) -> None:
    check(server, PERIODS)


# The table before the statement decides a condition.
CONDITIONS = [
    "drop a, add column if not exists a int unsigned",
    "change a c int, add column if not exists a int unsigned, add d int",
    "rename column a to c, add column if not exists A int unsigned",
    "drop a, add column if not exists c int unsigned",
]


@pytest.mark.parametrize("name", marked("mariadb", "mariadb118"))
def test_a_condition_is_that_of_the_table_before(server: Server) -> None:
    check(
        server,
        [
            [f"create table db.t{number} (a int, b int)", f"alter table db.t{number} {alter}"]
            for number, alter in enumerate(CONDITIONS)
        ],
    )


@pytest.mark.parametrize("name", marked("mariadb118"))
def test_what_only_mariadb_has_comes_to_what_it_shows(server: Server) -> None:
    check(server, OF_MARIADB)


# MySQL 5.6 leaves the default of a table as it is if a conversion that stands alone changes no column.
CONVERSIONS = [
    [
        f"create table db.t{number} ({columns}) charset latin1",
        f"alter table db.t{number} {alter}",
        f"alter table db.t{number} add e text",
    ]
    for number, (columns, alter) in enumerate(
        (columns, alter)
        for columns in ("a int, b varbinary(9)", "a int, b text", "a varchar(9) charset utf8mb4")
        for alter in (
            *("convert to charset utf8mb4", "convert to charset utf8mb4 collate utf8mb4_bin"),
            *("convert to charset utf8mb4, comment 'x'", "convert to charset utf8mb4, lock=shared"),
            "convert to charset utf8mb4, add f int",
        )
    )
]


@pytest.mark.parametrize("name", marked("mysql", "mariadb", "mysql56", "mariadb118"))
def test_a_conversion_comes_to_what_the_server_shows(server: Server) -> None:
    check(server, CONVERSIONS)


@pytest.mark.parametrize("name", marked("mariadb", "mysql56", "mariadb118"))
def test_a_timestamp_of_maxdb_is_a_datetime(server: Server) -> None:
    server.flush()
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("create database db character set utf8mb4")
        cursor.execute("set sql_mode = 'MAXDB'")
        cursor.execute("create table db.t0 (id int, a timestamp, b timestamp(3) not null)")
        if server.flavor == "mariadb":
            cursor.execute("create table db.t1 (a mariadb_schema.timestamp null, b timestamp)")
    shapes = Shapes()
    for action in stated_actions(server.flush()):
        shapes.apply(action)
    assert folded(shapes) == described(server, ["db"])


LONG = [
    *("varchar(21000) charset latin1", "varchar(21000) charset utf8mb4", "varchar(30000) charset ucs2"),
    *("varchar(70000) charset latin1", "varchar(66000)", "varchar(20000)", "varbinary(65536)", "varbinary(17000000)"),
    *("varchar(66000) charset binary", "varchar(16000) charset utf8mb4", "national varchar(30000)"),
]


@pytest.mark.parametrize("name", marked("mysql", "mariadb", "mysql56", "mariadb118"))
def test_a_varchar_that_is_too_long_is_a_text(server: Server) -> None:
    server.flush()
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("create database db character set utf8mb4")
        cursor.execute("set sql_mode = ''")
        for number, one in enumerate(LONG):
            cursor.execute(f"create table db.t{number} (a {one})")
        cursor.execute("create table db.binary (a varchar(66000), b varchar(60000)) charset binary")
        cursor.execute("create table db.converted (a varchar(20000), b varchar(9), c text) charset latin1")
        cursor.execute("alter table db.converted convert to character set utf8mb4")
        cursor.execute("create table db.altered (a varchar(9), b int) charset latin1")
        cursor.execute("alter table db.altered modify a varchar(66000), add c varchar(70000) first")
    shapes = Shapes()
    for action in stated_actions(server.flush()):
        shapes.apply(action)
    assert folded(shapes) == described(server, ["db"])


@pytest.mark.parametrize("name", marked("mariadb", "mariadb118"))
def test_types_of_oracle_are_those_that_the_server_makes_of_them(server: Server) -> None:
    types = [
        *("blob", "blob(30)", "blob(300)", "clob", "number", "number(5)", "number(5,2)", "varchar2(9)", "raw(5)"),
        *("date", "varchar(9)", "text", "timestamp", "mariadb_schema.date", "maxdb_schema.timestamp null"),
        *(f"mariadb_schema.{one}" for one in ("blob", "blob(300)", "clob", "number(5)", "raw(3)", "varchar2(9)")),
    ]
    of_any_mode = ["oracle_schema.date", "maxdb_schema.timestamp null", "oracle_schema.blob", "maxdb_schema.date"]
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("create database db")
        cursor.execute("set sql_mode = 'oracle'")
        for number, one in enumerate(types):
            cursor.execute(f"create table db.t{number} (a {one})")
        cursor.execute("set sql_mode = ''")
        for number, one in enumerate(of_any_mode, len(types)):
            cursor.execute(f"create table db.t{number} (a {one})")
    shapes = Shapes()
    for action in stated_actions(server.flush()):
        shapes.apply(action)
    # In its default mode the server shows a type as it has it.
    assert folded(shapes) == described(server, ["db"])


# The mode of the session, and what is then executed.
OTHER_MODES = [
    ("oracle", "set statement sql_mode = '' for create table db.t0 (\"a\" int, b varchar2(9))"),
    ("", 'set statement sql_mode = \'oracle\' for create table db.t1 (a enum("x"), b int comment "c")'),
    ("no_backslash_escapes", r"set statement sql_mode = '' for create table db.t2 (a int comment 'c:\', b int)"),
    ("", r"set statement sql_mode = 'no_backslash_escapes' for create table db.t3 (a int comment 'it\'s', b int)"),
]
OF_MSSQL = "create table [db].[t[]]] ([a b] int, [c]]--d] int, [it's] int comment '[', `e[` int /* [ */, \"f]\" int)"


@pytest.mark.parametrize("name", marked("mariadb", "mariadb118"))
def test_brackets_quote_names_in_the_mode_of_mssql(server: Server) -> None:
    server.execute("create database db character set utf8mb4")
    server.flush()
    server.execute("set sql_mode = 'mssql'", OF_MSSQL)
    shapes = Shapes()
    shapes.schemas["db"] = "utf8mb4", None
    for action in stated_actions(server.flush()):
        shapes.apply(action)
    assert folded(shapes) == described(server, ["db"])


PREPARED = r"create table db.t4 (a varchar(9) default 'it\'s', b varchar(9) default 'it\'s')"


@pytest.mark.parametrize("name", marked("mariadb", "mariadb118"))
def test_a_statement_that_sets_the_mode_is_read_in_the_mode_of_its_session(server: Server) -> None:
    server.execute("create database db character set utf8mb4")
    server.flush()
    with server.connect() as connection, connection.cursor() as cursor:
        for mode, statement in OTHER_MODES:
            cursor.execute(f"set sql_mode = '{mode}'")
            cursor.execute(statement)
    shapes = Shapes()
    shapes.schemas["db"] = "utf8mb4", None
    for action in stated_actions(server.flush()):
        shapes.apply(action)
    assert folded(shapes) == described(server, ["db"])


@pytest.mark.parametrize("name", marked("mysql", "mariadb", "mysql56", "mariadb118"))
def test_a_statement_that_was_prepared_in_another_mode_gets_no_wrong_columns(server: Server) -> None:
    server.execute("create database db")
    server.flush()
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set sql_mode = ''")
        cursor.execute("set @text = %s", (PREPARED,))
        cursor.execute("prepare made from @text")
        cursor.execute("set sql_mode = 'no_backslash_escapes'")
        cursor.execute("execute made")
    assert len(described(server, ["db"])["db", "t4"]["columns"]) == 2
    (action,) = stated_actions(server.flush())
    assert action.action == "not_understood" or [one.name for one in action.columns] == ["a", "b"]


VIEWS = [
    "create view db.v as select 1 as a",
    "create table if not exists db.v (b int)",
    "drop table if exists db.v",
    "create table if not exists db.v (b int)",
    "create view db.w as select 1 as a",
    "create table db.t (a int)",
    "drop view if exists db.t",
    "drop view db.w, db.v",
    "create table if not exists db.v (c int)",
    "create table if not exists db.t (c int)",
]


@pytest.mark.parametrize("name", marked("mysql", "mariadb", "mysql56", "mariadb118"))
def test_a_view_is_no_table(server: Server) -> None:
    server.flush()
    server.execute("create database db", *VIEWS)
    versions = versions_of(((place,), action) for place, action in enumerate(stated_actions(server.flush())))
    known = {table: [row["column_name"] for row in found[-1].columns or ()] for table, found in versions.items()}
    assert {table: names for table, names in known.items() if names} == {("db", "t"): ["a"], ("db", "v"): ["c"]}


VERSIONED = [
    ["create table db.t0 (a int, s timestamp(6) as row start, e timestamp(6) as row end, {period}) {versioned}"],
    [
        "create table db.t1 (s timestamp(6) as row start invisible, a int, {period},"
        " e timestamp(6) generated always as row end invisible) {versioned}"
    ],
    ["create table db.t2 (s bigint unsigned as row start, e bigint unsigned as row end, {period}, a int) {versioned}"],
    [
        "create table db.t3 (a int)",
        "alter table db.t3 add s timestamp(6) as row start first, add e timestamp(6) as row end, add {period},"
        " add system versioning",
    ],
    [
        "create table db.t4 (period for p (b, c), s timestamp(6) as row start, {period}, b date,"
        " e timestamp(6) as row end, c date) {versioned}"
    ],
    # The end of the period joins the primary key.
    [
        "create table db.t5 (e timestamp(6) as row end, a int primary key, s timestamp(6) as row start, {period})"
        " {versioned}"
    ],
    [
        "create table db.t6 (a int, b int, primary key (b))",
        "alter table db.t6 add s timestamp(6) as row start, add e timestamp(6) as row end, add {period},"
        " add system versioning",
    ],
    # A key without overlaps has the columns of the period that it names.
    ["create table db.t7 (a int, b date, c date, primary key (a, P without overlaps), period for p (b, c))"],
    [
        "create table db.t8 (b date, c date, a int)",
        "alter table db.t8 add period for p (b, c), add primary key (a, p without overlaps)",
    ],
]


@pytest.mark.parametrize("name", marked("mariadb", "mariadb118"))
def test_the_ends_of_a_period_may_be_declared_in_short(server: Server) -> None:
    words = {"period": "period for system_time (s, e)", "versioned": "with system versioning"}
    check(server, [[statement.format(**words) for statement in of_table] for of_table in VERSIONED])


@pytest.mark.mysql
def test_routines_in_javascript_change_no_table(mysql_server: Server) -> None:
    # They can be created, and are logged, on a server that cannot run them. It chooses other marks for the log.
    mysql_server.execute("create database db", "create table db.t (a int)")
    mysql_server.flush()
    mysql_server.execute(*ROUTINES)
    log = mysql_server.flush()
    found = [(one.action, one.schema_name, one.detail) for one in logged_actions(log)]
    drop_databases(mysql_server)
    assert found == [
        ("other", "db", detail)
        for detail in (
            *("create library", "create library", "create function", "create procedure", "create function"),
            *("alter library", "drop library"),
        )
    ]


def databases_on(server: Server) -> list[str]:
    """Return the databases that a test made."""
    return [name for (name,) in server.execute("show databases") if name.startswith("db")]


@pytest.mark.mariadb
def test_columns_that_mariadb_adds_stand_where_its_row_events_have_them(mariadb_server: Server) -> None:
    statements = [
        "create database db",
        "use db",
        "create sequence s",
        "select nextval(s)",
        "set system_versioning_alter_history = keep",
        "create table t (a int) with system versioning",
        "alter table t add b varchar(9), add c date first",
        "insert into t (a) values (1)",
        "create table u (a int)",
        "alter table u add system versioning, add b varchar(9)",
        "insert into u (a) values (1)",
        "create table v like t",
        "insert into v (a) values (1)",
        "create table w (a int primary key) with system versioning",
        "create table x (a int, b int, primary key (b))",
        "alter table x add system versioning",
        "create table y (a int) with system versioning",
        "alter table y add primary key (a)",
        "create table z like w",
        "alter table z drop system versioning",
    ]
    shapes = Shapes()
    mariadb_server.flush()
    mariadb_server.execute(*statements)
    log = mariadb_server.flush()
    for statement in statements:
        for action in actions_of(statement, "db", 0, "mariadb", version_of("mariadb", mariadb_server.version)):
            shapes.apply(action)
    mine, theirs = folded(shapes)["db", "s"], described(mariadb_server, ["db"])["db", "s"]
    # Statements that do not come from the log do not tell the server's default.
    assert {**mine, "character_set": None} == {**theirs, "character_set": None}
    maps = [row for kind, batch in open_binlog(log).batches() if kind == "table_maps" for row in batch.to_pylist()]
    types = {row["table_name"]: [column["type"] for column in row["columns"]] for row in maps}
    for table, logged in types.items():
        assert [WIRE_TYPES[str(column.data_type)] for column in shapes.tables["db", table].columns] == logged
    for table in "wxyz":
        key = mariadb_server.execute(
            "select column_name from information_schema.key_column_usage"
            f" where table_schema = 'db' and table_name = '{table}' order by ordinal_position"
        )
        assert shapes.tables["db", table].primary_key == tuple(name for (name,) in key)
    drop_databases(mariadb_server)


@pytest.mark.parametrize("name", marked("mariadb", "mariadb118"))
def test_an_alter_of_two_phases_counts_once_and_only_if_it_succeeds(server: Server) -> None:
    statements = [
        "create database db",
        "create table db.t (a int, b int, c int)",
        "insert into db.t values (1, 1, 1), (1, 2, 2)",
    ]
    server.execute(*statements)
    server.flush()
    shapes = Shapes()
    observed(shapes, server, ["db"])
    server.execute("set binlog_alter_two_phase = on", "alter table db.t add column d int")
    with pytest.raises(pymysql.err.IntegrityError):
        server.execute("set binlog_alter_two_phase = on", "alter table db.t modify b int after c, add unique (a)")
    server.execute("set binlog_alter_two_phase = on", "alter table db.t drop column b, add column e int first")
    log = server.flush()
    kinds = [row["kind"] for row in statements_of(log)]
    assert kinds == ["START_ALTER", "QUERY", "START_ALTER", "ROLLBACK_ALTER", "START_ALTER", "QUERY"]
    for action in logged_actions(log):
        shapes.apply(action)
    assert folded(shapes) == described(server, ["db"])


def statements_of(log: Path) -> list[dict[str, Any]]:
    """Return the rows of the statements of a binlog file."""
    return [row for kind, batch in open_binlog(log).batches() if kind == "statements" for row in batch.to_pylist()]


WIRE_TYPES = {
    "int": "LONG",
    "bigint": "LONGLONG",
    "tinyint": "TINY",
    "varchar": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP2",
}


def check(server: Server, tables: list[list[str]]) -> None:
    """Run the statements of each table; compare all tables afterwards."""
    shapes = Shapes()
    statements = [
        "create database db character set utf8mb4",
        *(statement for of_table in tables for statement in of_table),
    ]
    for statement in statements:
        server.execute(statement)
        for action in actions_of(statement, None, 0, server.flavor, version_of(server.flavor, server.version)):
            shapes.apply(action)
    mine, theirs = folded(shapes), described(server, ["db"])
    assert len(theirs) == len(tables)
    for number, of_table in enumerate(tables):
        assert mine["db", f"t{number}"] == theirs["db", f"t{number}"], of_table


def drop_databases(server: Server) -> None:
    """Drop the databases that a test made."""
    for (name,) in server.execute("show databases"):
        if name.lower().startswith(("db", "select")):
            server.execute(f"drop database {quoted(name)}")


KEY = "my_row_id bigint unsigned not null auto_increment invisible primary key"
GENERATED_KEYS = [
    ("create table {} (a int, b int)", "alter table {} modify b int first"),
    ("create table {} (a int, b int)", "alter table {} add c int first, add d int first, add e int after my_row_id"),
    (
        "create table {} (a int)", "set sql_generate_invisible_primary_key = 0", "alter table {} add c int first",
        "alter table {} drop primary key, drop column my_row_id, add d int first",
    ),
    ("create table {} (a int)", "alter table {} alter column my_row_id set visible", "alter table {} add c int first"),
    (
        "create table {} (a int)", "alter table {} alter my_row_id set visible, add c int first",
        "alter table {} add d int first", "alter table {} alter my_row_id set invisible",
        "alter table {} modify my_row_id bigint unsigned not null auto_increment invisible first",
        "alter table {} add e int first",
    ),
    ("create table {} (a int)", "alter table {} drop column my_row_id, add id int primary key first"),
    # The server takes a person's column of the same kind for its own.
    (f"create table {{}} ({KEY}, a int)", "alter table {} add c int first"),
    (f"create table {{}} ({KEY.upper()}, a int)", "alter table {} add c int first"),
    (f"create table {{}} ({KEY.replace('my_row_', '')}, a int)", "alter table {} rename column id to my_row_id",
     "alter table {} add c int first"),
    (f"create table {{}} ({KEY.replace('invisible', '')}, a int)", "alter table {} add c int first"),
    (f"create table {{}} ({KEY.replace('unsigned', '')}, a int)", "alter table {} add c int first"),
    (f"create table {{}} ({KEY.replace('bigint', 'int')}, a int)", "alter table {} add c int first"),
    (f"create table {{}} ({KEY.replace('primary key', 'unique')}, a int)", "alter table {} add c int first"),
    (f"create table {{}} (a int, {KEY}, b int)", "alter table {} modify b int first"),
    (f"create table {{}} ({KEY.replace('primary key', '')}, a int not null, primary key (my_row_id, a))",
     "alter table {} add c int first"),
    (f"create table {{}} ({KEY.replace('auto_increment', '')}, a int)", "alter table {} add c int first"),
]  # fmt: skip


@pytest.mark.parametrize("name", marked("mysql"))
@pytest.mark.parametrize("is_snapshot", [False, True])
def test_a_generated_key_stays_the_first_column(server: Server, is_snapshot: bool) -> None:
    server.execute("create database db")
    server.flush()
    shapes = Shapes()
    for number, (create, *alters) in enumerate(GENERATED_KEYS):
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("set sql_generate_invisible_primary_key = 1")
            cursor.execute(create.format(f"db.t{number}"))
            if is_snapshot:
                server.flush()
                observed(shapes, server, ["db"])
            for statement in alters:
                cursor.execute(statement.format(f"db.t{number}"))
        for action in stated_actions(server.flush()):
            shapes.apply(action)
    mine, theirs = folded(shapes), described(server, ["db"])
    for number, statements in enumerate(GENERATED_KEYS):
        assert mine["db", f"t{number}"]["columns"] == theirs["db", f"t{number}"]["columns"], statements
