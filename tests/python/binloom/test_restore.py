"""`binloom restore` on real servers: tables from a dump and the log equal what the server had at that moment."""

import gzip
import re
import subprocess
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tests.servers import Server
from tests.servers.dumped import dumped
from tests.servers.marked import marked
from tests.servers.rows import Row, table_rows
from tests.support.binlog import workload
from tests.support.binlog.workload_tables import server_charsets, tables
from tests.support.command_line import COMMAND
from tests.support.depth import at_depth
from tests.support.in_process import binloom_here
from tests.support.mydumper import dumped_by_mydumper, needs_mydumper
from tests.support.recover.undo_servers import Rows, is_new, rows_of, run
from tests.support.recover.undo_workload import TABLES, Workload, play
from tests.support.shell_dump import shell_dump

SERVERS = marked("mysql", "mariadb", deep=("mysql56", "mariadb118"))
SESSION = f"set session sql_mode = '{workload.SQL_MODE}', time_zone = '+00:00', group_concat_max_len = 10000000"
# No statement can write the number 0 of an ENUM.
VALID = f"update {workload.SCHEMA}.enums_and_sets set single = null where single = ''"
SCHEMA, BACK = "kept", "kept_again"


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Server:
    live: Server = request.getfixturevalue(f"{request.param}_server")
    return live


def position(server: Server) -> str:
    """Return where the log of a server ends."""
    file, pos, *_ = server.execute("show binary log status" if is_new(server) else "show master status")[0]
    return f"{file}:{pos}"


def dump(server: Server, path: Path, *options: str, schema: str = SCHEMA) -> Path:
    """Write a dump of a schema with the server's own program."""
    source = "--source-data=2" if server.flavor == "mysql" else "--master-data=2"
    path.write_bytes(dumped(server, source, "--single-transaction", *options, "--databases", schema))
    return path


def restore(*words: object, code: int = 0) -> "subprocess.CompletedProcess[str]":
    """Run the command."""
    done = binloom_here("restore", *words)
    assert done.returncode == code, done.stderr
    return done


def files(server: Server) -> list[str]:
    """Return the option of the binlog files."""
    return ["--files", *map(str, server.binlogs())]


def create(server: Server, schema: str) -> None:
    """Create the tables of the random transactions."""
    server.execute(f"drop database if exists {schema}", f"create database {schema} character set utf8mb4")
    with server.connect(database=schema) as connection, connection.cursor() as cursor:
        for statement in TABLES.values():
            cursor.execute(statement)


def applied(server: Server, script: str, schema: str = SCHEMA) -> Rows:
    """Run a script on a copy of its schema; return the rows of the copy."""
    done = run(server, script.replace(f"`{schema}`.", f"`{BACK}`."))
    assert done.returncode == 0, done.stderr
    return rows_of(server, BACK)


def test_random_changes_after_a_dump(server: Server, tmp_path: Path) -> None:
    for seed in range(at_depth(2, 40)):
        create(server, SCHEMA)
        create(server, BACK)
        with server.connect(autocommit=False, database=SCHEMA) as connection, connection.cursor() as cursor:
            play(cursor, Workload(3 * seed).transactions(), {})
            taken = dump(server, tmp_path / "dump.sql", *(["--hex-blob"] if seed % 2 else []))
            play(cursor, Workload(3 * seed + 1).transactions(), {})
            moment, expected = position(server), rows_of(server, SCHEMA)
            play(cursor, Workload(3 * seed + 2).transactions(), {})
        output = tmp_path / "restored.sql"
        restore(f"{SCHEMA}.*", "--from-dump", taken, "--as-of", moment, "-o", output, *files(server))
        assert applied(server, output.read_text()) == expected, seed


def test_values_of_all_types(server: Server, tmp_path: Path) -> None:
    made = [one for one in tables(server, server_charsets(server)) if one.key == ("id",) and one.engine == "InnoDB"]
    made = [
        one
        for one in made
        if not (one.is_versioned or one.extra_statements) and one.name.isascii() and len(one.columns) < 50
    ]
    for schema in (workload.SCHEMA, BACK):
        server.execute(f"drop database if exists {schema}", f"create database {schema}")
    # Some documents of this table cannot be written as SQL.
    made = [one for one in made if one.name != "documents"]
    since: list[str] = []
    for table in made:
        server.execute(table.ddl(), table.ddl().replace(f"{workload.SCHEMA}.", f"{BACK}.", 1))
        first, *later = table.statements()
        inserts = [one for one in later if one.startswith("insert") and " values " in one]
        server.execute(SESSION, first, *inserts)
        since += [one for one in later if one not in inserts]
    taken = dump(server, tmp_path / "dump.sql", schema=workload.SCHEMA)
    packed = tmp_path / "dump.sql.gz"
    packed.write_bytes(gzip.compress(taken.read_bytes()))
    names = [f"{workload.SCHEMA}.{table.name}" for table in made]
    for statements in ([], since):
        server.execute(SESSION, *statements, VALID)
        output = tmp_path / "restored.sql"
        restore(*names, "--rounded", "--from-dump", packed, "-o", output, *files(server))
        server.execute(*(f"delete from {BACK}.`{table.name}`" for table in made))
        done = run(server, output.read_text().replace(f"`{workload.SCHEMA}`.", f"`{BACK}`."))
        assert done.returncode == 0, done.stderr
        for table in made:
            # The dump does not have all digits of a FLOAT; the log has.
            if table.name != "floats" or statements:
                rows = table_rows(server, BACK, table.name)[1]
                assert sorted(map(repr, rows)) == sorted(map(repr, table_rows(server, workload.SCHEMA, table.name)[1]))


def refused(words: list[object], output: Path, reason: str) -> None:
    """Assert that a restore is refused for a reason, and that it leaves nothing."""
    done = binloom_here("restore", *words[:1], "--output", output, *words[1:])
    assert done.returncode in (1, 2, 3), (reason, done.stderr)
    assert re.search(reason, done.stderr), (reason, done.stderr)
    assert "bug in binloom" not in done.stderr
    assert [path for path in output.parent.iterdir() if output.name in path.name] == []


SHOP = (
    "drop database if exists kept",
    "create database kept character set utf8mb4",
    "create table kept.a (id int primary key, v varchar(20))",
    "create table kept.child (id int primary key, a_id int,"
    " foreign key (a_id) references kept.a (id) on delete cascade)",
    "create table kept.old (id int primary key, v varchar(20)) engine=MyISAM",
    "create table kept.measured (id int primary key, f float)",
    "create table kept.stated (id int primary key, v varchar(20))",
    "create table kept.gone (id int primary key)",
    "insert into kept.a values (1, 'one'), (2, 'two'), (3, 'three'), (4, '=1+1')",
    "insert into kept.child values (1, 1), (2, 2)",
    "insert into kept.old values (1, 'x')",
    "insert into kept.measured values (1, 3.14159274)",
    "insert into kept.stated values (1, 'x')",
)
TWO = pytest.mark.parametrize("server", marked("mysql", "mariadb"), indirect=True)


@TWO
def test_what_is_not_known_exactly_is_refused(server: Server, tmp_path: Path) -> None:
    server.flush()
    server.execute(*SHOP)
    taken = dump(server, tmp_path / "dump.sql")
    began = position(server)
    server.execute("update kept.a set v = 'changed' where id = 1")
    server.flush()
    server.execute("update kept.a set v = 'once more' where id = 2")
    server.flush()
    server.execute("set session binlog_format = STATEMENT", "update kept.stated set v = 'y'")
    server.execute("drop table kept.gone", "update kept.a set v = 'last' where id = 3")
    at = began.split(":")[0]
    paths = [path for path in server.binlogs() if path.name >= at]
    output = tmp_path / "restored.sql"
    whole: list[object] = ["--from-dump", taken, "--files", *paths]
    text = taken.read_text()
    other = tmp_path / "other.sql"

    def changed(old: str, new: str) -> list[object]:
        assert old in text
        other.write_text(text.replace(old, new))
        return ["--from-dump", other, "--files", *paths]

    refused(["kept.old", *whole], output, "engine MYISAM.*--locked")
    refused(["kept.measured", *whole], output, "rounded values of f.*--rounded")
    refused(["kept.stated", *whole], output, "a statement in the log")
    refused(["kept.gone", *whole], output, "did not exist then")
    refused(["kept.nothing", *whole], output, "has a table kept.nothing")
    refused(["nothing", *whole], output, "has no schema")
    refused(
        ["kept.a", *whole, "--as-of", f"{paths[0].name}:{int(began.split(':')[1]) - 100}"], output, "before the dump"
    )
    refused(["kept.a", "--from-dump", taken, "--files", *paths[1:]], output, "do not contain this position")
    refused(["kept.a", "--from-dump", taken, "--files", paths[0], paths[2]], output, "missing files")
    refused(["kept.a", *changed(f"_LOG_POS={began.split(':')[1]}", "_LOG_POS=999999999")], output, "ends at")
    pos = int(began.split(":")[1])
    refused(
        ["kept.a", *changed(f"_LOG_POS={pos}", f"_LOG_POS={pos + 3}")], output, "no transaction of .* begins or ends"
    )
    refused(["kept.a", *changed("_LOG_POS=", "_LOG=")], output, "does not name its position")
    refused(["kept.a", *changed("'one'", "'eins'")], output, "do(es)? not link")
    if server.flavor == "mysql":
        (uuid,) = set(re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=:)", text))
        refused(["kept.a", *changed(uuid, f"{'0' * 8}{uuid[8:]}")], output, "another server")
    else:
        refused(["kept.a", *changed("gtid_slave_pos='0-1-", "gtid_slave_pos='0-1-9")], output, "another server")
        other.write_text(re.sub("gtid_slave_pos", "gtid", text).replace("version\t10", "version\t9"))
        refused(["kept.a", "--from-dump", other, "--files", *paths], output, "of a server of version 9")
    bare = dump(server, tmp_path / "bare.sql", "--no-data")
    refused(["kept.a", "--from-dump", bare, "--files", *paths], output, "has no rows of kept.a")
    damaged = tmp_path / paths[-1].name
    damaged.write_bytes(paths[-1].read_bytes()[:-20])
    refused(["kept.a", "--from-dump", taken, "--files", *paths[:-1], damaged], output, "The log is damaged")
    step = len(text) // at_depth(12, 400)
    for size in range(0, len(text) - 40, step):
        other.write_text(text[:size])
        refused(["kept.a", "--from-dump", other, "--files", *paths], output, "binloom: ")
    restore("kept.a", "kept.old", *whole, "--locked", "-o", output)
    words = [*COMMAND, "restore", "kept.a", "--from-dump", "-", "--files"]
    piped = subprocess.run([*words, *paths], input=taken.read_bytes(), capture_output=True, check=True)
    assert piped.stdout.decode() == restore("kept.a", *whole).stdout.replace(str(taken), "standard input")
    refused(["kept.a", "--from-dump", "-", "--files", "-"], output.with_name("none.sql"), "read only once")


@TWO
def test_altered_emptied_and_new_tables(server: Server, tmp_path: Path) -> None:
    server.flush()
    server.execute(*SHOP)
    taken = dump(server, tmp_path / "dump.sql")
    at = position(server).split(":")[0]
    server.execute(
        "alter table kept.a add column w int not null default 7 after id",
        "update kept.a set w = 8 where id = 2",
        "truncate table kept.stated",
        "insert into kept.stated values (5, 'new')",
        "drop table kept.gone",
        "create table kept.made (id int primary key, v varchar(20) character set utf8mb4)",
        "insert into kept.made values (1, 'it''s'), (2, null), (3, '🎁')",
    )
    paths = [path for path in server.binlogs() if path.name >= at]
    output = tmp_path / "restored.sql"
    words = ["kept.*", "--locked", "--rounded", "--from-dump", taken, "-o", output, "--files", *paths]
    assert "kept.gone did not exist" in restore(*words).stderr
    server.execute(f"drop database if exists {BACK}", f"create database {BACK} character set utf8mb4")
    for name in ("a", "child", "old", "measured", "stated", "made"):
        server.execute(f"create table {BACK}.{name} like kept.{name}")
    expected = rows_of(server, "kept")
    assert {**applied(server, output.read_text()), "measured": ROUNDED} == {**expected, "measured": ROUNDED}
    for format in ("csv", "parquet"):
        folder = tmp_path / format
        restore(
            *["kept.a", "kept.made", "--format", format, "--from-dump", taken, "-o", folder, "--files", *paths],
            *["--with-parents"],
        )
        read = csv.read_csv if format == "csv" else parquet.read_table
        options = {"convert_options": EXACT} if format == "csv" else {}
        for name in ("a", "made"):
            found = read(folder / f"kept.{name}.{format}", **options).cast(TEXTS[name]).to_pylist()
            assert sorted(map(repr, (tuple(row.values()) for row in found))) == sorted(map(repr, expected[name]))


# The dump has six digits, and the log none.
ROUNDED: Counter[Row] = Counter()
EXACT = csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""])
TEXTS = {
    "a": pa.schema([(name, pa.string()) for name in ("id", "w", "v")]),
    "made": pa.schema([(name, pa.string()) for name in ("id", "v")]),
}


@TWO
def test_rows_that_a_cascade_may_have_changed(server: Server, tmp_path: Path) -> None:
    server.flush()
    server.execute(*SHOP)
    taken = dump(server, tmp_path / "dump.sql")
    at = position(server).split(":")[0]
    output = tmp_path / "restored.sql"
    server.execute("delete from kept.a where id = 4", "insert into kept.child values (3, 3)")
    words: list[object] = ["kept.child", "--from-dump", taken, "--files"]
    restore(*words, *(path for path in server.binlogs() if path.name >= at), "-o", output)
    assert output.read_text().count("\n(") == 3
    output.unlink()
    server.execute("delete from kept.a where id = 1")
    words += [path for path in server.binlogs() if path.name >= at]
    if server.flavor == "mysql":
        # This server logs what its foreign keys change.
        restore(*words, "-o", output)
        assert output.read_text().count("\n(") == 2
    else:
        refused(words, output, "may have changed these rows")
        server.execute("alter table kept.child drop foreign key child_ibfk_1")
        refused(words, output, "may have changed these rows")


P = "create table kept.p (id int primary key)"
C = "create table kept.c (id int primary key, r int, foreign key (r) references kept.p (id) on delete cascade)"
WITHOUT_KEY = "create table kept.c (id int primary key, r int)"
CODED = (
    "create table kept.p (id int primary key, code varchar(9) not null unique, v int)",
    "create table kept.c (id int primary key, r varchar(9),"
    " foreign key (r) references kept.p (code) on delete set null on update cascade)",
    "insert into kept.p values (1, 'a', 1), (2, 'b', 2)",
    "insert into kept.c values (1, 'a'), (2, 'b')",
)
MINIMAL = "set session binlog_row_image = MINIMAL"
TREE = (
    "create table kept.p (id int primary key, up int, foreign key (up) references kept.p (id) on delete {})",
    C,
    "insert into kept.p values (1, null), (2, 1), (3, null), (4, 3)",
    "insert into kept.c values (10, 2), (11, 4)",
)
FOUR = (
    "create table kept.gg (id int primary key)",
    "create table kept.g (id int primary key, r int, foreign key (r) references kept.gg (id) on delete cascade)",
    "create table kept.p (id int primary key, r int, foreign key (r) references kept.g (id) on delete cascade)",
    C,
    "insert into kept.gg values (1), (2)",
    *(f"insert into kept.{name} values (1, 1), (2, 2)" for name in ("g", "p", "c")),
)
TEXTS_OF_KEYS = (
    "create table kept.p (k varchar(9) collate {0} primary key)",
    "create table kept.c (id int primary key, r varchar(9) collate {0},"
    " foreign key (r) references kept.p (k) on delete cascade)",
)
UNICODE, BINARY, LITHUANIAN = (
    [one.format(f"utf8mb4_{name}") for one in TEXTS_OF_KEYS] for name in ("unicode_ci", "bin", "lithuanian_ci")
)
MADE = [
    "create table kept.p (id int primary key)",
    "create table kept.c (id int primary key, v int, r int generated always as (v + 1) stored,"
    " foreign key (r) references kept.p (id) on delete cascade)",
]


@TWO
def test_a_dump_knows_labels_that_a_statement_leaves_open(server: Server, tmp_path: Path) -> None:
    """The database, and so the character set of the table, is older than the log."""
    server.execute("drop database if exists kept", "create database kept character set utf8mb4")
    server.flush()
    server.execute("create table kept.t (id int primary key, e enum('a','ü'))", "insert into kept.t values (2, 'ü')")
    taken = dump(server, tmp_path / "dump.sql")
    server.execute("update kept.t set id = 9")
    path = server.flush()
    restored = restore("kept.t", "--from-dump", taken, "--files", path)
    assert "(9, _utf8mb4 X'C3BC')" in restored.stdout and "kept.t: 1 row" in restored.stdout
    undone = binloom_here("undo", "--type", "UPDATE", "--ddl", taken, "--files", path)
    assert undone.returncode == 0 and "`id`=2" in undone.stdout.replace(" ", ""), undone.stderr


@TWO
def test_a_column_that_was_dropped_after_the_moment(server: Server, tmp_path: Path) -> None:
    server.execute("drop database if exists kept", "create database kept character set utf8mb4")
    server.execute("create table kept.t (id int primary key, mail varchar(9))", "insert into kept.t values (1, 'a@b')")
    server.flush()
    taken, moment = dump(server, tmp_path / "dump.sql"), position(server)
    server.execute("alter table kept.t drop mail", "insert into kept.t values (2)")
    path = server.flush()
    restored = restore("kept.t", "--from-dump", taken, "--as-of", moment, "--files", path)
    assert "(1, 'a@b')" in restored.stdout and "kept.t: 1 row" in restored.stdout
    words = ("state", "kept.t", "--as-of", moment, "--files", path, "--ddl", taken)
    assert binloom_here(*words).stdout.startswith("id,mail,")


@TWO
def test_a_statement_between_others_of_the_same_table_is_seen(server: Server, tmp_path: Path) -> None:
    server.flush()
    session, change = "set session binlog_format = STATEMENT", "update kept.stated set v = concat(v, 'y')"
    server.execute(*SHOP, session, change)
    taken = dump(server, tmp_path / "dump.sql")
    at = position(server).split(":")[0]
    server.execute(session, change)
    moment = position(server)
    server.execute(session, change)
    words = ["kept.stated", "--from-dump", taken, "--as-of", moment]
    paths = [path for path in server.binlogs() if path.name >= at]
    refused([*words, "--files", *paths], tmp_path / "restored.sql", "a statement in the log")


@TWO
def test_a_trigger_of_the_dump_runs_in_statements_of_the_log(server: Server, tmp_path: Path) -> None:
    trigger = "create trigger kept.g after insert on kept.stated for each row update kept.a set v = 'fired'"
    server.execute(*SHOP, trigger)
    server.flush()
    taken = dump(server, tmp_path / "dump.sql")
    at = position(server).split(":")[0]
    server.execute("set session binlog_format = STATEMENT", "insert into kept.stated values (77, 'x')")
    server.flush()
    words = ["kept.a", "--from-dump", taken, "--files", *(path for path in server.binlogs() if path.name >= at)]
    refused(words, tmp_path / "restored.sql", "a statement in the log on kept.stated, which has triggers")


@TWO
def test_names_with_slashes_are_tables_unless_there_is_such_a_file(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.flush()
    server.execute(
        "drop database if exists kept",
        "create database kept",
        "create table kept.`a/b` (id int primary key)",
        "insert into kept.`a/b` values (1)",
    )
    taken = dump(server, tmp_path / "dump.sql")
    at = position(server).split(":")[0]
    server.execute("insert into kept.`a/b` values (2)")
    server.flush()
    first, *more = [path for path in server.binlogs() if path.name >= at]
    monkeypatch.chdir(first.parent.parent)
    near = [path.relative_to(Path.cwd()) for path in more]
    words: list[object] = ["kept.a/b", "--from-dump", taken, "--files", first]
    assert restore(*words, *more).stdout.count("\n(") == restore(*words, *near).stdout.count("\n(") == 2
    reason = "has a table logs/binlog.000001, and there is no such file"
    refused([*words, *more, "logs/binlog.000001"], tmp_path / "restored.sql", reason)
    refused([*words, *more, "s3://binloom-nowhere"], tmp_path / "restored.sql", "s3://binloom-nowhere")


@TWO
@pytest.mark.parametrize(
    ("before", "since", "reasons"),
    [
        (CODED, (MINIMAL, "delete from kept.p where id = 1"), ("lacks code", "lacks code")),
        (CODED, (MINIMAL, "update kept.p set code = 'bb' where id = 2"), ("lacks code", "lacks code")),
        (CODED, (MINIMAL, "update kept.p set v = 9"), ("", "")),
        ([one.format("cascade") for one in TREE], ("delete from kept.p where id = 1",), ("of kept.p and", "of kept.p")),
        ([one.format("set null") for one in TREE], ("delete from kept.p where id = 1",), ("", "")),
        (FOUR, ("delete from kept.gg where id = 1",), ("of kept.p and", "of kept.g and")),
        (
            (P, C, "insert into kept.p values (1), (2)", "insert into kept.c values (1, 1), (2, 2)"),
            ("set session binlog_format = STATEMENT", "delete from kept.p where id = 1"),
            ("because of a statement", "because of a statement"),
        ),
        (
            (*UNICODE, "insert into kept.p values ('strasse'), ('b')", "insert into kept.c values (1, 'straße')"),
            ("delete from kept.p where k = 'strasse'",),
            ("", "may refer to them"),
        ),
        (
            (*UNICODE, "insert into kept.p values ('zürich'), ('Bonn')", "insert into kept.c values (1, 'bonn')"),
            ("delete from kept.p where k = 'zürich'",),
            ("", ""),
        ),
        (
            (*BINARY, "insert into kept.p values ('strasse'), ('straße')", "insert into kept.c values (1, 'straße')"),
            ("delete from kept.p where k = 'strasse'",),
            ("", ""),
        ),
        (
            (*LITHUANIAN, "insert into kept.p values ('y'), ('b')", "insert into kept.c values (1, 'i'), (2, 'b')"),
            ("delete from kept.p where k = 'y'",),
            ("", "and rows of kept.c refer to them"),
        ),
        (
            (P, WITHOUT_KEY, "insert into kept.p values (1), (2)", "insert into kept.c values (1, 1), (2, 2)"),
            (
                "alter table kept.c add constraint f foreign key (r) references kept.p (id) on delete cascade",
                "delete from kept.p where id = 1",
                "alter table kept.c drop foreign key f",
            ),
            ("Foreign key f of kept.c is not in the dump", "Foreign key f of kept.c is not in the dump"),
        ),
        (
            (*MADE, "insert into kept.p values (1), (2)", "insert into kept.c (id, v) values (1, 0), (2, 1)"),
            ("delete from kept.p where id = 1",),
            ("whose columns the server computes", "whose columns the server computes"),
        ),
    ],
)
def test_a_cascade_that_the_log_does_not_tell(
    server: Server, before: tuple[str, ...], since: tuple[str, ...], reasons: tuple[str, str], tmp_path: Path
) -> None:
    server.flush()
    server.execute("drop database if exists kept", "create database kept character set utf8mb4", *before)
    taken = dump(server, tmp_path / "dump.sql")
    moment, output = position(server), tmp_path / "restored.sql"
    expected = rows_of(server, "kept")["c"]
    server.execute(*since)
    paths = [path for path in server.binlogs() if path.name >= moment.split(":")[0]]
    words: list[object] = ["kept.c", "--from-dump", taken, "--files", *paths]
    if reason := reasons[server.flavor == "mariadb"]:
        refused(words, output, reason)
    else:
        restore(*words, "-o", output)
        assert output.read_text().count("\n(") == len(rows_of(server, "kept")["c"])
    restore(*words, "--as-of", moment, "-o", output)
    assert output.read_text().count("\n(") == len(expected)


@pytest.mark.mysql
def test_documents_of_the_log_keep_their_types(mysql_server: Server, tmp_path: Path) -> None:
    server = mysql_server
    create = "create table {}.documents (id int primary key, d json)"
    for schema in (SCHEMA, BACK):
        server.execute(f"drop database if exists {schema}", f"create database {schema}", create.format(schema))
    server.flush()
    server.execute(f"""insert into {SCHEMA}.documents values (1, '{{"a": [1, 2.5]}}'), (2, null)""")
    taken = dump(server, tmp_path / "dump.sql")
    at = position(server).split(":")[0]
    server.execute(
        f"insert into {SCHEMA}.documents values"
        " (3, json_object('p', cast(1.50 as decimal(4,2)), 'd', date '2026-01-01'))",
        f"update {SCHEMA}.documents set d = json_object('t', time '10:00:00', 'n', 9) where id = 2",
    )
    output = tmp_path / "restored.sql"
    restore(
        *[f"{SCHEMA}.documents", "--from-dump", taken, "-o", output, "--files"],
        *(path for path in server.binlogs() if path.name >= at),
    )
    assert applied(server, output.read_text()) == rows_of(server, SCHEMA)
    types = "select id, json_type(d->'$.p'), json_type(d->'$.d'), json_type(d->'$.t') from {}.documents order by id"
    assert server.execute(types.format(BACK)) == server.execute(types.format(SCHEMA))


@TWO
@pytest.mark.parametrize("program", [pytest.param("mydumper", marks=needs_mydumper), "mysqlsh"])
def test_dumps_that_are_folders(server: Server, tmp_path: Path, program: str) -> None:
    server.flush()
    server.execute(*SHOP)
    began, folder = position(server), tmp_path / "dump"
    if program == "mysqlsh":
        shell_dump(server, folder, "kept")
    else:
        dumped_by_mydumper(server, folder, "kept")
    server.execute("update kept.a set v = 'changed' where id = 1", "delete from kept.a where id = 4")
    moment, expected = position(server), rows_of(server, "kept")["a"]
    server.execute("delete from kept.a where id = 3")
    server.execute(f"drop database if exists {BACK}", f"create database {BACK} character set utf8mb4")
    server.execute(f"create table {BACK}.a like kept.a")
    paths = [path for path in server.binlogs() if path.name >= began.split(":")[0]]
    output = tmp_path / "restored.sql"
    # The mydumper of Debian does not find the position of a new MySQL.
    given = ["--from-position", began] if (program, server.flavor) == ("mydumper", "mysql") else []
    words = ["kept.a", "--as-of", moment, "--from-dump", folder, *given, "--files", *paths]
    if given:
        refused([word for word in words if word not in given], output, "does not name its position")
    restore(*words, "-o", output)
    described = folder / ("@.json" if program == "mysqlsh" else "metadata")
    was = described.read_text()
    described.write_text(re.sub(r"[0-9a-f]{8}(?=(?:-[0-9a-f]{4}){3})", "0" * 8, was).replace("0-1-", "0-1-9"))
    if described.read_text() != was:
        refused(words, tmp_path / "other.sql", "another server")
    assert applied(server, output.read_text(), "kept")["a"] == expected
