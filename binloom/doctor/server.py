"""Checks of a MySQL or MariaDB server: privileges, what it logs, how long it keeps its logs, and its clock."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from binloom.doctor.clocks import clock_finding
from binloom.doctor.findings import Finding
from ingest.errors import BinloomError

if TYPE_CHECKING:
    from ingest.sources.servers.address import ServerAddress
    from ingest.sources.servers.server import Server

_DAY: Final = 86_400
_KEPT: Final = {"binlog_expire_logs_seconds": 1, "expire_logs_days": _DAY}


def check_source(address: "ServerAddress") -> Iterator[Finding]:
    """Check the server at an address, with one connection that only reads."""
    from ingest.sources.servers.server import Server

    try:
        with Server(address) as server:
            yield from _checked(server)
    except BinloomError as error:
        yield Finding.of_error("server", error)


def _checked(server: "Server") -> Iterator[Finding]:
    from ingest.sources.servers.server import binary_logs, server_identity
    from ingest.sources.servers.server_check import check_server

    identity = server_identity(server)
    yield Finding("server", "good", f"{server.address} is {identity.flavor} {identity.version}.")
    before = time.time()
    (row,) = server.rows("select cast(unix_timestamp(now(6)) as char) as seconds")
    yield clock_finding("server clock", "the server", float(row.text("seconds")), before)
    for finding in check_server(server):
        yield Finding("server settings", finding.level, finding.message)
    yield _may_follow(server)
    try:
        logs = binary_logs(server)
    except BinloomError as error:
        yield Finding.of_error("server logs", error)
        return
    yield _kept(server, len(logs))


def _may_follow(server: "Server") -> Finding:
    """Tell whether the user may read the log as a replica. The grants do not include what a role grants."""
    for row in server.rows("show grants"):
        for grant in row.values():
            granted, on, _ = str(grant).upper().partition(" ON ")
            privileges = {one.strip() for one in granted.removeprefix("GRANT ").split(",")}
            if not on or privileges & {"REPLICATION SLAVE", "ALL PRIVILEGES"}:
                return Finding("server privileges", "good", "The user may read the log as a replica.")
    lacks = server.lacks("stream")
    return Finding("server privileges", "warning", f"{lacks} Only `binloom follow` needs it.")


def _kept(server: "Server", logs: int) -> Finding:
    found = server.variables(*_KEPT)
    seconds = [float(found[name]) * unit for name, unit in _KEPT.items() if float(found.get(name) or 0) > 0]
    if seconds and min(seconds) < _DAY:
        message = (
            f"The server deletes its logs after {min(seconds) / 3600:.1f} hours. If `binloom follow` does not run for"
        )
        return Finding("server logs", "warning", f"{message} longer, a part of the log is lost. Keep them for days.")
    kept = f"keeps them for {min(seconds) / _DAY:.0f} days" if seconds else "never deletes them by itself"
    return Finding("server logs", "good", f"The server has {logs} binary logs and {kept}.")
