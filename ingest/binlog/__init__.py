"""Decoder of the binlog wire format: from file bytes to Arrow batches. Imports neither Spark nor pymysql.

>>> for batch in open_binlog("binlog.000001").row_batches():
...     print(batch.num_rows)
"""

from ingest.binlog.decoder import Binlog, open_binlog
from ingest.binlog.filters import TableFilter
from ingest.binlog.format import FormatDescription
from ingest.binlog.hints import SchemaHints
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
