"""Moments from numbers in a log. Any number may be there, and Python's dates end with the year 9999."""

from datetime import UTC, datetime, timedelta
from typing import Final

from ingest.binlog.kernel.layout import LATEST_MOMENT

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def moment_of_seconds(seconds: int) -> datetime | None:
    """Return the moment of a number of seconds since 1970; see `moment`."""
    return moment(seconds * 1_000_000)


def moment(micros: int) -> datetime | None:
    """Return the moment of a number of microseconds since 1970.

    The result is None for 0, which means that there is no timestamp, and for what lies beyond the year 9999: no server
    wrote it as the time at which something happened.
    """
    return _EPOCH + timedelta(microseconds=micros) if 0 < micros <= LATEST_MOMENT else None
