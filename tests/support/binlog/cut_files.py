"""Files that end earlier than their server wrote them."""

from itertools import pairwise
from pathlib import Path

from ingest.binlog import open_binlog
from tests.support.landing.binlogs import in_use


def cut_inside_a_transaction(path: Path, *, is_in_use: bool = False) -> int:
    """Cut a file at the end of a rows event, in its last transaction with rows; return where that begins.

    Parameters
    ----------
    is_in_use
        Whether the header says that the server still writes to the file.
    """
    transactions = (batch for kind, batch in open_binlog(path).batches() if kind == "transactions")
    found = [row for batch in transactions for row in batch.to_pylist() if row["row_events"]][-1]
    events = [one for one in open_binlog(path).events() if found["start_pos"] <= one.position < found["end_pos"]]
    end = next(other.position for one, other in pairwise(events) if one.type_name.endswith("_ROWS"))
    contents = path.read_bytes()[:end]
    path.write_bytes(in_use(contents) if is_in_use else contents)
    return int(found["start_pos"])
