"""Parsing a replication stream: in pieces of any size it yields exactly the events of the file."""

import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.binlog.events.types import FORMAT_DESCRIPTION, ROTATE
from ingest.binlog.packets import Message, Packets, Run, Special
from ingest.errors import BrokenStreamError
from tests.support.places import FIXTURES, SAMPLES

FILES = sorted([*SAMPLES.glob("*/*.00000?"), FIXTURES / "mariadb-checksum-none.binlog"])
LONGEST = (1 << 24) - 1


def events_of(data: bytes) -> Iterator[bytes]:
    """Yield the events of a file, one by one."""
    at = 4
    while at < len(data):
        size = int.from_bytes(data[at + 9 : at + 13], "little")
        yield data[at : at + size]
        at += size


def made_up(code: int, body: bytes) -> bytes:
    """Return an artificial event, which the server sends only to its replicas."""
    head = struct.pack("<IBIIIH", 0, code, 1, 19 + len(body) + 4, 0, 0x20)
    return head + body + zlib.crc32(head + body).to_bytes(4, "little")


def packets_of(payloads: Iterator[bytes]) -> bytes:
    """Return payloads as a server sends them, numbered from 1 on."""
    stream, number = bytearray(), 1
    for payload in payloads:
        for at in range(0, len(payload) + 1, LONGEST):
            part = payload[at : at + LONGEST]
            stream += len(part).to_bytes(3, "little") + bytes([number & 0xFF]) + part
            number += 1
    return bytes(stream)


def stream_of(data: bytes) -> bytes:
    """Return a file as a server sends it: first its name, at the end a heartbeat."""
    first = made_up(ROTATE, (4).to_bytes(8, "little") + b"binlog.000001")
    heartbeat = made_up(27, b"binlog.000001")
    return packets_of(b"\0" + event for event in [first, *events_of(data), heartbeat])


def received(stream: bytes, has_checksums: bool, chance: random.Random, largest: int) -> bytes:
    """Return the bytes of the file, received as a stream in pieces of any size."""
    packets, at, file = Packets(4), 0, bytearray(b"\xfebin")
    while at < len(stream):
        room = packets.room()
        size = min(len(room), chance.randint(1, largest), len(stream) - at)
        room[:size] = stream[at : at + size]
        packets.received(size)
        at += size
        for piece in packets.pieces():
            if isinstance(piece, Run):
                assert 0 <= piece.sure <= len(piece.data)
                file += piece.data
            elif isinstance(piece, Special) and not piece.is_artificial and piece.code != 27:
                file += piece.event
                packets.position += len(piece.event)
                if piece.code == FORMAT_DESCRIPTION:
                    packets.has_checksums = has_checksums
            assert packets.position == len(file)
    return bytes(file)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
@pytest.mark.parametrize("largest", [3, 200, 1 << 20])
def test_the_file_comes_out(path: Path, largest: int) -> None:
    data = bytearray(path.read_bytes())
    data[4 + 17] &= 0xFE  # the server clears the in-use flag in the stream
    has_checksums = "none" not in path.name
    assert received(stream_of(bytes(data)), has_checksums, random.Random(largest), largest) == data


def test_an_event_of_many_packets() -> None:
    sample = (SAMPLES / "shop-mysql/binlog.000001").read_bytes()
    first = next(events_of(sample))
    for size in (LONGEST - 1 - 23, LONGEST - 23, 2 * LONGEST - 1 - 23, 40_000_000):
        head = struct.pack("<IBIIIH", 1, 29, 1, 23 + size, 4 + len(first) + 23 + size, 0)
        event = head + bytes(size)
        event += zlib.crc32(event).to_bytes(4, "little")
        file = b"\xfebin" + first + event
        stream = stream_of(file)
        assert received(stream, True, random.Random(size), 1 << 20) == bytes(file[:21]) + bytes([file[21]]) + file[22:]


def test_no_changed_byte_gets_into_the_file() -> None:
    """With any bit of the stream changed, the output is a prefix of the file and ends at the end of an event."""
    data = bytearray((SAMPLES / "shop-mysql/binlog.000002").read_bytes()[:20000])
    data[4 + 17] &= 0xFE
    events = list(events_of(bytes(data)))[:-1]
    data = bytearray(b"\xfebin" + b"".join(events))
    stream = stream_of(bytes(data))
    ends, end = set(), 4
    for event in [b"", *events]:
        end += len(event)
        ends.add(end)
    chance = random.Random(7)
    broken = 0
    for _ in range(1500):
        changed = bytearray(stream)
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
        file = bytearray(b"\xfebin")
        packets = Packets(4)
        try:
            at = 0
            while at < len(changed):
                room = packets.room()
                size = min(len(room), 5000, len(changed) - at)
                room[:size] = changed[at : at + size]
                packets.received(size)
                at += size
                for piece in packets.pieces():
                    if isinstance(piece, Run):
                        file += piece.data
                    elif isinstance(piece, Special) and piece.code == FORMAT_DESCRIPTION and not piece.is_artificial:
                        if not piece.has_checksum:
                            raise BrokenStreamError("what a receiver finds")
                        file += piece.event
                        packets.has_checksums = True
                        packets.position = len(file)
        except BrokenStreamError:
            broken += 1
        assert file == data[: len(file)]
        assert len(file) in ends
    assert broken > 1000


def test_messages() -> None:
    for payload, expected in (
        (b"\xff\xd4\x04#HY000Gone", Message(1236, "#HY000Gone")),
        (b"\xfe\0\0\2\0", Message(0, "the server ended the stream")),
    ):
        packets = Packets(4)
        packet = packets_of(iter([payload]))
        packets.room()[: len(packet)] = packet
        packets.received(len(packet))
        assert list(packets.pieces()) == [expected]


def test_a_packet_out_of_its_turn() -> None:
    packets = Packets(4)
    packet = bytearray(packets_of(iter([b"\0" + made_up(27, b"x")])))
    packet[3] = 9
    packets.room()[: len(packet)] = packet
    packets.received(len(packet))
    with pytest.raises(BrokenStreamError, match="out of its turn"):
        list(packets.pieces())
