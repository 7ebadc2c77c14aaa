"""The privileges that managed services give to the first user of a server, as their documents list them.

None of these services grants SUPER, and all of them refuse FLUSH TABLES WITH READ LOCK although they grant RELOAD. A
server here grants the lock with RELOAD, so tests of the refusal leave that privilege out.

Sources: Amazon RDS User Guide and Amazon Aurora User Guide, "Master user account privileges"; Azure Database for
MySQL, "Create users". Cloud SQL for MySQL, "MySQL 8.0 user privileges (cloudsqlsuperuser)", was not at hand: its list
is that of the others without dynamic privileges.
"""

from tests.servers.server import Server

_COMMON = (
    *("select", "insert", "update", "delete", "create", "drop", "process", "references", "index", "alter"),
    *("show databases", "create temporary tables", "lock tables", "execute", "replication slave"),
    *("replication client", "create view", "show view", "create routine", "alter routine", "create user"),
    *("event", "trigger"),
)
_ROLES = ("create role", "drop role")

PRIVILEGES = {
    "rds": (*_COMMON, "reload", *_ROLES, "application_password_admin", "role_admin", "xa_recover_admin"),
    "aurora": (
        *(*_COMMON, "reload", *_ROLES, "application_password_admin", "connection_admin", "role_admin"),
        *("xa_recover_admin",),
    ),
    "cloudsql": (*_COMMON, "reload", *_ROLES, "create tablespace"),
    "azure": (*_COMMON, "reload"),
}
"""Privileges on `*.*` by service."""


def without_lock(privileges: tuple[str, ...]) -> tuple[str, ...]:
    """Return privileges without the one by which a server grants its global read lock."""
    return tuple(privilege for privilege in privileges if privilege != "reload")


def known_to(server: Server, privileges: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the privileges that a server has."""
    if server.flavor == "mysql" and not server.version.startswith("5."):
        return privileges
    later = {"application_password_admin", "connection_admin", "role_admin", "xa_recover_admin"}
    roles = {*_ROLES}
    return tuple(privilege for privilege in privileges if privilege not in later | roles)
