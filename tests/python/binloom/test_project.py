"""Folders of a clone and of an installed binloom, which nothing is written into."""

from pathlib import Path

import pytest

from binloom.commands import project
from binloom.commands.generate import _default_folder, _own_project
from ingest.errors import UsageError
from tests.support.places import PROJECT


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which somebody works who has an installed binloom."""
    installed, work = tmp_path / "site-packages" / "binloom" / "project", tmp_path / "work"
    installed.mkdir(parents=True)
    (installed / "dbt_project.yml").write_text("name: binloom\n")
    work.mkdir()
    monkeypatch.setattr(project, "own_project", lambda: installed)
    monkeypatch.chdir(work)
    return work


def test_an_installed_binloom_builds_its_own_project_and_writes_into_the_current_folder(work: Path) -> None:
    assert project.clone_dir() is None
    assert project.project_dir() == project.own_project()
    assert project.site_dir() == work / "site"


def test_a_clone_around_the_current_folder_is_the_project(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT / "models" / "marts")
    assert project.project_dir() == PROJECT and project.site_dir() == PROJECT / "site"


def test_a_project_that_uses_binloom_has_a_site_of_its_own(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "dbt_project.yml").write_text("name: shop\n")
    # Any project of dbt, which `dbt deps` has not given binloom.
    assert project.using_project() is None
    (work / "dbt_packages" / "binloom").mkdir(parents=True)
    (work / "models" / "tables").mkdir(parents=True)
    monkeypatch.chdir(work / "models" / "tables")
    assert project.using_project() == work and project.site_dir() == work / "site"
    # Its models are described, and not built, by commands of binloom.
    assert project.project_dir() == project.own_project()


def test_models_are_generated_into_a_project_of_ones_own_and_not_into_the_package(work: Path) -> None:
    assert _own_project() is None
    with pytest.raises(UsageError, match=r"no dbt project in .*work or above it.*`binloom init DIR`"):
        _default_folder(None)
    (work / "dbt_project.yml").write_text("name: shop\n")
    assert _default_folder(_own_project()) == work / "models" / "tables"
