"""The clock of another machine, compared with the clock of this one."""

import time
from typing import Final

from binloom.doctor.findings import Finding

_MOST_CLOCK_SECONDS: Final = 5.0


def clock_finding(subject: str, place: str, there: float, before: float) -> Finding:
    """Return the finding about another clock, read between `before` and now; all in seconds since 1970."""
    after = time.time()
    # The other clock was read at some moment in between.
    apart = max(before - there, there - after, 0.0)
    if apart > _MOST_CLOCK_SECONDS:
        message = f"The clock of {place} is {apart:.0f} seconds away from this machine's. Lag is wrong by as much."
        return Finding(subject, "warning", f"{message} Let NTP set both clocks.")
    return Finding(subject, "good", f"The clocks of {place} and of this machine agree.")
