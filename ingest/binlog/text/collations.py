"""Names of collations by their ids."""

from functools import cache
from importlib.resources import files


@cache
def collation_names() -> dict[int, str]:
    """Return collation names by id, as MySQL 9.7 and MariaDB 10.11 report them (`tools/record_charsets.py`).

    Ids that the two servers name differently are missing.
    """
    lines = files("ingest.binlog.text").joinpath("charset_tables", "collations.tsv").read_text("ascii").splitlines()
    return {int(number): name for number, name in (line.split("\t") for line in lines)}


@cache
def charset_names() -> frozenset[str]:
    """Return the names of character sets that have a collation."""
    return frozenset({*(name.partition("_")[0] for name in collation_names().values()), "utf8"})
