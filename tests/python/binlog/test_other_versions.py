"""The workload on other versions of MariaDB: `python -m tests.servers get mariadb-10.5 mariadb-11.8` gets them.

They are never required: without them these tests are left out.
"""

from pathlib import Path

import pytest

from tests.python.binlog import recordings, workload
from tests.python.binlog.recordings import MATRIX
from tests.python.binlog.test_against_servers import assert_final_rows
from tests.servers import OTHER_VERSIONS, Distribution


@pytest.mark.slow
@pytest.mark.parametrize("distribution", OTHER_VERSIONS.values(), ids=OTHER_VERSIONS.keys())
def test_replayed_rows_are_the_rows_that_select_gives(distribution: Distribution, tmp_path: Path) -> None:
    if not distribution.available():
        pytest.skip(distribution.why_not())
    with distribution.start(tmp_path / "server") as server:
        tables = workload.tables("mariadb", workload.server_charsets(server))
        # MariaDB 11.8 leaves generated columns out of the images of UPDATE and DELETE: they cannot be replayed.
        tables = [table for table in tables if not any(column.is_generated for column in table.columns)]
        for setting in MATRIX:
            if setting.flavor == distribution.flavor:
                recording = recordings.record(server, setting, tables, tmp_path / str(setting))
                changes = recording.changes()
                assert_final_rows(recording, changes)
                assert len(changes) == len(recording.tool_output.changes)
