"""Files of GitHub and pre-commit: what they run exists, and it is what `make check` runs."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.examples import program
from tests.support.named_commands import code_of, not_there
from tests.support.places import PROJECT

GITHUB = PROJECT / ".github"
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")


@pytest.mark.parametrize(
    ("commands", "missing"),
    [
        ("make check\nmake test PYTEST_ARGS='-k a; make b'", []),
        ("make setup && make chek demo", ["chek"]),
        ("A=1 bash .ci/run; bash .ci/walk", [".ci/walk"]),
        ("python -m tools.release v1 | tee notes\npython3 -m tools.releases v1", ["tools.releases"]),
        (".venv/bin/python -m tests.servers get\n.venv/bin/python -m tests.server get", ["tests.server"]),
        ('bash .ci/run "${{ matrix.a || 1 }}"\nbash -c true # make nothing', []),
    ],
)
def test_commands_that_are_not_there_are_found(commands: str, missing: list[str]) -> None:
    assert not_there(commands) == missing


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md", "README.md", ".github/PULL_REQUEST_TEMPLATE.md"])
def test_commands_of_a_page_exist(page: str) -> None:
    commands = code_of(PROJECT / page)
    assert "make " in commands or "binloom " in commands
    assert not_there(commands) == []


def test_contributors_find_every_lane() -> None:
    commands = code_of(PROJECT / "CONTRIBUTING.md").splitlines()
    assert {"make check", "make test", "bash .ci/run", "make deep"} <= set(commands)


def test_hooks_run_the_linters_of_make_check_without_downloads() -> None:
    config = yaml.safe_load((PROJECT / ".pre-commit-config.yaml").read_text())
    assert [repository["repo"] for repository in config["repos"]] == ["local"]
    (hook,) = config["repos"][0]["hooks"]
    assert hook["language"] == "system" and not hook["pass_filenames"]
    check = (PROJECT / "Makefile").read_text().split("\ncheck:")[1].split("\n\n")[0]
    assert hook["entry"] in check.replace("$(BIN)", ".venv/bin")


def test_forms_ask_each_thing_once() -> None:
    assert len(FORMS) >= 3
    for form in FORMS:
        asked = [part["id"] for part in yaml.safe_load(form.read_text())["body"] if part["type"] != "markdown"]
        assert len(set(asked)) == len(asked), form


@pytest.mark.parametrize(
    ("schema", "files"),
    [("github-issue-forms", FORMS), ("github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"])],
)
def test_the_files_are_ones_of_github(schema: str, files: list[Path]) -> None:
    check: list[Any] = [program("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *files]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
