"""Files about the project itself: licence, origin of data, version, types."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.places import PROJECT
from tools.release import ReleaseError, notes

TEXTS = [(PROJECT / name).read_text() for name in ("pyproject.toml", "CHANGELOG.md")]
METADATA: dict[str, Any] = tomllib.loads(TEXTS[0])
PACKAGES = [name.removesuffix("*") for name in METADATA["tool"]["setuptools"]["packages"]["find"]["include"]]


def test_the_licence_is_there_with_its_owner() -> None:
    assert METADATA["project"]["license"] == "Apache-2.0"
    text = (PROJECT / "LICENSE").read_text()
    assert [f"{number}. " in text for number in range(1, 10)] == [True] * 9
    assert "END OF TERMS AND CONDITIONS" in text and "Copyright 2026 The binloom authors" in text


def test_licence_and_notice_come_with_the_package() -> None:
    assert METADATA["project"]["license-files"] == ["LICENSE", "NOTICE"]


def test_files_that_the_notice_names_exist() -> None:
    named = re.findall(
        r"\b(?:ingest|seeds|samples|tests|tools|macros|binloom)/[\w./*-]*", (PROJECT / "NOTICE").read_text()
    )
    assert len(named) > 8
    assert [name for name in named if not list(PROJECT.glob(name.rstrip("./")))] == []


@pytest.mark.parametrize("folder", ["tests/fixtures/", "samples/", "ingest/binlog/text/charset_tables/", "seeds/"])
def test_data_of_others_has_its_origin_in_the_notice(folder: str) -> None:
    assert folder in (PROJECT / "NOTICE").read_text()


@pytest.mark.parametrize(("has_decoder", "needs"), [(True, "numba.*; sys_platform != "), (False, "numba[^;]*$")])
def test_a_wheel_needs_numba_where_it_has_no_decoder_and_its_links_lead_somewhere(
    has_decoder: bool, needs: str, tmp_path: Path
) -> None:
    program = f"from setuptools import build_meta; build_meta.prepare_metadata_for_build_wheel({str(tmp_path)!r})"
    environment = {**os.environ, "BINLOOM_COMPILED_KERNEL": str(tmp_path) if has_decoder else ""}
    subprocess.run([sys.executable, "-c", program], cwd=PROJECT, env=environment, check=True, capture_output=True)
    (metadata,) = tmp_path.glob("*.dist-info/METADATA")
    head, _, readme = metadata.read_text().partition("\n\n")
    assert len(re.findall(f"^Requires-Dist: {needs}", head, re.MULTILINE)) == 1
    links = re.findall(r"\]\(([^)]+)\)", readme)
    assert len(links) > 20 and [link for link in links if not link.startswith(("https://", "#"))] == []
    pages = [link.partition(f"/v{METADATA['project']['version']}/")[2].partition("#")[0] for link in links]
    assert [page for page in pages if page and not (PROJECT / page).exists()] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_that_it_has_types(package: str) -> None:
    assert (PROJECT / package / "py.typed").is_file()
    assert "py.typed" in METADATA["tool"]["setuptools"]["package-data"]["*"]


def test_only_pyproject_has_the_version() -> None:
    assert "version" not in yaml.safe_load((PROJECT / "dbt_project.yml").read_text())
    modules = [module for package in PACKAGES for module in (PROJECT / package).rglob("*.py")]
    assert [module for module in modules if re.search(r"^__version__", module.read_text(), re.MULTILINE)] == []


def test_the_changelog_has_the_notes_of_the_version() -> None:
    found = notes(f"v{METADATA['project']['version']}", *TEXTS)
    assert found.count("\n### ") >= 2 and "## [" not in found and "]: http" not in found


@pytest.mark.parametrize(
    ("tag", "metadata", "changelog", "message"),
    [
        ("v1.3", "1.2", "## [1.2] - 2026-01-02\n\n- a\n", "tag is v1.3, but pyproject.toml has version 1.2"),
        ("1.2", "1.2", "## [1.2] - 2026-01-02\n\n- a\n", "Tag it v1.2"),
        ("v1.2", "1.2", "## [1.2]\n\n- a\n", "no section"),
        ("v1.2", "1.2", "## [1.2] - 2026-01-02\n\n## [1.1] - 2026-01-01\n\n- a\n", "no section"),
        ("v1.2", "1.2", "## [112] - 2026-01-02\n\n- a\n", "no section"),
    ],
)
def test_a_tag_that_does_not_fit_is_no_release(tag: str, metadata: str, changelog: str, message: str) -> None:
    with pytest.raises(ReleaseError, match=message):
        notes(tag, f'[project]\nversion = "{metadata}"\n', changelog)


def test_notes_are_those_of_one_version() -> None:
    changelog = "# C\n\n## [1.2] - 2026-01-02\n\n- b\n\n## 1.1 - 2026-01-01\n\n- a\n\n[1.2]: https://x\n"
    assert notes("v1.2", '[project]\nversion = "1.2"\n', changelog) == "- b\n"
    assert notes("v1.1", '[project]\nversion = "1.1"\n', changelog) == "- a\n"


@pytest.mark.parametrize("page", ["README.md", "SECURITY.md", "CONTRIBUTING.md"])
def test_files_that_a_page_links_exist(page: str) -> None:
    linked = re.findall(r"\]\((?!https?:|#)([^)#]+)", (PROJECT / page).read_text())
    assert linked
    assert [link for link in linked if not (PROJECT / link).exists()] == []


def test_tests_that_the_promises_name_exist() -> None:
    named = re.findall(r"`((?:tests/python/[\w/]*)?(?:test_\w+\.py)?)`", (PROJECT / "SECURITY.md").read_text())
    assert len(named) > 12
    assert [name for name in named if not list(PROJECT.glob(name if "/" in name else f"tests/**/{name}"))] == []
