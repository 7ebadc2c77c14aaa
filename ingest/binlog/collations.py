"""Names of collations by their ids."""

from functools import cache
from importlib.resources import files


@cache
def collation_names() -> dict[int, str]:
    """Names by id, as MySQL 9.7 and MariaDB 10.11 give them (`tools/record_charsets.py`).

    An id that the two name differently is not in it.
    """
    lines = files("ingest.binlog").joinpath("charset_tables", "collations.tsv").read_text("ascii").splitlines()
    return {int(number): name for number, name in (line.split("\t") for line in lines)}
