"""`binloom init` begins a dbt project; `test_demo.py` builds one."""

from pathlib import Path

import pytest
import yaml

from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.places import PROJECT


def test_a_project_uses_this_binloom_and_has_the_name_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "Our Shop"
    done = binloom_here("init", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f"\n  cd '{folder}'\n  dbt deps\n  binloom build\n  dbt build\n")
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert written == {line.removeprefix(f"new: {folder}/") for line in done.stdout.splitlines() if "new: " in line}
    assert {".gitignore", "dbt_project.yml", "packages.yml", "profiles.yml", "models/_models.yml"} <= written
    project = yaml.safe_load((folder / "dbt_project.yml").read_text())
    assert project["name"] == "our_shop" and list(project["models"]) == ["our_shop"]
    assert yaml.safe_load((folder / "selectors.yml").read_text())["selectors"][0]["definition"]["value"] == "our_shop"
    assert f"'{PROJECT}'" in yaml.safe_load((folder / "packages.yml").read_text())["packages"][0]["local"]
    assert (folder / "profiles.yml").read_text() == (PROJECT / "profiles.yml").read_text()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "_models.yml").write_text("models: []\n")
    assert_sentence(binloom_here("init", folder), 2, rf"{folder}/models/_models\.yml exists\.")
    assert [path.name for path in folder.iterdir()] == ["models"]


@pytest.mark.parametrize("name", ["binloom", "2026"])
def test_a_name_that_dbt_refuses_is_told(tmp_path: Path, name: str) -> None:
    assert_sentence(binloom_here("init", tmp_path / name), 2, f"cannot have the name '{name}'")
    assert not (tmp_path / name).exists()
