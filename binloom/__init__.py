"""Binlog files in a script or a notebook.

>>> from binloom import open_binlog, register
>>> for batch in open_binlog("binlog.000001").row_batches(): ...  # doctest: +SKIP
>>> register(spark)  # doctest: +SKIP
>>> spark.read.format("mysql_binlog").load("/var/lib/mysql")  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

from ingest.lazy import lazy_names

if TYPE_CHECKING:
    from ingest.binlog import open_binlog
    from ingest.landing.data_source import register

__all__ = ["open_binlog", "register"]

# `binloom --help` must not load the decoder, and a script that decodes must not load Spark.
__getattr__ = lazy_names(__name__, {"open_binlog": "ingest.binlog.decoder", "register": "ingest.landing.data_source"})
