"""The pages of docs/ as a site: `make guide`."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import PROJECT

pytestmark = pytest.mark.slow


def guide(project: Path, site: Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "BINLOOM_LINEAGE_SITE": "../index.html", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site") / "guide"
    done = guide(PROJECT, site)
    assert done.returncode == 0, done.stderr
    return site


def test_every_page_is_there_and_can_be_found(site: Path) -> None:
    index = (site / "search" / "search_index.js").read_text()
    for page in PROJECT.glob("docs/*.md"):
        # dbt's own site shows the overview.
        assert (site / f"{page.stem}.html").exists() is (page.stem != "overview"), page
        assert (f'"{page.stem}.html' in index) is (page.stem != "overview"), page
    assert "{% " not in (site / "quality.html").read_text()


def test_no_page_loads_anything_from_the_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"?https?:[^>]*>", page.read_text()) == [], page


def test_the_lineage_site_is_one_click_away(site: Path) -> None:
    assert '<a href="../index.html">lineage site</a>' in (site / "index.html").read_text()
    assert (
        '<a href="../index.html#table/table_versions">table_versions</a>' in (site / "schema-history.html").read_text()
    )


def test_a_broken_link_fails(tmp_path: Path) -> None:
    for name in ("docs", "tools"):
        shutil.copytree(PROJECT / name, tmp_path / name)
    for name in ("mkdocs.yml", "README.md"):
        shutil.copyfile(PROJECT / name, tmp_path / name)
    page = tmp_path / "docs" / "masking.md"
    page.write_text(f"{page.read_text()}\nSee [this](incident.md#nothing).\n")
    done = guide(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "masking.md" in done.stderr and "#nothing" in done.stderr
