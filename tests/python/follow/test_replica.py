"""The replica identity of a follower: different for each home, and permanent."""

import json
from pathlib import Path

import pytest

from ingest.errors import StoreError
from ingest.follow.replica import REPLICA, replica_of


def test_a_home_keeps_its_replica(tmp_path: Path) -> None:
    drawn = replica_of("shop", tmp_path)
    assert 1 << 31 <= drawn.server_id < 1 << 32
    assert replica_of("shop", tmp_path) == drawn
    assert replica_of("other", tmp_path) != drawn
    # No incomplete file is left.
    assert [path.name for path in (tmp_path / "spool" / "shop").iterdir()] == [REPLICA]


def test_two_machines_with_the_same_paths_are_two_replicas(tmp_path: Path) -> None:
    home = tmp_path / "home"
    here = replica_of("shop", home)
    home.rename(tmp_path / "elsewhere")
    there = replica_of("shop", home)
    assert here.server_id != there.server_id and here.server_uuid != there.server_uuid


def test_a_number_that_is_given_wins(tmp_path: Path) -> None:
    given = replica_of("shop", tmp_path, 77)
    drawn = replica_of("shop", tmp_path)
    assert given.server_id == 77 != drawn.server_id
    assert given.server_uuid == drawn.server_uuid


@pytest.mark.parametrize(
    "said",
    [
        "",
        "{",
        "[]",
        "null",
        json.dumps({"server_id": 5}),
        json.dumps({"server_id": "5", "server_uuid": "1b4e28ba-2fa1-11d2-883f-0016d3cca427"}),
        json.dumps({"server_id": 1 << 32, "server_uuid": "1b4e28ba-2fa1-11d2-883f-0016d3cca427"}),
        json.dumps({"server_id": 5, "server_uuid": "x"}),
        json.dumps({"server_id": 5, "server_uuid": 5}),
    ],
)
def test_a_file_that_is_none_is_told(said: str, tmp_path: Path) -> None:
    replica_of("shop", tmp_path)
    path = tmp_path / "spool" / "shop" / REPLICA
    path.write_text(said)
    with pytest.raises(StoreError, match=r"replica\.json cannot be read: .* Delete it"):
        replica_of("shop", tmp_path)
