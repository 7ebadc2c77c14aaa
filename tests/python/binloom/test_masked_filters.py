"""`binloom query` tells which masked columns its filters compare."""

from pathlib import Path

import pytest

from ingest.warehouse.files import append_rows, read_rows
from ingest.warehouse.tables import TABLE_MAPS
from tests.support.in_process import binloom_here
from tests.support.older_warehouse import LANDED, unpack

QUERY = ("query", "--source", LANDED, "--limit", "1", "--table")
MASKS = [
    {"ordinal": ordinal, "column_name": name, "tag": "t", "method": "hash", "fingerprint": "f"}
    for ordinal, name in ((0, "id"), (1, "email"))
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A home of which the raw tables record masks of customers."""
    home: Path = unpack(tmp_path_factory.mktemp("masked"))
    row, *_ = read_rows(TABLE_MAPS, home, source_id=LANDED, table_name="customers")
    append_rows(TABLE_MAPS, [{**row, "table_map_id": "m", "masked_columns": MASKS}], "masks", home)
    return {"BINLOOM_HOME": str(home)}


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        (("shop.customers", "--where", "after.Email = 'a'"), "shop.customers.email (hash)."),
        (("cust*", "--changed", "email"), "shop.customers.email (hash)."),
        (("shop.customers", "--key", "3"), "shop.customers.id (hash)."),
        (("shop.customers", "--where", "after.city = 'a'"), None),
        (("shop.customers",), None),
        (("shop.orders", "--key", "1042"), None),
    ],
)
def test_a_filter_on_a_masked_column_is_told(
    environment: dict[str, str], filters: tuple[str, ...], told: str | None
) -> None:
    done = binloom_here(*QUERY, *filters, env=environment)
    assert done.returncode == 0, done.stderr
    sentence = "masked columns are compared as the tables have them: "
    assert (f"{sentence}{told}" in done.stderr) if told else (sentence not in done.stderr)
