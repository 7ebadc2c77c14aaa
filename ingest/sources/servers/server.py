"""A live server: a connection to it, its answers, and its errors as sentences."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import pymysql
import pymysql.cursors

from ingest.errors import AccessRefusedError, BinloomError, SourceError
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.connection import GuardedConnection
from ingest.versions import Flavor, Version, version_of

# Messages quote at most this many characters of a server's text.
_SAID_LIMIT = 500

# Numbers of server errors, from the server's messages_to_clients.txt.
_ACCESS_DENIED = (1044, 1045, 1698)
_PRIVILEGE_MISSING = (1142, 1143, 1227, 1370)
_NO_BINARY_LOGGING = 1381
_UNUSABLE_ACCOUNTS = {
    **dict.fromkeys((1820, 1862), "Its password has expired: ALTER USER gives it a new one."),
    **dict.fromkeys((3118, 4151), "The account is locked: ALTER USER ... ACCOUNT UNLOCK opens it."),
    **dict.fromkeys((3955, 4150), "It is blocked after wrong passwords: ALTER USER ... ACCOUNT UNLOCK opens it."),
    1130: "The account is not for this host: CREATE USER names the hosts of an account.",
}
"""Errors of MySQL and MariaDB for accounts that exist, and what to do."""
_BUSY = {
    **dict.fromkeys((1040, 1203, 1226), "Try again when others have ended, or raise the limit."),
    1129: "FLUSH HOSTS lets this host in again.",
    3032: "It is in offline mode: try again when it is not.",
    3159: "It wants TLS: leave out --tls-mode, or give REQUIRED.",
}
# Errors of the client itself: all others are answers of a server.
_OF_CLIENT = range(2000, 3000)

# Privileges: to ask for the end of the log, to stream it, to read the schema, and to begin a baseline.
Need = Literal["monitor", "stream", "schema", "lock", "transactions"]
_PURPOSES: dict[Need, str] = {
    "monitor": "read the position of its binary log",
    "stream": "read its binary log",
    "schema": "read the definitions of its tables",
    "lock": "hold its writes for the moment in which a baseline begins",
    "transactions": "see which transactions have not ended when a baseline begins",
}
_PRIVILEGES: dict[Need, str] = {
    "stream": "REPLICATION SLAVE",
    "schema": "SELECT",
    "lock": "RELOAD",
    "transactions": "PROCESS",
}


def connect(address: ServerAddress, kind: type[GuardedConnection] = GuardedConnection, **options: Any) -> Any:
    """Connect to a server.

    Raises
    ------
    SourceError
        The server cannot be reached, refuses the user, or asks for something it may not get.
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
    except Exception as error:  # pymysql has no common class for its parse errors
        raise source_error(address, error) from None


class Server:
    """A connection to a live server, in which every statement sees the data committed before it starts.

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
        """Return the rows of a statement, by the column names of the statement.

        Parameters
        ----------
        sql, arguments
            The statement and the values of its `%s`.
        need
            Purpose of the statement, so that an error can name the missing privilege.

        Raises
        ------
        SourceError
            The server refuses the statement, or the connection broke.
        """
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql, arguments or None)
                return [Row(self.address, row) for row in cursor.fetchall()]
        except BinloomError:
            raise
        except Exception as error:  # pymysql has no common class for its parse errors
            failure = source_error(self.address, error, sql)
            if not isinstance(error, pymysql.MySQLError):
                # The rest of such an answer is still on the connection.
                self.close()
        if need is not None and failure.number in _PRIVILEGE_MISSING:
            failure = self.lacks(need)
        raise failure

    def lacks(self, need: Need) -> SourceError:
        """Return the error that names the privilege that the user lacks, and the statement that grants it.

        A server refuses COM_BINLOG_DUMP with error 1227, and COM_REGISTER_SLAVE with 1045, as if the password were
        wrong: `check_access` for any schema in `register_replica` (MySQL, rpl_source.cc) and in `THD::register_slave`
        (MariaDB, repl_failsafe.cc).
        """
        privilege = _privilege(server_identity(self), need)
        accounts = [row.text("account") for row in self.rows("select current_user() as account")]
        account = _quoted_account(accounts[0] if accounts else self.address.user)
        return AccessRefusedError(
            f"User {account} lacks the privilege {privilege} on the server at {self.address}, to {_PURPOSES[need]}.",
            hint=f"Run there: grant {privilege.lower()} on *.* to {account};",
            privilege=privilege,
        )

    def variables(self, *names: str) -> dict[str, str]:
        """Return global variables by name, without those that the server does not have."""
        listed = ", ".join(["%s"] * len(names))
        rows = self.rows(f"show global variables where variable_name in ({listed})", names)
        return {row.text("Variable_name"): row.text("Value") for row in rows}


class Row(dict[str, Any]):
    """A row of a server's answer, by column name. A missing column, or one of the wrong type, is a `SourceError`."""

    __slots__ = ("_address",)

    def __init__(self, address: ServerAddress, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self._address = address

    def __missing__(self, name: str) -> Any:
        raise self._wrong(f"has no column {name}")

    def text(self, name: str) -> str:
        """Return the value of a column as text."""
        value = self[name]
        if not isinstance(value, str):
            raise self._wrong(f"has no text in column {name}")
        return value

    def number(self, name: str) -> int:
        """Return the value of a column as a number that is not negative."""
        value = str(self[name])
        if not _NUMBER.fullmatch(value):
            raise self._wrong(f"has no number in column {name}")
        return int(value)

    def _wrong(self, what: str) -> SourceError:
        return SourceError(
            f"An answer of the server at {self._address} {what}.",
            hint="Check that a MySQL or MariaDB server listens there.",
        )


# Twenty digits are enough for any number of 64 bits.
_NUMBER = re.compile(r"[0-9]{1,20}")


def source_error(address: ServerAddress, error: Exception, sql: str | None = None) -> SourceError:
    """Return the error for an exception of pymysql: what the server refused, and what to do."""
    number, text = 0, _shortened(str(error)).rstrip(".")
    if not isinstance(error, pymysql.MySQLError | OSError):
        return SourceError(
            f"The server at {address} does not answer like a MySQL server{text and ': '}{text}.",
            hint="Check the address, and that a MySQL or MariaDB server listens there.",
            number=number,
        )
    if isinstance(error, pymysql.MySQLError) and error.args and isinstance(error.args[0], int):
        number = error.args[0]
        text = _shortened(str(error.args[1])).rstrip(".") if len(error.args) > 1 else text
    if number in _ACCESS_DENIED:
        return AccessRefusedError(
            f"The server at {address} refuses user {address.user!r}: {text}.",
            hint="Check the user, and the password in --defaults-file, BINLOOM_PASSWORD or MYSQL_PWD.",
            number=number,
        )
    if number in _UNUSABLE_ACCOUNTS:
        return AccessRefusedError(
            f"The server at {address} refuses user {address.user!r}: {text}.",
            hint=_UNUSABLE_ACCOUNTS[number],
            number=number,
        )
    if number in _PRIVILEGE_MISSING:
        return AccessRefusedError(
            f"User {address.user!r} lacks a privilege on the server at {address}: {text}.",
            hint="Grant it, and try again.",
            number=number,
        )
    if sql is None and number and number not in _OF_CLIENT:
        return SourceError(
            f"The server at {address} refuses the connection: {text}.",
            hint=_BUSY.get(number, "Its error log may tell more."),
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
class ServerIdentity:
    """The identity of a server. The version may be set to any text, the flavor cannot."""

    flavor: Flavor
    version: str
    server_id: int
    server_uuid: str | None
    host: str
    port: int

    @property
    def version_numbers(self) -> Version:
        """The numbers of the version; those of the newest when it has none, or none of its own."""
        return version_of(self.flavor, self.version)


# No MariaDB runs without the engine Aria, and no MySQL has it.
_OF_MARIADB: Final = "aria_block_size"


def server_identity(server: Server) -> ServerIdentity:
    """Ask a server for its identity."""
    facts = server.variables("version", "server_id", "server_uuid", _OF_MARIADB)
    return ServerIdentity(
        "mariadb" if _OF_MARIADB in facts else "mysql",
        facts.get("version", ""),
        _server_id(server, facts.get("server_id") or "0"),
        facts.get("server_uuid"),
        server.address.host,
        server.address.port,
    )


def _server_id(server: Server, text: str) -> int:
    return Row(server.address, {"server_id": text}).number("server_id")


def _privilege(identity: ServerIdentity, need: Need) -> str:
    if need != "monitor":
        return _PRIVILEGES[need]
    # MariaDB renamed the privilege and still accepts the old name: privilege.h, BINLOG_MONITOR_ACL.
    is_renamed = identity.flavor == "mariadb" and identity.version_numbers >= (10, 5, 2)
    return "BINLOG MONITOR" if is_renamed else "REPLICATION CLIENT"


def _quoted_account(account: str) -> str:
    """Return an account quoted for GRANT, from the server's `user@host`; the host contains no @."""
    user, _, host = account.rpartition("@")
    return "@".join("'" + part.replace("\\", "\\\\").replace("'", "''") + "'" for part in (user, host))


def binary_logs(server: Server) -> list[tuple[str, int]]:
    """Return name and size in bytes of each of the server's log files, oldest first.

    Raises
    ------
    SourceError
        The binary log is off, or the privilege to list the files is missing.
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


def log_name(address: ServerAddress, name: str) -> str:
    """Return the server's name for one of its log files, checked for use as a file name here.

    Raises
    ------
    SourceError
        It is not the name of a log: it points out of the folder, or has no number.
    """
    if not _LOG_NAME.fullmatch(name) or len(name.encode()) > _NAME_BYTES:
        raise SourceError(
            f"The server at {address} names a log file {_shortened(name)!r}, which is not a valid name.",
            hint="Check that a MySQL or MariaDB server listens there.",
        )
    return name


_LOG_NAME = re.compile(r"(?!\.)[^/\x00-\x1f\x7f\ud800-\udfff]+\.[0-9]{1,10}")
_NAME_BYTES = 255


def binary_log_is_off(server: Server) -> SourceError:
    """Return the error for a server without a binary log."""
    return SourceError(
        f"The binary log of the server at {server.address} is off.", hint="Start the server with log_bin."
    )


def executed_gtids(server: Server) -> str | None:
    """Return the GTIDs of everything that the server has executed, None if it has none.

    MySQL gives a set, `uuid:1-5:7`. MariaDB gives the last GTID of each domain and server in its log, `0-1-5,0-2-9`.
    """
    return _gtids(server, "gtid_executed", "gtid_binlog_state")


def gtid_purged(server: Server) -> str | None:
    """Return the GTIDs that a MySQL server's log files no longer contain, None if there are none and on MariaDB."""
    return _gtids(server, "gtid_purged")


def may_be_anonymous(server: Server) -> bool:
    """Return whether a server may log transactions without a GTID: MySQL unless gtid_mode is ON, MariaDB never does."""
    return server.variables("gtid_mode").get("gtid_mode", "ON") != "ON"


def _gtids(server: Server, *names: str) -> str | None:
    """Return the first of these variables that the server has; MySQL breaks a long set into lines."""
    return next((value.replace("\n", "") for value in server.variables(*names).values() if value), None)
