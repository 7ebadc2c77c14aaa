"""The master that gives a session its executors: this process, or a cluster that may be away or full."""

import re
import socket
import time
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import StoreError

if TYPE_CHECKING:
    from pyspark import SparkContext

CONNECT_SECONDS: Final = 5.0
# A cluster whose applications are about to end has room soon; one whose machines are too small never has.
EXECUTOR_SECONDS = 120.0


def is_local(master: str) -> bool:
    """Return whether a master is the process of the driver itself."""
    return master.startswith("local")


def require_master(master: str) -> None:
    """Refuse a standalone master that does not answer. Spark would try for a minute and report something else.

    Raises
    ------
    StoreError
    """
    if not master.startswith("spark://"):
        return
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
            return
        except (OSError, ValueError, OverflowError):
            continue
    raise StoreError(
        f"No Spark master answers at {master}.",
        hint="Start it, or set BINLOOM_SPARK_MASTER to its address; without it, binloom runs Spark in its own process.",
        master=master,
    )


def require_executor(context: "SparkContext") -> None:
    """Wait until a cluster has given the session an executor. Spark would wait for ever.

    Raises
    ------
    StoreError
        The cluster has given none in this time.
    """
    conf, master = context.getConf(), str(context.master)
    if is_local(master) or conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    spark: Any = context._jsc.sc()
    until = time.monotonic() + EXECUTOR_SECONDS
    # The driver is in this list too.
    while spark.getExecutorMemoryStatus().size() < 2:
        if spark.isStopped():
            raise StoreError(
                f"The cluster at {master} has ended the session.", hint="The log of its master may tell why."
            )
        if time.monotonic() > until:
            raise StoreError(
                f"The cluster at {master} gave binloom no executor in {EXECUTOR_SECONDS:g} seconds: no"
                f" worker has {conf.get('spark.executor.memory', '1g')} of memory and a core free.",
                hint="Start workers, give other applications fewer cores (spark.cores.max), or run this command later.",
                master=master,
            )
        time.sleep(0.05)


def reason_of(error: Exception) -> str:
    """Return the most useful sentence of an error of Spark: that of the innermost cause."""
    lines = str(error).splitlines() or [type(error).__name__]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    line = causes[-1].removeprefix("Caused by: ") if causes else next((one for one in lines if ": " in one), lines[0])
    return re.sub(r"^(?:: )?(?:[\w$.]+(?:Exception|Error): )+", "", line).rstrip(". ")
