"""Checks that the binlog of a server contains what binloom needs."""

from dataclasses import dataclass
from typing import Literal

from ingest.errors import SourceCheckError
from ingest.sources.servers.server import Server

_SYSTEM_SCHEMAS = "('information_schema', 'performance_schema', 'sys')"
_CASCADING = "('CASCADE', 'SET NULL', 'SET DEFAULT')"


@dataclass(frozen=True)
class CheckFinding:
    """A fact about a server that a person should know before relying on its binlog.

    Attributes
    ----------
    level
        `error`: the binlog cannot be used; `warning`: data will be missing; `advice`: the setup could be better.
    message
        The finding and what to do about it.
    """

    level: Literal["error", "warning", "advice"]
    message: str


def check_server(server: Server) -> list[CheckFinding]:
    """Check that a server's binlog contains what binloom needs.

    Returns
    -------
    list of CheckFinding
        Errors first. Empty when the check finds no problem.
    """
    facts = server.variables("version", "log_bin", "binlog_format", "binlog_row_image", "binlog_row_metadata")
    findings: list[CheckFinding] = []
    if facts.get("log_bin", "ON").upper() not in ("ON", "1"):
        findings.append(CheckFinding("error", "The binary log is off. Start the server with log_bin."))
    # A server without this variable can only write rows.
    binlog_format = facts.get("binlog_format", "ROW").upper()
    if binlog_format != "ROW":
        findings.append(
            CheckFinding(
                "error",
                f"binlog_format is {binlog_format}: changes are logged as statements, which do not contain the "
                "changed values. "
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
                f"{len(cascading)} foreign keys cascade inside the storage engine, and the changes that they "
                "make are not logged: "
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
                "binlog_row_metadata=FULL the binlog contains them.",
            )
        )
    return findings


def _may_see_tables(server: Server) -> bool:
    """Return whether the user sees a table, or would see one if there were any.

    A server never refuses to list tables: it hides them. The grants here do not include what a role grants.
    """
    sees = f"select 1 from information_schema.tables where table_schema not in {_SYSTEM_SCHEMAS} limit 1"
    if server.rows(sees):
        return True
    grants = [str(grant).upper().partition(" ON ") for row in server.rows("show grants") for grant in row.values()]
    return any("SELECT" in granted or "ALL PRIVILEGES" in granted or not on for granted, on, _ in grants)


def logs_cascades(server: Server) -> bool:
    """Return whether the server logs the changes that its foreign keys make in referring rows.

    MySQL 9.6 and later run cascades above the storage engine, unless `innodb_native_foreign_keys` is on. Servers
    without this variable leave cascades to the engine, which logs nothing.

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


def require_usable(server: Server) -> list[CheckFinding]:
    """Check a server as `check_server` does, and return the warnings and the advice.

    Raises
    ------
    SourceCheckError
        If the server's binlog cannot be used.
    """
    findings = check_server(server)
    errors = [finding.message for finding in findings if finding.level == "error"]
    if errors:
        raise SourceCheckError(f"The binlog of the server at {server.address} cannot be used. {' '.join(errors)}")
    return findings
