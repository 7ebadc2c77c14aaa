"""Users with the privileges that a test gives them, and files that contain their passwords."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.servers.server import Server

# The README grants these to the user that follows a server.
FOLLOWING = ("replication slave", "replication client", "select")


@dataclass(frozen=True)
class Account:
    """A user of a server.

    Attributes
    ----------
    user, password
        The password is random for each account, so that tests can search for it in places where it must not be.
    defaults_file
        A `.my.cnf` with both, readable only by its owner.
    """

    user: str
    password: str = field(repr=False)
    defaults_file: Path


def create_account(
    server: Server,
    directory: Path,
    user: str = "follower",
    privileges: Sequence[str] = FOLLOWING,
    *,
    password: str | None = None,
    require: str = "",
) -> Account:
    """Create a user on a server, or give an existing user a new password and only these privileges.

    None of these statements is in the server's binlog.

    Parameters
    ----------
    directory
        Folder of the defaults file.
    privileges
        Privileges on `*.*`.
    password
        Random when not given.
    require
        Requirements for its connections, such as `ssl` or `x509`.
    """
    # Passwords also contain characters that an options file could misinterpret.
    password = password or f"{secrets.token_urlsafe(12)}#%"
    name = f"'{user}'@'%'"
    # MySQL 5.6 has no DROP USER IF EXISTS.
    is_there = server.execute(f"select 1 from mysql.user where user = '{user}' and host = '%'")
    # A connection from this machine would match the anonymous user first.
    nobody = "select 1 from mysql.user where user = '' and host = 'localhost'"
    server.execute(
        "set session sql_log_bin = 0",
        *([f"drop user {name}"] if is_there else []),
        *(["drop user ''@'localhost'"] if server.execute(nobody) else []),
        f"create user {name} identified by '{password}'" + (f" require {require}" if require else ""),
        *(f"grant {privilege} on *.* to {name}" for privilege in privileges),
    )
    # A server that was started without TLS asks for the password encrypted with its RSA key.
    has_no_tls = ("tls_version", "") in server.execute("show global variables like 'tls_version'")
    options = ["get-server-public-key"] if has_no_tls else []
    return Account(user, password, write_defaults_file(directory / f"{user}.cnf", user, password, *options))


def write_defaults_file(path: Path, user: str, password: str, *options: str) -> Path:
    """Write a `.my.cnf` that only its owner can read."""
    path.touch(mode=0o600)
    path.write_text("\n".join(["[client]", f"user = {user}", f'password = "{password}"', *options, ""]))
    return path
