"""Settings of Spark for a build with few new rows, and whether a home has few.

Planning a query and compiling its code takes Spark seconds, however few rows it reads. For few rows it is faster to
interpret the expressions of a query, in one task, with the plan as it is.
"""

import os
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ingest.errors import StoreError, UsageError
from ingest.warehouse.files import data_files
from ingest.warehouse.home import model_dirs
from ingest.warehouse.record import read_states
from ingest.warehouse.segments import latest_states

FEW_ROWS_VARIABLE: Final = "BINLOOM_FEW_ROWS"
FEW_ROWS: Final[Mapping[str, str]] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}
MANY_ROWS: Final[Mapping[str, str]] = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.adaptive.enabled": "true",
}

_FEW: Final = 200_000
# Tests, typed tables and models of users may read all rows of a home.
_SMALL_HOME: Final = 10_000_000
_BUILT_SEGMENTS: Final = "int_completed_segments"


def builds_few_rows(home: Path, full_refresh: bool = False) -> bool:
    """Return whether the next build of a home derives few rows, and the home has no more than some million.

    It reads the record of segments and the table of those that were built, without Java. A wrong answer makes a build
    slower, and never changes its result.

    Parameters
    ----------
    home
        Folder of all data of binloom.
    full_refresh
        Whether the build derives all rows again.

    Raises
    ------
    UsageError
        `BINLOOM_FEW_ROWS` is no number.
    """
    few = _few()
    if few == 0:
        return False
    try:
        built = _built_rows(home)
        if built > _SMALL_HOME:
            return False
        landed = _landed_rows(home)
    except (OSError, pa.ArrowException, StoreError):
        # The build itself says what is wrong with the files.
        return False
    # Without landed rows, the build is of another project, or says what to do first.
    return 0 < landed <= _SMALL_HOME and landed - (0 if full_refresh else built) <= few


def _few() -> int:
    text = os.environ.get(FEW_ROWS_VARIABLE) or str(_FEW)
    if not text.isdecimal():
        raise UsageError(
            f"{FEW_ROWS_VARIABLE} is {text!r}, which is not a number of rows.",
            hint=f"Set it to a number such as {_FEW}, or to 0 to turn the settings for few rows off.",
        )
    return int(text)


def _built_rows(home: Path) -> int:
    files = chain.from_iterable(data_files(folder) for folder in model_dirs(_BUILT_SEGMENTS, home))
    return sum(pc.sum(pq.read_table(path, columns=["row_events"])["row_events"]).as_py() or 0 for path in files)


def _landed_rows(home: Path) -> int:
    states = latest_states(read_states(home))
    return sum(state.row_events or 0 for state in chain.from_iterable(states.values()) if state.status == "completed")
