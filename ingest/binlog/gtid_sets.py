"""GTIDs as a set.

MySQL has GTID sets: the numbers of a `uuid`, or of a `uuid:tag`, may have holes, and every number occurs once.
MariaDB has no sets. Its servers report positions: `domain-server-n` means all GTIDs of the domain up to n, from any
server (`gtid_pos`, GTID_LIST_EVENT; sql/rpl_gtid.cc, `slave_connection_state` and `rpl_binlog_state`). For a MariaDB
file or segment the first and the last GTID of each domain and server are kept. Numbers rise within a domain, so all
GTIDs between these two are in the same file or segment.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingest.errors import UsageError

Int64s = npt.NDArray[np.int64]

_MARIA: Final = re.compile(r"(\d+-\d+-)(\d+)(?:\s+to\s+\1(\d+))?")
_INTERVAL: Final = re.compile(r"(\d+)(?:-(\d+))?")
# sql/rpl_gtid.h, `Tag`: a letter or underscore, and 31 more with digits.
_TAG: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}", re.IGNORECASE)


class GtidSet:
    """A set of GTIDs. It stays small for any number of GTIDs, as long as few are missing.

    MySQL's `uuid:n` and `uuid:tag:n` become intervals for each uuid and tag. For MariaDB's `domain-server-n` the set
    keeps the first and last number of each domain and server. A MariaDB position is an interval from 0 on. For a server
    that no position names, the highest position of the domain counts.

    The text form is MySQL's `uuid:1-5:7,uuid:tag:3`; for MariaDB `0-1-5 to 0-1-9`, and `0-1-9` for a position.
    """

    def __init__(self) -> None:
        # The key is the text before the number, with the separator. MySQL's intervals are merged when they are read.
        self._intervals: dict[str, list[tuple[int, int]]] = {}

    @classmethod
    def parse(cls, text: str | None) -> Self:
        """Return a set from text that a server or `str` wrote. The text may contain blanks and newlines.

        Raises
        ------
        UsageError
            When the text is not a GTID set.
        """
        found = cls()
        for part in (text or "").split(","):
            if item := part.strip():
                found._add_text(item)
        return found

    def _add_text(self, item: str) -> None:
        if maria := _MARIA.fullmatch(item):
            stem, first, last = maria.groups()
            self.add_interval(stem, int(first) if last else 0, int(last or first))
            return
        source, *parts = re.sub(r"\s+", "", item).lower().split(":")
        stem, has_interval = f"{source}:", False
        for part in parts:
            if numbers := _INTERVAL.fullmatch(part):
                low = int(numbers[1])
                high = int(numbers[2] or low)
                if not 0 < low <= high:
                    break
                self.add_interval(stem, low, high)
                has_interval = True
            elif _TAG.fullmatch(part):
                stem = f"{source}:{part}:"
            else:
                break
        else:
            if source and has_interval:
                return
        raise UsageError(
            f"{item!r} is not a GTID set.",
            hint="MySQL writes uuid:1-5:7, MariaDB 0-1-100; several are separated by commas.",
        )

    def add(self, gtid: str) -> None:
        """Add one GTID."""
        stem, separator, text = gtid.rpartition(_separator(gtid))
        self.add_interval(stem + separator, int(text), int(text))

    def add_all(self, gtids: pa.Array) -> None:
        """Add the GTIDs of an Arrow array of strings; nulls are skipped."""
        stems, codes, numbers = _taken_apart(pc.drop_null(gtids))
        order = np.lexsort((numbers, codes))
        codes, numbers = codes[order], numbers[order]
        is_break = (np.diff(codes) != 0) | (np.diff(numbers) > 1)
        for start, end in pairwise([0, *(np.flatnonzero(is_break) + 1).tolist(), len(numbers)]):
            if start < end:
                self.add_interval(stems[codes[start]], int(numbers[start]), int(numbers[end - 1]))

    def add_interval(self, stem: str, low: int, high: int) -> None:
        """Add the numbers from `low` to `high` of `uuid:`, `uuid:tag:` or `domain-server-`."""
        intervals = self._intervals.setdefault(stem, [])
        if not intervals:
            intervals.append((low, high))
        elif stem.endswith("-"):
            intervals[0] = min(low, intervals[0][0]), max(high, intervals[0][1])
        # In commit order nearly every GTID directly follows the previous one.
        elif intervals[-1][0] <= low <= intervals[-1][1] + 1:
            intervals[-1] = intervals[-1][0], max(intervals[-1][1], high)
        else:
            intervals.append((low, high))

    def update(self, other: "GtidSet") -> None:
        """Add all GTIDs of another set."""
        for stem, intervals in other._intervals.items():
            for low, high in intervals:
                self.add_interval(stem, low, high)

    def as_positions(self) -> "GtidSet":
        """Return the set with MariaDB's intervals as positions: from 0 on. MySQL's intervals stay as they are."""
        positions = GtidSet()
        for stem, intervals in self._intervals.items():
            for low, high in intervals:
                positions.add_interval(stem, 0 if stem.endswith("-") else low, high)
        return positions

    def contains_all(self, gtids: pa.Array) -> npt.NDArray[np.bool_]:
        """Return which GTIDs of an Arrow array of strings the set contains, shape (GTIDs,); False for null."""
        is_there = np.zeros(len(gtids), dtype=np.bool_)
        known = np.flatnonzero(gtids.is_valid().to_numpy(zero_copy_only=False))
        stems, codes, numbers = _taken_apart(pc.drop_null(gtids))
        for code, stem in enumerate(stems):
            held = self._held(stem)
            if held:
                lows, highs = np.array(held, dtype=np.int64).T
                at = np.searchsorted(lows, numbers, side="right") - 1
                is_there[known] |= (codes == code) & (at >= 0) & (numbers <= highs[at])
        return is_there

    def __contains__(self, gtid: str) -> bool:
        return bool(self.contains_all(pa.array([gtid]))[0])

    def has_any(self, stem: str, low: int, high: int) -> bool:
        """Return whether the set has any of the numbers from `low` to `high`; on MariaDB it may only seem so."""
        return any(first <= high and low <= last for first, last in self._held(stem))

    def __or__(self, other: "GtidSet") -> "GtidSet":
        both = GtidSet()
        both.update(self)
        both.update(other)
        return both

    def __sub__(self, other: "GtidSet") -> "GtidSet":
        """Return the GTIDs of this set that another set does not contain."""
        left = GtidSet()
        for stem in self._intervals:
            for low, high in _less(self._settled(stem), other._held(stem)):
                left.add_interval(stem, low, high)
        return left

    def __le__(self, other: "GtidSet") -> bool:
        """Return whether another set contains all GTIDs of this set."""
        return not self - other

    def __bool__(self) -> bool:
        return bool(self._intervals)

    def __str__(self) -> str:
        texts: list[str] = []
        tagged: dict[str, dict[str, str]] = {}
        for stem in sorted(self._intervals, key=_in_order):
            if stem.endswith("-"):
                ((low, high),) = self._intervals[stem]
                texts.append(f"{stem}{low} to {stem}{high}" if low else f"{stem}{high}")
            else:
                source, _, tag = stem.removesuffix(":").partition(":")
                tagged.setdefault(source, {})[tag] = ":".join(map(_interval_text, self._settled(stem)))
        texts += [":".join([source, *_by_tag(of_tags)]) for source, of_tags in tagged.items()]
        return ",".join(texts)

    def _held(self, stem: str) -> list[tuple[int, int]]:
        """Return the intervals that contain numbers of a uuid and tag, or of a domain and server."""
        if stem in self._intervals or not stem.endswith("-"):
            return self._settled(stem)
        domain = stem[: stem.index("-") + 1]
        positions = [ends[0] for of, ends in self._intervals.items() if of.startswith(domain) and ends[0][0] == 0]
        return [max(positions)] if positions else []

    def _settled(self, stem: str) -> list[tuple[int, int]]:
        """Return the intervals of a stem, sorted and merged so that none touches the next."""
        intervals = self._intervals.get(stem, [])
        if len(intervals) > 1:
            merged: list[tuple[int, int]] = []
            for low, high in sorted(intervals):
                if merged and low <= merged[-1][1] + 1:
                    merged[-1] = merged[-1][0], max(merged[-1][1], high)
                else:
                    merged.append((low, high))
            self._intervals[stem] = intervals = merged
        return intervals


def gtid_union(texts: Iterable[str | None]) -> GtidSet:
    """Return the union of sets given as text; None is an empty set."""
    union = GtidSet()
    for text in texts:
        if text:
            union.update(GtidSet.parse(text))
    return union


def _separator(gtid: str) -> str:
    return ":" if ":" in gtid else "-"


def _taken_apart(gtids: pa.Array) -> tuple[list[str], Int64s, Int64s]:
    """Split GTIDs: return all stems, and for each GTID its stem's index and its number, both of shape (GTIDs,)."""
    if not len(gtids):
        return [], np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    separator = _separator(gtids[0].as_py())
    parts = pc.list_flatten(pc.split_pattern(gtids, separator, max_splits=1, reverse=True))
    halves = np.arange(0, len(parts), 2)
    stems = parts.take(pa.array(halves)).dictionary_encode()
    numbers = parts.take(pa.array(halves + 1)).cast(pa.int64())
    names = [stem + separator for stem in stems.dictionary.to_pylist()]
    return names, stems.indices.to_numpy().astype(np.int64), numbers.to_numpy()


def _less(whole: list[tuple[int, int]], taken: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the intervals of `whole` without the numbers in `taken`; both are sorted."""
    for start, end in whole:
        low = start
        for first, last in taken:
            if last < low or first > end:
                continue
            if first > low:
                yield low, first - 1
            low = last + 1
        if low <= end:
            yield low, end


def _in_order(stem: str) -> tuple[Any, ...]:
    return tuple(int(part) for part in stem.split("-")[:-1]) if stem.endswith("-") else (stem,)


def _by_tag(of_tags: dict[str, str]) -> Iterator[str]:
    """Yield the intervals of one source: first those without a tag, then each tag with its intervals, sorted by tag."""
    for tag, text in sorted(of_tags.items()):
        yield f"{tag}:{text}" if tag else text


def _interval_text(interval: tuple[int, int]) -> str:
    low, high = interval
    return str(low) if low == high else f"{low}-{high}"
