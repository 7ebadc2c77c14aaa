"""A server that gives the answers that a test wants, and keeps everything that it receives.

It speaks the packets of the protocol but understands no SQL. Source: MySQL's internals manual, "Client/Server
Protocol".
"""

import contextlib
import functools
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Self

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.servers.certificates import Certificate

NONCE = bytes(range(65, 85))
OK = b"\x00\x00\x00\x02\x00\x00\x00"
EOF = b"\xfe\x00\x00\x02\x00"
# Long flag, 4.1, TLS (0x800), secure connection, plugins, attributes, lengths: capabilities of current servers.
_CAPABILITIES = 0x00000001 | 0x00000004 | 0x00000200 | 0x00008000 | 0x00080000 | 0x00100000 | 0x00200000
_SSL = 0x00000800
_VAR_STRING = 0xFD
_PATIENCE = 20.0
_KEY_BITS = 2048
_ROGUE = "rogue"


class Line:
    """One connection, seen from the server: packets in and out."""

    def __init__(self, connection: socket.socket, rogue: "Rogue") -> None:
        self._connection = connection
        self._rogue = rogue
        self._number = 0

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection uses TLS."""
        return isinstance(self._connection, ssl.SSLSocket)

    def raw(self, data: bytes) -> None:
        """Send raw bytes without a packet header."""
        self._connection.sendall(data)

    def send(self, *payloads: bytes) -> None:
        """Send packets."""
        for payload in payloads:
            self.raw(struct.pack("<I", len(payload))[:3] + bytes([self._number % 256]) + payload)
            self._number += 1

    def read(self) -> bytes:
        """Return the payload of the next packet; end the conversation when none comes."""
        head = self._exactly(4)
        self._number = head[3] + 1
        payload = self._exactly(int.from_bytes(head[:3], "little"))
        self._rogue.received.append(payload)
        return payload

    def greet(self, plugin: str = "mysql_native_password", version: bytes = b"8.0.36") -> None:
        """Send the greeting, switch to TLS when the client asks for it, and read the client's login."""
        flags = _CAPABILITIES | (_SSL if self._rogue.context else 0)
        self.send(
            b"\x0a" + version + b"\0" + struct.pack("<I", 7) + NONCE[:8] + b"\0"
            # utf8mb4, autocommit, twenty bytes of nonce and a zero.
            + struct.pack("<HBHHB", flags & 0xFFFF, 0x2D, 2, flags >> 16, 21)
            + bytes(10) + NONCE[8:] + b"\0" + plugin.encode() + b"\0"
        )  # fmt: skip
        first = self.read()
        if int.from_bytes(first[:4], "little") & _SSL:
            assert self._rogue.context is not None
            self._connection = self._rogue.context.wrap_socket(self._connection, server_side=True)
            self.read()

    def switch(self, plugin: str, data: bytes = NONCE + b"\0") -> bytes:
        """Request another authentication method, and return the answer."""
        self.send(b"\xfe" + plugin.encode() + b"\0" + data)
        return self.read()

    def let_in(self) -> None:
        """Greet the client and accept any login."""
        self.greet()
        self.send(OK)

    def statements(self, answer: Callable[[str], Any], log: Sequence[bytes] = (), until: bytes = b"\x01") -> None:
        """Answer commands until the client leaves or sends `until`; answer commands other than statements with OK.

        Parameters
        ----------
        answer
            Returns the packets for a statement; None: answer as a real server would.
        until
            The command that ends the loop; it is not answered.
        log
            Packets of the replication stream, sent when a client asks for it.
        """
        while (command := self.read())[:1] != until:
            if command[:1] == b"\x03":
                sql = command[1:].decode()
                said = answer(sql)
                self.send(*(believable(sql) if said is None else said))
            else:
                self.send(*(log if command[:1] == b"\x12" else [OK]))

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._connection.recv(size - len(data))
            if not more:
                raise ConnectionError("the client has left")
            data += more
        return data


class Rogue:
    """Listens on this machine and leads every client through one conversation; also a context manager.

    Parameters
    ----------
    conversation
        Handles a connection.
    certificate
        Certificate for TLS; None for a server without TLS.
    patience
        Seconds that it waits for the next bytes of a client before it leaves.

    Attributes
    ----------
    host, port
        Address where it listens.
    received
        The payloads of all packets that it received, decrypted where the connection used TLS.
    context
        Its TLS context; None without TLS.
    """

    host = "127.0.0.1"

    def __init__(
        self,
        conversation: Callable[[Line], None],
        certificate: Certificate | None = None,
        patience: float = _PATIENCE,
    ) -> None:
        self.received: list[bytes] = []
        self.context: ssl.SSLContext | None = None
        if certificate is not None:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate.certificate, certificate.key)
        self._conversation = conversation
        self._patience = patience
        self._listening = socket.create_server((self.host, 0))
        self.port = int(self._listening.getsockname()[1])
        self._threads = [threading.Thread(target=self._listen, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        # close() does not wake a thread that waits in accept().
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join()

    def knows(self, password: str) -> bool:
        """Whether the password can be read from the received packets: in plain text, or encrypted with its own key."""
        return any(
            password.encode() in payload or password.encode() in _decrypted(payload) for payload in self.received
        )

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            connection.settimeout(self._patience)
            self._threads.append(threading.Thread(target=self._lead, args=(connection,), daemon=True))
            self._threads[-1].start()

    def _lead(self, connection: socket.socket) -> None:
        # TLS replaces this socket by its own.
        line = Line(connection, self)
        with contextlib.suppress(OSError):
            self._conversation(line)
        line.close()


def rows(columns: Sequence[str], *values: Sequence[bytes | None], kind: int = _VAR_STRING) -> list[bytes]:
    """Return the packets of a result set with text in utf8mb4."""
    heads = [
        b"\x03def" + bytes(3) + _string(name.encode()) + _string(name.encode()) + b"\x0c"
        + struct.pack("<HIBHB", 45, 1024, kind, 0, 0) + bytes(2)
        for name in columns
    ]  # fmt: skip
    lines = [b"".join(b"\xfb" if value is None else _string(value) for value in row) for row in values]
    return [bytes([len(columns)]), *heads, EOF, *lines, EOF]


def event(code: int, body: bytes, *, end: int = 0, is_artificial: bool = False, size: int | None = None) -> bytes:
    """Return the packet of a binlog event, with its checksum; `size` replaces the true size in the header."""
    whole = 19 + len(body) + 4
    data = struct.pack("<IBIIIH", 0, code, 1, size or whole, end, 0x20 if is_artificial else 0) + body
    return b"\0" + data + struct.pack("<I", zlib.crc32(data))


def error(number: int, text: str) -> bytes:
    """Return an error packet."""
    return b"\xff" + struct.pack("<H", number) + b"#HY000" + text.encode()


def _string(value: bytes) -> bytes:
    return (bytes([len(value)]) if len(value) < 251 else b"\xfd" + struct.pack("<I", len(value))[:3]) + value


def believable(sql: str) -> list[bytes]:
    """Return the packets with which a MySQL server answers the statements that a follower runs before following."""
    if sql.lower().startswith("set"):
        return [OK]
    if sql == "show binary logs":
        return rows(["Log_name", "File_size"], (b"binlog.000001", b"157"))
    if sql == "show binary log status" or sql == "show master status":
        return rows(["File", "Position", "Executed_Gtid_Set"], (b"binlog.000001", b"157", b""))
    if sql.lower().startswith("show global variables"):
        return rows(["Variable_name", "Value"], *_VARIABLES.items())
    if "from information_schema.columns" in sql:
        return rows(list(_COLUMN), tuple(_COLUMN.values()))
    return rows(["account"], (b"follower@%",)) if "current_user" in sql else rows(["nothing"])


_VARIABLES = {
    b"binlog_checksum": b"CRC32",
    b"binlog_format": b"ROW",
    b"binlog_row_image": b"FULL",
    b"binlog_row_metadata": b"FULL",
    b"log_bin": b"ON",
    b"server_id": b"1",
    b"server_uuid": b"3e11fa47-71ca-11e1-9e33-c80aa9429562",
    b"version": b"8.0.36",
}
_COLUMN = {
    "TABLE_SCHEMA": b"shop",
    "TABLE_NAME": b"orders",
    "COLUMN_NAME": b"id",
    "ORDINAL_POSITION": b"1",
    "DATA_TYPE": b"int",
    "COLUMN_TYPE": b"int",
}


@functools.cache
def _key(owner: str) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)


def public_key(owner: str = _ROGUE) -> bytes:
    """Return an RSA key in PEM: the rogue's own, whose private part it has, or another owner's."""
    return (
        _key(owner)
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def _decrypted(payload: bytes) -> bytes:
    """Return the plain text of data encrypted with its RSA key and mixed with its nonce; empty for other data."""
    if len(payload) != _KEY_BITS // 8:
        return b""
    try:
        mixed = _key(_ROGUE).decrypt(payload, padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None))
    except ValueError:
        return b""
    return bytes(one ^ NONCE[at % len(NONCE)] for at, one in enumerate(mixed))
