"""The landed content of a binlog: the decoder's batches, and what its statements do to schemas and tables."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, cast

import pyarrow as pa

from ingest.binlog.batches import SCHEMAS, BatchKind
from ingest.ddl.batches import DDL_ACTIONS, ddl_batch
from ingest.ddl.dml_batches import DML_TARGETS, TargetReader

if TYPE_CHECKING:
    from ingest.binlog.decoder import Binlog
    from ingest.ddl.actions import Flavor

LandedKind = BatchKind | Literal["ddl_actions"]

LANDED_SCHEMAS: dict[LandedKind, pa.Schema] = {
    **{cast(LandedKind, kind): schema for kind, schema in SCHEMAS.items()},
    "statements": SCHEMAS["statements"].append(DML_TARGETS),
    "ddl_actions": DDL_ACTIONS,
}


def landed_batches(log: "Binlog") -> Iterator[tuple[LandedKind, pa.RecordBatch]]:
    """Yield the batches of a binlog, `statements` with their targets.

    Each batch of `ddl_actions` follows the statements it was parsed from.
    """
    flavor, version = cast("Flavor", log.format.flavor), log.format.server_version
    reader = TargetReader(flavor, version)
    for kind, batch in log.batches():
        if kind == "statements":
            yield kind, batch.append_column(DML_TARGETS, reader.column(batch))
            actions = ddl_batch(batch, flavor, version)
            if actions is not None:
                yield "ddl_actions", actions
        else:
            yield kind, batch
