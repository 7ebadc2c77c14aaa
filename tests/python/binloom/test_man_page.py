"""The man page: everything that the help of the commands contains, in a form that man can show."""

import re
import shutil
import subprocess
from typing import Any

import pytest
from typer.main import get_command

from binloom.cli import app
from tools.man_page import man_page

GROUP: Any = get_command(app)
PAGE = man_page()


def section(name: str) -> str:
    """Return the text of a command, without signs of roff."""
    lines = PAGE.split(f"\n.SS {name}\n")[1].split("\n.S")[0]
    return re.sub(r"\\f[BR]|\\(?=-)|\\&", "", lines)


@pytest.mark.parametrize("name", sorted(GROUP.commands))
def test_a_command_is_there_with_its_options(name: str) -> None:
    command = GROUP.commands[name]
    visible = [one for one in command.params if not getattr(one, "hidden", False) and one.name != "help"]
    options = [option for one in visible for option in one.opts if option.startswith("-")]
    assert [option for option in options if option not in re.split(r"[\s,/]+", section(name))] == []
    assert " ".join(command.help.split("\n\n")[0].replace("`", "").split()) in section(name)


def test_options_without_a_command_are_there_once() -> None:
    assert PAGE.count(r"\fB\-V, \-\-version\fR") == 1
    assert PAGE.count(r"\fB\-?, \-\-help\fR") == 1


def test_man_shows_the_page_without_a_warning() -> None:
    if not (groff := shutil.which("groff")):
        pytest.skip("groff is not there (Debian: apt-get install groff)")
    shown = subprocess.run(
        [groff, "-man", "-Tutf8", "-Kutf8", "-ww", "-P-cbou", "-rLL=100n"], input=PAGE, capture_output=True, text=True
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    for name in GROUP.commands:
        assert f"binloom {name} [OPTIONS]" in " ".join(shown.stdout.split()), name
    # roff would show its own signs where a text was not escaped.
    assert not re.search(r"\\f[BR]|\\&|^\.[A-Z]", shown.stdout, re.MULTILINE)
