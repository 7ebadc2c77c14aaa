"""Real servers that request the password itself, because they do not have it cached."""

from dataclasses import replace
from pathlib import Path

import pytest

from ingest.errors import AccessRefusedError, SourceError, UsageError
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.connection import Tls, TlsMode, Trust
from ingest.sources.servers.replication import Replica, read_head
from ingest.sources.servers.server import Server
from tests.servers import Server as LiveServer
from tests.servers.marked import marked

REPLICA = Replica(4712, "1b4e28ba-2fa1-11d2-883f-0016d3cca428")
PASSWORD = "pässword-€"


@pytest.fixture
def address(mysql_server: LiveServer) -> ServerAddress:
    """A user that MySQL has not cached: it requests the password once."""
    mysql_server.execute(
        "drop user if exists 'cold'@'%'",
        f"create user 'cold'@'%' identified with caching_sha2_password by '{PASSWORD}'",
        "grant replication slave on *.* to 'cold'@'%'",
        "flush privileges",
    )
    return ServerAddress("127.0.0.1", mysql_server.port, "cold", PASSWORD)


def is_encrypted(server: Server) -> bool:
    return bool(server.rows("show session status like 'Ssl_cipher'")[0]["Value"])


def with_options(
    address: ServerAddress, *, mode: TlsMode | None = None, ca: Path | None = None, **trust: object
) -> ServerAddress:
    return ServerAddress(
        address.host,
        address.port,
        address.user,
        address.password,
        tls_ca=None if ca is None else str(ca),
        tls_mode=mode,
        trust=Trust(**trust),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("mode", [None, TlsMode.REQUIRED])
def test_who_is_not_verified_gets_the_password_through_tls_and_a_person_is_told(
    address: ServerAddress, mode: TlsMode | None, mysql_server: LiveServer
) -> None:
    warned: list[str] = []
    plain = replace(with_options(address, mode=mode), warn=warned.append)
    with Server(plain) as server:
        assert is_encrypted(server)
    (sentence,) = warned
    assert sentence.startswith(f"The server at {plain} gets the password") and "--tls-ca" in sentence
    # From now on the server has the password cached, and requests a digest.
    assert read_head(plain, "mysql", REPLICA, mysql_server.binlogs()[-1].name).format
    assert len(warned) == 1


def test_who_is_not_verified_gets_a_digest_only_without_tls(address: ServerAddress, mysql_server: LiveServer) -> None:
    plain = with_options(address, mode=TlsMode.DISABLED)
    with pytest.raises(AccessRefusedError, match="--get-server-public-key"):
        Server(plain)
    with pytest.raises(AccessRefusedError, match="--get-server-public-key"):
        read_head(plain, "mysql", REPLICA, mysql_server.binlogs()[-1].name)
    with Server(with_options(address, mode=TlsMode.DISABLED, server_key=True)) as server:
        assert not is_encrypted(server)
    # From now on the server has the password cached, and requests a digest.
    with Server(plain):
        pass
    assert read_head(plain, "mysql", REPLICA, mysql_server.binlogs()[-1].name).format


def test_who_is_verified_gets_the_password(address: ServerAddress, mysql_server: LiveServer) -> None:
    data = mysql_server.directory / "data"
    warned: list[str] = []
    verifying = replace(with_options(address, mode=TlsMode.VERIFY_CA, ca=data / "ca.pem"), warn=warned.append)
    with Server(verifying) as server:
        assert is_encrypted(server) and not warned
    # MySQL's own certificate is valid for no host.
    with pytest.raises(SourceError, match="certificate verify failed"):
        Server(with_options(address, ca=data / "ca.pem"))


def test_whose_key_is_known_gets_the_password(address: ServerAddress, mysql_server: LiveServer) -> None:
    key = (mysql_server.directory / "data" / "public_key.pem").read_bytes()
    with Server(with_options(address, mode=TlsMode.DISABLED, public_key=key)) as server:
        assert not is_encrypted(server)


def test_who_is_on_this_machine_gets_the_password(address: ServerAddress, mysql_server: LiveServer) -> None:
    local = ServerAddress(user=address.user, password=PASSWORD, unix_socket=mysql_server.socket)
    with Server(local) as server:
        assert not is_encrypted(server)


@pytest.mark.parametrize("name", marked("mariadb", "mariadb118", "mysql56"))
def test_servers_that_know_a_digest(name: str, request: pytest.FixtureRequest) -> None:
    live: LiveServer = request.getfixturevalue(f"{name}_server")
    if live.execute("select 1 from mysql.user where user = 'digest'"):
        live.execute("drop user 'digest'@'localhost'")
    live.execute(f"create user 'digest'@'localhost' identified by '{PASSWORD}'")
    live.execute("grant replication slave on *.* to 'digest'@'localhost'")
    address = ServerAddress("127.0.0.1", live.port, "digest", PASSWORD)
    with Server(address) as server:
        assert is_encrypted(server) == (name == "mariadb118")
    assert read_head(address, live.flavor, REPLICA, live.binlogs()[-1].name).format


# --- messages ---


@pytest.mark.parametrize(
    ("file", "mode", "ca"),
    [
        ("", TlsMode.PREFERRED, None),
        ("ssl-mode=REQUIRED", TlsMode.REQUIRED, None),
        ("ssl_mode=disabled", TlsMode.DISABLED, None),
        ("ssl-ca=/ca.pem", TlsMode.VERIFY_IDENTITY, "/ca.pem"),
        ("ssl-ca=/ca.pem\nssl-mode=REQUIRED", TlsMode.VERIFY_IDENTITY, "/ca.pem"),
        ("ssl-ca=/ca.pem\nssl-mode=VERIFY_CA", TlsMode.VERIFY_CA, "/ca.pem"),
        ("ssl-ca=/ca.pem\nssl-mode=DISABLED", TlsMode.DISABLED, "/ca.pem"),
        ("ssl-capath=/cas", TlsMode.VERIFY_IDENTITY, "/cas"),
        ("ssl-cert=/c.pem", TlsMode.REQUIRED, None),
        ("ssl", TlsMode.REQUIRED, None),
        ("ssl=0", TlsMode.DISABLED, None),
        ("skip-ssl", TlsMode.DISABLED, None),
        ("ssl-verify-server-cert", TlsMode.VERIFY_IDENTITY, None),
    ],
)
def test_tls_of_an_options_file(file: str, mode: TlsMode, ca: str | None, tmp_path: Path) -> None:
    path = tmp_path / "my.cnf"
    path.write_text(f"[client]\n{file}\n")
    tls = ServerAddress.of(defaults_file=path, environment={}).tls
    assert (tls.mode, tls.ca) == (mode, ca)


def test_trust_of_an_options_file(tmp_path: Path) -> None:
    path, key = tmp_path / "my.cnf", tmp_path / "key.pem"
    key.write_text("the key")
    path.write_text(f"[client]\nget-server-public-key\nenable_cleartext_plugin=0\nserver-public-key-path={key}\n")
    assert ServerAddress.of(defaults_file=path, environment={}).trust == Trust(False, True, b"the key")
    found = ServerAddress.of(environment={}, enable_cleartext_plugin=True, tls_mode="verify_identity")
    assert found.trust == Trust(cleartext=True) and found.tls.mode == TlsMode.VERIFY_IDENTITY


def test_what_makes_no_sense_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no TLS mode 'SOME'.* DISABLED, PREFERRED, REQUIRED, VERIFY_CA"):
        ServerAddress.of(tls_mode="SOME")
    with pytest.raises(UsageError, match="no port 70000"):
        ServerAddress.of(port=70000)
    with pytest.raises(UsageError, match=r"The server's key .* cannot be read"):
        ServerAddress.of(server_public_key_path=str(tmp_path / "none.pem"))
    with pytest.raises(UsageError, match="VERIFY_CA needs a certificate authority"):
        Tls(TlsMode.VERIFY_CA).context()
    with pytest.raises(UsageError, match=r"There is no file .*none\.pem"):
        Tls(TlsMode.VERIFY_CA, str(tmp_path / "none.pem")).context()
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    with pytest.raises(UsageError, match="cannot be used for TLS"):
        Tls(TlsMode.VERIFY_CA, str(junk)).context()
