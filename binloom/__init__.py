"""Binlogs in a script or a notebook: the functions of `binloom.api`, and the rows of files without names.

>>> import binloom
>>> for change in binloom.changes(files="binlog.000001", table="shop.orders"): ...  # doctest: +SKIP
>>> for batch in binloom.open_binlog("binlog.000001").row_batches(): ...  # doctest: +SKIP
>>> binloom.register(spark)  # doctest: +SKIP
>>> spark.read.format("mysql_binlog").load("/var/lib/mysql")  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from ingest.lazy import lazy_names

if TYPE_CHECKING:
    from binloom.api import (
        changes,
        coverage,
        history,
        row,
        schema_changes,
        state,
        summary,
        timeline,
        transactions,
        undo,
    )
    from ingest.binlog import open_binlog
    from ingest.errors import BinloomError
    from ingest.landing.data_source import register
    from ingest.sources.servers.address import ServerAddress

__all__ = [
    "BinloomError",
    "ServerAddress",
    "changes",
    "coverage",
    "history",
    "open_binlog",
    "register",
    "row",
    "schema_changes",
    "state",
    "summary",
    "timeline",
    "transactions",
    "undo",
]

# `binloom --help` must not load the decoder, and a script that decodes must not load Spark.
__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(
            (
                *("changes", "coverage", "history", "row", "schema_changes"),
                *("state", "summary", "timeline", "transactions", "undo"),
            ),
            "binloom.api",
        ),
        "BinloomError": "ingest.errors",
        "ServerAddress": "ingest.sources.servers.address",
        "open_binlog": "ingest.binlog.decoder",
        "register": "ingest.landing.data_source",
    },
)


def __dir__() -> list[str]:
    return [*__all__]
