"""A clock that a recording script sets: the server and everything it logs use its time."""

import time
from datetime import UTC, datetime
from pathlib import Path

from tests.servers.packages import cache_folder, unpack


class Clock:
    """Sets the time of servers that were started with its environment.

    `SET timestamp` changes only the event headers; this clock also sets the commit times in GTID events, the
    creation time of the file and `now()` in any session. The clock keeps running from the moment it is set to.
    """

    def __init__(self, directory: Path) -> None:
        unpack(["libfaketime"], "bookworm", cache_folder() / "faketime")
        self._library = next((cache_folder() / "faketime").rglob("libfaketime.so.1"))
        self._offset_file = directory / "clock"
        self._offset_file.write_text("+0")

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables for `Distribution.start`."""
        return {
            "LD_PRELOAD": str(self._library),
            "FAKETIME_TIMESTAMP_FILE": str(self._offset_file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, moment: datetime) -> None:
        """Set the servers' time to this moment, taken as UTC."""
        offset = moment.replace(tzinfo=UTC).timestamp() - time.time()
        self._offset_file.write_text(f"{offset:+.6f}")
