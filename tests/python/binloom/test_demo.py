"""`binloom demo` from beginning to end, as a user runs it."""

import json
import re
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from binloom.doctor.cluster import checked
from binloom.site.exports import to_openlineage
from binloom.site.lineage import read_lineage
from binloom.site.origins import TableColumn
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from ingest.warehouse.spark import SparkLaunch
from recover.questions.sql import QuestionError, ask, ask_cluster
from recover.selection.filters import Filters
from recover.sources.cluster.thrift import Cluster, ClusterLostError, NoClusterTableError
from recover.sources.home.marts import MASKED_SOURCES, SERVER_STARTS
from recover.sources.log import VIEWS, Log
from recover.timeline.table_log import MARTS
from recover.undo.options import UndoOptions
from recover.undo.tables.definitions import Definitions
from recover.undo.undoing import planned
from tests.servers import Server
from tests.servers.accounts import create_account
from tests.servers.thrift import ThriftServer
from tests.support.browser import ENTER, browser, complaints, wait
from tests.support.command_line import assert_sentence, binloom
from tests.support.commands import DBT
from tests.support.depth import at_depth, is_full
from tests.support.examples import refreshed
from tests.support.follow.proxy import Proxy
from tests.support.in_process import binloom_here
from tests.support.models.invoke import run_dbt
from tests.support.models.typed import Typed, generated_in_own_project, value_of_type
from tests.support.openlineage import assert_openlineage
from tests.support.permissions import GROUP_AND_OTHERS, open_to
from tests.support.places import PROJECT
from tests.support.recover.answers import answers, undo_of_the_damage
from tests.support.recover.built_on_cluster import ClusterHome, built_on_cluster, must_succeed
from tests.support.recover.cluster_rows import on_cluster
from tests.support.recover.filtered_types import all_conditions
from tests.support.recover.landed_marts import assert_built_as_landed
from tests.support.recover.questions import documented_commands, documented_questions
from tests.support.recover.targets import COMMANDS, on_warehouse, said
from tools import demo_picture

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SOURCES = ("shop-mysql", "shop-mariadb")
# No other build is running when the tests build on a cluster.
CONFIRMED = ("--vars", "clear_dead_build: true")
# Each run builds what commands read on the cluster, without the tests of dbt: they are SQL, as the models are.
NO_MODELS = (MASKED_SOURCES, SERVER_STARTS)
READ = ["resource_type:seed"]
READ += [f"+{name}" for schema, name in MARTS if schema.startswith("binloom") and (schema, name) not in NO_MODELS]
READ_ON_CLUSTER = (
    "--resource-type",
    "seed",
    "--resource-type",
    "model",
    *(f"--select={name}" for name in READ),
)
BUILD_OPTIONS = (*(() if is_full() else READ_ON_CLUSTER), *CONFIRMED)
# The others are those of the docs, which are asked of the local warehouse in each run.
ASKED_ON_CLUSTER = COMMANDS[: len(COMMANDS) if is_full() else 15 : at_depth(3, 1)]
STREAMING = "org.apache.spark.sql.execution.streaming"
# Follows the links of the site, to a tenth of the columns; gives the page that each has shown.
OPEN_ALL_PAGES = """
const done = arguments[0];
const links = [...document.querySelectorAll("a[href^='#']")];
const anchors = new Set(links.map((link) => link.getAttribute("href").slice(1)));
let columns = 0;
for (const anchor of anchors) if (anchor.startsWith("column/") && columns++ % 10) anchors.delete(anchor);
(async () => {
  const opened = {};
  for (const anchor of anchors) {
    const moved = new Promise((resolve) => window.addEventListener("hashchange", resolve, { once: true }));
    location.hash = anchor;
    await moved;
    opened[anchor] = document.querySelector("section.page.shown")?.id ?? null;
  }
  done(opened);
})();
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def demo(home: Path) -> "subprocess.CompletedProcess[str]":
    return binloom("demo", home=home)


def test_the_demo_ends_well_and_without_chatter(demo: "subprocess.CompletedProcess[str]") -> None:
    assert demo.returncode == 0, demo.stderr
    assert demo.stderr == ""


def test_it_says_what_changed_in_every_table(demo: "subprocess.CompletedProcess[str]") -> None:
    found = re.findall(r"^(\S+) +shop\.(\w+) +(\d+) +(\d+) +(\d+) ", demo.stdout, re.MULTILINE)
    expected = [("customers", "33", "67", "1"), ("order_items", "149", "1", "11"), ("orders", "57", "75", "3")]
    assert sorted(found) == [(source, *row) for source in ("shop-mariadb", "shop-mysql") for row in expected]


def test_it_finds_the_transaction_that_did_the_damage(demo: "subprocess.CompletedProcess[str]") -> None:
    for source in ("shop-mysql", "shop-mariadb"):
        assert re.search(rf"{source}: at 10:17:42 .* set status to 'cancelled' in 53 rows of shop\.orders", demo.stdout)
    assert "transaction 0-1-74" in demo.stdout
    assert "the statement: update shop.orders set status = 'cancelled'\n" in demo.stdout


def test_it_tells_the_history_of_one_order(demo: "subprocess.CompletedProcess[str]") -> None:
    _, history = demo.stdout.split("What happened to one of those rows, shop.orders 1042")
    history, _ = history.split("SQL that takes it back")
    changes = [line.split()[2] for line in history.splitlines() if re.match(r"\d\d:\d\d:\d\d", line)]
    assert changes == ["INSERT"] + ["UPDATE"] * 5
    for step in ("new → paid", "paid → shipped", "shipped → cancelled", "cancelled → shipped", "12.90 → 66.60"):
        assert step in history


def test_it_writes_sql_that_takes_the_damage_back(demo: "subprocess.CompletedProcess[str]", home: Path) -> None:
    for source in ("shop-mysql", "shop-mariadb"):
        script = home / "demo" / f"undo-{source}.sql"
        assert f"binloom undo --source {source} " in demo.stdout and str(script) in demo.stdout
        assert script.read_text().count("\nUPDATE `shop`.`orders` SET ") == 52
    assert demo.stdout.count("shop.orders 1042: the row needs no statement: its former values were set again") == 2
    assert demo.stdout.count("the undo of 1 transaction is proved: 52 UPDATE of shop.orders.") == 2


def test_the_picture_of_the_readme_shows_its_report(demo: "subprocess.CompletedProcess[str]", home: Path) -> None:
    assert demo.returncode == 0
    report = (home / "demo" / "incident-shop-mysql.html").read_text()
    assert demo_picture.recorded(report) == demo_picture.RECORDED.read_text()


def test_its_last_lines_name_three_things_to_try(
    demo: "subprocess.CompletedProcess[str]", home: Path, tmp_path: Path
) -> None:
    *_, setting, history, query, generate = demo.stdout.splitlines()
    assert setting == f"  export BINLOOM_HOME={home / 'demo'}"
    (tmp_path / "dbt_project.yml").touch()
    for line in (history, query, generate):
        program, *words = shlex.split(line, comments=True)
        tried = binloom(*words, home=home / "demo", cwd=tmp_path)
        assert (program, tried.returncode) == ("binloom", 0), tried.stderr
        assert len(tried.stdout.splitlines()) > 5
    assert len([*(tmp_path / "models" / "tables").iterdir()]) == 12


@pytest.mark.parametrize("words", documented_commands(), ids=lambda words: " ".join(words)[:60])
def test_the_questions_of_the_docs_have_answers(
    demo: "subprocess.CompletedProcess[str]", home: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # None of them may start Java, or use the one that the tests share.
    monkeypatch.setattr(SparkLaunch, "__init__", None)
    result = binloom_here(*words, home=home / "demo")
    assert result.returncode == 0, result.stderr
    # These report on stderr what their rows or statements do not contain. No statement of the sample has a tag, and its
    # log goes on after its files.
    is_of_files = words[0] == "query" and "--files" in words
    is_chosen = words in (["query", "--by", "app"], ["transactions", "--top", "3"])
    reports = words[0] in ("state", "undo") or is_chosen or is_of_files
    assert (result.stderr != "") == reports, result.stderr
    # The sample has no damage; these tables list it.
    is_of_quality = any("binloom_quality" in word or "quarantined" in word for word in words)
    assert len(result.stdout.splitlines()) > (0 if is_of_quality else 2)


@pytest.mark.parametrize("source", ["shop-mysql", "shop-mariadb"])
@pytest.mark.parametrize("table", ["row_changes", "transactions"])
def test_files_decoded_on_the_spot_give_what_was_built(
    demo: "subprocess.CompletedProcess[str]", home: Path, source: str, table: str
) -> None:
    samples = PROJECT / "samples" / source
    snapshot = read_snapshot_dir(samples / "schema")
    decoded = Log.of_files(sorted(samples.glob("binlog.*")), Filters(), source_id=source, snapshot=snapshot)
    built = Log.of_warehouse(home / "demo")
    order = "file_sequence, start_pos" + (", payload_ordinal, row_ordinal" if table == "row_changes" else "")
    query = f"from binloom.{table} where source_id = '{source}' order by {order}"
    columns = [row[0] for row in decoded.connection.execute(f"describe select * from binloom.{table}").fetchall()]
    assert len(columns) > 20
    for column in sorted({*columns} - {"landed_at"}):
        found, expected = (log.connection.execute(f"select {column} {query}").fetchall() for log in (decoded, built))
        assert found == expected, column


@pytest.mark.parametrize("source", ["shop-mysql", "shop-mariadb"])
@pytest.mark.parametrize("names", ["snapshot", "warehouse"])
def test_files_answer_as_the_warehouse_does(
    demo: "subprocess.CompletedProcess[str]", home: Path, source: str, names: str
) -> None:
    samples = PROJECT / "samples" / source
    decoded = Log.of_whole_files(
        sorted(samples.glob("binlog.*")),
        source_id=source,
        snapshot=read_snapshot_dir(samples / "schema") if names == "snapshot" else None,
        home=home / "demo" if names == "warehouse" else None,
    )
    built = Log.of_warehouse(home / "demo", dict.fromkeys((*VIEWS, *MARTS)))
    assert answers(decoded, source) == answers(built, source)
    script = undo_of_the_damage(decoded, source)
    assert [line for line in script if "files after" not in line] == undo_of_the_damage(built, source)
    assert "\n".join(script).count("\nUPDATE ") == 52


@pytest.mark.parametrize("source", ["shop-mysql", "shop-mariadb"])
def test_undo_takes_the_damage_back_and_leaves_the_order_that_was_shipped_again(
    demo: "subprocess.CompletedProcess[str]", home: Path, source: str, tmp_path: Path
) -> None:
    options = ("--source", source, "--table", "shop.orders", "--where", "after.status = 'cancelled'")
    options = (*options, "--where", "before.status != 'cancelled'", "--since", "2026-11-17T10:00:00")
    undone = binloom_here("undo", *options, home=home / "demo")
    assert undone.returncode == 0, undone.stderr
    assert undone.stdout.count("\nUPDATE `shop`.`orders` SET ") == 52
    assert "shop.orders 1042: the row needs no statement" in undone.stderr
    file = tmp_path / "undo.sql"
    written = binloom_here("undo", *options, "--output", str(file), home=home / "demo")
    assert (written.stdout, file.read_text()) == ("", undone.stdout)
    rehearsal = binloom_here("undo", *options, "--end-with", "rollback", home=home / "demo").stdout
    assert "ROLLBACK;" in rehearsal and "'COMMIT'" not in rehearsal
    assert binloom_here("redo", *options, home=home / "demo").stdout.count("\nUPDATE ") == 53


@pytest.mark.parametrize("source", ["shop-mysql", "shop-mariadb"])
def test_rows_of_a_cascade_are_those_that_a_server_would_log(
    demo: "subprocess.CompletedProcess[str]", home: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filters = Filters.of(sources=[source], tables=["shop.orders"], types=["DELETE"])

    def statements(log: Log, with_cascades: bool) -> list[str]:
        with planned(log, filters, UndoOptions(with_cascades=with_cascades)) as (planner, plan, _):
            assert plan.is_printable and plan.synthesized == (
                {("shop.order_items", "DELETE"): 10} if with_cascades else {}
            )
            return sorted(text for texts in planner.statements(plan) for text in texts)

    def with_rule(log: Log, source_id: str) -> Definitions:
        landed = of_log(log, source_id)
        keys = (replace(key, delete_rule="CASCADE") for key in landed.foreign_keys)
        return replace(landed, foreign_keys=tuple(key for key in keys if key.name == "fk_order_items_order"))

    marts, of_log = dict.fromkeys((*VIEWS, *MARTS)), Definitions.of_log
    logged = statements(Log.of_warehouse(home / "demo", marts), False)
    without_items = Log.of_warehouse(home / "demo", marts)
    without_items.connection.execute("alter view binloom.row_changes rename to all_row_changes")
    without_items.connection.execute(
        "create view binloom.row_changes as select * from binloom.all_row_changes"
        " where not (table_name = 'order_items' and event_type = 'DELETE')"
    )
    monkeypatch.setattr(Definitions, "of_log", with_rule)
    assert statements(without_items, True) == logged and len(logged) == 13


@pytest.mark.mariadb
def test_undo_compares_the_damage_with_a_live_server(
    demo: "subprocess.CompletedProcess[str]", home: Path, mariadb_server: Server, tmp_path: Path
) -> None:
    state = binloom("state", "shop.orders", "--source", "shop-mariadb", "--format", "json", home=home / "demo")
    rows = [json.loads(line) for line in state.stdout.splitlines()]
    mariadb_server.execute(
        "drop database if exists shop",
        "create database shop",
        "create table shop.orders (id int primary key, status varchar(20) character set utf8mb4)",
        "insert into shop.orders values " + ", ".join(f"({row['id']}, '{row['status']}')" for row in rows),
    )
    account = create_account(mariadb_server, tmp_path, "reader", ("select",))
    options = ("--source", "shop-mariadb", "--table", "shop.orders", "--where", "after.status = 'cancelled'")
    options = (*options, "--where", "before.status != 'cancelled'", "--since", "2026-11-17T10:00:00")
    place = f"{mariadb_server.host}:{mariadb_server.port}"
    against = ("--against", place, "--defaults-file", account.defaults_file)
    equal = binloom("undo", *options, *against, home=home / "demo")
    assert equal.returncode == 0, equal.stderr
    assert equal.stdout.count("\nUPDATE `shop`.`orders` SET ") == 52
    assert f"-- rows compared with the server at {place}: 52\n" in equal.stdout
    assert f"52 rows were compared with the server at {place}: 0 differ." in equal.stderr

    mariadb_server.execute("set sql_log_bin = 0", "update shop.orders set status = 'CANCELLED' where id = 1001")
    different = binloom("undo", *options, *against, home=home / "demo")
    assert_sentence(
        different,
        1,
        "shop.orders 1001: the row differs on the server: status should be 'cancelled' and is 'CANCELLED'",
        "the undo is refused: 1 of 52 rows differ between the server and the log. --skip-conflicts leaves",
    )
    assert different.stdout == ""
    rest = binloom("undo", *options, *against, "--skip-conflicts", home=home / "demo")
    assert (rest.returncode, rest.stdout.count("\nUPDATE ")) == (1, 51), rest.stderr
    # The rows before the damage are not there: nothing can be done again.
    assert binloom_here("redo", *options, *against, home=home / "demo").returncode == 1


def results_of_tests(home: Path) -> dict[str, tuple[str, int]]:
    """Return status and number of failures of each test in the last build of a home."""
    results = json.loads((home / "target" / "run_results.json").read_text())["results"]
    return {
        one["unique_id"]: (one["status"], one["failures"] or 0)
        for one in results
        if one["unique_id"].startswith("test.")
    }


def without_origins(answer: tuple[int, str, str]) -> tuple[int, str, str]:
    """Return an answer without the lines on definitions: a cluster has them from snapshots alone."""
    code, out, problems = answer
    lines = out.splitlines(keepends=True)
    return code, "".join(line for line in lines if not line.startswith("-- definition of ")), problems


@pytest.mark.postgresql
@pytest.mark.long
class TestCluster:
    """The same raw tables on a Spark cluster, whose marts dbt builds through its Thrift server."""

    @pytest.fixture(scope="class")
    @classmethod
    def there(
        cls, demo: "subprocess.CompletedProcess[str]", home: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[ClusterHome]:
        assert demo.returncode == 0
        folder, with_kill = tmp_path_factory.mktemp("cluster"), is_full()
        with built_on_cluster(home / "demo", folder, BUILD_OPTIONS, with_kill=with_kill) as running:
            yield running

    @pytest.fixture(scope="class")
    @classmethod
    def server(cls, there: ClusterHome) -> ThriftServer:
        return there.server

    @pytest.fixture(scope="class")
    @classmethod
    def cluster(cls, server: ThriftServer) -> Cluster:
        return Cluster("127.0.0.1", server.port, "binloom")

    @pytest.mark.deep
    def test_a_build_goes_on_when_another_server_takes_the_place_of_a_killed_one(self, there: ClusterHome) -> None:
        # All statements of that moment may have been such that can be repeated.
        *lost, built = there.told
        assert " built in " in built and not any(" built in " in line for line in lost)
        for failure in (line for line in lost if line.startswith("  fails: ")):
            assert failure.endswith("it builds what is missing"), failure

    def test_a_build_knows_that_nothing_is_new(self, there: ClusterHome) -> None:
        environment = {**there.build_environment, "JAVA_HOME": "/nonexistent"}
        code, out, problems = said(["build", *there.options], environment)
        assert (code, problems) == (0, "") and out.startswith("nothing has landed since the last good build at ")

    @pytest.mark.deep
    def test_all_tests_of_the_project_have_the_same_results(self, there: ClusterHome, home: Path) -> None:
        local, found = results_of_tests(home / "demo"), results_of_tests(there.home)
        assert found == local and len(found) > 35

    @pytest.mark.deep
    def test_every_mart_has_the_same_rows(self, there: ClusterHome, cluster: Cluster, home: Path) -> None:
        manifest = json.loads((there.home / "target" / "manifest.json").read_text())
        marts = [
            f"{node['schema']}.{node['alias']}"
            for node in manifest["nodes"].values()
            if node["resource_type"] == "model" and node["path"].startswith("marts/")
        ]
        rows = "to_json(struct(*), map('ignoreNullFields', 'false'))"
        query = " union all ".join(f"select '{mart}' as mart, {rows} as row from {mart}" for mart in marts)
        with SparkLaunch(home / "demo", short_lived=True) as launch:
            local = Counter((row.mart, row.row) for row in launch.session().sql(query).collect())
        found = Counter(cluster.plain_rows(query))
        assert found - local == Counter() and local - found == Counter()
        assert len(marts) > 40
        assert {"binloom.row_changes", "binloom.transactions", "binloom.binlog_files"} <= {mart for mart, _ in local}

    @pytest.mark.parametrize("words", ASKED_ON_CLUSTER, ids=lambda words: " ".join(words)[:60])
    def test_a_cluster_answers_as_the_local_warehouse(
        self, server: ThriftServer, home: Path, tmp_path: Path, words: tuple[str, ...]
    ) -> None:
        local = said(words, on_warehouse(home / "demo"))
        found = said(words, {"BINLOOM_HOME": str(tmp_path), **server.environment})
        assert without_origins(found) == without_origins(local)

    @pytest.mark.deep
    def test_the_doctor_finds_nothing_wrong(self, there: ClusterHome) -> None:
        found = binloom("doctor", "--format", "csv", env={**there.environment, **there.server.environment})
        assert found.returncode == 0, found.stdout
        for subject in ("cluster version", "cluster tables", "executors"):
            assert re.search(f"^{subject},good", found.stdout, re.MULTILINE), found.stdout
        assert not re.search("cluster.*(warning|error)", found.stdout)

    def test_the_doctor_names_settings_that_change_answers(self, server: ThriftServer) -> None:
        wrong = {
            "spark.sql.session.timeZone": "Asia/Tokyo",
            "spark.sql.ansi.enabled": "false",
            "spark.sql.sources.commitProtocolClass": f"{STREAMING}.ManifestFileCommitProtocol",
        }
        found = [one for one in checked(Cluster("127.0.0.1", server.port, "binloom", wrong)) if one.level != "good"]
        assert [one.level for one in found] == ["error"] * len(wrong)
        for name, value in wrong.items():
            assert any(one.message.startswith(f"{name} is {value}: ") for one in found), found

    @pytest.mark.deep
    def test_all_questions_of_the_docs_have_the_same_rows(self, cluster: Cluster, home: Path) -> None:
        for question in documented_questions():
            local, found = ask(question, home / "demo"), ask_cluster(question, cluster)
            assert found.columns == local.columns
            assert sorted(map(repr, found.rows)) == sorted(map(repr, local.rows)), question

    def test_every_mart_has_the_same_values(self, cluster: Cluster, home: Path) -> None:
        # No table of the cluster: it is a query of the raw table maps.
        marts = dict.fromkeys(one for one in (*VIEWS, *MARTS) if one not in NO_MODELS)
        built = Log.of_warehouse(home / "demo", marts)
        for schema, name in marts:
            query = exp.select("*").from_(f"{schema}.{name}")
            local = built.answer(query)
            found = cluster.answer(cluster.without_digests(query))
            assert sorted(found.columns) == sorted(local.columns)
            places = [found.columns.index(column) for column in local.columns]
            rows = [tuple(row[place] for place in places) for row in found.rows]
            assert sorted(map(repr, rows)) == sorted(map(repr, local.rows)), name

    def test_filters_compare_values_of_each_type_alike(self, cluster: Cluster) -> None:
        connection, query = all_conditions()
        expected = connection.execute(query.sql("duckdb")).fetchall()
        assert on_cluster(cluster, connection, query) == expected
        assert sum(value is True for row in expected for value in row) > 100

    def test_values_and_literals_arrive_as_they_are(self, cluster: Cluster) -> None:
        texts = [
            "",
            "'\\\"`",
            "\\'",
            "a\nb\r\t\b",
            "\x001\x1a",
            "${spark.app.name}",
            "*/ -- ;",
            "\\n",
            "\\u0041",
            "\\%",
            "🙏\u2028%s",
        ]
        values = {
            "cast(null as string)": None,
            "map('a', null, '', 'b')": {"a": None, "": "b"},
            "array(named_struct('x', cast(null as int), 'y', 1.5d), null)": [{"x": None, "y": 1.5}, None],
            "timestamp_micros(1763374662123457)": datetime(2025, 11, 17, 10, 17, 42, 123457, UTC),
            "cast('12345678901234567890.123456789' as decimal(38, 9))": Decimal("12345678901234567890.123456789"),
            "9223372036854775807": 9223372036854775807,
            "0.1d + 0.2d": 0.1 + 0.2,
            "true": True,
            "date'2026-11-17'": date(2026, 11, 17),
        }
        literals = [exp.alias_(exp.Literal.string(text), f"t{place}") for place, text in enumerate(texts)]
        others = [exp.alias_(sqlglot.parse_one(text, read="spark"), f"v{n}") for n, text in enumerate(values)]
        assert list(cluster.rows(exp.select(*literals, *others))) == [(*texts, *values.values())]

    @pytest.mark.parametrize("source", SOURCES)
    def test_the_models_of_a_cluster_are_those_of_the_local_warehouse(
        self, server: ThriftServer, home: Path, tmp_path: Path, source: str
    ) -> None:
        places = {
            "local": on_warehouse(home / "demo"),
            "cluster": {"BINLOOM_HOME": str(tmp_path), **server.environment},
        }
        for name, environment in places.items():
            code, out, problems = said(["generate", "--source", source, "--dir", str(tmp_path / name)], environment)
            assert (code, out.splitlines()[-1]) == (0, "12 files new"), problems
        local, cluster = ({path.name: path.read_text() for path in (tmp_path / name).iterdir()} for name in places)
        assert cluster == local

    def test_status_is_that_of_the_local_warehouse(self, there: ClusterHome, home: Path) -> None:
        local = said(["status", "--format", "json"], on_warehouse(home / "demo"))
        assert said(["status", "--format", "json"], there.build_environment) == local and local[1]

    @pytest.mark.deep
    def test_quality_is_that_of_the_local_warehouse(self, there: ClusterHome, home: Path) -> None:
        local = binloom("quality", "--format", "json", home=home / "demo")
        found = binloom("quality", "--format", "json", env=there.environment)
        assert (found.returncode, found.stdout) == (local.returncode, local.stdout), found.stderr
        assert {json.loads(line)["suite"] for line in found.stdout.splitlines()} >= {"landed_segments", "proofs"}

    @pytest.mark.deep
    def test_the_site_is_drawn_without_java(self, there: ClusterHome, tmp_path: Path) -> None:
        environment = {**there.build_environment, "JAVA_HOME": "/nonexistent"}
        code, out, problems = said(["docs", "--site-dir", str(tmp_path / "site")], environment)
        assert (code, out) == (0, f"{tmp_path / 'site' / 'index.html'}\n"), problems
        nodes = json.loads((tmp_path / "site" / "catalog.json").read_text())["nodes"]
        assert "changed_columns" in nodes["model.binloom.row_changes"]["columns"]

    def test_many_rows_arrive_in_their_order(self, cluster: Cluster) -> None:
        numbers = sqlglot.parse_one("select id, repeat('x', 200) from range(30000) order by id desc", read="spark")
        assert isinstance(numbers, exp.Query)
        assert [row[0] for row in cluster.rows(numbers)] == [*range(29999, -1, -1)]

    def test_tables_that_are_missing_are_named(self, server: ThriftServer, cluster: Cluster) -> None:
        with pytest.raises(NoClusterTableError, match=r"no table binloom\.row_change\. There are binloom\.row_changes"):
            ask_cluster("select * from row_change", cluster)
        with pytest.raises(
            NoClusterTableError, match=r"no table elsewhere\.table_versions\. Run `dbt build` with target"
        ):
            cluster.rows(exp.select("*").from_("elsewhere.table_versions"))
        with pytest.raises(QuestionError, match=r"with name `nix` cannot be resolved.*Correct the query"):
            ask_cluster("select nix from row_changes", cluster)

    def test_a_run_of_dbt_alone_writes_no_part_again(self, there: ClusterHome) -> None:
        running = there.start_dbt("run", "--select", "row_changes", "transactions", *CONFIRMED)
        out, _ = running.communicate()
        assert (running.returncode, out.count("NOTHING NEW")) == (0, 2), out[-5000:]

    @pytest.mark.deep
    def test_an_ingest_runs_beside_a_build(self, there: ClusterHome, cluster: Cluster) -> None:
        building = there.start_dbt("run", "--select", "stg_binlog__row_events", *CONFIRMED)
        words = ("ingest", "--source", "beside", "--binlog-dir", PROJECT / "samples" / "shop-mysql", "--all")
        landed = binloom(*words, env=there.environment)
        assert landed.returncode == 0, landed.stderr
        must_succeed(building)
        count = "select count(*) from binlog_raw.row_events where source_id = 'beside'"
        assert cluster.plain_rows(count) == [(397,)]

    def test_dbt_opens_a_lost_connection_again(self, server: ThriftServer) -> None:
        from dbt.adapters.contracts.connection import Connection
        from dbt.adapters.spark.connections import SparkConnectionMethod, SparkCredentials
        from dbt_common.exceptions import DbtRuntimeError

        from binloom.commands.lost_connections import open_reconnecting

        with Proxy(server) as proxy:
            login = {"host": proxy.host, "port": proxy.port, "user": "binloom", "schema": "binloom"}
            credentials = SparkCredentials(method=SparkConnectionMethod.THRIFT, poll_interval=1, **login)
            handle = open_reconnecting(Connection(type="spark", name="test", credentials=credentials)).handle

            def ask(statement: str) -> list[tuple[str, ...]]:
                handle.cursor().execute(statement)
                return [tuple(row) for row in handle.fetchall()]

            ask("/* dbt */ set spark.sql.sources.partitionOverwriteMode = DYNAMIC")
            proxy.cut()
            assert ask("/* dbt */\n  select 1 + 1 as two") == [(2,)]
            assert ask("set spark.sql.sources.partitionOverwriteMode")[0][1] == "DYNAMIC"
            handle.cursor().execute("select 3 as three")
            proxy.cut()
            assert handle.fetchall() == [(3,)]
            assert proxy.accepted == 3
            proxy.cut(reset=True)
            with pytest.raises(DbtRuntimeError, match=r"lost while it was writing .* it builds what is missing"):
                handle.cursor().execute("create table binloom.x using parquet as select 1 as a")

    def test_a_lost_server_is_one_sentence(self, server: ThriftServer, cluster: Cluster, tmp_path: Path) -> None:
        rows = cluster.rows(sqlglot.parse_one("select id from range(100000)", read="spark"))
        assert next(rows) == (0,)
        server.kill()
        with pytest.raises(ClusterLostError, match=rf"The Thrift server at 127.0.0.1:{server.port} was lost before"):
            list(rows)
        code, out, err = said(["query"], {"BINLOOM_HOME": str(tmp_path), **server.environment})
        assert (code, out) == (3, "")
        assert err.startswith(f"binloom: No Thrift server answers at 127.0.0.1:{server.port}. Start it, or set")


def test_nobody_else_can_read_what_is_in_the_home(demo: "subprocess.CompletedProcess[str]", home: Path) -> None:
    assert open_to(GROUP_AND_OTHERS, home) == []
    assert {"gx", "site", "target", "warehouse"} <= {path.name for path in (home / "demo").iterdir()}


def test_the_site_needs_no_network(demo: "subprocess.CompletedProcess[str]", home: Path) -> None:
    page = home / "demo" / "site" / "index.html"
    assert f"The lineage site: {page}" in demo.stdout
    text, of_dbt = page.read_text(), (page.parent / "dbt.html").read_text()
    # A page must not load anything by itself: scripts, style sheets, images, fonts, frames.
    for one in (text, of_dbt):
        fetched = re.findall(r"""<(?:script|img|iframe|link)[^>]+(?:src|href)=["']?((?:https?:)?//[^"'> ]+)""", one)
        fetched += re.findall(r"""url\(["']?((?:https?:)?//[^"') ]+)""", one)
        assert fetched == []
        assert "cloudfront" not in one
    manifest = json.loads((page.parent / "manifest.json").read_text())
    assert manifest["metadata"]["send_anonymous_usage_stats"] is False
    assert "model.binloom.row_changes" in manifest["nodes"]
    assert "They show who changed which row" in manifest["docs"]["doc.binloom.__overview__"]["block_contents"]
    assert "They show who changed which row" in of_dbt


def test_the_site_shows_the_data_of_the_demo(demo: "subprocess.CompletedProcess[str]", home: Path) -> None:
    site = home / "demo" / "site"
    text = (site / "index.html").read_text()
    assert "25 of 25 proofs hold" in text and "and all of them passed" in text
    assert "can be shown" not in text and "no result is recorded" not in text
    for source in ("shop-mysql", "shop-mariadb"):
        assert f"<strong>{source}</strong>" in text
    assert 'id="column/row_changes/changed_columns"' in text and "<strong>shop.orders</strong>" in text
    assert {path.name for path in site.iterdir()} == {
        *("index.html", "dbt.html", "manifest.json", "catalog.json", "lineage.json", "lineage.dot"),
    }


@pytest.mark.browser
class TestBrowser:
    """The site as a person sees it, opened from its file."""

    @pytest.fixture(scope="class")
    @classmethod
    def site(cls, demo: "subprocess.CompletedProcess[str]", home: Path) -> str:
        return (home / "demo" / "site" / "index.html").as_uri()

    @pytest.fixture(scope="class")
    @classmethod
    def driver(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
        with browser(tmp_path_factory.mktemp("profile")) as driver:
            yield driver

    def test_every_page_opens(self, site: str, driver: Any) -> None:
        driver.get(site)
        opened = driver.execute_async_script(OPEN_ALL_PAGES)
        assert {"table", "column"} <= {anchor.partition("/")[0] for anchor in opened} and len(opened) > 200
        assert [anchor for anchor, page in opened.items() if page in (None, "unknown")] == []
        assert complaints(driver) == []

    def test_a_column_is_found_and_followed_to_the_event(self, site: str, driver: Any) -> None:
        driver.get(site)
        driver.find_element("id", "search").send_keys("row_changes changed_columns", ENTER)
        page = driver.find_element("id", "column")
        wait(driver, page.is_displayed)
        assert page.find_element("tag name", "h1").text == "changed_columns"
        drawing = page.find_element("css selector", "svg")
        names = [title.get_attribute("textContent") for title in drawing.find_elements("css selector", "title")]
        assert {"binlog_raw.row_events", "before_values", "after_values"} <= {*names}
        drawing.find_element("css selector", "a[href='#column/binlog_raw.row_events/before_values']").click()
        title = "binlog_raw.row_events.before_values"
        wait(driver, lambda: driver.title.startswith(title))
        assert "changed_columns" in page.text
        assert complaints(driver) == []


def test_every_column_of_the_project_is_followed(demo: "subprocess.CompletedProcess[str]", home: Path) -> None:
    lineage = read_lineage(home / "demo" / "site")
    assert {edge.target for edge in lineage.edges if not edge.is_exact} == set()
    # The warehouse has the columns that the SQL gives; a column that it lacks has no type.
    untyped = {table.name for table in lineage.tables for column in table.columns if not column.type}
    nodes = json.loads((home / "demo" / "site" / "manifest.json").read_text())["nodes"].values()
    assert untyped == {node["name"] for node in nodes if node["config"]["materialized"] == "ephemeral"}
    assert len(lineage.tables) == sum(table.kind == "source" for table in lineage.tables) + sum(
        node["resource_type"] in ("model", "seed") for node in nodes
    )

    sources: dict[TableColumn, set[TableColumn]] = {}
    for edge in lineage.edges:
        sources.setdefault(edge.target, set()).add(edge.source)

    def raw(column: TableColumn) -> set[TableColumn]:
        above = sources.get(column, set())
        return {column} if column[0].startswith("binlog_raw.") else set().union(*map(raw, above))

    row_events = "binlog_raw.row_events"
    assert raw(("row_changes", "event_hour")) == {(row_events, "event_timestamp")}
    assert raw(("row_changes", "changed_columns")) >= {(row_events, "before_values"), (row_events, "after_values")}
    # A union of all proofs, whose numbers are literals.
    assert sources["proofs", "violations_by_source"] >= {("chain_breaks", "source_id"), ("empty_hours", "source_id")}
    assert ("proofs", "proof_number") not in sources
    # Arrays of structs through inline, and the columns beside them.
    assert {table for table, _ in sources["gtid_holes", "gtid_stem"]} == {
        "int_gtid_ranges",
        "stg_binlog__binlog_files",
        "stg_binlog__segments",
    }
    assert sources["gtid_holes", "epoch"] == {("stg_binlog__binlog_files", "epoch")}
    assert_openlineage(to_openlineage(lineage))


@pytest.fixture(scope="module")
def own_project(
    demo: "subprocess.CompletedProcess[str]", home: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Typed, dict[str, str]]:
    """A project that uses binloom as a package, with generated models of all tables; and the results of its build."""
    return generated_in_own_project(tmp_path_factory.mktemp("own"), home / "demo", SOURCES)


@pytest.fixture(scope="module")
def typed(own_project: tuple[Typed, dict[str, str]]) -> Typed:
    return own_project[0]


@pytest.mark.deep
def test_a_project_of_ones_own_uses_binloom_as_a_package(own_project: tuple[Typed, dict[str, str]]) -> None:
    typed, states = own_project
    # The damage of the sample is many orders that were cancelled at once.
    assert {name: state for name, state in states.items() if state not in ("success", "pass")} == {
        "no_bulk_cancellation": "warn"
    }
    assert {"cancelled_orders", "orders_without_customer", *typed.stems.values()} <= {*states}
    assert "row_changes" not in states


def test_a_project_that_init_begins_is_built(
    demo: "subprocess.CompletedProcess[str]", home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "own" / "shop_models"
    assert binloom_here("init", project).returncode == 0
    subprocess.run([DBT, "deps"], cwd=project, check=True, capture_output=True)
    monkeypatch.setenv("BINLOOM_HOME", str(home / "demo"))
    with SparkLaunch(home / "demo", short_lived=True) as launch:
        launch.session()
        states = run_dbt(home / "demo", "build", project=project)
    # The models of binloom are built already, by its own command.
    assert set(states.values()) == {"success", "pass"} and {"changes_per_day"} <= {*states}, states
    assert "row_changes" not in states
    monkeypatch.chdir(project / "models")
    described = binloom_here("docs", home=home / "demo")
    assert described.stdout == f"{project / 'site' / 'index.html'}\n", described.stderr
    lineage = read_lineage(project / "site")
    assert {edge.target for edge in lineage.edges if not edge.is_exact} == set()
    groups = {table.name: table.group for table in lineage.tables}
    assert (groups["changes_per_day"], groups["row_changes"]) == ("shop_models", "marts")
    # The selector of the project restricts its own commands, and not what the site describes.
    assert all(table.sql for table in lineage.tables if table.kind == "model")


@pytest.mark.deep
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("table", ["customers", "orders", "order_items"])
def test_generated_models_have_the_rows_of_the_log(typed: Typed, home: Path, source: str, table: str) -> None:
    state = binloom("state", f"shop.{table}", "--source", source, "--format", "json", home=home / "demo")
    stem = typed.stems[source, "shop", table]
    types = {column["name"]: column.get("data_type") for column in typed.properties[stem]["columns"]}
    expected = [
        {name: value_of_type(str(types[name]), text) for name, text in json.loads(line).items()}
        for line in state.stdout.splitlines()
    ]
    found = [{name: row[name] for name in expected[0]} for row in typed.current(source, "shop", table)]
    assert len(found) > 30
    assert sorted(found, key=repr) == sorted(expected, key=repr)


@pytest.mark.deep
def test_columns_of_generated_models_are_followed_to_the_event(typed: Typed, home: Path, tmp_path: Path) -> None:
    site = home / "demo" / "site"
    manifest = json.loads((site / "manifest.json").read_text())
    built = json.loads((typed.project / "target" / "manifest.json").read_text())
    models = {
        id: node for id, node in built["nodes"].items() if node["original_file_path"].startswith("models/tables/")
    }
    for part in ("parent_map", "child_map"):
        manifest[part] |= {id: built[part][id] for id in models if id in built[part]}
    manifest["nodes"] |= models
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    shutil.copy(site / "catalog.json", tmp_path)
    lineage = read_lineage(tmp_path)
    assert {edge.target for edge in lineage.edges if not edge.is_exact} == set()
    sources: dict[TableColumn, set[TableColumn]] = {}
    for edge in lineage.edges:
        sources.setdefault(edge.target, set()).add(edge.source)
    orders = typed.stems["shop-mysql", "shop", "orders"]
    assert sources[orders, "status"] == {(f"{orders}__history", "status")}
    assert sources[f"{orders}__history", "status"] >= {("row_changes", "row_before"), ("row_changes", "row_after")}
    assert sources[f"{orders}__changes", "after_status"] == {("row_changes", "row_after")}
    above = sources["row_changes", "row_after"]
    while not any(table == "binlog_raw.row_events" for table, _ in above):
        above = set().union(*(sources.get(column, set()) for column in above))
    assert ("binlog_raw.row_events", "after_values") in above


@pytest.mark.deep
def test_generating_again_changes_nothing(typed: Typed, home: Path) -> None:
    for source in SOURCES:
        words = ("generate", "--source", source, "--dir", str(typed.project / "models" / "tables"), "--check")
        again = binloom(*words, home=home / "demo")
        assert (again.returncode, again.stdout) == (0, "12 files unchanged\n"), again.stdout


def test_the_persons_own_tables_are_left_alone(demo: "subprocess.CompletedProcess[str]", home: Path) -> None:
    assert demo.returncode == 0
    assert [path.name for path in home.iterdir()] == ["demo"]


def test_status_and_quality_go_on_where_the_demo_ended(demo: "subprocess.CompletedProcess[str]", home: Path) -> None:
    assert demo.returncode == 0
    status = binloom("status", "--format", "json", home=home / "demo")
    files = [json.loads(line) for line in status.stdout.splitlines()]
    assert status.returncode == 0 and len(files) == 4
    assert {file["state"] for file in files} == {"landed"}

    # A row that disappears without binloom's knowledge is found and reported.
    row_events = home / "demo" / "warehouse" / "binlog_raw.db" / "row_events" / "source_id=shop-mysql"
    (lost, *_) = sorted(row_events.rglob("*.parquet"))
    hidden = lost.rename(lost.with_name(f".{lost.name}"))
    quality = binloom_here("quality", "--format", "json", home=home / "demo")
    hidden.rename(lost)
    checks = [json.loads(line) for line in quality.stdout.splitlines()]
    assert quality.returncode == 1, quality.stderr
    assert any(not check["success"] and check["violations"] for check in checks)


@pytest.mark.deep
def test_the_example_of_dagster_goes_on_where_the_demo_ended(
    demo: "subprocess.CompletedProcess[str]", home: Path, tmp_path: Path
) -> None:
    assert demo.returncode == 0
    done = refreshed(tmp_path, home / "demo", "shop-mysql", PROJECT / "samples" / "shop-mysql")
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [
        line.rpartition(" - ")[2]
        for line in done.stderr.splitlines()
        if re.search(r"INFO - .* - (ingest|build|quality) - ", line)
    ]
    commands = [line.split()[2] for line in lines if line.startswith("$ ")]
    assert commands == ["ingest", "build", "quality"]
    assert any("nothing new, all 2 files are landed" in line for line in lines)
    # The build of the demo was a good one. If dbt alone has run since, the next build looks at all models again.
    assert any(re.search(r"nothing has landed since the last good build|built in .* are good", line) for line in lines)
    assert "Models: 25 proofs hold" in lines


def test_a_sample_that_is_missing_is_named(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "ingest").mkdir(parents=True)
    shutil.copy(PROJECT / "dbt_project.yml", project)
    result = binloom("demo", home=tmp_path / "home", cwd=project)
    assert_sentence(result, 2, str(project / "samples"), "git checkout")


@pytest.mark.deep
class TestRetention:
    """The oldest file of one source expires, and a customer of the other is erased; then the models are built."""

    @pytest.fixture(scope="class")
    @classmethod
    def before(cls, demo: "subprocess.CompletedProcess[str]", home: Path) -> dict[str, list[str]]:
        """The rows of the tables at the end of the log, by source and table."""
        assert demo.returncode == 0
        return states(home / "demo")

    @pytest.fixture(scope="class")
    @classmethod
    def emails(cls, before: dict[str, list[str]]) -> set[str]:
        """The address of customer 3."""
        rows = (json.loads(line) for line in before["shop-mariadb customers"])
        return {row["email"] for row in rows if row["id"] == "3"}

    @pytest.fixture(scope="class")
    @classmethod
    def after(cls, before: dict[str, list[str]], emails: set[str], home: Path) -> Path:
        assert len(emails) == 1 and found_in(home / "demo" / "warehouse", emails)
        customer = ("--table", "shop.customers", "--key", "3", "--apply")
        for words in (
            ("expire", "--source", "shop-mysql", "--older-than", "1h", "--apply"),
            ("erase", "--source", "shop-mariadb", *customer),
            ("build",),
        ):
            done = binloom_here(*words, home=home / "demo")
            assert done.returncode == 0, done.stdout + done.stderr
        return home / "demo"

    def test_the_build_leaves_nothing_out_that_follows_from_what_has_changed(self, after: Path, tmp_path: Path) -> None:
        results = json.loads((after / "target" / "run_results.json").read_text())["results"]
        built = {one["unique_id"].split(".")[2] for one in results}
        assert {"row_changes", "erasures", "proofs", "stream_gaps_stop_no_following"} <= built
        assert not {"row_history", "stg_binlog__segments", "stream_gaps", "event_types"} & built
        assert_built_as_landed(after, tmp_path)

    def test_the_rows_at_the_end_are_those_of_before(self, after: Path, before: dict[str, list[str]]) -> None:
        now = states(after)
        assert {name for name in now if now[name] != before[name]} == {"shop-mariadb customers"}
        lost = {*before["shop-mariadb customers"]} - {*now["shop-mariadb customers"]}
        (gained,) = {*now["shop-mariadb customers"]} - {*before["shop-mariadb customers"]}
        assert len(lost) == 1 and json.loads(gained)["id"].startswith("erased/")
        assert {*json.loads(gained)} == {"id", "_unknown_columns"}

    def test_every_proof_holds_and_every_row_is_counted(self, after: Path) -> None:
        quality = binloom("quality", home=after)
        assert quality.returncode == 0, quality.stdout
        (rows,) = ask("select count(*) from row_changes where source_id = 'shop-mariadb'", after).rows
        (expired,) = ask("select sum(row_events), count(*) from expired_files", after).rows
        (left,) = ask("select count(*) from row_changes where source_id = 'shop-mysql'", after).rows
        assert rows == (397,) and left[0] + expired[0] == 397 and expired[1] == 1

    def test_no_table_and_no_log_has_an_erased_value(self, after: Path, emails: set[str]) -> None:
        assert found_in(after / "warehouse", emails) == []
        for folder in ("target", "logs"):
            texts = [path.read_bytes() for path in (after / folder).rglob("*") if path.is_file()]
            assert not any(email.encode() in text for text in texts for email in emails)

    def test_a_history_begins_where_the_log_does(self, after: Path) -> None:
        history = binloom("history", "shop.orders", "1042", "--source", "shop-mysql", home=after)
        assert_sentence(history, 0, r"the log of shop-mysql begins after binlog\.000001: older files have expired")

    def test_erased_rows_are_not_taken_back(self, after: Path) -> None:
        customers = ("query", "--source", "shop-mariadb", "--table", "shop.customers", "--format", "json")
        changes = [json.loads(line) for line in binloom(*customers, home=after).stdout.splitlines()]
        gtid = next(change["gtid"] for change in changes if change["pk_values"].startswith("erased/"))
        undone = binloom("undo", "--source", "shop-mariadb", "--gtid", gtid, home=after)
        assert undone.returncode != 0 and "were erased" in undone.stderr


def states(home: Path) -> dict[str, list[str]]:
    """Return the rows of the tables at the end of the log, by source and table."""
    at = {"BINLOOM_HOME": str(home)}
    return {
        f"{source} {table}": sorted(
            binloom_here("state", f"shop.{table}", "--source", source, "--format", "json", env=at).stdout.splitlines()
        )
        for source in SOURCES
        for table in ("customers", "orders", "order_items")
    }


def found_in(warehouse: Path, texts: set[str]) -> list[str]:
    """Return the Parquet files of a source, or of no source, that contain one of some texts.

    Not of the typed tables: another project builds them.
    """
    connection = duckdb.connect()
    found = []
    for path in sorted(warehouse.rglob("*.parquet")):
        if "source_id=shop-mysql" in str(path) or "binloom_tables.db" in path.parts:
            continue
        rows = connection.execute("select to_json(rows)::varchar from read_parquet(?) as rows", [str(path)]).fetchall()
        found += [str(path) for (row,) in rows if "shop-mysql" not in row and any(text in row for text in texts)]
    return found
