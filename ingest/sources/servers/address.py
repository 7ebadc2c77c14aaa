"""Address and login of a server, from command line options, a defaults file and the environment."""

import os
import re
from collections.abc import Callable, Mapping
from configparser import RawConfigParser
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from pymysql.optionfile import Parser

from ingest.errors import UsageError
from ingest.sources.servers.connection import Tls, TlsMode, Trust

DEFAULT_PORT = 3306
LAST_PORT = 65535
OPTION_GROUPS = ("client", "binloom")
PASSWORD_VARIABLES = ("BINLOOM_PASSWORD", "MYSQL_PWD")

_PLACE: Final = re.compile(r"(?:\[(?P<address>[^\[\]]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True)
class ServerAddress:
    """Address and login of a server. The password is never printed.

    Attributes
    ----------
    host, port, unix_socket
        Where the server listens; the socket is used when one is given and the host is local.
    user, password
        Account to connect with.
    tls_ca, tls_cert, tls_key
        Files for TLS; with a CA the connection verifies the server's certificate and name.
    tls_mode
        TLS mode as configured, None when nothing sets it.
    trust
        What a server may get before it has proved its identity.
    warn
        Called with a sentence for a person before an unverified server gets the password. The sentence may repeat.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    user: str = "root"
    password: str = field(default="", repr=False)
    unix_socket: str | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_mode: TlsMode | None = None
    trust: Trust = field(default_factory=Trust)
    warn: Callable[[str], object] = field(default=lambda _: None, repr=False, compare=False)

    @property
    def tls(self) -> Tls:
        """TLS requirements. A connection with a CA always verifies the server by it, unless the mode is `DISABLED`."""
        mode = self.tls_mode
        if self.tls_ca is not None and mode not in (TlsMode.DISABLED, TlsMode.VERIFY_CA):
            mode = TlsMode.VERIFY_IDENTITY
        elif mode is None:
            mode = TlsMode.PREFERRED if self.tls_cert is None else TlsMode.REQUIRED
        return Tls(mode, self.tls_ca, self.tls_cert, self.tls_key)

    @classmethod
    def of(
        cls,
        host: str | None = None,
        port: int | None = None,
        user: str | None = None,
        defaults_file: Path | None = None,
        environment: Mapping[str, str] = os.environ,
        enable_cleartext_plugin: bool = False,
        get_server_public_key: bool = False,
        server_public_key_path: str | None = None,
        **tls: str | None,
    ) -> Self:
        """Combine an address: arguments come first, then the options file, then the environment.

        Parameters
        ----------
        host, port, user
            As given on the command line, None when not given.
        defaults_file
            A `.my.cnf`. Its groups `[client]` and `[binloom]` are read, `[binloom]` last.
        environment
            `BINLOOM_PASSWORD` or `MYSQL_PWD` hold the password when the file has none.
        enable_cleartext_plugin, get_server_public_key, server_public_key_path
            What a server may get before it has proved its identity, as given on the command line.
        **tls
            `tls_ca`, `tls_cert`, `tls_key` and `tls_mode` as given on the command line.

        Raises
        ------
        UsageError
            The options file or the server's key is missing or malformed, or an option has an unknown value.
        """
        options = _read_options(defaults_file) if defaults_file else {}
        password = options.get("password")
        if password is None:
            password = next((environment[name] for name in PASSWORD_VARIABLES if environment.get(name)), "")
        try:
            chosen_port = port or int(options.get("port") or DEFAULT_PORT)
        except ValueError:
            raise UsageError(
                f"The port {options['port']!r} in {defaults_file} is not a number.", hint="Mend the file."
            ) from None
        if not 0 < chosen_port <= LAST_PORT:
            raise UsageError(f"There is no port {chosen_port}.", hint=f"Ports are 1 to {LAST_PORT}.")
        key_file = server_public_key_path or options.get("server-public-key-path")
        return cls(
            host=host or options.get("host") or "127.0.0.1",
            port=chosen_port,
            user=user or options.get("user") or environment.get("USER") or "root",
            password=password,
            # A host or port on the command line overrides the socket of the file.
            unix_socket=options.get("socket") if host is None and port is None else None,
            tls_ca=tls.get("tls_ca") or options.get("ssl-ca") or options.get("ssl-capath"),
            tls_cert=tls.get("tls_cert") or options.get("ssl-cert"),
            tls_key=tls.get("tls_key") or options.get("ssl-key"),
            tls_mode=_tls_mode(tls.get("tls_mode"), options),
            trust=Trust(
                enable_cleartext_plugin or bool(_is_on(options, "enable-cleartext-plugin")),
                get_server_public_key or bool(_is_on(options, "get-server-public-key")),
                _public_key(key_file) if key_file else None,
            ),
        )

    def __str__(self) -> str:
        return self.unix_socket or f"{self.host}:{self.port}"


def _read_options(path: Path) -> dict[str, str]:
    parser = Parser(interpolation=None)
    try:
        with path.open(encoding="utf-8") as file:
            parser.read_file(file)
    except OSError as error:
        raise UsageError(
            f"The options file {path} cannot be read: {error.strerror}.", hint="Check --defaults-file.", path=str(path)
        ) from error
    except Exception as error:  # configparser has no common class for its parse errors
        first = str(error).splitlines()[0]
        raise UsageError(
            f"The options file {path} is malformed: {first}",
            hint="It should look like a .my.cnf, with a group [client].",
            path=str(path),
        ) from None
    options: dict[str, str] = {}
    for group in OPTION_GROUPS:
        if parser.has_section(group):
            # The server's clients accept `ssl_ca` for `ssl-ca`.
            options.update({name.replace("_", "-"): _option(parser, group, name) for name in parser.options(group)})
    return options


def _option(parser: Parser, group: str, name: str) -> str:
    # An option without a value is on; pymysql's own `get` fails on it.
    return "1" if RawConfigParser.get(parser, group, name) is None else parser.get(group, name)


def _is_on(options: Mapping[str, str], name: str) -> bool | None:
    """Return whether an options file turns something on, None when it does not contain the option."""
    return None if name not in options else options[name].lower() not in ("0", "off", "false")


def host_and_port(text: str, option: str = "") -> tuple[str, int | None]:
    """Return host and port of `HOST`, `HOST:PORT`, `[ADDRESS]:PORT` or an IPv6 address, which has colons of its own.

    Raises
    ------
    UsageError
        The text has another form; `option` is what gave it.
    """
    if text.count(":") > 1 and not text.startswith("["):
        return text, None
    found = _PLACE.fullmatch(text)
    if found is None:
        given = " ".join(filter(None, (option, "HOST")))
        raise UsageError(f"{text!r} is not the address of a server.", hint=f"Give {given} or HOST:PORT.")
    return found["address"] or found["host"], int(found["port"]) if found["port"] else None


def _tls_mode(mode: str | None, options: Mapping[str, str]) -> TlsMode | None:
    """Return the TLS mode from the command line, or from an options file with MySQL's or MariaDB's client options."""
    mode = mode or options.get("ssl-mode")
    if mode is not None:
        try:
            return TlsMode[mode.upper()]
        except KeyError:
            raise UsageError(
                f"There is no TLS mode {mode!r}.", hint=f"There are: {', '.join(known.name for known in TlsMode)}."
            ) from None
    if _is_on(options, "ssl-verify-server-cert"):
        return TlsMode.VERIFY_IDENTITY
    if _is_on(options, "ssl"):
        return TlsMode.REQUIRED
    is_off = _is_on(options, "skip-ssl") or _is_on(options, "ssl") is False
    return TlsMode.DISABLED if is_off else None


def _public_key(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(
            f"The server's key {path} cannot be read: {error.strerror}.",
            hint="Check --server-public-key-path.",
            path=path,
        ) from None
