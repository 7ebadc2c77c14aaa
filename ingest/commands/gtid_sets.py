"""GTIDs as a set."""


class GtidSet:
    """GTIDs as a set, written the way their server does; small however many there are, as long as few are missing.

    MySQL's `uuid:n` and `uuid:tag:n` become intervals per uuid and tag, MariaDB's `domain-server-n` the first and
    last of each domain and server.
    """

    def __init__(self) -> None:
        self._intervals: dict[str, list[list[int]]] = {}

    def add(self, gtid: str) -> None:
        """Take one more GTID."""
        stem, separator, text = gtid.rpartition(":" if ":" in gtid else "-")
        number = int(text)
        intervals = self._intervals.setdefault(stem + separator, [])
        # In commit order nearly every one follows the one before.
        if intervals and intervals[-1][0] <= number <= intervals[-1][1] + 1:
            intervals[-1][1] = max(intervals[-1][1], number)
        else:
            intervals.append([number, number])

    def __str__(self) -> str:
        return ",".join(
            _range_of(stem, intervals) if stem.endswith("-") else _intervals_of(stem, intervals)
            for stem, intervals in self._intervals.items()
        )


def _range_of(stem: str, intervals: list[list[int]]) -> str:
    first, last = min(low for low, _ in intervals), max(high for _, high in intervals)
    return f"{stem}{first}" if first == last else f"{stem}{first} to {stem}{last}"


def _intervals_of(stem: str, intervals: list[list[int]]) -> str:
    merged: list[list[int]] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return stem + ":".join(str(low) if low == high else f"{low}-{high}" for low, high in merged)
