"""The folder of the lineage site, and what `dbt docs` leaves behind."""

import json
from pathlib import Path

import pytest

from binloom.commands import project
from binloom.site.folder import write_site
from ingest.errors import StoreError
from tests.support.manifests import write_project

NAME_THAT_ENDS_SCRIPTS = "</script><script>alert(1)"
OVERVIEW = "# Demo\n\n## Where to look\n\n|question|table|\n|---|---|\n|Why?|[it](#!/model/model.demo.changes)|\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with the results of `dbt docs generate --static` of a small project."""
    home = tmp_path / "home"
    home.mkdir()
    target = write_project(
        home / "target",
        {"events": {"id": "int"}},
        {"changes": f"select id as `{NAME_THAT_ENDS_SCRIPTS}` from raw.events"},
    )
    described = json.loads((target / "manifest.json").read_text())
    described["docs"] = {"doc.binloom.__overview__": {"block_contents": OVERVIEW}}
    (target / "manifest.json").write_text(json.dumps(described))
    manifest, catalog = ((target / name).read_text() for name in ("manifest.json", "catalog.json"))
    tracker = "//d1fc8wv8zag5ca.cloudfront.net/2.9.0/sp.js"
    (target / "static_index.html").write_text(f"<script>track('{tracker}'); show({manifest}, {catalog})</script>")
    return home


def test_the_site_has_every_file(home: Path, tmp_path: Path) -> None:
    site = tmp_path / "new" / "site"
    assert write_site(site, home, home / "target") == site / "index.html"
    names = {"index.html", "dbt.html", "manifest.json", "catalog.json", "lineage.json", "lineage.dot"}
    assert {path.name for path in site.iterdir()} == names
    page = (site / "index.html").read_text()
    assert 'id="column/changes/' in page and '<td>Why?</td><td><a href="#table/changes">it</a></td>' in page
    assert "changes" in json.dumps(json.loads((site / "lineage.json").read_text()))
    assert (site / "manifest.json").read_bytes() == (home / "target" / "manifest.json").read_bytes()


def test_the_page_leads_to_the_guide_beside_it(home: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    assert "guide" not in write_site(site, home, home / "target").read_text()
    (site / "guide").mkdir()
    (site / "guide" / "index.html").touch()
    assert '<a href="guide/index.html">Guide</a>' in write_site(site, home, home / "target").read_text()


def test_the_page_of_dbt_has_no_tracker_and_no_name_that_ends_its_script(home: Path, tmp_path: Path) -> None:
    write_site(tmp_path / "site", home, home / "target")
    page = (tmp_path / "site" / "dbt.html").read_text()
    assert "cloudfront" not in page
    assert page.count("</script>") == 1 and "\\u003c/script>" in page


@pytest.mark.parametrize("is_built", [True, False])
def test_the_results_of_the_last_build_are_kept(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_built: bool
) -> None:
    results = home / "target" / "run_results.json"
    if is_built:
        results.write_text("results of a build")

    def compile_only(*_: object) -> project.DbtRun:
        results.write_text("results of nothing")
        return project.DbtRun()

    monkeypatch.setattr(project, "run_dbt", compile_only)
    project.build_site(tmp_path / "site", home)
    assert results.read_text() == ("results of a build" if is_built else "results of nothing")


def test_a_folder_that_cannot_be_written_is_named(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(project, "run_dbt", lambda *_: project.DbtRun())
    with pytest.raises(StoreError, match=r"The site could not be written to .*file/site: Not a directory"):
        project.build_site(tmp_path / "file" / "site", home)
