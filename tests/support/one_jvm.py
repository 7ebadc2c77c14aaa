"""One Java process for all sessions of a process of tests."""

import os

from ingest.warehouse.few_rows import FEW_ROWS
from ingest.warehouse.jvm import SHORT_LIVED_OPTIONS, Jvm
from ingest.warehouse.spark import SparkLaunch


def keep_one_jvm() -> None:
    """Let the sessions of this process share a Java process: its code becomes fast only after minutes."""
    Jvm.outlives_sessions = True
    SparkLaunch.further_settings = FEW_ROWS
    # Java of the commands that tests run lives for seconds, also where production expects more of it.
    os.environ["JDK_JAVA_OPTIONS"] = " ".join(SHORT_LIVED_OPTIONS)
