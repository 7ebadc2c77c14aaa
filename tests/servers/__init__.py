"""Real servers for tests: MySQL and MariaDB, got from Debian and started from a folder.

>>> from tests.servers import mysql
>>> with mysql.start(tmp_path, ["--binlog-row-metadata=FULL"]) as server:
...     with server.connect() as connection, connection.cursor() as cursor:
...         cursor.execute("create database shop")
...     server.flush()
...     print(server.binlogs())
"""

from tests.servers.distribution import Distribution
from tests.servers.flavors import MariaDB, MySQL
from tests.servers.server import Server

mysql = MySQL(name="mysql", suite="sid", packages=["mysql-server-core", "mysql-client-core"])
mariadb = MariaDB(name="mariadb", suite="bookworm", packages=["mariadb-server-core", "mariadb-client"])

DISTRIBUTIONS: dict[str, Distribution] = {each.name: each for each in (mysql, mariadb)}

# Other versions, for tests that are left out without them.
OTHER_VERSIONS: dict[str, Distribution] = {
    each.name: each
    for each in (
        MariaDB("mariadb-10.5", "bullseye", ["mariadb-server-10.5"]),
        MariaDB("mariadb-11.8", "sid", ["mariadb-server-core", "mariadb-client"]),
    )
}

__all__ = ["DISTRIBUTIONS", "OTHER_VERSIONS", "Distribution", "Server", "mariadb", "mysql"]
