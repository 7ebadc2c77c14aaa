"""Files of GitHub and pre-commit: what they run exists, and it is what `make check` runs."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.examples import program
from tests.support.named_commands import code_of, not_there
from tests.support.places import PROJECT

GITHUB = PROJECT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
JOBS: dict[tuple[str, str], dict[str, Any]] = {
    (path.stem, name): job for path in WORKFLOWS for name, job in yaml.safe_load(path.read_text())["jobs"].items()
}
EACH_WORKFLOW = pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")


def steps() -> list[tuple[str, str, dict[str, Any]]]:
    """Return the workflow, the job and the step of each step."""
    return [(workflow, name, step) for (workflow, name), job in JOBS.items() for step in job.get("steps", ())]


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


@EACH_WORKFLOW
def test_commands_of_a_workflow_exist(workflow: Path) -> None:
    commands = [step["run"] for name, _, step in steps() if name == workflow.stem and "run" in step]
    assert commands and not_there("\n".join(commands)) == []


def test_each_lane_is_a_job() -> None:
    commands = {step.get("run") for _, _, step in steps()}
    assert {"make check", "make test", "bash .ci/run", "make deep"} <= commands


@EACH_WORKFLOW
def test_a_workflow_may_only_read_unless_a_job_asks_for_more(workflow: Path) -> None:
    assert yaml.safe_load(workflow.read_text())["permissions"] == {"contents": "read"}
    keeps = [step for name, _, step in steps() if name == workflow.stem and "checkout" in step.get("uses", "")]
    assert keeps and all(step["with"]["persist-credentials"] is False for step in keeps)


def test_only_publishing_and_announcing_may_write() -> None:
    permissions = {name: job["permissions"] for (_, name), job in JOBS.items() if "permissions" in job}
    writing = {name: {scope for scope, may in given.items() if may == "write"} for name, given in permissions.items()}
    assert writing == {"publish": {"id-token", "attestations"}, "announce": {"contents"}}


def test_actions_are_pinned_by_commit_and_tell_their_version() -> None:
    lines = [line.strip() for path in WORKFLOWS for line in path.read_text().splitlines() if "uses:" in line]
    used = [line.split("uses: ")[1] for line in lines if "uses: ./" not in line]
    assert len(used) > 10
    assert [line for line in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []
    assert len(set(used)) == len({line.split("@")[0] for line in used}), "an action has two versions"


def test_each_job_has_an_end() -> None:
    assert [key for key, job in JOBS.items() if "uses" not in job and "timeout-minutes" not in job] == []
    assert JOBS["ci", "everything"]["timeout-minutes"] == 100


def test_the_matrix_has_the_versions_that_the_package_promises() -> None:
    classifiers = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["classifiers"]
    promised = [line.split(" :: ")[-1] for line in classifiers if re.search(r"Python :: 3\.\d+$", line)]
    matrix = JOBS["ci", "test"]["strategy"]["matrix"]
    assert matrix["python"] == promised
    assert matrix["java"] == ["17", "21"]
    assert JOBS["ci", "check"]["strategy"]["matrix"]["python"] == [promised[0], promised[-1]]


def test_types_are_checked_for_the_python_that_runs() -> None:
    # The stubs of a package that only newer versions of Python get cannot be read as those of an older one.
    assert "python_version" not in tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["mypy"]


def test_the_night_has_the_packages_that_everything_installs() -> None:
    needed = re.findall(r"missing\+=\((.*?)\)", (PROJECT / ".ci" / "run").read_text())
    installed = next(step["run"] for name, _, step in steps() if name == "nightly" and "apt-get" in step.get("run", ""))
    assert set(" ".join(needed).split()) <= set(installed.split())


def test_a_release_is_what_was_tested_and_has_the_version_of_its_tag() -> None:
    # YAML 1.1 takes the key `on` for true.
    assert yaml.safe_load((GITHUB / "workflows" / "release.yml").read_text())[True] == {"push": {"tags": ["v*"]}}
    release = {job: JOBS[name, job] for name, job in JOBS if name == "release"}
    assert 'tools.release "$GITHUB_REF_NAME"' in release["notes"]["steps"][1]["run"]
    assert release["tests"]["uses"] == "./.github/workflows/ci.yml"
    assert release["tests"]["needs"] == release["build"]["needs"] == "notes"
    assert release["publish"]["needs"] == ["tests", "build"]
    assert release["announce"]["needs"] == "publish"
    actions = [step["uses"].split("@")[0] for step in release["publish"]["steps"]]
    assert actions == ["actions/download-artifact", "actions/attest-build-provenance", "pypa/gh-action-pypi-publish"]


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
    [
        ("github-workflows", WORKFLOWS),
        ("github-issue-forms", FORMS),
        ("github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
    ],
)
def test_the_files_are_ones_of_github(schema: str, files: list[Path]) -> None:
    check: list[Any] = [program("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *files]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
