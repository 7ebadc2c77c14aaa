"""Claims of Dockerfile and compose.yaml that can be checked without Docker."""

import re
import shlex
import tomllib
from typing import Any

import pytest
import typer
import yaml

from binloom.cli import app
from tests.support.places import PROJECT

COMPOSE: dict[str, Any] = yaml.safe_load((PROJECT / "compose.yaml").read_text())
# Each instruction with its continued lines, without comments.
LINES = [line for line in (PROJECT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
INSTRUCTIONS = re.sub(r"\\\n\s*", "", "\n".join(LINES)).split("\n")
STAGES = "\n".join(INSTRUCTIONS).split("FROM ")[1:]
BUILDING, FINAL = STAGES


def words(service: str) -> list[str]:
    """Return the arguments of a service's command, with the variables that its user sets."""
    command: list[str] = COMPOSE["services"][service]["command"]
    return [re.sub(r"\$\{(\w+)[^}]*\}", lambda found: found[1].lower(), word) for word in command]


@pytest.mark.parametrize("service", COMPOSE["services"])
def test_the_command_of_a_service_takes_these_options(service: str) -> None:
    name, *options = words(service)
    group: Any = typer.main.get_command(app)
    context = group.commands[name].make_context(name, options)
    assert not context.args
    # Prometheus is outside of the container, and finds each service at its own port.
    assert context.params["metrics_address"] == "0.0.0.0"
    assert COMPOSE["services"][service]["ports"] == ["127.0.0.1:{0}:{0}".format(context.params["metrics_port"])]


def test_services_share_the_home_and_know_their_volumes_and_secrets() -> None:
    (home,) = re.findall(r"BINLOOM_HOME=(\S+)", FINAL)
    assert f"VOLUME {home}" in FINAL and f"WORKDIR {home}" in FINAL
    for service in COMPOSE["services"].values():
        assert service["volumes"] == [f"data:{home}"] and set(service.get("secrets", ())) <= COMPOSE["secrets"].keys()
    assert "data" in COMPOSE["volumes"]
    assert "--defaults-file=/run/secrets/my.cnf" in words("follow")


def test_the_image_runs_the_command_as_somebody_without_rights() -> None:
    scripts = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["scripts"]
    (entry,) = re.findall(r'ENTRYPOINT \["(\w+)"\]', FINAL)
    assert entry in scripts
    (user,) = re.findall(r"^USER (\d+)$", FINAL, re.MULTILINE)
    assert int(user) > 0 and f"useradd --uid {user} " in FINAL


def test_only_the_first_stage_has_tools_that_build() -> None:
    packages = [shlex.split(found)[-1] for found in re.findall(r"apt-get install ([^&]*)", FINAL)]
    assert packages == ["openjdk-21-jre-headless"]
    assert "pip install" not in FINAL and "COPY . " not in FINAL
    assert "--require-hashes --requirement requirements.lock" in BUILDING
    assert re.findall(r"python -m ([\w.]+)", BUILDING) == ["tools.wheel"]
    assert (PROJECT / "tools" / "wheel.py").is_file() and (PROJECT / "requirements.lock").is_file()
    assert "[spark]" in BUILDING


def test_the_image_gets_no_secrets_and_nothing_that_only_a_clone_has() -> None:
    ignored = (PROJECT / ".dockerignore").read_text().splitlines()
    assert {".git", ".venv", ".servers", ".binloom", "my.cnf"} <= set(ignored)
