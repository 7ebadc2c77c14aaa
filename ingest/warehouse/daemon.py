"""Spark's Python worker daemon, which imports the modules of the tasks before it forks the workers.

Spark runs it as `python -m ingest.warehouse.daemon` (setting `spark.python.daemon.module`). Every task
runs in a fork of this process, so imports and compiled kernels are paid for once.
"""

import contextlib

import pyarrow.parquet  # noqa: F401
from pyspark import daemon

if __name__ == "__main__":
    with contextlib.suppress(Exception):
        from ingest.warehouse.privacy import keep_private

        # A cluster's worker may have any umask, and nobody else may put code into the folder of compiled kernels.
        keep_private()
    # When the decoder cannot be imported, the task reports the error. A daemon that dies here would hang Spark.
    with contextlib.suppress(Exception):
        from ingest.binlog import kernel
        from ingest.warehouse.fingerprint import code_fingerprint

        kernel.prepare()
        code_fingerprint()
    daemon.manager()  # type: ignore[no-untyped-call]
