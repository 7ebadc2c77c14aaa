"""Decoder of the binlog wire format: from file bytes to Arrow batches. Imports neither Spark nor pymysql.

>>> for batch in open_binlog("binlog.000001").row_batches():
...     print(batch.num_rows)
"""

from typing import TYPE_CHECKING

from ingest.lazy import lazy_names

if TYPE_CHECKING:
    from ingest.binlog.decoder import Binlog, open_binlog
    from ingest.binlog.events.format import FormatDescription
    from ingest.binlog.events.hints import SchemaHints
    from ingest.binlog.filters import TableFilter
    from ingest.binlog.scan import Defect, Scan, SegmentRange, scan_binlog

__all__ = [
    "Binlog",
    "Defect",
    "FormatDescription",
    "Scan",
    "SchemaHints",
    "SegmentRange",
    "TableFilter",
    "open_binlog",
    "scan_binlog",
]

# The compiled kernel takes a second to load, and most commands use only a schema or a filter of this package.
__getattr__ = lazy_names(
    __name__,
    {
        "Binlog": "ingest.binlog.decoder",
        "Defect": "ingest.binlog.scan",
        "FormatDescription": "ingest.binlog.events.format",
        "Scan": "ingest.binlog.scan",
        "SchemaHints": "ingest.binlog.events.hints",
        "SegmentRange": "ingest.binlog.scan",
        "TableFilter": "ingest.binlog.filters",
        "open_binlog": "ingest.binlog.decoder",
        "scan_binlog": "ingest.binlog.scan",
    },
)
