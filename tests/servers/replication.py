"""Replication on servers: log ends, replicas, promotion, logs that are purged or restarted."""

import time
from dataclasses import dataclass

import pymysql

from tests.servers.accounts import create_account
from tests.servers.server import Server
from tests.support.patience import PATIENCE_SECONDS

REPLICA_OPTIONS = {
    "mysql": ["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-replica-updates=ON", "--skip-replica-start"],
    "mariadb": ["--gtid-strict-mode=ON", "--log-slave-updates=ON", "--skip-slave-start"],
}


@dataclass(frozen=True, order=True)
class LogPosition:
    """A position in a server's binlog: the name of the file, and the offset in it in bytes."""

    binlog_file: str
    position: int


def log_end(server: Server) -> LogPosition:
    """Return the position at which a server writes next."""
    is_renamed = server.flavor == "mysql" and not server.version.startswith("5")
    statement = "show binary log status" if is_renamed else "show master status"
    name, position, *_ = server.execute(statement)[0]
    return LogPosition(name, int(position))


def executed_gtids(server: Server) -> str:
    """Return the GTIDs of everything that a server has logged, in the server's own notation."""
    variable = "gtid_executed" if server.flavor == "mysql" else "gtid_binlog_pos"
    return str(server.execute(f"select @@global.{variable}")[0][0]).replace("\n", "")


def begin_again(server: Server, number: int = 1) -> None:
    """Delete all binlogs and start with a file of this number; GTIDs start over, too."""
    statement = "reset binary logs and gtids" if server.flavor == "mysql" else "reset master"
    server.execute(f"{statement} to {number}")


def purge_before_current(server: Server) -> LogPosition:
    """Let a server delete all binlogs except a new one; return the position where that one begins."""
    server.execute("flush binary logs")
    current = server.binlogs()[-1].name
    # A dump thread that still reads a file prevents its deletion.
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(server.binlogs()) > 1:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{server.binlogs()[0]} is still read by somebody")
        server.execute(f"purge binary logs to '{current}'")
    return LogPosition(current, 4)


def replicate(primary: Server, replica: Server) -> None:
    """Let a server replicate another by GTID, from the first transaction on."""
    account = create_account(primary, replica.directory, "replica", ["replication slave"])
    if replica.flavor == "mysql":
        replica.execute(
            f"change replication source to source_host='{primary.host}', source_port={primary.port}, "
            f"source_user='{account.user}', source_password='{account.password}', source_auto_position=1, "
            "source_ssl=0, source_connect_retry=1, get_source_public_key=1",
            "start replica",
        )
    else:
        replica.execute(
            "set global gtid_slave_pos = ''",
            f"change master to master_host='{primary.host}', master_port={primary.port}, "
            f"master_user='{account.user}', master_password='{account.password}', master_use_gtid=slave_pos, "
            "master_connect_retry=1",
            "start slave",
        )


def wait_for_replica(primary: Server, replica: Server) -> None:
    """Wait until a replica has everything that is in its primary's log now."""
    function = "wait_for_executed_gtid_set" if replica.flavor == "mysql" else "master_gtid_wait"
    ((outcome,),) = replica.execute(f"select {function}('{executed_gtids(primary)}', {PATIENCE_SECONDS})")
    if outcome != 0:
        statement = "show replica status" if replica.flavor == "mysql" else "show slave status"
        raise TimeoutError(f"The replica does not catch up: {replica.execute(statement)}")


def promote(replica: Server) -> None:
    """Make a replica an independent server with the transactions that it has received so far."""
    if replica.flavor == "mysql":
        replica.execute("stop replica", "reset replica all")
    else:
        replica.execute("stop slave", "reset slave all")


def kill_dump_threads(server: Server) -> int:
    """Kill the dump threads' connections, as an administrator would; return their number."""
    killed = 0
    # A query of information_schema.processlist can fail on MySQL: its text cannot hold an emoji of a running statement.
    for identifier, _user, _host, _database, command, *_ in server.execute("show processlist"):
        if str(command).startswith("Binlog Dump"):
            try:
                server.execute(f"kill {identifier}")
                killed += 1
            except pymysql.err.OperationalError as error:
                if error.args[0] != _NO_SUCH_THREAD:
                    raise
    return killed


_NO_SUCH_THREAD = 1094
