"""The landed content of a binlog: the decoder's batches, and the actions of its DDL statements."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, cast

import pyarrow as pa

from ingest.binlog.batches import SCHEMAS, BatchKind
from ingest.ddl.batches import DDL_ACTIONS, ddl_batch

if TYPE_CHECKING:
    from ingest.binlog.decoder import Binlog
    from ingest.ddl.actions import Flavor

LandedKind = BatchKind | Literal["ddl_actions"]

LANDED_SCHEMAS: dict[LandedKind, pa.Schema] = {
    **{cast(LandedKind, kind): schema for kind, schema in SCHEMAS.items()},
    "ddl_actions": DDL_ACTIONS,
}


def landed_batches(log: "Binlog") -> Iterator[tuple[LandedKind, pa.RecordBatch]]:
    """Yield the batches of a binlog; each batch of `ddl_actions` follows the statements it was parsed from."""
    for kind, batch in log.batches():
        yield kind, batch
        if kind == "statements":
            actions = ddl_batch(batch, cast("Flavor", log.format.flavor), log.format.server_version)
            if actions is not None:
                yield "ddl_actions", actions
