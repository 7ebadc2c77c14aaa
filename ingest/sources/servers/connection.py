"""A connection to a server that may be an impostor: it enforces the requested TLS and limits what the server gets.

pymysql answers every request of a server: it sends the password itself, or encrypts it with a key that the server has
made up. This connection answers a request only in three cases: the answer does not reveal the password, the server has
proved its identity, or a person has allowed it. Unverified TLS carries the password, as with mysql's client, and a
person is warned. Answers are limited in bytes and in seconds.

Sources: MySQL's internals manual, "Connection Phase"; server, sql-common/client.cc and
sql-common/client_authentication.cc, for the requests of each authentication method.
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
"""A server may look up the client's host name, or ask another server about the password."""
ANSWER_SECONDS: Final = 300
"""A server that opens the files of many tables sends nothing for minutes."""

GREETING_BYTES: Final = 1 << 20
ANSWER_BYTES: Final = 1 << 29
"""A column takes about 300 bytes in information_schema, so this is enough for more than a million columns."""

# Even a packet without any bytes takes memory.
_PACKET_COST: Final = 64

# The server's answers to a digest in caching_sha2_password.
_DIGEST_IS_RIGHT: Final = b"\x01\x03"
_PASSWORD_IS_NEEDED: Final = b"\x01\x04"


class TlsMode(IntEnum):
    """TLS requirements of a connection, named as in mysql's `--ssl-mode`; each includes the ones before it.

    `PREFERRED` uses TLS if the server supports it, `REQUIRED` refuses a connection without TLS. `VERIFY_CA` needs a
    certificate signed by the authority, `VERIFY_IDENTITY` one that is also valid for this host.
    """

    DISABLED = 0
    PREFERRED = 1
    REQUIRED = 2
    VERIFY_CA = 3
    VERIFY_IDENTITY = 4


@dataclass(frozen=True)
class Tls:
    """Encryption settings of a connection.

    Attributes
    ----------
    mode
        Requirements of the connection.
    ca, cert, key
        Files in PEM. `ca` may be a folder of them; None means the authorities that the system trusts.
    """

    mode: TlsMode = TlsMode.PREFERRED
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def context(self) -> ssl.SSLContext:
        """Return the settings as Python's TLS context.

        Raises
        ------
        UsageError
            A file cannot be read, or is not of the right kind.
        """
        files = {"--tls-ca": self.ca, "--tls-cert": self.cert, "--tls-key": self.key}
        for option, file in files.items():
            if file is not None and not Path(file).exists():
                raise UsageError(f"There is no file {file}.", hint=f"Check {option}, or the defaults file.", path=file)
        if self.mode == TlsMode.VERIFY_CA and self.ca is None:
            # The system trusts authorities that give a certificate to any owner of any host.
            raise UsageError("The TLS mode VERIFY_CA needs a certificate authority.", hint="Give --tls-ca FILE.")
        is_folder = self.ca is not None and Path(self.ca).is_dir()
        try:
            if self.ca is None and self.mode < TlsMode.VERIFY_CA:
                # Reading the authorities that the system trusts takes longer than all else of a connection.
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            else:
                context = ssl.create_default_context(
                    cafile=None if is_folder else self.ca, capath=self.ca if is_folder else None
                )
            # Certificates that MySQL generates for itself fail the stricter checks of Python 3.13.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            context.check_hostname = self.mode == TlsMode.VERIFY_IDENTITY
            context.verify_mode = ssl.CERT_REQUIRED if self.mode >= TlsMode.VERIFY_CA else ssl.CERT_NONE
            if self.cert is not None:
                context.load_cert_chain(self.cert, self.key)
        except OSError as error:
            names = " or ".join(file for file in files.values() if file is not None)
            raise UsageError(
                f"{names} cannot be used for TLS: {error.strerror or error}.",
                hint="Check that each is a file in PEM, and that the key is that of the certificate.",
            ) from None
        return context


@dataclass(frozen=True)
class Trust:
    """Permissions that a person gives a server before it has proved its identity.

    Attributes
    ----------
    cleartext
        It may get the password in clear text.
    server_key
        Without TLS it may get the password encrypted with an RSA key that it sends itself.
    public_key
        Its RSA key in PEM, if known beforehand; else None.
    """

    cleartext: bool = False
    server_key: bool = False
    public_key: bytes | None = None


class GuardedConnection(Connection):
    """A connection that gives a server nothing beyond its permissions.

    Parameters
    ----------
    place
        Name of the server in messages.
    tls, trust
        TLS requirements, and what the server may get unverified.
    warn
        Called with a sentence before a server gets the password through unverified TLS.
    **options
        Options of pymysql.

    Raises
    ------
    AccessRefusedError
        The server asks for the password in a way that is not allowed.
    SourceError
        The server asks for a file of this machine, or its answer does not end.
    pymysql.MySQLError
        As for any connection.
    """

    # Attributes that pymysql's types lack.
    ctx: ssl.SSLContext
    _sock: Any
    _auth_plugin_name: str
    _force_close: Callable[[], None]

    def __init__(self, place: str, tls: Tls, trust: Trust, warn: Callable[[str], object], **options: Any) -> None:
        self.place = place
        self.trust = trust
        self.warn = warn
        self._bytes_left = GREETING_BYTES
        # Data on a Unix socket does not leave the machine.
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
            # A server without TLS would wait for a handshake that does not come if the client announced TLS.
            self._ssl_required, self.client_flag = False, self.client_flag & ~CLIENT.SSL
        self.connect()
        self._read_timeout = self._write_timeout = ANSWER_SECONDS

    def connect(self, sock: Any = None) -> None:
        """Connect. Use no TLS if it is only preferred and the server supports no version that is safe today."""
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
        """Whether the connection uses TLS."""
        return isinstance(self._sock, ssl.SSLSocket)

    @property
    def is_trusted(self) -> bool:
        """Whether the server has proved its identity: by its certificate, or because it is on this machine."""
        has_proved = self.is_encrypted and self.ctx.verify_mode == ssl.CERT_REQUIRED
        return has_proved or self.unix_socket is not None

    # --- requests of a server ---

    def _request_authentication(self) -> None:
        # With other methods pymysql would send the password at once, to any server.
        if self._auth_plugin_name not in ("mysql_native_password", "caching_sha2_password"):
            self._auth_plugin_name = ""
        super()._request_authentication()  # type: ignore[misc]

    def _get_auth_plugin_handler(self, plugin_name: str | bytes) -> "_Method | None":
        name = plugin_name.decode("utf-8", "replace") if isinstance(plugin_name, bytes) else plugin_name
        # pymysql handles this method safely: it sends a digest of the password and of the server's nonce.
        return None if name == "mysql_native_password" else _METHODS.get(name, _Unknown)(self, name)

    def _read_query_result(self, unbuffered: bool = False) -> Any:
        try:
            return super()._read_query_result(unbuffered)  # type: ignore[misc]
        except RuntimeError:  # pymysql raises it for nothing else
            self._force_close()
            raise SourceError(
                f"The server at {self.place} asks for a file of this machine in answer to a statement "
                "(LOAD DATA LOCAL). It gets none.",
                hint="Following a server never needs this: check which program listens there.",
            ) from None

    # --- limits on answers ---

    def _execute_command(self, command: int, sql: str | bytes) -> None:
        self._bytes_left = ANSWER_BYTES
        super()._execute_command(command, sql)  # type: ignore[misc]

    def _read_bytes(self, num_bytes: int) -> bytes:
        self._bytes_left -= num_bytes + _PACKET_COST
        if self._bytes_left < 0:
            self._force_close()
            raise SourceError(
                f"The server at {self.place} sends an answer that is too long.",
                hint="Check which program listens there.",
            )
        data: bytes = super()._read_bytes(num_bytes)  # type: ignore[misc]
        return data


class _Method:
    """A method to prove to a server that the client knows the password."""

    def __init__(self, connection: Any, name: str) -> None:
        self._connection = connection
        self._name = name

    def authenticate(self, packet: Any) -> Any:
        """Answer the server's request, and return the packet that it sends next."""
        raise NotImplementedError

    def _say(self, data: bytes) -> Any:
        self._connection.write_packet(data)
        return self._connection._read_packet()

    def _refusal(self, wish: str, hint: str) -> AccessRefusedError:
        return AccessRefusedError(
            f"The server at {self._connection.place} asks for {wish} ({self._name}). It does not get it.", hint=hint
        )


class _Cleartext(_Method):
    """The password in clear text."""

    def authenticate(self, packet: Any) -> Any:
        connection = self._connection
        if not (connection.is_trusted or connection.trust.cleartext):
            raise self._refusal(
                "the password in clear text",
                "Let TLS verify the server (--tls-ca), or allow it (--enable-cleartext-plugin).",
            )
        return self._say(connection.password + b"\0")


class _Sha256(_Method):
    """The password itself, through TLS or a socket; otherwise encrypted with the server's RSA key."""

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
                # Warn first: a server that has the password may end the connection at once.
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
        except Exception as error:  # cryptography has no common class for key errors
            raise SourceError(
                f"The RSA key of the server at {connection.place} cannot be used: {error}.",
                hint="Check --server-public-key-path, and which program listens there.",
            ) from None


class _CachingSha2(_Sha256):
    """A digest of the password and the server's nonce; the password only if the server does not have it cached."""

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
    """A digest of 64 bits, from which anybody finds the password at once."""

    def authenticate(self, packet: Any) -> Any:
        raise self._refusal(
            "a digest of the password that anybody can break",
            "No option allows that. Give the user a method that is safe: mysql_native_password or newer.",
        )


class _Unknown(_Method):
    """A method that binloom does not support."""

    def authenticate(self, packet: Any) -> Any:
        raise AccessRefusedError(
            f"The server at {self._connection.place} asks for authentication by {self._name!r}, which binloom does not "
            "support.",
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
    """Return the nonce in the rest of an authentication switch request: twenty bytes, then a zero byte."""
    return bytes(packet.read_all()).removesuffix(b"\0")
