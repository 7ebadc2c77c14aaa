"""Settings with which Spark spends less CPU on tables of some hundred rows, with the same results.

Sessions of the tests' own process have them. Commands that tests run as processes have the settings of production:
among others binloom/test_demo.py and test_end_to_end.py, which build models.
"""

from typing import Final

FEW_ROWS: Final = {
    # Compiling the code of a query takes longer than interpreting its expressions.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # One task for each shuffle; there is nothing to decide from the sizes of what was shuffled.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    # Each task of an aggregation fills a page with zeros: 32 MB by default, for 2 GB of memory and two cores.
    "spark.buffer.pageSize": "1m",
}
