"""Live servers: connecting without a password on the command line, and checking that their binlog can be used."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from configparser import RawConfigParser
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

import pymysql
import pymysql.cursors
from pymysql.optionfile import Parser

from ingest.errors import AccessRefusedError, BinloomError, SourceCheckError, SourceError, UsageError
from ingest.sources.connection import GuardedConnection, Tls, TlsMode, Trust

DEFAULT_PORT = 3306
LAST_PORT = 65535
OPTION_GROUPS = ("client", "binloom")
PASSWORD_VARIABLES = ("BINLOOM_PASSWORD", "MYSQL_PWD")

_SYSTEM_SCHEMAS = "('information_schema', 'performance_schema', 'sys')"
_CASCADING = "('CASCADE', 'SET NULL', 'SET DEFAULT')"

# So much of what a server says is in a message.
_SAID_LIMIT = 500

# Numbers of server errors, from the server's messages_to_clients.txt.
_ACCESS_DENIED = (1044, 1045, 1698)
_PRIVILEGE_MISSING = (1142, 1143, 1227, 1370)
_NO_BINARY_LOGGING = 1381

# What following takes: asking where the log stands, having it sent, and reading the schema.
Need = Literal["monitor", "stream", "schema"]
_PURPOSES: dict[Need, str] = {
    "monitor": "ask where its binary log stands",
    "stream": "read its binary log",
    "schema": "read what its tables look like",
}


@dataclass(frozen=True)
class ServerAddress:
    """How a server is reached. The password is never printed.

    Attributes
    ----------
    host, port, unix_socket
        Where it listens; the socket is used when one is given and the host is local.
    user, password
        Who connects.
    tls_ca, tls_cert, tls_key
        Files for TLS; with a CA the server's certificate and name are verified.
    tls_mode
        What was said of TLS, None when nothing was.
    trust
        What a server may have that has not proved who it is.
    warn
        Takes a sentence, for a person, when it gets the password and has not; it may be the same one often.
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
        """What TLS must give. An authority is there to verify by, so only `DISABLED` leaves it aside."""
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
        """Put an address together: what is said first, then the options file, then the environment.

        Parameters
        ----------
        host, port, user
            As given on the command line, None when not.
        defaults_file
            A `.my.cnf`; its groups `[client]` and `[binloom]` are read, the latter last.
        environment
            `BINLOOM_PASSWORD` or `MYSQL_PWD` hold the password when the file has none.
        enable_cleartext_plugin, get_server_public_key, server_public_key_path
            What a server may have that has not proved who it is, as given on the command line.
        **tls
            `tls_ca`, `tls_cert`, `tls_key` and `tls_mode` as given on the command line.

        Raises
        ------
        UsageError
            The options file or the server's key is missing or malformed, or an option is none that there is.
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
            # A host or port said on the command line means that one, not the socket of the file.
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
    except Exception as error:  # configparser has no common class for what it finds wrong
        first = str(error).splitlines()[0]
        raise UsageError(
            f"The options file {path} is malformed: {first}",
            hint="It should look like a .my.cnf, with a group [client].",
            path=str(path),
        ) from None
    options: dict[str, str] = {}
    for group in OPTION_GROUPS:
        if parser.has_section(group):
            # The server's clients take `ssl_ca` for `ssl-ca`.
            options.update({name.replace("_", "-"): _option(parser, group, name) for name in parser.options(group)})
    return options


def _option(parser: Parser, group: str, name: str) -> str:
    # One that stands there without a value is on; pymysql's own `get` fails at it.
    return "1" if RawConfigParser.get(parser, group, name) is None else parser.get(group, name)


def _is_on(options: Mapping[str, str], name: str) -> bool | None:
    """Whether an options file turns something on, None when it says nothing of it."""
    return None if name not in options else options[name].lower() not in ("0", "off", "false")


def _tls_mode(said: str | None, options: Mapping[str, str]) -> TlsMode | None:
    """What was said of TLS: on the command line, or in an options file as clients of MySQL or of MariaDB take it."""
    said = said or options.get("ssl-mode")
    if said is not None:
        try:
            return TlsMode[said.upper()]
        except KeyError:
            raise UsageError(
                f"There is no TLS mode {said!r}.", hint=f"There are: {', '.join(mode.name for mode in TlsMode)}."
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


def connect(address: ServerAddress, kind: type[GuardedConnection] = GuardedConnection, **options: Any) -> Any:
    """Connect to a server.

    Raises
    ------
    SourceError
        The server cannot be reached, refuses the user, or asks for what it may not have.
    """
    try:
        return kind(
            str(address),
            address.tls,
            address.trust,
            address.warn,
            host=address.host,
            port=address.port,
            user=address.user,
            password=address.password.encode(),
            unix_socket=address.unix_socket,
            charset="utf8mb4",
            program_name="binloom",
            **options,
        )
    except BinloomError:
        raise
    except Exception as error:  # pymysql has no common class for what it cannot read
        raise source_error(address, error) from None


class Server:
    """A connection to a live server, in which every statement sees what is committed when it starts.

    Raises
    ------
    SourceError
        The server cannot be reached or refuses the user.
    """

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self._connection = connect(address, autocommit=True, cursorclass=pymysql.cursors.DictCursor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        if self._connection.open:
            self._connection.close()

    def rows(self, sql: str, arguments: Sequence[Any] = (), need: Need | None = None) -> list["Row"]:
        """Return the rows of a statement, with column names as the statement has them.

        Parameters
        ----------
        sql, arguments
            The statement and what stands for its `%s`.
        need
            What it needs, so that a refusal can say which privilege is missing.

        Raises
        ------
        SourceError
            The server refuses it, or the connection broke.
        """
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql, arguments or None)
                return [Row(self.address, row) for row in cursor.fetchall()]
        except BinloomError:
            raise
        except Exception as error:  # pymysql has no common class for what it cannot read
            failure = source_error(self.address, error, sql)
            if not isinstance(error, pymysql.MySQLError):
                # The rest of such an answer is still to come.
                self.close()
        if need is not None and failure.number in _PRIVILEGE_MISSING:
            failure = self.lacks(need)
        raise failure

    def lacks(self, need: Need) -> SourceError:
        """Return the error that says which privilege the user lacks, and the statement that grants it.

        A server refuses COM_BINLOG_DUMP with error 1227, and COM_REGISTER_SLAVE with 1045, as if the password were
        wrong: `check_access` for any schema in `register_replica` (MySQL, rpl_source.cc) and in `THD::register_slave`
        (MariaDB, repl_failsafe.cc).
        """
        privilege = _privilege(server_identity(self), need)
        accounts = [row.text("account") for row in self.rows("select current_user() as account")]
        account = _quoted_account(accounts[0] if accounts else self.address.user)
        return AccessRefusedError(
            f"User {account} lacks the privilege {privilege} on the server at {self.address}, to {_PURPOSES[need]}.",
            hint=f"grant {privilege.lower()} on *.* to {account};",
            privilege=privilege,
        )

    def variables(self, *names: str) -> dict[str, str]:
        """Return global variables by name; those that the server does not have are left out."""
        listed = ", ".join(["%s"] * len(names))
        rows = self.rows(f"show global variables where variable_name in ({listed})", names)
        return {row.text("Variable_name"): row.text("Value") for row in rows}


class Row(dict[str, Any]):
    """A row of a server's answer, by column names. A column that is missing or not of its kind is a `SourceError`."""

    __slots__ = ("_address",)

    def __init__(self, address: ServerAddress, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._address = address

    def __missing__(self, name: str) -> Any:
        raise self._wrong(f"has no column {name}")

    def text(self, name: str) -> str:
        """Return what a column says as text."""
        value = self[name]
        if not isinstance(value, str):
            raise self._wrong(f"has no text in column {name}")
        return value

    def number(self, name: str) -> int:
        """Return what a column says as a number that is not negative."""
        value = str(self[name])
        if not _NUMBER.fullmatch(value):
            raise self._wrong(f"has no number in column {name}")
        return int(value)

    def _wrong(self, what: str) -> SourceError:
        return SourceError(
            f"An answer of the server at {self._address} {what}.",
            hint="Check that a MySQL or MariaDB server listens there.",
        )


# Twenty digits hold any number of 64 bits.
_NUMBER = re.compile(r"[0-9]{1,20}")


def source_error(address: ServerAddress, error: Exception, sql: str | None = None) -> SourceError:
    """Return the error for what pymysql raised: who refused what, and what to do."""
    number, text = 0, _shortened(str(error))
    if not isinstance(error, pymysql.MySQLError | OSError):
        return SourceError(
            f"The server at {address} does not speak as a MySQL server does: {type(error).__name__}: {text}.",
            hint="Check the address, and that a MySQL or MariaDB server listens there.",
            number=number,
        )
    if isinstance(error, pymysql.MySQLError) and error.args and isinstance(error.args[0], int):
        number = error.args[0]
        text = _shortened(str(error.args[1])) if len(error.args) > 1 else text
    if number in _ACCESS_DENIED:
        return AccessRefusedError(
            f"The server at {address} refuses user {address.user!r}: {text}.",
            hint="Check the user, and the password in --defaults-file, BINLOOM_PASSWORD or MYSQL_PWD.",
            number=number,
        )
    if number in _PRIVILEGE_MISSING:
        return AccessRefusedError(
            f"User {address.user!r} lacks a privilege on the server at {address}: {text}.",
            hint="Grant it, and try again.",
            number=number,
        )
    if sql is None:
        return SourceError(
            f"The server at {address} cannot be reached: {text}.",
            hint="Check that it runs and listens there, and the options for TLS.",
            number=number,
        )
    return SourceError(
        f"The server at {address} failed on {sql.split()[0].lower()!r}: {text}.",
        hint="Check the server's error log and try again.",
        number=number,
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _SAID_LIMIT else f"{text[:_SAID_LIMIT]}…"


@dataclass(frozen=True)
class CheckFinding:
    """Something about a server that a person should know before relying on its binlog.

    Attributes
    ----------
    level
        `error`: its binlog cannot be used; `warning`: something will be missing; `advice`: it could be better.
    message
        What was found and what to do.
    """

    level: Literal["error", "warning", "advice"]
    message: str


@dataclass(frozen=True)
class ServerIdentity:
    """Who a server is."""

    flavor: Literal["mysql", "mariadb"]
    version: str
    server_id: int
    server_uuid: str | None
    host: str
    port: int

    @property
    def version_numbers(self) -> tuple[int, int, int]:
        """Version as three numbers."""
        numbers = [int(digits) for digits in re.findall(r"[0-9]{1,9}", self.version.split("-")[0])[:3]]
        major, minor, patch = (*numbers, 0, 0, 0)[:3]
        return major, minor, patch


def server_identity(server: Server) -> ServerIdentity:
    """Ask a server who it is."""
    facts = server.variables("version", "server_id", "server_uuid")
    version = facts.get("version", "")
    return ServerIdentity(
        "mariadb" if "mariadb" in version.lower() else "mysql",
        version,
        _server_id(server, facts.get("server_id") or "0"),
        facts.get("server_uuid"),
        server.address.host,
        server.address.port,
    )


def _server_id(server: Server, said: str) -> int:
    return Row(server.address, {"server_id": said}).number("server_id")


def _privilege(identity: ServerIdentity, need: Need) -> str:
    if need != "monitor":
        return "REPLICATION SLAVE" if need == "stream" else "SELECT"
    # MariaDB renamed it and takes the old name still: privilege.h, BINLOG_MONITOR_ACL.
    is_renamed = identity.flavor == "mariadb" and identity.version_numbers >= (10, 5, 2)
    return "BINLOG MONITOR" if is_renamed else "REPLICATION CLIENT"


def _quoted_account(account: str) -> str:
    """Return an account as a GRANT takes it, from `user@host` as the server says it: the host has no @."""
    user, _, host = account.rpartition("@")
    return "@".join("'" + part.replace("\\", "\\\\").replace("'", "''") + "'" for part in (user, host))


def binary_logs(server: Server) -> list[tuple[str, int]]:
    """Return name and size in bytes of each log file that the server has, oldest first.

    Raises
    ------
    SourceError
        The binary log is off, or the privilege to ask is missing.
    """
    try:
        rows = server.rows("show binary logs", need="monitor")
    except SourceError as error:
        if error.context.get("number") != _NO_BINARY_LOGGING:
            raise
        raise binary_log_is_off(server) from None
    logs = [(log_name(server.address, row.text("Log_name")), row.number("File_size")) for row in rows]
    if not logs:
        raise binary_log_is_off(server)
    return logs


def log_name(address: ServerAddress, said: str) -> str:
    """Return the name that a server gives one of its files, which files here are named by.

    Raises
    ------
    SourceError
        It is no name of a log: it leads out of the folder, or has no number.
    """
    if not _LOG_NAME.fullmatch(said) or len(said.encode()) > _NAME_BYTES:
        raise SourceError(
            f"The server at {address} names a log file {_shortened(said)!r}, which is no name of one.",
            hint="Check that a MySQL or MariaDB server listens there.",
        )
    return said


_LOG_NAME = re.compile(r"(?!\.)[^/\x00-\x1f\x7f\ud800-\udfff]+\.[0-9]{1,10}")
_NAME_BYTES = 255


def binary_log_is_off(server: Server) -> SourceError:
    """Return the error for a server without a binary log."""
    return SourceError(
        f"The binary log of the server at {server.address} is off.", hint="Start the server with log_bin."
    )


def executed_gtids(server: Server) -> str | None:
    """Return the GTIDs of all that the server has executed, None without any.

    MySQL says a set, `uuid:1-5:7`; MariaDB the last of each domain and server in its log, `0-1-5,0-2-9`.
    """
    return _gtids(server, "gtid_executed", "gtid_binlog_state")


def gtid_purged(server: Server) -> str | None:
    """Return the GTIDs of a MySQL server that its log files have no more, None without any and on MariaDB."""
    return _gtids(server, "gtid_purged")


def _gtids(server: Server, *names: str) -> str | None:
    """The one of these variables that the server has; MySQL breaks a long set into lines."""
    return next((value.replace("\n", "") for value in server.variables(*names).values() if value), None)


def check_server(server: Server) -> list[CheckFinding]:
    """Check that a server's binlog says what binloom needs.

    Returns
    -------
    list of CheckFinding
        Errors first. Empty when all is well.
    """
    facts = server.variables("version", "log_bin", "binlog_format", "binlog_row_image", "binlog_row_metadata")
    findings: list[CheckFinding] = []
    if facts.get("log_bin", "ON").upper() not in ("ON", "1"):
        findings.append(CheckFinding("error", "The binary log is off. Start the server with log_bin."))
    # A server without the variable can only write rows.
    binlog_format = facts.get("binlog_format", "ROW").upper()
    if binlog_format != "ROW":
        findings.append(
            CheckFinding(
                "error",
                f"binlog_format is {binlog_format}: changes are logged as statements, which do not say what changed. "
                "Set binlog_format=ROW; it holds for new connections.",
            )
        )
    image = facts.get("binlog_row_image", "FULL").upper()
    if image not in ("FULL", "FULL_NODUP"):
        findings.append(
            CheckFinding(
                "warning",
                f"binlog_row_image is {image}: columns that did not change are missing from what is logged. "
                "Set binlog_row_image=FULL.",
            )
        )
    cascading = _engine_cascades(server)
    if cascading:
        findings.append(
            CheckFinding(
                "warning",
                f"{len(cascading)} foreign keys cascade inside the storage engine, and what they change is not logged: "
                f"{', '.join(cascading)}.",
            )
        )
    if not _may_see_tables(server):
        findings.append(CheckFinding("error", str(server.lacks("schema"))))
    metadata = facts.get("binlog_row_metadata")
    if metadata is not None and metadata.upper() != "FULL":
        findings.append(
            CheckFinding(
                "advice",
                f"binlog_row_metadata is {metadata.upper()}: names of columns come from schema snapshots. With "
                "binlog_row_metadata=FULL the binlog says them itself.",
            )
        )
    return findings


def _may_see_tables(server: Server) -> bool:
    """Whether the user sees a table, or would if there were any.

    A server never refuses to show tables: it hides them. What a role grants it does not say.
    """
    sees = f"select 1 from information_schema.tables where table_schema not in {_SYSTEM_SCHEMAS} limit 1"
    if server.rows(sees):
        return True
    grants = [str(grant).upper().partition(" ON ") for row in server.rows("show grants") for grant in row.values()]
    return any("SELECT" in granted or "ALL PRIVILEGES" in granted or not on for granted, on, _ in grants)


def logs_cascades(server: Server) -> bool:
    """Return whether the server logs what its foreign keys change in referring rows.

    MySQL 9.6 and later carry cascades out above the storage engine, unless `innodb_native_foreign_keys` is on. Servers
    without this variable leave them to the engine, which logs nothing.

    Source: MySQL 9.7 Reference Manual, "Replication and Foreign Keys".
    """
    name = "innodb_native_foreign_keys"
    return server.variables(name).get(name, "ON").upper() in ("OFF", "0")


def _engine_cascades(server: Server) -> list[str]:
    if logs_cascades(server):
        return []
    rows = server.rows(
        "select constraint_schema as s, table_name as t, constraint_name as c, update_rule as u, delete_rule as d "
        "from information_schema.referential_constraints "
        f"where update_rule in {_CASCADING} or delete_rule in {_CASCADING} order by 1, 2, 3"
    )
    return [f"{row['s']}.{row['t']} {row['c']} (on update {row['u']}, on delete {row['d']})".lower() for row in rows]


def require_usable(server: Server, findings: Sequence[CheckFinding]) -> None:
    """Raise when a check found that the server's binlog cannot be used.

    Raises
    ------
    SourceCheckError
    """
    errors = [finding.message for finding in findings if finding.level == "error"]
    if errors:
        raise SourceCheckError(f"The binlog of the server at {server.address} cannot be used. {' '.join(errors)}")
