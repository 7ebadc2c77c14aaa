"""The README shows what the commands print."""

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ingest.binlog import kernel
from tests.support.in_process import binloom_here
from tests.support.places import PROJECT
from tools import demo_picture

README = (PROJECT / "README.md").read_text()
SHOWN = re.findall(r"```console\n\$ (binloom .*samples/.*)\n((?:[^$`\n].*\n)+)```", README)


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 150


def test_it_shows_a_question_and_an_undo() -> None:
    assert [shlex.split(command)[1] for command, _ in SHOWN] == ["query", "undo"]


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=lambda text: text[:13])
def test_a_command_on_the_samples_prints_what_is_shown(
    command: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "samples").symlink_to(PROJECT / "samples")
    monkeypatch.chdir(tmp_path)
    words = [
        path
        for word in shlex.split(command)[1:]
        for path in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
    ]
    # The first command on a machine may have to compile the decoder, and says so.
    kernel.prepare()
    done = binloom_here(*words, home=tmp_path / "home")
    assert (done.returncode, done.stdout + done.stderr) == (0, output)


def test_the_picture_shows_the_incident_and_loads_nothing() -> None:
    drawn = demo_picture.picture(demo_picture.RECORDED.read_text())
    text = " ".join(one.strip() for one in ElementTree.fromstring(drawn).itertext())
    assert all(one in text for one in ("53 in 1 table", "packed", "cancelled", "takes these", "52", "proved"))
    # GitHub shows a picture without what it would load.
    assert "http" not in re.sub(r"http://www\.w3\.org/(2000/svg|1999/xhtml)", "", drawn)
