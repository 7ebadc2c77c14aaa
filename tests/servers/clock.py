"""A clock that a recording script sets: the server believes it, and so does everything it logs."""

import time
from datetime import UTC, datetime
from pathlib import Path

from tests.servers.packages import cache_folder, unpack


class Clock:
    """Sets the time of servers that were started with its environment.

    `SET timestamp` reaches the event headers only; with this the commit times in the GTID events, the
    creation time of the file and `now()` in any session tell the same time. The clock runs on from
    where it is set.
    """

    def __init__(self, directory: Path) -> None:
        unpack(["libfaketime"], "bookworm", cache_folder() / "faketime")
        self._library = next((cache_folder() / "faketime").rglob("libfaketime.so.1"))
        self._offset_file = directory / "clock"
        self._offset_file.write_text("+0")

    @property
    def environment(self) -> dict[str, str]:
        """Variables for `Distribution.start`."""
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._offset_file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, moment: datetime) -> None:
        """Let the servers believe that it is this moment, taken as UTC."""
        offset = moment.replace(tzinfo=UTC).timestamp() - time.time()
        self._offset_file.write_text(f"{offset:+.6f}")
