"""Users with the privileges that a test gives them, and files that hold their passwords."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.servers.server import Server

# What the README grants to whoever follows a server.
FOLLOWING = ("replication slave", "replication client", "select")


@dataclass(frozen=True)
class Account:
    """A user of a server.

    Attributes
    ----------
    user, password
        The password is drawn anew for each account, so that it can be looked for wherever it must not be.
    defaults_file
        A `.my.cnf` with both, which only its owner may read.
    """

    user: str
    password: str = field(repr=False)
    defaults_file: Path


def create_account(
    server: Server, directory: Path, user: str = "follower", privileges: Sequence[str] = FOLLOWING, require: str = ""
) -> Account:
    """Create a user on a server, or give one that is there a new password and these privileges alone.

    Parameters
    ----------
    directory
        Where its defaults file goes.
    privileges
        Privileges on `*.*`.
    require
        What its connections need, such as `ssl` or `x509`.
    """
    # Signs that an options file could take for something else are in passwords, too.
    password = f"{secrets.token_urlsafe(12)}#%"
    name = f"'{user}'@'%'"
    server.execute(
        f"drop user if exists {name}",
        f"create user {name} identified by '{password}'" + (f" require {require}" if require else ""),
        *(f"grant {privilege} on *.* to {name}" for privilege in privileges),
    )
    return Account(user, password, write_defaults_file(directory / f"{user}.cnf", user, password))


def write_defaults_file(path: Path, user: str, password: str) -> Path:
    """Write a `.my.cnf` that nobody else may read."""
    path.touch(mode=0o600)
    path.write_text(f'[client]\nuser = {user}\npassword = "{password}"\n')
    return path
