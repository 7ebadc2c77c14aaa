"""A follower of random statements that define tables, killed at random instants: each value has its right name.

The follower's server logs no names; another one, on which the same statements run, gives the expected rows.
"""

import random
import time
from pathlib import Path

import pytest

from recover.sources.log import Log
from tests.python.recover.test_odd_ddl import difference, rows_in, rows_of
from tests.servers.accounts import create_account
from tests.servers.marked import marked
from tests.support.ddl.odd_story import stage
from tests.support.depth import at_depth
from tests.support.follow.follower import Follower

pytestmark = pytest.mark.slow

STEPS = 50
SEEDS = range(31, 31 + at_depth(quick=1, full=5))
KILLS = 8
LONGEST_PAUSE = 1.0  # seconds


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", marked("mysql", deep=("mariadb",)))
def test_names_are_right_after_kills(kind: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(f"{kind}-{seed}")
    kills = {*chance.sample(range(STEPS), KILLS)}
    with stage(kind, tmp_path) as servers:
        followed = servers.servers[-1]
        account = create_account(followed, tmp_path)
        with Follower(tmp_path / "home", followed, account.defaults_file, "--from-oldest") as follower:
            follower.start()

            def kill(step: int) -> None:
                if step in kills:
                    time.sleep(chance.uniform(0, LONGEST_PAUSE))
                    follower.kill()
                    follower.start()

            story = servers.tell(seed, STEPS, kill)
            follower.wait_until_landed(followed)
            assert follower.stop() == 0
            found = rows_in(Log.of_warehouse(follower.home))
    expected = rows_of(story.files[0], None)
    assert len(found) == len(expected) > STEPS / 3
    for row, right in zip(found, expected, strict=True):
        wrong = difference(row, right, row, has_values=True, is_whole=True)
        assert wrong is None, f"{wrong}:\n{story.of(right.table)}"
    assert sum(row.reason is not None for row in found) < len(found) / 10
