"""One Java process for all sessions of a process of tests."""

import os
from typing import Final

from ingest.warehouse.jvm import SHORT_LIVED_OPTIONS, Jvm
from ingest.warehouse.spark import SparkLaunch
from tests.support.few_rows import FEW_ROWS

# What lives on is copied each time that the space for new objects is full. That of a small heap is 100 MB, and Spark
# fills it twice a second.
_OPTIONS: Final = ("-Xmn512m", "-XX:MetaspaceSize=256m")


def keep_one_jvm() -> None:
    """Let the sessions of this process share a Java process: its code becomes fast only after minutes."""
    Jvm.outlives_sessions = True
    Jvm.further_options = _OPTIONS
    SparkLaunch.further_settings = FEW_ROWS
    # Java of the commands that tests run lives for seconds, also where production expects more of it.
    os.environ["JDK_JAVA_OPTIONS"] = " ".join(SHORT_LIVED_OPTIONS)
