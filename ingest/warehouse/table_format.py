"""The format of a built table, as its folder shows it: binloom reads only plain Parquet files without Spark."""

from pathlib import Path

from ingest.errors import StoreError

# The format in which dbt builds tables: see dbt_project.yml.
FORMAT_VARIABLE = "BINLOOM_FILE_FORMAT"
PARQUET = "parquet"

# Iceberg and Delta keep the list of a table's files in a folder of their own. Its other files may be old ones.
_LISTS_OF_FILES = (("metadata", "*.metadata.json", "an Iceberg"), ("_delta_log", "*.json", "a Delta"))


class TableFormatError(StoreError):
    """A table is not in plain Parquet files."""


def check_is_parquet(folder: Path) -> None:
    """Raise an error when a folder contains a table in Iceberg or Delta.

    Raises
    ------
    TableFormatError
        It does.
    """
    for name, pattern, words in _LISTS_OF_FILES:
        if any((folder / name).glob(pattern)):
            raise TableFormatError(
                f"{folder.parent.stem}.{folder.name} is {words} table, which only a Spark cluster can read.",
                hint=f"Set BINLOOM_TARGET=thrift to ask the cluster, or unset {FORMAT_VARIABLE} and build again.",
                path=str(folder),
            )
