"""Access to a server for following: missing privileges are named, TLS is verified, passwords stay secret."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.servers import Distribution, Server
from tests.servers.accounts import FOLLOWING, create_account, write_defaults_file
from tests.servers.certificates import Authority
from tests.servers.load import Load
from tests.servers.marked import marked
from tests.support.follow.follower import Follower
from tests.support.follow.secrecy import assert_not_told

pytestmark = pytest.mark.slow

HERE = ("127.0.0.1", "localhost")
# Each flavor's name for the privilege of REPLICATION CLIENT.
CLIENT_PRIVILEGE = {"mysql": "REPLICATION CLIENT", "mariadb": "(BINLOG MONITOR|REPLICATION CLIENT)"}


@pytest.fixture(params=marked("mysql", "mariadb"))
def shared_server(request: pytest.FixtureRequest) -> Server:
    """A server that other tests use too: no test here reads its log to the end."""
    server: Server = request.getfixturevalue(f"{request.param}_server")
    return server


def refused(follower: Follower, *words: str) -> str:
    """Run the follower; it must end with a sentence that contains these words."""
    code, said = follower.run("--once")
    assert code == 3, said
    assert "Traceback" not in said
    for word in words:
        assert re.search(word, said, re.IGNORECASE), f"{word!r} is not in: {said}"
    return said


def needed(server: Server, privilege: str) -> str:
    return CLIENT_PRIVILEGE[server.flavor] if privilege == "replication client" else privilege


@pytest.mark.parametrize("missing", FOLLOWING)
def test_a_privilege_that_is_missing_is_named(shared_server: Server, missing: str, tmp_path: Path) -> None:
    granted = [privilege for privilege in FOLLOWING if privilege != missing]
    account = create_account(shared_server, tmp_path, "lacking", granted)
    with Follower(tmp_path / "home", shared_server, account.defaults_file, "--from-now") as follower:
        said = refused(follower, "lacking", f"lacks the privilege {needed(shared_server, missing).upper()}")
        sentence = next(line for line in said.splitlines() if "lacks" in line)
        before_hint = sentence.lower().split("grant ")[0]
        for other in granted:
            assert not re.search(needed(shared_server, other).lower(), before_hint), f"{other} is not missing: {said}"
    assert_not_told(account.password, follower)


def test_a_wrong_password_is_refused_and_not_told(shared_server: Server, tmp_path: Path) -> None:
    create_account(shared_server, tmp_path, "guesser")
    guess = "an-obvious-guess-#1"
    defaults_file = write_defaults_file(tmp_path / "guess.cnf", "guesser", guess)
    with Follower(tmp_path / "home", shared_server, defaults_file, "--from-now") as follower:
        refused(follower, "guesser", "refuse|denied")
    assert_not_told(guess, follower)


def test_a_server_that_is_not_there_is_told(tmp_path: Path, shared_server: Server) -> None:
    account = create_account(shared_server, tmp_path, "early")
    with Follower(tmp_path / "home", _Closed(), account.defaults_file, "--from-now") as follower:
        refused(follower, r"127\.0\.0\.1:1\b", "cannot be reached")


class _Closed:
    """An address where nothing listens."""

    host = "127.0.0.1"
    port = 1


class Trust:
    """A server that speaks TLS, and authorities that did and did not sign its certificate."""

    def __init__(self, distribution: Distribution, folder: Path, hosts: tuple[str, ...]) -> None:
        self.folder = folder
        self.authority = Authority(folder / "tls")
        self.other = Authority(folder / "tls", "other")
        certificate = self.authority.sign("server", hosts)
        self.server = distribution.start(
            folder / "server", ["--binlog-row-metadata=FULL", *self.authority.server_options(certificate)]
        )


@pytest.fixture
def make_trust(distribution: Distribution, tmp_path: Path) -> Iterator[Callable[..., Trust]]:
    """Start a server whose certificate is valid for the given hosts."""
    made: list[Trust] = []

    def make(*hosts: str) -> Trust:
        made.append(Trust(distribution, tmp_path, hosts))
        return made[-1]

    yield make
    for trust in made:
        trust.server.stop()


def test_tls_with_the_right_authority_and_with_a_wrong_one(make_trust: Callable[..., Trust], tmp_path: Path) -> None:
    trust = make_trust(*HERE)
    server = trust.server
    account = create_account(server, tmp_path, require="ssl")
    with Load(server) as load:
        load.wait_for(30)

    right = ["--from-oldest", "--tls-ca", str(trust.authority.file)]
    with Follower(tmp_path / "home", server, account.defaults_file, *right) as follower:
        follower.once()
        follower.assert_has_all_of(server)

    wrong = ["--from-oldest", "--tls-ca", str(trust.other.file)]
    with Follower(tmp_path / "wrong", server, account.defaults_file, *wrong) as follower:
        refused(follower, "certificate")
    assert not list((tmp_path / "wrong").glob("spool/*/binlog.*"))
    assert_not_told(account.password, follower)

    owner = trust.authority.sign("follower")
    strict = create_account(server, tmp_path, "certified", require="x509")
    with Follower(tmp_path / "bare", server, strict.defaults_file, *right) as follower:
        refused(follower, "certified")
    both = [*right, "--tls-cert", str(owner.certificate), "--tls-key", str(owner.key)]
    with Follower(tmp_path / "certified", server, strict.defaults_file, *both) as follower:
        follower.once()
        follower.assert_has_all_of(server)


def test_a_certificate_of_another_host_is_refused(make_trust: Callable[..., Trust], tmp_path: Path) -> None:
    trust = make_trust("db.example.org")
    account = create_account(trust.server, tmp_path)
    options = ["--from-oldest", "--tls-ca", str(trust.authority.file)]
    with Follower(tmp_path / "home", trust.server, account.defaults_file, *options) as follower:
        refused(follower, "certificate", "127.0.0.1")
    assert not list((tmp_path / "home").glob("spool/*/binlog.*"))
