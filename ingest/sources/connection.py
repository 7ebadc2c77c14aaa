"""A connection to a server that may be anybody: TLS as it was asked for, and nothing given that was not offered.

pymysql answers all that a server asks for: with the password itself, or under a key that the server has made up.
Here it answers a question only where the password cannot be had from the answer, or where the server has proved who
it is, or where a person has said so. TLS that nothing has verified carries the password, as it does for mysql's client,
and a person is told. Answers have an end, in bytes and in seconds.

Sources: MySQL's internals manual, "Connection Phase"; server, sql-common/client.cc and
sql-common/client_authentication.cc, for which method asks for what.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

import pymysql
from pymysql import _auth
from pymysql.connections import Connection
from pymysql.constants import CLIENT

from ingest.errors import AccessRefusedError, SourceError, UsageError

CONNECT_SECONDS: Final = 10
LOGIN_SECONDS: Final = 60
"""A server may look up the name of whoever comes, or ask another one for the password."""
ANSWER_SECONDS: Final = 300
"""A server that opens the files of many tables says nothing for minutes."""

GREETING_BYTES: Final = 1 << 20
ANSWER_BYTES: Final = 1 << 29
"""A column takes about 300 bytes in information_schema: this is more than a million of them."""

# A packet without any bytes takes memory, too.
_PACKET_COST: Final = 64

# What caching_sha2_password says of a digest.
_DIGEST_IS_RIGHT: Final = b"\x01\x03"
_PASSWORD_IS_NEEDED: Final = b"\x01\x04"


class TlsMode(IntEnum):
    """What of TLS a connection must have, named as mysql's `--ssl-mode` names it; each has what those before it have.

    `PREFERRED` is TLS where the server can, `REQUIRED` TLS or no connection. `VERIFY_CA` takes a certificate that the
    authority has signed, `VERIFY_IDENTITY` one that holds for this host as well.
    """

    DISABLED = 0
    PREFERRED = 1
    REQUIRED = 2
    VERIFY_CA = 3
    VERIFY_IDENTITY = 4


@dataclass(frozen=True)
class Tls:
    """How a connection is encrypted.

    Attributes
    ----------
    mode
        What it must have.
    ca, cert, key
        Files in PEM; `ca` may be a folder of them, None for the authorities that the system trusts.
    """

    mode: TlsMode = TlsMode.PREFERRED
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def context(self) -> ssl.SSLContext:
        """Return what Python's TLS is told.

        Raises
        ------
        UsageError
            A file cannot be read, or is none of that kind.
        """
        said = {"--tls-ca": self.ca, "--tls-cert": self.cert, "--tls-key": self.key}
        for option, file in said.items():
            if file is not None and not Path(file).exists():
                raise UsageError(f"There is no file {file}.", hint=f"Check {option}, or the defaults file.", path=file)
        if self.mode == TlsMode.VERIFY_CA and self.ca is None:
            # Any owner of any host has a certificate of an authority that the system trusts.
            raise UsageError("VERIFY_CA needs the authority to verify by.", hint="Give --tls-ca FILE.")
        is_folder = self.ca is not None and Path(self.ca).is_dir()
        try:
            context = ssl.create_default_context(
                cafile=None if is_folder else self.ca, capath=self.ca if is_folder else None
            )
            # Certificates that MySQL makes for itself do not pass what Python 3.13 added.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            context.check_hostname = self.mode == TlsMode.VERIFY_IDENTITY
            context.verify_mode = ssl.CERT_REQUIRED if self.mode >= TlsMode.VERIFY_CA else ssl.CERT_NONE
            if self.cert is not None:
                context.load_cert_chain(self.cert, self.key)
        except OSError as error:
            files = " or ".join(file for file in said.values() if file is not None)
            raise UsageError(
                f"{files} cannot be used for TLS: {error.strerror or error}.",
                hint="Check that each is a file in PEM, and that the key is that of the certificate.",
            ) from None
        return context


@dataclass(frozen=True)
class Trust:
    """What a person allows a server that has not proved who it is.

    Attributes
    ----------
    cleartext
        It may have the password as it is.
    server_key
        Without TLS it may have the password under an RSA key that it gives itself.
    public_key
        Its RSA key in PEM, known beforehand; None when it is not.
    """

    cleartext: bool = False
    server_key: bool = False
    public_key: bytes | None = None


class GuardedConnection(Connection):
    """A connection that gives a server no more than it may have.

    Parameters
    ----------
    place
        How messages name the server.
    tls, trust
        What it must have, and what the server may have.
    warn
        Takes a sentence when a server gets the password through TLS that nothing has verified, before it does.
    **options
        What pymysql takes.

    Raises
    ------
    AccessRefusedError
        The server asks for the password in a way that was not allowed.
    SourceError
        It asks for a file of this machine, or its answer has no end.
    pymysql.MySQLError
        As of any connection.
    """

    # What pymysql's types leave out.
    ctx: ssl.SSLContext
    _sock: Any
    _auth_plugin_name: str
    _force_close: Callable[[], None]

    def __init__(self, place: str, tls: Tls, trust: Trust, warn: Callable[[str], object], **options: Any) -> None:
        self.place = place
        self.trust = trust
        self.warn = warn
        self._bytes_left = GREETING_BYTES
        # What a socket carries does not leave the machine.
        has_tls = tls.mode > (TlsMode.DISABLED if options.get("unix_socket") is None else TlsMode.PREFERRED)
        tls_options: dict[str, Any] = {"ssl": tls.context()} if has_tls else {"ssl_disabled": True}
        super().__init__(
            **options,
            **tls_options,
            connect_timeout=CONNECT_SECONDS,
            read_timeout=LOGIN_SECONDS,
            write_timeout=LOGIN_SECONDS,
            local_infile=False,
            defer_connect=True,
        )
        if has_tls and tls.mode == TlsMode.PREFERRED:
            # Said to a server that cannot, it would wait for what does not come.
            self._ssl_required, self.client_flag = False, self.client_flag & ~CLIENT.SSL
        self.connect()
        self._read_timeout = self._write_timeout = ANSWER_SECONDS

    def connect(self, sock: Any = None) -> None:
        """Connect; without TLS where that is only preferred and the server speaks none that is safe today."""
        try:
            super().connect(sock)
        except pymysql.OperationalError as error:
            cause = getattr(error, "original_exception", None)
            if not (self.ssl and not self._ssl_required and isinstance(cause, ssl.SSLError | ConnectionResetError)):
                raise
            self.ssl = False
            self._bytes_left = GREETING_BYTES
            super().connect(sock)

    @property
    def is_encrypted(self) -> bool:
        """Whether TLS carries it."""
        return isinstance(self._sock, ssl.SSLSocket)

    @property
    def is_trusted(self) -> bool:
        """Whether the server has proved who it is: by its certificate, or because it is on this machine."""
        has_proved = self.is_encrypted and self.ctx.verify_mode == ssl.CERT_REQUIRED
        return has_proved or self.unix_socket is not None

    # --- what a server asks for ---

    def _request_authentication(self) -> None:
        # To others pymysql would send the password at once, whoever asks.
        if self._auth_plugin_name not in ("mysql_native_password", "caching_sha2_password"):
            self._auth_plugin_name = ""
        super()._request_authentication()  # type: ignore[misc]

    def _get_auth_plugin_handler(self, plugin_name: str | bytes) -> "_Method | None":
        name = plugin_name.decode("utf-8", "replace") if isinstance(plugin_name, bytes) else plugin_name
        # pymysql knows what to do: a digest of the password and of what the server drew.
        return None if name == "mysql_native_password" else _METHODS.get(name, _Unknown)(self, name)

    def _read_query_result(self, unbuffered: bool = False) -> Any:
        try:
            return super()._read_query_result(unbuffered)  # type: ignore[misc]
        except RuntimeError:  # which pymysql raises for nothing else
            self._force_close()
            raise SourceError(
                f"The server at {self.place} asks for a file of this machine in answer to a statement "
                "(LOAD DATA LOCAL). It gets none.",
                hint="No server needs that to be followed: check who listens there.",
            ) from None

    # --- answers without an end ---

    def _execute_command(self, command: int, sql: str | bytes) -> None:
        self._bytes_left = ANSWER_BYTES
        super()._execute_command(command, sql)  # type: ignore[misc]

    def _read_bytes(self, num_bytes: int) -> bytes:
        self._bytes_left -= num_bytes + _PACKET_COST
        if self._bytes_left < 0:
            self._force_close()
            raise SourceError(
                f"The server at {self.place} sends more than any answer needs.",
                hint="Check who listens there.",
            )
        data: bytes = super()._read_bytes(num_bytes)  # type: ignore[misc]
        return data


class _Method:
    """How a server may be told that one knows the password."""

    def __init__(self, connection: Any, name: str) -> None:
        self._connection = connection
        self._name = name

    def authenticate(self, packet: Any) -> Any:
        """Answer what a server asks, and return the packet that it says then."""
        raise NotImplementedError

    def _say(self, data: bytes) -> Any:
        self._connection.write_packet(data)
        return self._connection._read_packet()

    def _refusal(self, wish: str, hint: str) -> AccessRefusedError:
        return AccessRefusedError(
            f"The server at {self._connection.place} asks for {wish} ({self._name}). It does not get it.", hint=hint
        )


class _Cleartext(_Method):
    """The password as it is."""

    def authenticate(self, packet: Any) -> Any:
        connection = self._connection
        if not (connection.is_trusted or connection.trust.cleartext):
            raise self._refusal(
                "the password in clear text",
                "Let TLS verify the server (--tls-ca), or allow it (--enable-cleartext-plugin).",
            )
        return self._say(connection.password + b"\0")


class _Sha256(_Method):
    """The password itself, through TLS or a socket; else under the server's RSA key."""

    key_request = b"\x01"

    def authenticate(self, packet: Any) -> Any:
        if packet.is_auth_switch_request():
            self._connection.salt = _nonce(packet)
        return self._send_password()

    def _send_password(self) -> Any:
        connection, trust = self._connection, self._connection.trust
        if not connection.password:
            return self._say(b"\0")
        if connection.is_encrypted or connection.unix_socket is not None:
            if not connection.is_trusted:
                # Said first: whoever gets the password may end the connection at once.
                connection.warn(
                    f"The server at {connection.place} gets the password through TLS, and nothing has verified its "
                    "certificate. Another server in its place would get it, too. --tls-ca FILE verifies it."
                )
            return self._say(connection.password + b"\0")
        if trust.public_key is None and not trust.server_key:
            raise self._refusal(
                "the password under a key of its own, which nothing has verified",
                "Let TLS verify the server (--tls-ca), give its key (--server-public-key-path), or trust whichever "
                "server answers (--get-server-public-key).",
            )
        return self._say(self._encrypted(trust.public_key or self._ask_for_key()))

    def _ask_for_key(self) -> bytes:
        packet = self._say(self.key_request)
        return bytes(packet.get_all_data()[1:]) if packet.is_extra_auth_data() else b""

    def _encrypted(self, key: bytes) -> bytes:
        connection = self._connection
        try:
            return _auth.sha2_rsa_encrypt(connection.password, connection.salt, key)
        except Exception as error:  # cryptography has no common class for what is wrong with a key
            raise SourceError(
                f"The RSA key of the server at {connection.place} cannot be used: {error}.",
                hint="Check --server-public-key-path, or who listens there.",
            ) from None


class _CachingSha2(_Sha256):
    """A digest of the password and of what the server drew; the password only where the server does not know it."""

    key_request = b"\x02"

    def authenticate(self, packet: Any) -> Any:
        connection = self._connection
        if packet.is_auth_switch_request():
            connection.salt = _nonce(packet)
            packet = self._say(_auth.scramble_caching_sha2(connection.password, connection.salt))
        if not packet.is_extra_auth_data():
            return packet
        if packet.get_all_data() == _DIGEST_IS_RIGHT:
            return connection._read_packet()
        if packet.get_all_data() == _PASSWORD_IS_NEEDED:
            return self._send_password()
        raise pymysql.OperationalError("it answers a digest of the password with something unknown")


class _Old(_Method):
    """A digest of 64 bits, from which the password can be had in no time."""

    def authenticate(self, packet: Any) -> Any:
        raise self._refusal(
            "a digest of the password that anybody can break",
            "No option allows that. Give the user a method that is safe: mysql_native_password or newer.",
        )


class _Unknown(_Method):
    """A method that is not spoken here."""

    def authenticate(self, packet: Any) -> Any:
        raise AccessRefusedError(
            f"The server at {self._connection.place} wants to authenticate by {self._name!r}, which binloom does not "
            "know.",
            hint="Give the user caching_sha2_password (MySQL) or mysql_native_password (MariaDB).",
        )


_METHODS: Final[dict[str, type[_Method]]] = {
    "caching_sha2_password": _CachingSha2,
    "sha256_password": _Sha256,
    "mysql_clear_password": _Cleartext,
    "dialog": _Cleartext,
    "mysql_old_password": _Old,
}


def _nonce(packet: Any) -> bytes:
    """The rest of a request to switch: twenty bytes that the server drew, and a zero."""
    return bytes(packet.read_all()).removesuffix(b"\0")
