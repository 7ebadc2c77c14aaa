"""Each fault of the proxy works as documented: the tests of following depend on this."""

import random
import socket
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.servers.ports import ReservedPort
from tests.support.follow.proxy import COM_BINLOG_DUMP, Proxy
from tests.support.patience import PATIENCE_SECONDS

# The packet of a client that requests a binlog.
DUMP_COMMAND = bytes([11, 0, 0, 0, COM_BINLOG_DUMP]) + bytes(10)


class Echo:
    """A server that sends its own name and then echoes its input."""

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.host, self.port = self.listening.getsockname()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            connection.sendall(self.name)
            try:
                while data := connection.recv(1 << 16):
                    connection.sendall(data)
            except OSError:
                pass


@pytest.fixture
def echo() -> Iterator[Any]:
    server = Echo(b"one")
    yield server
    server.listening.close()


@pytest.fixture
def proxy(echo: Any) -> Iterator[Proxy]:
    with Proxy(echo) as made:
        yield made


def client_of(proxy: Proxy, name: bytes = b"one") -> socket.socket:
    """Return a connection through the proxy after the server's greeting."""
    client = socket.create_connection((proxy.host, proxy.port), timeout=PATIENCE_SECONDS)
    assert receive(client, len(name)) == name
    return client


def receive(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := client.recv(size - len(data))):
        data += more
    return data


def test_it_passes_on_all_bytes_both_ways(proxy: Proxy) -> None:
    text = random.Random(1).randbytes(3_000_000)
    with client_of(proxy) as client:
        sender = threading.Thread(target=client.sendall, args=(text,))
        sender.start()
        assert receive(client, len(text)) == text
        sender.join()
    assert proxy.bytes_to_client == len(text) + 3
    assert (proxy.accepted, proxy.cuts, proxy.corrupted) == (1, 0, 0)


def test_a_cut_is_an_end_for_the_client(proxy: Proxy) -> None:
    with client_of(proxy) as first, client_of(proxy) as second:
        assert proxy.cut() == 2
        assert first.recv(1) == second.recv(1) == b""
    with client_of(proxy) as client:
        client.sendall(b"again")
        assert receive(client, 5) == b"again"


def test_a_cut_with_reset_is_an_error_for_the_client(proxy: Proxy) -> None:
    with client_of(proxy) as client:
        proxy.cut(reset=True)
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    assert proxy.cuts == 1


def test_what_is_stalled_comes_later_and_whole(proxy: Proxy) -> None:
    with client_of(proxy) as client:
        proxy.stall()
        client.sendall(b"late")
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.recv(1)
        proxy.resume()
        client.settimeout(PATIENCE_SECONDS)
        assert receive(client, 4) == b"late"


def test_binlogs_alone_can_be_stalled(proxy: Proxy) -> None:
    with client_of(proxy) as other, client_of(proxy) as dump:
        dump.sendall(DUMP_COMMAND)
        assert receive(dump, len(DUMP_COMMAND)) == DUMP_COMMAND
        proxy.stall(binlogs_only=True)
        dump.sendall(b"held back")
        other.sendall(b"passed on")
        assert receive(other, 9) == b"passed on"
        dump.settimeout(0.3)
        with pytest.raises(TimeoutError):
            dump.recv(1)
        proxy.resume()
        dump.settimeout(PATIENCE_SECONDS)
        assert receive(dump, 9) == b"held back"


def test_throttled_traffic_takes_its_time(proxy: Proxy) -> None:
    with client_of(proxy) as client:
        proxy.throttle(100_000)
        began = time.monotonic()
        client.sendall(bytes(20_000))
        assert receive(client, 20_000) == bytes(20_000)
        # 0.2 seconds in one direction; the other one can begin before they are over. A sleep is not shorter.
        assert time.monotonic() - began >= 0.19
        proxy.throttle(None)


def test_refused_connections_are_refused_and_taken_again_at_the_same_port(proxy: Proxy) -> None:
    with client_of(proxy) as client:
        port = proxy.port
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((proxy.host, proxy.port), timeout=PATIENCE_SECONDS)
        client.sendall(b"stays")
        assert receive(client, 5) == b"stays"
    proxy.accept()
    assert proxy.port == port
    client_of(proxy).close()


def test_one_byte_is_changed_and_only_where_a_binlog_is_sent(proxy: Proxy) -> None:
    text = bytes(range(256)) * 4
    with client_of(proxy) as other, client_of(proxy) as dump:
        dump.sendall(DUMP_COMMAND)
        assert receive(dump, len(DUMP_COMMAND)) == DUMP_COMMAND
        proxy.corrupt(random.Random(5))
        other.sendall(text)
        assert receive(other, len(text)) == text
        assert proxy.corrupted == 0
        dump.sendall(text)
        spoilt = receive(dump, len(text))
        assert sum(one != two for one, two in zip(spoilt, text, strict=True)) == 1
        dump.sendall(text)
        assert receive(dump, len(text)) == text
    assert proxy.corrupted == 1


def test_it_can_be_pointed_to_another_server(proxy: Proxy) -> None:
    two = Echo(b"two")
    with client_of(proxy) as client:
        proxy.point_to(two)  # type: ignore[arg-type]
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    client_of(proxy, b"two").close()
    two.listening.close()


def test_a_server_that_is_down_closes_the_connection(proxy: Proxy) -> None:
    with ReservedPort() as unused:
        proxy.point_to(SimpleNamespace(host="127.0.0.1", port=unused.number))  # type: ignore[arg-type]
        with socket.create_connection((proxy.host, proxy.port), timeout=PATIENCE_SECONDS) as client:
            assert client.recv(1) == b""
