"""Rows of MariaDB's tables with long unique keys are named by statements or a snapshot; hidden columns stand behind."""

from pathlib import Path

import pytest

from recover.sources.log import Log
from tests.servers import ALL_DISTRIBUTIONS
from tests.support.landing.binlogs import snapshot_of

# The statements that make a table `t`, of which the last column is `a`; with `;` between them.
TABLES = [
    "create table t (id int, a text, unique (a))",
    "create table t (id int, a text, unique (a(20)))",
    "create table t (id int primary key, a text unique)",
    "create table t (id int, a text); alter table t add unique (a)",
    "create table t (id int, a text); create unique index u on t (a)",
    "create table t (id int, a text); create index u on t (a(20))",
    "create table t (id int, a text, unique u (a)); alter table t drop index u",
    "create table t (id int, b blob, a text, unique (a), unique (b)); alter table t drop column b",
    "create table t (id int, a text, unique (a)); alter table t modify a varchar(20)",
    "create table t (id int, a varchar(20), unique (a)); alter table t modify a text",
    "create table t (a text, id int, unique (a)); alter table t add column b int, modify a text after b",
    "create table s (id int, a text, unique (a)); create table t like s",
    "create table t (id int, a varchar(3072) character set latin1, unique (a))",
    "create table t (id int, a varchar(3073) character set latin1, unique (a))",
    "create table t (id int, a varchar(769) character set utf8mb4, unique (a))",
    "create table t (id int, b varchar(1537) default '', a varchar(1536), unique (a, b)) character set latin1",
    "create table t (id int, b varbinary(1536) default '', a varchar(1536), unique (a, b)) character set latin1",
    "create table t (id int, a json, unique (a))",
    "create table s (id int, a text, unique (a)); rename table s to t; alter table t add unique (id, a)",
    "create table t (id int, a text not null unique)",
    "create table t (id int, a int, unique (a) using hash)",
    "create table t (id int, a int, unique u using hash (id, a), key (a) using hash)",
    "create table t (id int, a int); create unique index u using hash on t (a)",
    "create table t (id int, a int); create unique index u on t (a) comment 'using btree' using hash",
    "create table t (id int, a int, unique u (a) using hash); alter table t drop index u, add unique (a) using btree",
    "create table t (id int, b int, a int, unique (a) using hash); alter table t drop column b",
    "create table t (id int, a int); alter table t add unique using hash (a)",
    "create table t (id int, a int, unique (a) using hash); alter table t comment 'x'",
    "create table s (id int, a int, unique (a) using hash); alter table s rename to t",
    "create table t (id int, a int, unique (a) using hash); create index i on t (id)",
    "create table t (id int, a int, unique (a) using hash); alter table t add unique (id) using hash, comment 'x'",
    "create table s (id int, a int, unique (a) using hash); create table t like s",
    "create table t (id int not null, a text not null); alter table t add unique (id, a)",
    "create table t (id int, a text, unique (a)); alter table t add system versioning",
    "create table t (id int, a int unique); alter table t add unique (a) using hash",
    "create table t (id int, a text unique); alter table t add unique (a)",
    "create table t (id int, a tinytext unique); alter table t modify if exists a tinytext unique",
    "create table t (id int, a text, b int, unique u (b)); alter table t add unique if not exists u (a)",
    "create table t (id int, a text, b int, unique A (b)); alter table t add unique if not exists (a)",
    "create table t (id int, a text, b int, unique u (b)); create unique index if not exists u on t (a)",
    "create table t (id int, a text, unique c (a)); alter table t add column if not exists c text unique",
    "create table t (id int, a text, b int, unique a (b)); alter table if exists t modify a text unique",
    "create table t (id int, p point, g polygon, a int, unique (p, id))",
    "create table t (id int, p point, g polygon, a int, unique (p), unique (g))",
    "create table t (id int, a int); alter table t add unique u (a) using hash, add unique v (id) using hash",
    "create table t (id int, a int); alter table t add unique u (a) using hash, convert to character set binary",
]

# The same, with a snapshot at the mark.
ALTERED = [
    "create table t (id int, a int, unique (a) using hash); -- ; alter table t comment 'x'",
    "create table t (id int, a int, unique (a) using hash); -- ; alter table t add b bigint unsigned",
    "create table t (id int, b text, a int, unique (b), unique (a) using hash); -- ; alter table t add c int first",
    "create table t (id int, a int, unique u (a) using hash); -- ; drop index u on t",
    "create table t (id int, a text, unique u (a)); -- ; alter table t drop index u",
    "create table t (id int, a text, unique u (a)); -- ; create index i on t (id)",
    "create table t (id int, a int, unique u (a) using hash); -- ; alter table t add unique (id) using hash",
    "create table s (id int, a int, unique (a) using hash); -- ; create table t like s",
    "create table s (id int, a int, unique (a) using hash); -- ; alter table s rename to t",
]


each_server = pytest.mark.parametrize(
    "name",
    [pytest.param("mariadb", marks=pytest.mark.mariadb), pytest.param("mariadb-11.8", marks=pytest.mark.mariadb118)],
)


def rows_of(log: Log) -> dict[str, tuple[str | None, str | None, str | None]]:
    """Return the values of each row by its schema, and the reason for which it is in quarantine."""
    found = log.connection.execute(
        "select schema_name, row_after, detail from binloom.row_changes"
        " full join binloom.quarantined_row_events using (schema_name)"
    ).fetchall()
    return {schema: ((row or {}).get("id"), (row or {}).get("a"), detail) for schema, row, detail in found}


@each_server
@pytest.mark.parametrize("knows_snapshot", [False, True], ids=["statements", "snapshot"])
def test_each_hash_is_a_column_behind_all_others(name: str, knows_snapshot: bool, tmp_path: Path) -> None:
    with ALL_DISTRIBUTIONS[name].start(tmp_path / "server", []) as server:
        for number, statements in enumerate(TABLES):
            server.execute(f"create database d{number}", f"use d{number}", *statements.split("; "))
            server.execute(f"insert into d{number}.t (id, a) values (7, '1')")
        snapshot = snapshot_of(server.host, server.port) if knows_snapshot else None
        log = Log.of_whole_files([server.flush()], snapshot=snapshot)
    assert rows_of(log) == {f"d{number}": ("7", "1", None) for number in range(len(TABLES))}


@each_server
def test_a_statement_ends_the_hashes_that_a_snapshot_shows(name: str, tmp_path: Path) -> None:
    with ALL_DISTRIBUTIONS[name].start(tmp_path / "server", []) as server:
        parts = [statements.split("; -- ; ") for statements in ALTERED]
        for number, (before, _) in enumerate(parts):
            server.execute(f"create database d{number}", f"use d{number}", before)
        server.flush()
        snapshot = snapshot_of(server.host, server.port)
        for number, (_, behind) in enumerate(parts):
            server.execute(f"use d{number}", behind, "insert into t (id, a) values (7, '1')")
        log = Log.of_whole_files([server.flush()], snapshot=snapshot)
    assert rows_of(log) == {f"d{number}": ("7", "1", None) for number in range(len(ALTERED))}
