"""The landed content of a binlog: the decoder's batches, and what its statements do to schemas and tables."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, cast

import pyarrow as pa

from ingest.binlog.batches import SCHEMAS, BatchKind
from ingest.ddl.batches import DDL_ACTIONS, ddl_batch
from ingest.ddl.digests.digest_batches import DIGEST_COLUMNS, DigestColumns
from ingest.ddl.dml.dml_batches import DML_TARGETS, TargetReader
from ingest.masking.rows import MASKED_COLUMNS, RowMasking

if TYPE_CHECKING:
    from ingest.binlog.decoder import Binlog
    from ingest.binlog.events.hints import SchemaHints
    from ingest.masking.rules import Masks

LandedKind = BatchKind | Literal["ddl_actions"]

LANDED_SCHEMAS: dict[LandedKind, pa.Schema] = {
    **{cast(LandedKind, kind): schema for kind, schema in SCHEMAS.items()},
    "statements": pa.schema([*SCHEMAS["statements"], DML_TARGETS, *DIGEST_COLUMNS]),
    "table_maps": SCHEMAS["table_maps"].append(MASKED_COLUMNS),
    "ddl_actions": DDL_ACTIONS,
}


def landed_batches(
    log: "Binlog", masks: "Masks | None" = None, hints: "SchemaHints | None" = None
) -> Iterator[tuple[LandedKind, pa.RecordBatch]]:
    """Yield the batches of a binlog, `statements` with their targets, digests and tags, masked.

    Each batch of `ddl_actions` follows the statements it was parsed from.

    Parameters
    ----------
    log
        The log.
    masks
        Masks of its source, None without any.
    hints
        Schema hints that the log is decoded with. Masks need the names and keys in them.
    """
    flavor, version = log.format.flavor, log.format.server_version
    reader = TargetReader(flavor, version)
    digests = DigestColumns(masks is not None, masks.key if masks is not None else None)
    batches = log.batches() if masks is None else _masked_batches(log, masks, hints)
    for kind, batch in batches:
        if kind == "statements":
            columns = [reader.column(batch), *digests.of(batch)]
            if masks is not None:
                # Importing the tokenizer takes a while.
                from ingest.masking.statement_texts import with_masked_texts

                batch = with_masked_texts(batch, flavor, version, masks.key)
            yield kind, pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=LANDED_SCHEMAS[kind])
            actions = ddl_batch(batch, flavor, version)
            if actions is not None:
                yield "ddl_actions", actions
        elif kind == "table_maps" and masks is None:
            yield kind, batch.append_column(MASKED_COLUMNS, pa.nulls(batch.num_rows, MASKED_COLUMNS.type))
        else:
            yield kind, batch


def _masked_batches(
    log: "Binlog", masks: "Masks", hints: "SchemaHints | None"
) -> Iterator[tuple[BatchKind, pa.RecordBatch]]:
    """Yield the batches of a binlog with masked rows. The texts of statements are not masked yet."""
    masking = RowMasking(masks, log, hints)
    for kind, batch in log.batches():
        match kind:
            case "table_maps":
                yield kind, masking.table_maps(batch)
            case "row_events":
                yield from masking.row_events(batch)
            case "transactions":
                yield kind, masking.transactions(batch)
            case _:
                yield kind, batch
