"""Sums by key over a stream of batches, in bounded memory where that is wanted."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

_BUFFERED: Final = 200_000


class Sums:
    """Sums of values by key.

    With `most`, only that many keys are kept: each time that there are more, the first value of the next largest key is
    subtracted from all, and keys that have nothing left are dropped (Misra and Gries; Agarwal et al., Mergeable
    Summaries). So the sum of a key is at least what is told, and at most `error` more.

    Parameters
    ----------
    keys, values
        Names of the columns; values are integers.
    most
        Number of keys that are kept; None: all.
    """

    def __init__(self, keys: Sequence[str], values: Sequence[str], most: int | None = None) -> None:
        self.error = 0
        self._keys = list(keys)
        self._values = list(values)
        self._most = most
        self._parts: list[pa.Table] = []
        self._compact = 0

    def add(self, columns: Mapping[str, Any]) -> None:
        """Add rows: an array for each column."""
        import pyarrow as pa

        part = pa.table({name: columns[name] for name in (*self._keys, *self._values)})
        if part.num_rows:
            self._parts.append(part)
        if sum(one.num_rows for one in self._parts) > 2 * self._compact + _BUFFERED:
            self.table()

    def table(self) -> "pa.Table | None":
        """Return a row for each key; None if nothing was added."""
        import pyarrow as pa

        if not self._parts:
            return None
        sums = pa.concat_tables(self._parts).group_by(self._keys).aggregate([(name, "sum") for name in self._values])
        found = sums.rename_columns([name.removesuffix("_sum") for name in sums.column_names])
        found = self._bounded(found.select([*self._keys, *self._values]))
        self._parts, self._compact = [found], found.num_rows
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each key."""
        found = self.table()
        return found.to_pylist() if found is not None else []

    def largest(self, count: int, by: str | None = None) -> list[dict[str, Any]]:
        """Return the keys with the largest sums of a value, by default of the first, largest first."""
        import pyarrow.compute as pc

        found = self.table()
        if found is None:
            return []
        order = [(by or self._values[0], "descending"), *((key, "ascending") for key in self._keys)]
        rows: list[dict[str, Any]] = found.take(pc.select_k_unstable(found, count, order)).to_pylist()
        return rows

    def _bounded(self, found: "pa.Table") -> "pa.Table":
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._most is None or found.num_rows <= self._most:
            return found
        first = self._values[0]
        largest = pc.select_k_unstable(found, self._most + 1, [(first, "descending")])
        cut = found.column(first)[largest[self._most].as_py()].as_py()
        self.error += cut
        lowered = found.set_column(
            found.column_names.index(first), first, pc.subtract(found.column(first), pa.scalar(cut, pa.int64()))
        )
        return lowered.filter(pc.greater(lowered.column(first), 0))
