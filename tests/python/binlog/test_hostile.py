"""Hostile files: the decoder touches only its own memory, names each defect, and decodes the rest.

Separate processes decode everything, once with the normal kernel and once with the build that checks each access:
a file may corrupt the memory of the normal kernel without a visible sign.
"""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.python.binlog.test_corpus import CORPUS, ROWS
from tests.python.binlog.test_fuzz import FILES, survive
from tests.support.binlog import hostile
from tests.support.patience import PATIENCE_SECONDS
from tests.support.places import PROJECT

CHECKED = {"BINLOOM_KERNEL_CHECKS": "1"}

Outcomes = dict[str, dict[str, Any]]


@pytest.fixture(scope="module", params=[{}, CHECKED], ids=["as it is", "checked"])
def outcomes(request: pytest.FixtureRequest) -> Outcomes:
    """Return the outcome of each hostile file, of the recorded files, and of the corpora if they are available."""
    files = [*FILES, *(CORPUS / row["file"] for row in ROWS)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.binlog.hostile", *map(str, files)],
        cwd=PROJECT,
        env=os.environ | request.param,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    found = {line["file"]: line for line in map(json.loads, done.stdout.splitlines())}
    missing = [name for name in (*hostile.HOSTILE, *map(str, files)) if name not in found]
    assert (done.returncode, missing) == (0, []), done.stderr[-2000:]
    return found


@pytest.mark.slow
def test_what_is_wrong_is_named_and_the_rest_decoded(outcomes: Outcomes) -> None:
    for name, made in hostile.HOSTILE.items():
        found = outcomes[name]
        assert "raised" not in found, (name, found)
        assert found["error"] is None, name
        if made.reasons is not None:
            assert set(found["reasons"]) == made.reasons, name
            assert found["last_value"] == str(hostile.GOOD_VALUE), name
        if name.startswith("tagged"):
            assert found["gtids"] == [], name
    assert outcomes["buffers filled to their ends"]["rows"] == hostile.WIDEST_EVENTS * hostile.WIDEST_ROWS + 1


@pytest.mark.slow
def test_files_of_servers_stay_within_their_memory(outcomes: Outcomes) -> None:
    raised = {name: found["raised"] for name, found in outcomes.items() if "raised" in found}
    assert raised == {}


@pytest.mark.slow
def test_mutated_files_stay_within_their_memory() -> None:
    survive(seed=22, count=300, files=FILES, environment=CHECKED)


ACCESSES = """
import numpy as np
from ingest.binlog.kernel import convert_string
from ingest.binlog.kernel.guard import ForeignMemoryError, address_of
from ingest.binlog.kernel.layout import CHARSET_UTF16

out, text = (np.zeros(size, dtype=np.uint8) for size in (40, 16))
text[1::2] = 65
text_at, out_at = address_of(text), address_of(out)

def convert(shift, to, size):
    try:
        convert_string(out_at + to, text_at + shift, size, CHARSET_UTF16, 0)
    except ForeignMemoryError as error:
        return str(error).split()[2]
    return "fine"

print(*(convert(shift, to, 16) for shift, to in ((0, 0), (-1, 0), (2, 0), (0, -1), (0, 33), (0, 0))))
out.flags.writeable = False
address_of(out)
print(convert(0, 0, 16))
out.flags.writeable = True
address_of(out, 4)
print(convert(0, 0, 8), convert(0, 0, 10))
del out
print(convert(0, 0, 2))
"""


@pytest.mark.slow
def test_the_checked_build_finds_what_is_not_the_kernels() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ACCESSES],
        cwd=PROJECT,
        env=os.environ | CHECKED,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.stdout.splitlines() == [
        "fine reads reads writes writes fine",
        "writes",
        "fine writes",
        "writes",
    ], done.stderr[-2000:]
