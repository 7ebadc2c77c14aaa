"""Durations and sizes as people write them in options."""

import re
from typing import Final

from ingest.errors import UsageError

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt])?(?:i?b)?", re.IGNORECASE)
_FACTORS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def seconds(text: str, option: str) -> float:
    """Return a duration such as 30s, 5m or 7d in seconds.

    A number without a unit is refused, except 0: a wrong guess could drop rows that somebody wants to keep.

    Raises
    ------
    UsageError
        The text is not valid, or has no unit.
    """
    written = text.strip()
    if re.fullmatch(r"0+(?:\.0+)?", written):
        return 0.0
    match = _DURATION.fullmatch(written)
    if match is None:
        missing = "has no unit" if re.fullmatch(r"\d+(?:\.\d+)?", written) else "is not a duration"
        raise UsageError(f"{text!r} {missing}.", hint=f"Give {option} such as 30s, 5m, 2h or 7d.")
    return float(match[1]) * _SECONDS[match[2]]


def size(text: str, option: str) -> int:
    """Return a size such as 500M or 20G in bytes.

    Raises
    ------
    UsageError
        The text is not valid.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a size.", hint=f"Give {option} such as 500M or 20G.")
    return int(float(match[1]) * (1 << _FACTORS[(match[2] or "").lower()]))
