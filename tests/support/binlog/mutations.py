"""Mutated binlogs: real files with changed bytes in sensitive places, and corrected checksums.

Compressed content is changed, too: it is decompressed, changed, and compressed again.

As a script this decodes mutations in its own process, so that a test can see whether the process survives, and its
memory and time: `python -m tests.support.binlog.mutations SEED COUNT FILE…`. It ends when a file takes more
processor time than `PATIENCE`.
"""

import contextlib
import random
import signal
import sys
import tempfile
import zlib
from pathlib import Path

import zstandard

from ingest.binlog import SchemaHints, open_binlog, scan_binlog
from ingest.errors import BinloomError
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from tests.support.binlog.forge import packed

PATIENCE = 120
"""Seconds of processor time that a file of some kilobytes may take, with the compilation of the decoder."""
PAYLOAD = 40
MARIADB_COMPRESSED = range(166, 172)
INTERESTING = (0x00, 0x01, 0x7F, 0x80, 0xFC, 0xFD, 0xFE, 0xFF)


def events_of(data: bytes) -> list[bytearray]:
    """Return the events of a whole file, with headers and checksums."""
    events, at = [], 4
    while at + 19 <= len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        if size < 19 or at + size > len(data):
            break
        events.append(bytearray(data[at : at + size]))
        at += size
    return events


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Return a file with one to eight changes: bytes, lengths, inserted and removed runs, moved events, a cut end."""
    events = events_of(data)
    has_checksums = data[4 + len(events[0]) - 5] == 1
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        _change(events, rng)
    if rng.random() < 0.9:
        for event in events:
            _repair(event, has_checksums)
    result = data[:4] + b"".join(bytes(event) for event in events)
    if rng.random() < 0.1:
        result = result[: rng.randrange(len(result))]
    return result


def _change(events: list[bytearray], rng: random.Random) -> None:
    number = rng.randrange(len(events))
    event = events[number]
    if rng.random() < 0.7 and _change_inside(event, rng):
        return
    first = 19 if rng.random() < 0.95 else 0
    at = rng.randrange(first, max(len(event), first + 1)) if len(event) > first else 0
    action = rng.random()
    if action < 0.5:
        event[at] = rng.choice(INTERESTING) if rng.random() < 0.5 else rng.randrange(256)
    elif action < 0.6:
        event[at] ^= 1 << rng.randrange(8)
    elif action < 0.7:
        width = rng.choice((2, 3, 4, 8))
        event[at : at + width] = rng.randrange(1 << 8 * width).to_bytes(width, "little")
    elif action < 0.8:
        del event[at : at + rng.randrange(1, 40)]
    elif action < 0.9:
        event[at:at] = rng.randbytes(rng.randrange(1, 40))
    elif action < 0.95:
        events.insert(rng.randrange(1, len(events) + 1), bytearray(event))
    elif len(events) > 2:
        del events[rng.randrange(1, len(events))]


def _change_inside(event: bytearray, rng: random.Random) -> bool:
    """Change the compressed content of an event; return False when it has none or is too broken for that."""
    if len(event) < 30:
        return False
    try:
        if event[4] == PAYLOAD:
            start = event.index(b"\x28\xb5\x2f\xfd")
            inside = zstandard.decompress(bytes(event[start:-4]), max_output_size=1 << 20)
            events = events_of(bytes(4) + inside)
            _change(events, rng)
            for each in events:
                _repair(each, has_checksums=False)
            inside = b"".join(map(bytes, events))
            data = zstandard.compress(inside)
            fields = ((1, packed(len(data))), (2, packed(0)), (3, packed(len(inside))))
            head = b"".join(packed(kind) + packed(len(value)) + value for kind, value in fields)
            event[19:] = head + b"\0" + data + bytes(4)
            return True
        if event[4] in MARIADB_COMPRESSED:
            start = event.index(b"\x78", 19)
            rows = bytearray(zlib.decompress(bytes(event[start:-4])))
            _change([rows], rng) if len(rows) > 20 else rows.append(rng.randrange(256))
            event[start - 2 :] = b"\x81" + bytes([len(rows) & 0xFF]) + zlib.compress(bytes(rows)) + bytes(4)
            return True
    except (ValueError, zlib.error, zstandard.ZstdError):
        pass
    return False


def _repair(event: bytearray, has_checksums: bool) -> None:
    """Correct the size and checksum of an event for its current bytes."""
    if len(event) < 19:
        event += bytes(23 - len(event))
    event[9:13] = len(event).to_bytes(4, "little")
    if has_checksums and len(event) >= 23:
        event[-4:] = zlib.crc32(bytes(event[:-4])).to_bytes(4, "little")


def decode_all(path: Path, hints: SchemaHints | None = None) -> None:
    """Run every way to read a file; raise only errors other than binloom's own."""
    for way in (_scan, _batches, _events):
        with contextlib.suppress(BinloomError):
            way(path)
    with contextlib.suppress(BinloomError):
        for _, batch in open_binlog(path, hints=hints, skip_bad_checksum=True).batches():
            batch.validate(full=True)


def hints_of(path: Path) -> SchemaHints | None:
    """Return the schema that is next to a fixture."""
    folder = path.with_name(f"{path.stem}-schema")
    return SchemaHints.from_columns(read_snapshot_dir(folder).columns) if folder.is_dir() else None


def _scan(path: Path) -> None:
    scan_binlog(path)


def _batches(path: Path) -> None:
    for _, batch in open_binlog(path).batches():
        batch.validate(full=True)


def _events(path: Path) -> None:
    for _ in open_binlog(path).events():
        pass


def main() -> None:
    """Decode COUNT mutations of the files. Write the current one to stderr, in case the process dies."""
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    originals = [(Path(name).read_bytes(), hints_of(Path(name))) for name in sys.argv[3:]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "binlog.000001"
        for number in range(count):
            rng = random.Random(f"{seed}-{number}")
            data, hints = rng.choice(originals)
            path.write_bytes(mutate(data, rng))
            print(f"mutation {seed}-{number}", file=sys.stderr, flush=True)
            # Processor time, because another process may have the processor.
            signal.setitimer(signal.ITIMER_PROF, PATIENCE)
            decode_all(path, hints)
        signal.setitimer(signal.ITIMER_PROF, 0)
    # Memory of this program only: getrusage starts with the memory of the process that started it.
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    peak = int(line.split()[1]) >> 10
    print(f"{count} mutations, {peak} MB")


if __name__ == "__main__":
    main()
