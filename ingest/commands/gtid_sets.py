"""GTIDs as a set."""

from collections.abc import Iterator


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
        texts: list[str] = []
        tagged: dict[str, dict[str, str]] = {}
        for stem, intervals in self._intervals.items():
            if stem.endswith("-"):
                texts.append(_range_of(stem, intervals))
            else:
                source, _, tag = stem.removesuffix(":").partition(":")
                tagged.setdefault(source, {})[tag] = _intervals_of(intervals)
        texts += [":".join([source, *_by_tag(of_tags)]) for source, of_tags in tagged.items()]
        return ",".join(texts)


def _range_of(stem: str, intervals: list[list[int]]) -> str:
    first, last = min(low for low, _ in intervals), max(high for _, high in intervals)
    return f"{stem}{first}" if first == last else f"{stem}{first} to {stem}{last}"


def _by_tag(of_tags: dict[str, str]) -> Iterator[str]:
    """The intervals of one source: those without a tag, then each tag with its own, in the order of the tags."""
    for tag, text in sorted(of_tags.items()):
        yield f"{tag}:{text}" if tag else text


def _intervals_of(intervals: list[list[int]]) -> str:
    merged: list[list[int]] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return ":".join(str(low) if low == high else f"{low}-{high}" for low, high in merged)
