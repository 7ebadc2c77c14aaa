"""A malicious server gets no password, no file and no memory, and the user gets a sentence."""

import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from binloom.cli import app
from binloom.commands.running import run_app
from ingest.errors import AccessRefusedError, SourceError
from ingest.follow.checkpoint import Checkpoint
from ingest.follow.receiver import Receiver
from ingest.follow.spool import Spool
from ingest.sources.servers import connection, replication
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.connection import TlsMode, Trust
from ingest.sources.servers.information_schema import binlog_position, take_snapshot
from ingest.sources.servers.replication import Replica, read_head
from ingest.sources.servers.server import Server, binary_logs, server_identity
from ingest.sources.servers.server_check import check_server
from ingest.versions import NEWEST
from tests.servers.certificates import Authority, Certificate
from tests.servers.rogue import OK, Line, Rogue, error, event, public_key, rows

PASSWORD = "correct-horse-battery-staple"
REPLICA = Replica(4711, "1b4e28ba-2fa1-11d2-883f-0016d3cca427")
CACHING, SHA256 = "caching_sha2_password", "sha256_password"
NATIVE, CLEAR = "mysql_native_password", "mysql_clear_password"
NEEDS_PASSWORD = b"\x01\x04"

WARNING = "gets the password through TLS, and nothing has verified its certificate. "

Way = Callable[[ServerAddress], object]


def ask(address: ServerAddress) -> object:
    """Connect for statements."""
    with Server(address) as server:
        return server.rows("select 1 as one")


def stream(address: ServerAddress) -> object:
    """Connect for the replication stream."""
    return read_head(address, "mysql", REPLICA, "binlog.000001")


both_ways = pytest.mark.parametrize("way", [ask, stream])


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The signer of these servers' certificates; it is not trusted by default."""
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> Certificate:
    """The certificate of a rogue server."""
    return authority.sign("rogue", ("127.0.0.1",))


@pytest.fixture(params=["plain", "tls"])
def shown(request: pytest.FixtureRequest, certificate: Certificate) -> Iterator[Certificate | None]:
    """A certificate that no client verifies, or none."""
    return certificate if request.param == "tls" else None


def address(rogue: Rogue, **more: object) -> ServerAddress:
    return ServerAddress(rogue.host, rogue.port, "follower", PASSWORD, **more)  # type: ignore[arg-type]


def key_of(line: Line, wish: bytes, key: bytes) -> None:
    """Give the key to a client that asks for it, and accept any login."""
    if line.read() == wish:
        line.send(b"\x01" + key)
        line.read()
    line.send(OK)


def wants_clear_text(line: Line) -> None:
    line.greet()
    line.switch(CLEAR)
    line.send(OK)


def wants_clear_text_from_the_start(line: Line) -> None:
    line.greet(CLEAR)
    line.switch(CLEAR)
    line.send(OK)


def wants_a_dialog(line: Line) -> None:
    line.greet()
    line.switch("dialog", b"\x05Password: ")
    line.send(OK)


def greets_with_sha256(line: Line) -> None:
    line.greet(SHA256)
    line.send(OK)


def switches_to_sha256(line: Line) -> None:
    line.greet()
    if line.switch(SHA256) == b"\x01":
        line.send(b"\x01" + public_key())
        line.read()
    line.send(OK)


def gives_a_key_unasked(line: Line) -> None:
    line.greet(SHA256)
    line.send(b"\x01" + public_key())
    line.read()
    line.send(OK)


def does_not_know_the_digest(line: Line) -> None:
    line.greet(CACHING)
    line.send(NEEDS_PASSWORD)
    key_of(line, b"\x02", public_key())


def switches_and_does_not_know_the_digest(line: Line) -> None:
    line.greet()
    line.switch(CACHING)
    line.send(NEEDS_PASSWORD)
    key_of(line, b"\x02", public_key())


def wants_the_old_digest(line: Line) -> None:
    line.greet()
    line.switch("mysql_old_password", b"12345678\0")
    line.send(OK)


def wants_what_nobody_knows(line: Line) -> None:
    line.greet()
    line.switch("client_ed25519", bytes(32))
    line.send(OK)


ASKED = {
    wants_clear_text: ("clear text", "--enable-cleartext-plugin"),
    wants_clear_text_from_the_start: ("clear text", "--enable-cleartext-plugin"),
    wants_a_dialog: ("clear text", "--enable-cleartext-plugin"),
    wants_the_old_digest: ("a digest", "No option"),
    wants_what_nobody_knows: ("'client_ed25519'", "caching_sha2_password"),
}
ASKED_WITHOUT_TLS = {
    switches_to_sha256: ("the password", "--get-server-public-key"),
    does_not_know_the_digest: ("the password", "--get-server-public-key"),
    switches_and_does_not_know_the_digest: ("the password", "--get-server-public-key"),
}


def assert_refused(attack: Callable[[Line], None], way: Way, shown: Certificate | None, *words: str) -> None:
    """Assert that the rogue gets no password, and that the user gets a sentence with these words."""
    warned: list[str] = []
    with Rogue(attack, shown) as rogue, pytest.raises(AccessRefusedError) as refused:
        way(address(rogue, warn=warned.append))
    assert not rogue.knows(PASSWORD) and not warned
    for part in (f"The server at 127.0.0.1:{rogue.port} ", *words):
        assert part in str(refused.value)
    assert PASSWORD not in str(refused.value)


@both_ways
@pytest.mark.parametrize("attack", ASKED)
def test_it_does_not_get_the_password(attack: Callable[[Line], None], way: Way, shown: Certificate | None) -> None:
    assert_refused(attack, way, shown, *ASKED[attack])


@both_ways
@pytest.mark.parametrize("attack", ASKED_WITHOUT_TLS)
def test_it_does_not_get_the_password_under_a_key_of_its_own(attack: Callable[[Line], None], way: Way) -> None:
    assert_refused(attack, way, None, *ASKED_WITHOUT_TLS[attack])


@both_ways
@pytest.mark.parametrize("attack", ASKED_WITHOUT_TLS)
@pytest.mark.parametrize("mode", [None, TlsMode.REQUIRED])
def test_it_gets_the_password_through_tls_and_a_person_is_told(
    attack: Callable[[Line], None], mode: TlsMode | None, way: Way, authority: Authority, certificate: Certificate
) -> None:
    warned: list[str] = []
    with Rogue(attack, certificate) as rogue, pytest.raises(SourceError):
        way(address(rogue, tls_mode=mode, warn=warned.append))
    assert rogue.knows(PASSWORD)
    assert len(warned) == 1 and warned[0].startswith(f"The server at 127.0.0.1:{rogue.port} {WARNING}")
    other = Authority(authority.file.parent, "other")
    with Rogue(attack, certificate) as rogue, pytest.raises(SourceError, match="certificate verify failed"):
        way(address(rogue, tls_mode=mode, tls_ca=str(other.file), warn=warned.append))
    assert not rogue.knows(PASSWORD) and len(warned) == 1


@both_ways
@pytest.mark.parametrize("attack", [greets_with_sha256, gives_a_key_unasked])
def test_it_does_not_get_the_password_from_the_first_word(
    attack: Callable[[Line], None], way: Way, shown: Certificate | None
) -> None:
    with Rogue(attack, shown) as rogue, pytest.raises(SourceError):
        way(address(rogue))
    assert rogue.received and not rogue.knows(PASSWORD)


@pytest.mark.parametrize("attack", [wants_clear_text, wants_a_dialog])
def test_clear_text_is_sent_when_it_is_allowed(attack: Callable[[Line], None]) -> None:
    with Rogue(attack) as rogue, pytest.raises(SourceError):
        ask(address(rogue, trust=Trust(cleartext=True)))
    assert rogue.knows(PASSWORD)


@pytest.mark.parametrize("attack", [switches_to_sha256, does_not_know_the_digest])
def test_a_key_of_the_server_is_taken_when_it_is_allowed(attack: Callable[[Line], None]) -> None:
    warned: list[str] = []
    with Rogue(attack) as rogue, pytest.raises(SourceError):
        ask(address(rogue, trust=Trust(server_key=True), warn=warned.append))
    assert rogue.knows(PASSWORD) and not warned


def test_a_known_key_keeps_the_password_from_who_has_another() -> None:
    with Rogue(does_not_know_the_digest) as rogue, pytest.raises(SourceError):
        ask(address(rogue, trust=Trust(public_key=public_key("another"))))
    assert len(rogue.received[1]) == 256 and not rogue.knows(PASSWORD)


@pytest.mark.parametrize("attack", [wants_clear_text, switches_to_sha256, does_not_know_the_digest])
def test_a_server_that_is_verified_gets_it(
    attack: Callable[[Line], None], authority: Authority, certificate: Certificate
) -> None:
    warned: list[str] = []
    with Rogue(attack, certificate) as rogue, pytest.raises(SourceError):
        ask(address(rogue, tls_ca=str(authority.file), warn=warned.append))
    assert rogue.knows(PASSWORD) and not warned


@both_ways
@pytest.mark.parametrize("mode", [TlsMode.REQUIRED, TlsMode.VERIFY_IDENTITY])
def test_a_server_without_tls_gets_nothing_where_it_is_required(mode: TlsMode, way: Way) -> None:
    with Rogue(Line.let_in) as rogue, pytest.raises(SourceError, match="SSL is required"):
        way(address(rogue, tls_mode=mode))
    assert not rogue.received


def test_a_certificate_of_another_authority_or_host(
    authority: Authority, certificate: Certificate, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "other")
    elsewhere = authority.sign("elsewhere", ("db.example.org",))
    with Rogue(wants_clear_text, certificate) as rogue, pytest.raises(SourceError, match="certificate verify failed"):
        ask(address(rogue, tls_ca=str(other.file), tls_mode=TlsMode.VERIFY_CA))
    assert not rogue.knows(PASSWORD)
    with Rogue(wants_clear_text, elsewhere) as rogue:
        for mode in (None, TlsMode.PREFERRED, TlsMode.REQUIRED, TlsMode.VERIFY_IDENTITY):
            with pytest.raises(SourceError, match="certificate verify failed"):
                ask(address(rogue, tls_ca=str(authority.file), tls_mode=mode))
        assert not rogue.knows(PASSWORD)
        with pytest.raises(SourceError):
            ask(address(rogue, tls_ca=str(authority.file), tls_mode=TlsMode.VERIFY_CA))
        assert rogue.knows(PASSWORD)


def test_tls_is_used_where_there_is_any(certificate: Certificate) -> None:
    seen = []

    def look(line: Line) -> None:
        line.let_in()
        seen.append(line.is_encrypted)
        line.statements(lambda _: None)

    with Rogue(look, certificate) as rogue:
        ask(address(rogue))
        ask(address(rogue, tls_mode=TlsMode.DISABLED))
    assert seen == [True, False]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_tls_that_is_too_old_is_none(certificate: Certificate) -> None:
    with Rogue(answering({}), certificate) as rogue:
        assert rogue.context is not None
        rogue.context.maximum_version = ssl.TLSVersion.TLSv1_1
        ask(address(rogue))
        with pytest.raises(SourceError, match=r"(?i)version|protocol"):
            ask(address(rogue, tls_mode=TlsMode.REQUIRED))


@pytest.mark.parametrize(
    ("attack", "option"),
    [(wants_clear_text, "--enable-cleartext-plugin"), (does_not_know_the_digest, "--get-server-public-key")],
)
def test_the_command_ends_with_a_sentence_that_names_the_option(
    attack: Callable[[Line], None],
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BINLOOM_HOME", str(tmp_path))
    monkeypatch.setenv("BINLOOM_PASSWORD", PASSWORD)
    with Rogue(attack) as rogue:
        command = ["follow", "--source", "shop", "--server", rogue.host, "--port", str(rogue.port), "--user", "me"]
        assert run_app(app, command) == 3
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and "asks for the password" in said and option in said
        assert not rogue.knows(PASSWORD)
        assert run_app(app, [*command, option]) == 3
    assert rogue.knows(PASSWORD)


@pytest.mark.parametrize("command", ["follow", "snapshot"])
def test_the_command_warns_whoever_answers_gets_the_password(
    command: str,
    certificate: Certificate,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BINLOOM_HOME", str(tmp_path))
    monkeypatch.setenv("BINLOOM_PASSWORD", PASSWORD)
    with Rogue(does_not_know_the_digest, certificate) as rogue:
        where = ["--source", "shop", "--server", rogue.host, "--port", str(rogue.port), "--user", "me"]
        assert run_app(app, [command, *where]) == 3
        said = capsys.readouterr().err.splitlines()
    assert rogue.knows(PASSWORD)
    # The rogue closes the connection after it got the password: the warning is still printed.
    assert len(said) == 2 and f"warning: The server at {rogue.host}:{rogue.port} {WARNING}" in said[0]
    assert "--tls-ca" in said[0] and "warning" not in said[1]


# --- files and memory ---


@both_ways
def test_it_does_not_get_a_file(way: Way, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("what nobody should read")
    wish = [b"\xfb" + str(secret).encode()]
    told = pytest.raises(SourceError, match="asks for a file of this machine")
    with Rogue(answering({"select 1": wish, "BINLOG_CHECKSUM": wish})) as rogue, told:
        way(address(rogue))
    assert not any(secret.read_bytes() in payload for payload in rogue.received)


def endless_greeting(line: Line) -> None:
    while True:
        line.raw(b"\xff\xff\xff\x00" + bytes(1 << 20))


def endless_authentication(line: Line) -> None:
    line.greet(CACHING)
    while True:
        line.send(b"\x01\x03")


def endless_rows(line: Line) -> None:
    line.let_in()
    for answer in ([OK], rows(["one"])[:-1]):
        line.read()
        line.send(*answer)
    while True:
        line.send(b"\x011")


def endless_packet(line: Line) -> None:
    line.let_in()
    line.read()
    while True:
        line.raw(b"\xff\xff\xff\x01" + bytes(1 << 20))


@pytest.mark.parametrize("attack", [endless_greeting, endless_authentication, endless_rows, endless_packet])
def test_an_answer_has_an_end(attack: Callable[[Line], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ANSWER_BYTES", 1 << 20)
    with Rogue(attack) as rogue, pytest.raises(SourceError, match="sends an answer that is too long"):
        ask(address(rogue))


@pytest.mark.parametrize("is_greeted", [True, False])
def test_a_server_that_says_nothing_is_not_waited_for(is_greeted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LOGIN_SECONDS", 1)
    gone = threading.Event()

    def silent(line: Line) -> None:
        if is_greeted:
            line.greet()
        gone.wait()

    with Rogue(silent) as rogue:
        with pytest.raises(SourceError, match="timed out"):
            ask(address(rogue))
        gone.set()


# --- invalid answers ---


def answering(answers: Mapping[str, Sequence[bytes]], log: Sequence[bytes] = ()) -> Callable[[Line], None]:
    """Return a conversation like a real server's, except for statements that contain these words."""

    def lead(line: Line) -> None:
        line.let_in()
        line.statements(lambda sql: next((said for words, said in answers.items() if words in sql), None), log)

    return lead


def look_at_all(address: ServerAddress) -> None:
    """Run all statements that precede following."""
    with Server(address) as server:
        assert server_identity(server).version_numbers
        binary_logs(server)
        binlog_position(server)
        check_server(server)
        take_snapshot(server)


def test_what_a_server_says_is_understood() -> None:
    with Rogue(answering({})) as rogue:
        look_at_all(address(rogue))


@pytest.mark.parametrize(
    "greeting",
    [b"", b"\x0a8.0", bytes(80), b"\xff", b"\x0agarbage\0" + bytes(80), b"\x0a" + b"9" * 5000 + b".1\0" + bytes(80)],
)
@both_ways
def test_a_greeting_that_is_none(greeting: bytes, way: Way) -> None:
    with Rogue(lambda line: line.send(greeting)) as rogue, pytest.raises(SourceError):
        way(address(rogue))


def test_a_message_without_an_end_is_cut() -> None:
    told = pytest.raises(SourceError, match="refuses the connection: xxx")
    with Rogue(lambda line: line.send(error(1040, "x" * 100_000))) as rogue, told as failure:
        ask(address(rogue))
    assert len(str(failure.value)) < 1000


NAMES = [
    b"../../x.000001",
    b"/x.000001",
    b"a/b.000001",
    b"checkpoint.json",
    b"..",
    b"",
    b".x.000001",
    b"a\0.000001",
    b"\x1b[31m.000001",
    b"x" * 300 + b".000001",
]
VARIABLES, LOGS, STATUS = "show global variables", "show binary logs", "show master status"


@pytest.mark.parametrize(
    ("statement", "answer"),
    [
        (VARIABLES, rows(["Variable_name", "Value"], (b"version", b"\xff\xfe"))),
        (VARIABLES, rows(["Variable_name", "Value"], (b"version", None))),
        (VARIABLES, rows(["Variable_name", "Value"], (b"version",))),
        (VARIABLES, rows(["Variable_name", "Value"], (b"version", b"8"), kind=3)),
        (VARIABLES, rows(["Variable_name", "Value"], (b"server_id", b"9" * 5000))),
        (VARIABLES, rows(["a", "b"], (b"version", b"8"))),
        (LOGS, rows(["Log_name", "File_size"], (b"binlog.000001", b"-1"))),
        (LOGS, rows(["Log_name", "File_size"], (None, None))),
        (LOGS, [b""]),
        (LOGS, [b"\x01", b"junk", b"junk"]),
        (LOGS, [b"\xfe" + b"\xff" * 8, b"x"]),
        (LOGS, [OK]),
        *((LOGS, rows(["Log_name", "File_size"], (name, b"1"))) for name in NAMES),
        *((STATUS, rows(["File", "Position"], (name, b"1"))) for name in NAMES),
        ("information_schema.columns", rows(["a"], (b"b",))),
        ("information_schema.statistics", rows(["a"], (b"b",))),
        ("referential_constraints", rows(["a"], (b"b",))),
        (STATUS, [error(1227, "no")]),
    ],
)
def test_an_answer_that_is_none(statement: str, answer: Sequence[bytes]) -> None:
    with Rogue(answering({statement: answer, "current_user": [OK]})) as rogue, pytest.raises(SourceError):
        look_at_all(address(rogue))


@pytest.mark.parametrize("text", [b"garbage", b"", b"9" * 5000, "².٣".encode(), b"-"])
def test_a_version_that_is_none(text: bytes) -> None:
    variables = rows(["Variable_name", "Value"], (b"version", text))
    with Rogue(answering({VARIABLES: variables})) as rogue, Server(address(rogue)) as server:
        assert server_identity(server).version_numbers == NEWEST


# --- invalid streams ---


def rotate(name: bytes) -> bytes:
    return event(4, struct.pack("<Q", 4) + name, is_artificial=True)


def format_description(**said: Any) -> bytes:
    body = struct.pack("<H50sIB", 4, b"8.0.36", 0, 19) + bytes(40) + b"\x01"
    return event(15, body, end=4 + 19 + len(body) + 4, **said)


FIRST = [rotate(b"binlog.000001"), format_description()]


@pytest.mark.parametrize(
    "log",
    [
        *([rotate(name), format_description()] for name in NAMES),
        [event(4, b"", is_artificial=True)],
        [rotate(b"binlog.000001"), event(15, b"12")],
        [b""],
        [b"\x07" * 100],
        [b"\xff"],
        [b"\xfe" + bytes(4)],
        [error(1045, "no")],
        [error(1236, "no")],
        [event(2, b"x", size=1)],
        [*FIRST, event(2, bytes(100), size=0xFFFFFFFF)],
        [*FIRST, event(2, b"x")[:-1] + b"x"],
    ],
)
def test_a_stream_that_is_none(log: Sequence[bytes], tmp_path: Path) -> None:
    home = tmp_path / "home"
    # The receiver waits for the rest of an empty packet until the server leaves.
    with Rogue(answering({}, log), patience=1) as rogue:
        standing = Checkpoint(0, "binlog.000001", 4, None, 1, "mysql", "8", rogue.host, rogue.port, datetime.now(UTC))
        receiver = Receiver(Spool("shop", home), address(rogue), REPLICA, standing, lambda: None)
        receiver.start()
        while receiver.is_alive:
            time.sleep(0.01)
    assert isinstance(receiver.failure, SourceError), receiver.failure
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in written} <= {"binlog.000001", "checkpoint.json"}
    assert all(path.parent == home / "spool" / "shop" for path in written)


def test_a_replica_whose_place_is_taken_says_so() -> None:
    said = "A replica with the same server_uuid/server_id as this replica has connected to the source"
    with Rogue(answering({}, [error(1236, said)])) as rogue, pytest.raises(SourceError, match=r"delete replica\.json"):
        stream(address(rogue))


def test_a_server_that_only_sends_heartbeats_has_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replication, "HEAD_SECONDS", 1)

    def beats(line: Line) -> None:
        line.let_in()
        line.statements(lambda _: None, until=b"\x12")
        while True:
            line.send(event(27, b"binlog.000001", is_artificial=True))

    with Rogue(beats) as rogue, pytest.raises(SourceError, match="did not send the beginning"):
        stream(address(rogue))
