"""Binlog files in a script or a notebook.

>>> from binloom import open_binlog, register
>>> for batch in open_binlog("binlog.000001").row_batches(): ...  # doctest: +SKIP
>>> register(spark)  # doctest: +SKIP
>>> spark.read.format("mysql_binlog").load("/var/lib/mysql")  # doctest: +SKIP
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ingest.binlog import open_binlog
    from ingest.landing.data_source import register

__all__ = ["open_binlog", "register"]

_HOMES = {"open_binlog": "ingest.binlog", "register": "ingest.landing.data_source"}


def __getattr__(name: str) -> Any:
    # Lazy imports: `binloom --help` must not load the decoder, and a script that decodes must not load Spark.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
