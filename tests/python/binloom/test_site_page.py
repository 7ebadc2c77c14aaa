"""The page of the lineage site: complete, closed in itself, and safe with any name."""

import fnmatch
import json
import re
import shutil
import subprocess
import tomllib
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import duckdb
import pytest

from binloom.pages.rendering import style
from binloom.site.areas import AREAS, STAGES, area_of
from binloom.site.facts import Activity, Facts, Outcome, Proof, read_facts, read_tests
from binloom.site.lineage import Column, Lineage
from binloom.site.markup import prose
from binloom.site.page import index_page
from binloom.site.plots import plots
from tests.support.lineages import (
    CHANGES,
    FACTS,
    HOSTILE,
    HOSTILE_COLUMN,
    HOSTILE_TABLE,
    LINEAGE,
    NOON,
    PROOFS,
    RAW,
    STAGED,
    table,
)
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT

ASSETS = PROJECT / "binloom" / "site" / "assets"
BESIDE = {"dbt.html", "manifest.json", "catalog.json", "lineage.json", "lineage.dot"}


class Page(HTMLParser):
    """The elements and texts of a page."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.data = ""
        self._within = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        self._within = tag

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within == "script":
            self.data += data if self.elements[-1][1].get("id") == "lineage" else ""
        else:
            self.text += data

    def values(self, name: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(name)) is not None]


def page_of(lineage: Lineage = LINEAGE, facts: Facts = FACTS) -> tuple[str, Page]:
    document = index_page(lineage, facts, NOON)
    return document, Page(document)


def normalized(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("lineage", [LINEAGE, HOSTILE], ids=["usual", "hostile"])
def test_every_link_has_its_target(lineage: Lineage) -> None:
    _, page = page_of(lineage)
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    links = page.values("href")
    inner = {link[1:] for link in links if link.startswith("#")}
    assert inner <= set(ids)
    assert {link for link in links if not link.startswith("#")} == BESIDE | {"data:,"}


def test_every_table_and_column_has_its_place() -> None:
    _, page = page_of()
    ids = set(page.values("id"))
    for one in LINEAGE.tables:
        assert f"table/{one.name}" in ids
        for column in one.columns:
            assert f"column/{one.name}/{column.name}" in ids
            assert f"Description of {column.name}." in page.text
    # A column that only the lineage knows.
    assert "column/uncovered_bytes/not_described" in ids
    data = json.loads(page.data)
    edges = {
        ((source["name"], source["columns"][from_column]), (target["name"], target["columns"][to_column]), bool(exact))
        for from_table, from_column, to_table, to_column, exact in data["edges"]
        for source, target in [(data["tables"][from_table], data["tables"][to_table])]
    }
    assert edges == {(edge.source, edge.target, edge.is_exact) for edge in LINEAGE.edges}


@pytest.mark.parametrize("lineage", [LINEAGE, HOSTILE], ids=["usual", "hostile"])
def test_the_page_fetches_nothing(lineage: Lineage) -> None:
    document, page = page_of(lineage)
    assert page.values("src") == page.values("srcset") == page.values("action") == []
    assert [attributes for tag, attributes in page.elements if tag == "link"] == [{"rel": "icon", "href": "data:,"}]
    assert re.findall(r"url\(|@import|\bfetch\(|XMLHttpRequest|\bimport\(", document) == []
    # The only address of a network is the name of SVG's elements.
    assert set(re.findall(r"https?://[^\s\"'<]+", document)) == {"http://www.w3.org/2000/svg"}


def test_hostile_names_are_shown_as_they_are() -> None:
    usual = page_of()[1]
    document, page = page_of(HOSTILE)
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == [tag for tag, _ in usual.elements].count("script") == 2
    assert "img" not in tags and page.values("onerror") == []
    assert HOSTILE_TABLE in page.text and HOSTILE_COLUMN in page.text
    # A direction mark or half of a character is shown as its escape.
    assert "\u202e" not in document and "back\\u202ewards" in page.text and "half \\ud800" in page.text
    assert json.loads(page.data)["tables"][1]["columns"] == [HOSTILE_COLUMN, "half \ud800", "back\u202ewards"]
    assert f"column/{quote(HOSTILE_TABLE, safe='._-')}/{quote(HOSTILE_COLUMN, safe='._-')}" in page.values("id")
    document.encode("utf-8")


def test_types_can_be_broken_or_may_be_unknown() -> None:
    struct = Column("pair", "array<struct<a:int,b:string>>", "")
    document, page = page_of(Lineage((replace(CHANGES, parents=(), columns=(struct,)),), ()))
    assert struct.type in page.text and "array&lt;<wbr>struct&lt;<wbr>a:int,<wbr>b:string&gt;&gt;" in document
    assert "types are not known" not in page.text
    _, page = page_of(Lineage((replace(CHANGES, parents=(), columns=(replace(struct, type=""),)),), ()))
    assert "types are not known: the table is not stored, or was not built yet." in page.text


def test_facts_are_on_the_first_page() -> None:
    lineage = Lineage((RAW, STAGED, CHANGES, replace(PROOFS, tests=("not_null_id", "unique_id"))), LINEAGE.edges)
    text = normalized(page_of(lineage)[1].text)
    assert "1 of 2 proofs hold. These results are of 2026-11-17 12:00 UTC." in text
    assert "dbt ran 1 test, the last at 2026-11-17 12:00 UTC, and 1 of them did not pass." in text
    assert (
        "violated (warn)" in text
        and "2shop: 2" in text
        and "5,000 bytes" in text
        and "1.5 h" in text
        and "1 file incomplete" in text
    )
    assert "Row events of 4 more tables are not shown." in text
    assert "fail, 12 rows" in text and "no result is recorded" in text


def test_questions_lead_to_the_tables_that_answer_them() -> None:
    overview = (PROJECT / "docs" / "overview.md").read_text()
    document = index_page(LINEAGE, FACTS, NOON, overview=overview)
    page = Page(document.split('id="look"')[1].split("</section>")[0])
    assert "What happened to a row?row_changes" in normalized(page.text) and "Rules for all tables" in page.text
    # The other tables that the overview names are not in this small project.
    assert page.values("href") == ["#table/row_changes", "#table/event_types"]
    assert "This project lists no questions." in page_of()[1].text


def test_proofs_that_hold_hide_nothing_below_them() -> None:
    proofs = page_of()[0].split('id="proofs"')[1].split('id="activity"')[0]
    shown, _, folded = proofs.partition("<details>")
    assert "late_sources" in shown and "uncovered_bytes" not in shown
    assert "uncovered_bytes" in folded and "late_sources" not in folded


def test_a_table_shows_the_tests_of_what_is_made_of_it() -> None:
    lineage = Lineage((RAW, STAGED, CHANGES, replace(PROOFS, tests=("not_null_id", "unique_id"))), LINEAGE.edges)
    document, _ = page_of(lineage)
    pages = {name: document.split(f'id="table/{name}"')[1].split("</section>")[0] for name in ("row_changes", RAW.name)}
    for page in pages.values():
        text = normalized(Page(page).text)
        assert "not_null_iduncovered_bytesfail, 12 rows unique_iduncovered_bytesno result is recorded" in text
    assert "<h2>Tests</h2>" not in page_of()[0]


def test_absent_marts_are_explained(tmp_path: Path) -> None:
    _, page = page_of(facts=read_facts(tmp_path, tmp_path / "target"))
    text = normalized(page.text)
    for subject in ("No source", "No result of a proof", "No activity"):
        assert re.search(rf"{subject} can be shown\. There are no marts in \S+: nothing was landed there yet\.", text)


def test_marts_without_rows_are_explained() -> None:
    text = normalized(page_of(facts=Facts())[1].text)
    assert "No file of any source is landed yet." in text and "No row event is landed yet." in text


def test_facts_are_read_from_the_marts(tmp_path: Path) -> None:
    write_mart(
        tmp_path,
        "binloom.db/binlog_files",
        """
        select
            'shop' as source_id, epoch, file_sequence, 'mysql' as flavor, '9.7.' || epoch as server_version,
            100 as file_size, covered as bytes_covered, 0 as failed_segments, 10::bigint as events,
            2::bigint as transactions, timestamptz '2026-11-17 12:00:00Z' as first_event_at,
            first_event_at + to_hours(file_sequence) as last_event_at, null::timestamptz as landed_at
        from (values (0, 3, 100), (1, 1, 90)) as files (epoch, file_sequence, covered)
        union all
        select 'late', 0, 1, 'mariadb', '11.8', 1, 1, 0, 1, 1, null, timestamptz '2026-11-17 12:00:00Z', null
        """,
    )
    write_mart(
        tmp_path,
        "binloom_quality.db/proofs",
        """
        select
            2 as proof_number, 'late_sources' as proof, 'A source' as violation, 'late_sources' as quality_model,
            'warn' as severity, 1::bigint as violations, map {'late': 1::bigint} as violations_by_source,
            2::bigint as checked, 'sources' as unit
        """,
    )
    write_mart(
        tmp_path,
        "binloom.db/table_activity_hourly",
        """
        select
            'shop' as source_id, 'shop' as schema_name, 'table_' || number as table_name, hour as event_hour,
            number::bigint as row_events, number::bigint as inserts, 0::bigint as updates, 0::bigint as deletes
        from range(1, 203) as tables (number), (values ('2026-11-17-13'), ('2026-11-17-12')) as hours (hour)
        """,
    )
    facts = read_facts(tmp_path, tmp_path / "target")
    late, shop = facts.sources
    assert (shop.server, shop.files, shop.incomplete_files, shop.bytes, shop.events) == ("mysql 9.7.1", 2, 1, 200, 20)
    assert (shop.hours_behind, late.hours_behind, late.first_event_at) == (0, 3, None)
    assert len(facts.activity) == 200 and facts.quiet_tables == 2
    busiest = facts.activity[0]
    assert (busiest.table, busiest.row_events) == ("table_202", 404)
    assert busiest.hours == ((NOON, 202, 0, 0), (NOON + timedelta(hours=1), 202, 0, 0))
    assert facts.proofs == (Proof("late_sources", "A source", "late_sources", "warn", 1, 2, "sources", {"late": 1}),)
    assert facts.proofs_built_at is not None and facts.missing == {}
    # A build that was killed leaves a mart that is not read.
    (tmp_path / "warehouse" / "binloom_quality.db" / "proofs" / "_SUCCESS").unlink()
    facts = read_facts(tmp_path, tmp_path / "target")
    assert facts.proofs == () and facts.proofs_built_at is None and facts.sources == (late, shop)
    assert "The last build of binloom_quality.proofs has not ended" in facts.missing["proofs"]


def write_mart(home: Path, folder: str, query: str) -> None:
    mart = home / "warehouse" / folder
    mart.mkdir(parents=True)
    duckdb.sql(f"set timezone = 'UTC'; copy ({query}) to '{mart}/part-0.parquet' (format parquet)")
    (mart / "_SUCCESS").touch()


def test_results_of_tests_are_those_of_a_build(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"nodes": {"test.a": {"name": "unique_id"}}}))
    run = {
        "metadata": {"generated_at": "2026-11-17T12:00:00.000000Z"},
        "args": {"which": "build"},
        "results": [
            {"unique_id": "test.a", "status": "warn", "failures": 3},
            {"unique_id": "model.b", "status": "success", "failures": None},
            {"unique_id": "test.removed", "status": "pass", "failures": 0},
        ],
    }
    (tmp_path / "run_results.json").write_text(json.dumps(run))
    assert read_tests(tmp_path) == ({"unique_id": Outcome("warn", 3)}, NOON)
    # `dbt docs` compiles the tests and does not run them.
    (tmp_path / "run_results.json").write_text(json.dumps({**run, "args": {"which": "generate"}}))
    assert read_tests(tmp_path) == ({}, None)


def test_results_of_a_project_that_uses_binloom_are_beside_those_of_binloom(tmp_path: Path) -> None:
    own = tmp_path / "project" / "target"
    for folder, name, day in ((tmp_path / "target", "unique_id", 17), (own, "not_null_total", 18)):
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps({"nodes": {"test.a": {"name": name}}}))
        run = {
            "metadata": {"generated_at": f"2026-11-{day}T12:00:00.000000Z"},
            "args": {"which": "build"},
            "results": [{"unique_id": "test.a", "status": "pass", "failures": 0}],
        }
        (folder / "run_results.json").write_text(json.dumps(run))
    facts = read_facts(tmp_path, own)
    assert {*facts.tests} == {"unique_id", "not_null_total"} and facts.tested_at == NOON + timedelta(days=1)
    assert {*read_facts(tmp_path, tmp_path / "target").tests} == {"unique_id"}


@pytest.mark.parametrize("days", [1, 20, 400, 4000])
def test_plots_contain_every_row_event(days: int) -> None:
    hours = tuple((NOON + timedelta(hours=hour), 1, 2, 3) for hour in range(0, days * 24, 7))
    (drawn,) = [Page(plots([Activity("shop", "shop", "orders", hours)]))]
    titles = re.findall(r"UTC: ([\d,]+) inserts, ([\d,]+) updates, ([\d,]+) deletes", drawn.text)
    sums = [sum(int(one.replace(",", "")) for one in kind) for kind in zip(*titles, strict=True)]
    assert sums == [len(hours), 2 * len(hours), 3 * len(hours)]
    assert len(titles) <= 169
    boxes = [attributes for tag, attributes in drawn.elements if tag == "rect"]
    assert all(float(box["y"] or -1) >= 0 and float(box["height"] or -1) >= 0 for box in boxes)
    assert min(float(box["y"] or -1) for box in boxes) == 0


def test_descriptions_keep_their_form() -> None:
    shown = prose(
        "# A\nSee `row_changes`,\n**b** <i>, *c* of count(*) or sum(*).\n\n"
        "- one\n  more\n- two\n\n| x | y |\n|--|--|\n| `<` |",
        {"row_changes"}.__contains__,
    )
    assert "<h3>A</h3>" in shown
    assert (
        '<p>See <code><a href="#table/row_changes">row_changes</a></code>, <strong>b</strong> &lt;i&gt;, <em>c</em> '
        "of count(*) or sum(*).</p>" in shown
    )
    assert "<ul><li>one more</li><li>two</li></ul>" in shown
    assert "<td><code>&lt;</code></td><td></td>" in shown
    link = prose(
        "[a](#!/model/model.binloom.row_changes) [b](javascript:alert(1)) [c](../x.md)", {"row_changes"}.__contains__
    )
    assert re.findall('href="([^"]*)"', link) == ["#table/row_changes"]


def test_every_folder_of_models_has_an_area() -> None:
    folders = {path.parent.relative_to(PROJECT / "models").as_posix() for path in (PROJECT / "models").rglob("*.sql")}
    assert {area_of(table("x", folder)) for folder in folders} <= set(AREAS)


def test_a_project_that_uses_binloom_is_an_area_with_its_name() -> None:
    areas = {area_of(table("x", folder)) for folder in ("shop_models", "shop_models/reports", "shop_models/marts")}
    assert {(area.title, STAGES[area.stage or 0]) for area in areas} == {("shop_models", "Marts")}


def test_a_package_contains_the_assets() -> None:
    patterns = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["binloom"]
    for asset in ASSETS.iterdir():
        assert any(fnmatch.fnmatch(f"site/assets/{asset.name}", pattern) for pattern in patterns)


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the scripts of the page, and is not installed")
def test_the_script_follows_columns_in_both_directions() -> None:
    _, page = page_of()
    # The parts of the script that need no browser.
    script = f"""
    const document = {{ getElementById: () => ({{ textContent: {json.dumps(page.data)} }}) }};
    {(ASSETS / "columns.js").read_text()}
    const named = (members) => [...members].map((one) => columns[one].address);
    const start = columnAt.get("column/row_changes/value");
    const [sources, targets] = [reached(start, "sources"), reached(start, "targets")];
    const steps = [...distances(sources, start, "sources")].map(([at, step]) => [lineage.tables[at].name, step]);
    console.log(JSON.stringify([named(sources).sort(), named(targets), steps.sort()]));
    """
    run = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    assert json.loads(run.stdout) == [
        [
            "column/binlog_raw.row_events/after_values",
            "column/binlog_raw.row_events/id",
            "column/stg_row_events/id",
            "column/stg_row_events/value",
        ],
        ["column/uncovered_bytes/not_described"],
        [["binlog_raw.row_events", 2], ["row_changes", 0], ["stg_row_events", 1]],
    ]


def test_the_site_says_nothing_again_about_the_look_that_it_shares() -> None:
    def selectors(sheet: str) -> set[str]:
        return {line.strip() for line in re.findall(r"^([^{}@]+)\{", sheet, re.MULTILINE)}

    shared = selectors(style("base.css")) | selectors(style("report.css"))
    assert len(shared) > 50
    assert selectors((ASSETS / "page.css").read_text()) & shared == set()


def test_every_asset_is_on_the_page() -> None:
    document, _ = page_of()
    for asset in ASSETS.iterdir():
        if asset.suffix != ".html":
            assert asset.read_text() in document
    assert re.findall(r"\{\{\w+\}\}", document) == []
