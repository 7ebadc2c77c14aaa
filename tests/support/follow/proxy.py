"""A network with faults: a proxy between a client and a server, local only."""

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Self

from tests.servers import Server
from tests.servers.ports import ReservedPort
from tests.servers.thrift import ThriftServer
from tests.support.patience import PATIENCE_SECONDS

CHUNK = 1 << 16
# Source: MySQL's include/my_command.h, `enum_server_command`.
COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID = 0x12, 0x1E
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER of no seconds: close() sends RST instead of FIN


@dataclass(eq=False)
class _Link:
    """A client's connection and the matching connection of the proxy to the server."""

    client: socket.socket
    server: socket.socket
    is_dump: bool = False
    pumps: list["asyncio.Task[None]"] = field(default_factory=list)


class Proxy:
    """Passes bytes between clients and a server and injects faults; also a context manager.

    All methods may be called from any thread, and have taken effect when they return.

    Parameters
    ----------
    server
        The server for new connections.

    Attributes
    ----------
    host, port
        Address where it listens.
    accepted, cuts, corrupted
        Number of accepted connections, of cut connections, and of changed bytes.
    bytes_to_client, binlog_bytes
        Number of bytes passed on from the server; the part of it on connections that carry a binlog.
    """

    def __init__(self, server: "Server | ThriftServer") -> None:
        self.host = "127.0.0.1"
        # It is refused, and not another program's, while the proxy does not listen.
        self._reserved_port = ReservedPort()
        self.port = self._reserved_port.number
        self.accepted = self.cuts = self.corrupted = self.bytes_to_client = self.binlog_bytes = 0
        self._target = (server.host, server.port)
        self._links: set[_Link] = set()
        self._listener: asyncio.Task[None] | None = None
        self._bytes_a_second: float | None = None
        self._corruptions: list[random.Random] = []
        self._loop = asyncio.new_event_loop()
        self._binlogs_flow, self._others_flow = asyncio.Event(), asyncio.Event()
        self._binlogs_flow.set()
        self._others_flow.set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.accept()
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._reserved_port.free()

    def cut(self, *, reset: bool = False) -> int:
        """Close all connections, in order or with a reset; return their number."""

        async def close() -> int:
            links = list(self._links)
            for link in links:
                self._close(link, reset)
            self.cuts += len(links)
            return len(links)

        return self._call(close())

    def stall(self, *, binlogs_only: bool = False) -> None:
        """Pause all traffic, or only on connections that carry a binlog, without closing any, until `resume`."""

        async def hold() -> None:
            self._binlogs_flow.clear()
            if not binlogs_only:
                self._others_flow.clear()

        self._call(hold())

    def resume(self) -> None:
        """Resume paused traffic."""

        async def let_go() -> None:
            self._binlogs_flow.set()
            self._others_flow.set()

        self._call(let_go())

    def throttle(self, bytes_a_second: float | None) -> None:
        """Limit each connection to this many bytes per second in each direction; None: no limit."""
        self._bytes_a_second = bytes_a_second

    def refuse(self) -> None:
        """Refuse new connections."""

        async def close() -> None:
            if self._listener is not None:
                self._listener.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._listener
                self._listener = None

        self._call(close())

    def accept(self) -> None:
        """Accept new connections again, at the same port."""

        async def listen() -> None:
            if self._listener is None:
                listening = socket.create_server((self.host, self.port), backlog=16)
                listening.setblocking(False)
                self._listener = asyncio.create_task(self._accept(listening))

        self._call(listen())

    def corrupt(self, chance: random.Random) -> None:
        """Change one random byte of the next data from the server on a connection that carries a binlog.

        Other connections stay intact: a client cannot detect a wrong byte in the answer to a query.
        """
        self._corruptions.append(chance)

    def point_to(self, server: "Server | ThriftServer") -> None:
        """Direct new connections to another server, and cut the existing ones."""
        self._target = (server.host, server.port)
        self.cut(reset=True)

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    async def _accept(self, listening: socket.socket) -> None:
        with listening:
            while True:
                client, _ = await self._loop.sock_accept(listening)
                self.accepted += 1
                server = socket.socket()
                server.setblocking(False)
                try:
                    await self._loop.sock_connect(server, self._target)
                except OSError:  # the server is down: the client sees its connection closed
                    client.close()
                    server.close()
                    continue
                link = _Link(client, server)
                self._links.add(link)
                link.pumps = [
                    asyncio.create_task(self._pump(link, client, server, self._look)),
                    asyncio.create_task(self._pump(link, server, client, self._spoil)),
                ]

    async def _pump(
        self,
        link: _Link,
        source: socket.socket,
        target: socket.socket,
        look: Callable[[_Link, bytes], bytes],
    ) -> None:
        try:
            while data := await self._loop.sock_recv(source, CHUNK):
                data = look(link, data)
                await (self._binlogs_flow if link.is_dump else self._others_flow).wait()
                if self._bytes_a_second:
                    await asyncio.sleep(len(data) / self._bytes_a_second)
                await self._loop.sock_sendall(target, data)
        except OSError:
            pass
        self._close(link, reset=False)

    def _look(self, link: _Link, data: bytes) -> bytes:
        # The packet of a command has number 0: three bytes of length, the number, the command.
        link.is_dump |= len(data) > 4 and data[3] == 0 and data[4] in (COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID)
        return data

    def _spoil(self, link: _Link, data: bytes) -> bytes:
        if link.is_dump and self._corruptions:
            chance = self._corruptions.pop()
            self.corrupted += 1
            at = chance.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ chance.randrange(1, 256)]) + data[at + 1 :]
        self.bytes_to_client += len(data)
        self.binlog_bytes += len(data) if link.is_dump else 0
        return data

    def _close(self, link: _Link, reset: bool) -> None:
        if link not in self._links:
            return
        self._links.remove(link)
        current = asyncio.current_task()
        for pump in link.pumps:
            if pump is not current:
                pump.cancel()
        for each in (link.client, link.server):
            if reset:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            # The loop must stop watching this descriptor, because another connection may get the same number.
            self._loop.remove_reader(each.fileno())
            self._loop.remove_writer(each.fileno())
            each.close()
