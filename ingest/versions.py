"""Versions of servers, for rules that depend on them.

A version is text. MySQL's is compiled in, but anyone may start MariaDB with `--version=8.0.36-shop`, and middleware
tells versions of its own. So nothing takes the flavor of a server from its version where better evidence is at hand:
`ingest.binlog.events.format` reads it from the log, `ingest.sources.servers.server` asks the server for what only
MariaDB has.
"""

import re
from typing import Final, Literal

Flavor = Literal["mysql", "mariadb"]
Version = tuple[int, ...]

NEWEST: Final[Version] = (99,)
"""The version of a server that does not tell it: the rules of the newest apply."""

# MariaDB puts `5.5.5-` before its version for replicas that would otherwise read the first digit only.
_NUMBERS: Final = re.compile(r"(?:5\.5\.5-(?=1[0-9]\.))?([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?")


def version_of(flavor: Flavor, text: str | None) -> Version:
    """Return the numbers of a server's version, such as `10.11.18-MariaDB-log`.

    A version that no server of the flavor has was set by someone: its numbers tell nothing, and the newest is assumed.
    """
    found = _NUMBERS.match(text or "")
    if found is None:
        return NEWEST
    version = tuple(int(number) for number in found.groups(default="0"))
    return version if _may_be_own(flavor, version, text or "") else NEWEST


def says_mariadb(text: str) -> bool:
    """Return whether the text of a version names MariaDB; it may do so or not on either server."""
    return "mariadb" in text.lower()


def _may_be_own(flavor: Flavor, version: Version, text: str) -> bool:
    """Return whether a server may have a version: MariaDB went from 5.5 to 10.0, and MySQL has no 10 yet."""
    if flavor == "mysql":
        return version < (10,)
    return version >= (10,) or (version < (5, 6) and says_mariadb(text))
