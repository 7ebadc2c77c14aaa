"""The facts that `binloom inspect` collects about a binlog file, as one record."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from ingest.errors import CorruptBinlogError, EncryptedBinlogError

if TYPE_CHECKING:
    from ingest.binlog import FormatDescription
    from ingest.binlog.byte_files import LogPath

LARGEST = 5


@dataclass(frozen=True, slots=True)
class Report:
    """Facts about a binlog file; None for unknown facts.

    `formats` has more than one entry in a relay log. `payload_event_counts` counts events inside compressed payloads.
    `largest_transactions` contains the bytes in the file, the rows, and the seconds from first event to commit.
    `statement_changes` contains changes that were logged as statements and have no rows.
    `open_transaction` is where the transaction begins inside which the file ends. `refusal` explains why
    nothing, or only a part, was read, and what to do.
    """

    file: str
    size: int
    encryption: dict[str, Any] | None = None
    refusal: str | None = None
    format_version: int | None = None
    server_version: str | None = None
    flavor: str | None = None
    server_id: int | None = None
    created_at: datetime | None = None
    is_in_use: bool | None = None
    is_relay_log: bool | None = None
    is_closed: bool | None = None
    next_binlog_file: str | None = None
    formats: Sequence[dict[str, Any]] = ()
    checksum_algorithm: str | None = None
    events: int | None = None
    checksum_failures: int | None = None
    bytes_covered: int | None = None
    first_event_at: datetime | None = None
    last_event_at: datetime | None = None
    previous_gtids: str | None = None
    gtids: str | None = None
    transactions: int | None = None
    largest_transactions: Sequence[dict[str, Any]] = ()
    event_counts: Mapping[str, int] = field(default_factory=dict)
    payload_event_counts: Mapping[str, int] = field(default_factory=dict)
    tables: Sequence[dict[str, Any]] = ()
    statement_changes: Sequence[dict[str, Any]] = ()
    incidents: Sequence[dict[str, Any]] = ()
    not_decoded: Mapping[str, int] = field(default_factory=dict)
    complete_end: int | None = None
    open_transaction: int | None = None
    defect: dict[str, Any] | None = None


def report_on(path: "LogPath") -> Report:
    """Return all facts that `inspect` shows about one file.

    The file is read twice. A walk over all headers verifies every checksum and continues to the end of the file if
    possible. Then the decoder reads the file and stops at the first broken or encrypted event.
    """
    from ingest.binlog import open_binlog, scan_binlog

    try:
        scan = scan_binlog(path)
    except EncryptedBinlogError as error:
        return _encrypted_report(path, str(error))
    log, format, content = open_binlog(path), scan.format, _Content(scan.format)
    refusal = None
    try:
        for kind, batch in log.batches():
            content.add(kind, batch)
    except CorruptBinlogError:
        pass  # The scan has found the same defect and reports its position.
    except EncryptedBinlogError as error:
        refusal = str(error)
    defect = scan.defect
    return Report(
        file=str(path),
        size=scan.file_size,
        encryption=_encryption(path) if scan.is_encrypted else None,
        refusal=refusal,
        format_version=format.format_version,
        server_version=format.server_version,
        flavor=format.flavor,
        server_id=format.server_id,
        created_at=format.created_at,
        is_in_use=format.is_in_use,
        is_relay_log=format.is_relay_log,
        is_closed=scan.is_closed,
        next_binlog_file=scan.next_binlog_file,
        formats=[_format_facts(each) for each in dict.fromkeys(scan.formats)],
        checksum_algorithm=format.checksum_algorithm,
        events=scan.events,
        checksum_failures=scan.checksum_failures,
        bytes_covered=scan.bytes_covered,
        first_event_at=scan.first_event_at,
        last_event_at=scan.last_event_at,
        previous_gtids=scan.previous_gtids,
        gtids=str(content.gtids) or None,
        transactions=content.transactions,
        largest_transactions=content.largest,
        event_counts=_by_frequency(scan.event_counts),
        payload_event_counts=_by_frequency(log.payload_event_counts),
        tables=content.tables(),
        statement_changes=content.statement_changes(),
        incidents=[_incident(path, position) for position in content.incidents],
        not_decoded=_by_frequency(content.unsupported),
        complete_end=scan.complete_end,
        open_transaction=scan.open_transaction,
        defect=None if defect is None else {"position": defect.position, "reason": defect.reason},
    )


def _encrypted_report(path: "LogPath", refusal: str) -> Report:
    """Return a report on a file that MySQL encrypted as a whole: only the encryption header is readable."""
    from ingest.binlog.byte_files import size_of
    from ingest.binlog.events.encryption import encryption_header

    version, key_id = encryption_header(path)
    encryption = {"by": "mysql", "version": version, "key_id": key_id}
    return Report(str(path), size_of(path), encryption=encryption, refusal=refusal)


def _by_frequency(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _format_facts(format: "FormatDescription") -> dict[str, Any]:
    """Return the facts of a format description; a relay log has its own and those of its source servers."""
    return {
        "format_version": format.format_version,
        "server_version": format.server_version,
        "server_id": format.server_id,
        "checksum_algorithm": format.checksum_algorithm,
        "created_at": format.created_at,
    }


def _first_detail(path: "LogPath", code: int, start: int | None = None) -> dict[str, Any]:
    """Return the details of the first event of a type at or after a position."""
    from ingest.binlog import open_binlog

    return next((event.detail for event in open_binlog(path, start=start).events() if event.type_code == code), {})


def _encryption(path: "LogPath") -> dict[str, Any]:
    from ingest.binlog.events.types import START_ENCRYPTION

    return {"by": "mariadb", **_first_detail(path, START_ENCRYPTION)}


def _incident(path: "LogPath", position: int) -> dict[str, Any]:
    from ingest.binlog.events.types import INCIDENT

    return {"position": position, **_first_detail(path, INCIDENT, position)}


class _Content:
    """Totals over the batches of one file."""

    def __init__(self, format: "FormatDescription") -> None:
        from ingest.binlog.gtid_sets import GtidSet
        from ingest.ddl.dml.dml_batches import TargetReader

        self.transactions = 0
        self.largest: list[dict[str, Any]] = []
        self.gtids = GtidSet()
        self.unsupported: Counter[str] = Counter()
        self.incidents: list[int] = []
        self._maps: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._rows: Counter[tuple[str, str, str]] = Counter()
        self._targets = TargetReader(format.flavor, format.server_version)
        self._changes: Counter[tuple[str, str | None, str | None]] = Counter()

    def add(self, kind: str, batch: Any) -> None:
        match kind:
            case "row_events":
                self._count_rows(batch)
            case "transactions":
                self._add_transactions(batch)
            case "statements":
                self._count_changes(batch)
            case "table_maps":
                for table in batch.to_pylist():
                    self._maps.setdefault((table["schema_name"], table["table_name"]), []).append(table)
            case "unsupported_events":
                for row in batch.to_pylist():
                    self._add_problem(row)

    def _add_transactions(self, batch: Any) -> None:
        self.transactions += batch.num_rows
        self.gtids.add_all(batch.column("gtid"))
        self.largest = nlargest(LARGEST, [*self.largest, *_largest_of(batch)], key=lambda each: each["bytes"])

    def _add_problem(self, row: dict[str, Any]) -> None:
        if row["reason"] == "incident":
            self.incidents.append(row["start_pos"])
        self.unsupported[f"{row['event_type']}: {row['reason']}"] += 1

    def _count_rows(self, batch: Any) -> None:
        import numpy as np

        keys = [batch.column(key) for key in ("schema_name", "table_name", "event_type")]
        names = [key.dictionary.to_pylist() for key in keys]
        indices = [key.indices.to_numpy() for key in keys]
        sizes = [len(each) for each in names]
        numbers, counts = np.unique(np.ravel_multi_index(indices, sizes), return_counts=True)
        for number, count in zip(numbers, counts.tolist(), strict=True):
            schema, table, event = np.unravel_index(number, sizes)
            self._rows[names[0][schema], names[1][table], names[2][event]] += count

    def _count_changes(self, batch: Any) -> None:
        """Count statements that changed rows without row images in the log."""
        for target in self._targets.column(batch).flatten().to_pylist():
            self._changes[target["verb"], target["schema_name"], target["table_name"]] += 1

    def statement_changes(self) -> list[dict[str, Any]]:
        """Return the changes that were logged as statements, by table and verb."""
        return [
            {"schema_name": schema, "table_name": table, "verb": verb, "statements": count}
            for (verb, schema, table), count in sorted(
                self._changes.items(), key=lambda item: (item[0][1] or "", item[0][2] or "", item[0][0])
            )
        ]

    def tables(self) -> list[dict[str, Any]]:
        """Return one entry for each table, with the facts from its latest table map."""
        names = sorted(self._maps.keys() | {key[:2] for key in self._rows})
        return [
            {
                "schema_name": schema,
                "table_name": table,
                "inserts": self._rows[schema, table, "INSERT"],
                "updates": self._rows[schema, table, "UPDATE"],
                "deletes": self._rows[schema, table, "DELETE"],
                "table_maps": len(maps := self._maps.get((schema, table), [])),
                "columns": [
                    {
                        "name": column["name"],
                        "type": column["type"],
                        "is_nullable": column["is_nullable"],
                        "is_unsigned": column["is_unsigned"],
                        "charset": column["charset"],
                        "is_primary_key": column["is_primary_key"],
                    }
                    for column in (maps[-1]["columns"] if maps else [])
                ],
            }
            for schema, table in names
        ]


def _largest_of(batch: Any) -> Iterator[dict[str, Any]]:
    """Yield the largest transactions of a batch: bytes in the file, rows, and seconds from first event to commit."""
    import pyarrow.compute as pc

    sizes = pc.subtract(batch.column("end_pos"), batch.column("start_pos"))
    sized = batch.append_column("bytes", sizes)
    for row in sized.take(pc.select_k_unstable(sized, LARGEST, [("bytes", "descending")])).to_pylist():
        ended = row["committed_at"]
        yield {
            "start_pos": row["start_pos"],
            "end_pos": row["end_pos"],
            "bytes": row["bytes"],
            "rows": row["inserts"] + row["updates"] + row["deletes"],
            "seconds": None if ended is None else (ended - row["started_at"]).total_seconds(),
            "started_at": row["started_at"],
            "gtid": row["gtid"],
        }
