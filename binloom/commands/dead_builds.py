"""Removes what a killed build left in the warehouse of a home.

Spark creates no table over a folder, keeps the files of writes that did not end, and does not look for partitions that
it has not registered. Only the process that holds the embedded metastore may clear this, because nobody else can be
writing then. For other metastores see macro clear_dead_build: there a person decides.
"""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.warehouse.built import tables_cut_short
from ingest.warehouse.home import warehouse_dir
from ingest.warehouse.spark import uses_embedded_metastore
from ingest.warehouse.table_format import FORMAT_VARIABLE, PARQUET

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RECORD_OF_PARTS: Final = "_built_parts"
# Folders of writes that did not end. Spark reads no folder whose name begins with a dot or an underscore.
_UNFINISHED: Final = (".spark-staging-*", "_temporary")


def clear_dead_builds(session: "SparkSession", home: Path) -> None:
    """Remove the leftovers of each table that a build was changing when it was killed, and of each seed.

    The folder of a table that the metastore does not know goes. In other tables, writes that did not end go, and all
    partitions are registered, so that the next build finds those which were written or dropped halfway. With a
    metastore of a server, nothing happens: another process may be building.
    """
    if os.environ.get(FORMAT_VARIABLE, PARQUET) != PARQUET:
        # Iceberg and Delta publish a table or its parts in one step. They leave only files outside of all tables.
        return
    if not uses_embedded_metastore(session.conf.getAll):
        return
    warehouse = warehouse_dir(home)
    for folder in warehouse.glob("*_seeds.db/*"):
        # Seeds are also loaded before the first node, without a record.
        _clear_unknown(session, folder)
    for schema, table in tables_cut_short(home):
        _clear(session, warehouse / f"{schema}.db" / table)
        for folder in warehouse.glob(f"*.db/{table}{_RECORD_OF_PARTS}"):
            _clear(session, folder)


def _clear(session: "SparkSession", folder: Path) -> None:
    if not _clear_unknown(session, folder):
        for unfinished in (path for pattern in _UNFINISHED for path in folder.glob(pattern)):
            shutil.rmtree(unfinished)
        if any(column.isPartition for column in session.catalog.listColumns(_name_of(folder))):
            session.sql(f"msck repair table {_name_of(folder)}")


def _clear_unknown(session: "SparkSession", folder: Path) -> bool:
    is_unknown = not session.catalog.tableExists(_name_of(folder))
    if is_unknown:
        shutil.rmtree(folder, ignore_errors=True)
    return is_unknown


def _name_of(folder: Path) -> str:
    return f"`{folder.parent.stem}`.`{folder.name}`"
