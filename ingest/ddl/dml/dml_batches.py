"""Column `dml_targets` of `statements`: the tables that each statement of a batch changes."""

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.ddl.batches import sql_mode_bits
from ingest.ddl.verbs import DML_PATTERN, is_plain_create
from ingest.versions import Flavor, version_of

if TYPE_CHECKING:
    from ingest.ddl.dml.dml_targets import DmlTarget

_TARGET: Final = pa.struct(
    [pa.field("verb", pa.string()), pa.field("schema_name", pa.string()), pa.field("table_name", pa.string())]
)
DML_TARGETS: Final = pa.field("dml_targets", pa.list_(pa.field("element", _TARGET)))

# Texts of other kinds describe the row events after them, or are the context of the next statement.
_EXECUTED: Final = pa.array(["QUERY", "LOAD"])

# Beginnings of statements that are remembered, and the longest of them.
_MOST_KNOWN: Final = 256
_LONGEST_KNOWN: Final = 128


class TargetReader:
    """Reads the targets of the statements of one log.

    Statements of an application begin alike, and mostly the beginning decides the targets. So the targets of some
    beginnings are remembered, and most statements are not parsed.

    Parameters
    ----------
    flavor, server_version
        Flavor and version of the server that wrote the log.
    """

    def __init__(self, flavor: Flavor, server_version: str | None) -> None:
        self._flavor = flavor
        self._version = version_of(flavor, server_version)
        self._known: dict[tuple[str, str | None, str | None], tuple[DmlTarget, ...]] = {}
        self._sizes: set[int] = set()

    def column(self, statements: pa.RecordBatch) -> pa.Array:
        """Return the targets of each statement of a batch from the decoder, none for one that changes no rows."""
        is_executed = pc.is_in(statements["kind"], _EXECUTED)
        is_candidate = pc.match_substring_regex(statements["sql_text"], DML_PATTERN)
        chosen = np.flatnonzero(pc.and_(is_executed, pc.fill_null(is_candidate, False)).to_numpy(zero_copy_only=False))
        rows = statements.select(["sql_text", "default_schema", "sql_mode"]).take(pa.array(chosen))
        found: list[DmlTarget] = []
        counts = np.zeros(statements.num_rows + 1, np.int32)
        for place, *statement in zip(chosen, *(column.to_pylist() for column in rows.columns), strict=True):
            targets = self.targets(*statement)
            counts[place + 1] = len(targets)
            found += targets
        values = pa.StructArray.from_arrays(
            [pa.array([getattr(target, field.name) for target in found], field.type) for field in _TARGET],
            fields=list(_TARGET),
        )
        return pa.ListArray.from_arrays(pa.array(np.cumsum(counts, dtype=np.int32)), values, type=DML_TARGETS.type)

    def targets(self, text: str, default_schema: str | None, sql_mode: str | None) -> "tuple[DmlTarget, ...]":
        """Return the targets of one statement; `sql_mode` holds the names of modes.

        A stored function that it calls may change any table.
        """
        named = self._named(text, default_schema, sql_mode)
        if not named or named[-1].table_name is None:
            return named
        from ingest.ddl.dml.dml_targets import DmlTarget
        from ingest.ddl.dml.stored_calls import calls_stored_function

        verb = named[0].verb
        is_create = verb == "CREATE TABLE SELECT"
        mode = sql_mode_bits(sql_mode)
        if calls_stored_function(text, mode, self._flavor, self._version, is_create=is_create):
            return (*named, DmlTarget(verb))
        return named

    def _named(self, text: str, default_schema: str | None, sql_mode: str | None) -> "tuple[DmlTarget, ...]":
        """Return the targets that the text names; the call of a function as a statement has an unknown one."""
        for size in self._sizes:
            known = self._known.get((text[:size], default_schema, sql_mode))
            if known is not None:
                return known
        if is_plain_create(text):
            return ()
        # Importing the tokenizer takes a while, and most logs contain no such statement.
        from ingest.ddl.dml.dml_targets import read_targets

        reading = read_targets(text, default_schema, sql_mode_bits(sql_mode), self._flavor, self._version)
        if reading.size is not None and reading.size <= _LONGEST_KNOWN:
            self._remember(text[: reading.size], default_schema, sql_mode, reading.targets)
        return reading.targets

    def _remember(
        self, beginning: str, default_schema: str | None, sql_mode: str | None, targets: "tuple[DmlTarget, ...]"
    ) -> None:
        if len(self._known) == _MOST_KNOWN:
            self._known.clear()
            self._sizes.clear()
        self._known[beginning, default_schema, sql_mode] = targets
        self._sizes.add(len(beginning))
