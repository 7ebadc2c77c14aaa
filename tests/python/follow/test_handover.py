"""Decisions where following continues, from what a server says; no server runs."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Final

import pytest

from ingest.errors import GapError
from ingest.follow.handover import Decision, Received, Standing, Start, resume
from ingest.sources.servers.replication import FileHead
from ingest.sources.servers.server import ServerIdentity
from ingest.sources.servers.view import ServerView

UUID: Final = "5ca1ab1e-0000-4000-8000-0000b1d1003e"
SERVER: Final = ServerIdentity("mysql", "8.0.36", 1, UUID, "db1", 3306)
NOON: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
UNTIL_100: Final = Received(None, f"{UUID}:1-100")


def standing(received: Received, was_at_end: bool = True) -> Standing:
    """Return the standing of a source that was received up to file 3."""
    return Standing(0, "binlog.000003", 1500, "ours", UUID, 1, was_at_end, lambda: received)


def view(oldest: int, previous: str | None, may_be_anonymous: bool = False, written_at: datetime | None = None) -> Any:
    """Return a server whose oldest file has this number and lists these GTIDs."""
    logs = [(f"binlog.{number:06}", 5000) for number in (oldest, oldest + 1)]
    head = FileHead(SimpleNamespace(fingerprint="another"), previous, written_at)  # type: ignore[arg-type]
    nothing: Any = None
    return ServerView(SERVER, logs, logs[-1], None, nothing, nothing, {logs[0][0]: head}, may_be_anonymous)


def decide(server: ServerView, received: Received, was_at_end: bool = True) -> Decision:
    """Return the decision of a follower that was received up to file 3."""
    return resume(server, standing(received, was_at_end), {0: (UUID, 1)}, Start())


def assert_is_reset(server: ServerView, received: Received) -> None:
    """The next epoch begins, and only after its gap was accepted."""
    with pytest.raises(GapError, match=r"started over.*Of the new files, those before") as refusal:
        decide(server, received)
    assert refusal.value.gap.reason == "reset"
    decision = resume(server, standing(received), {0: (UUID, 1)}, Start(), accept_gap=True)
    assert (decision.epoch, decision.opens, decision.binlog_file) == (1, "reset", server.oldest)
    assert decision.gap is not None and (decision.gap.reason, decision.status) == ("reset", "accepted")


def with_next(previous: str | None, may_be_anonymous: bool = False) -> ServerView:
    """Return a server that has file 3, of which everything was received, and the next one, which lists these GTIDs."""
    seen = view(3, None, may_be_anonymous)
    heads = [
        FileHead(SimpleNamespace(fingerprint=of), listed, None)  # type: ignore[arg-type]
        for of, listed in (("ours", None), ("next", previous))
    ]
    return replace(seen, _heads=dict(zip((name for name, _ in seen.logs), heads, strict=True)))


def test_behind_an_event_that_is_cut_off_the_next_file_goes_on_if_nothing_is_missing() -> None:
    def behind(server: ServerView, *, accept_gap: bool = False, is_cut: bool = True) -> Decision:
        return resume(server, standing(UNTIL_100), {0: (UUID, 1)}, Start(), accept_gap, is_cut=is_cut)

    whole = with_next(f"{UUID}:1-100")
    assert behind(whole) == Decision(0, "binlog.000004")
    assert behind(whole, is_cut=False) == Decision(0, "binlog.000003")
    newest = replace(whole, logs=whole.logs[:1], end=whole.logs[0])
    assert behind(newest) == Decision(0, "binlog.000003")
    for lacking, missing in (
        (with_next(f"{UUID}:1-107"), f"{UUID}:101-107"),
        (with_next(f"{UUID}:1-100", may_be_anonymous=True), None),
        (with_next(None), None),
    ):
        with pytest.raises(GapError, match=r"cannot read binlog.000003 behind position 1500.*goes on in binlog.000004"):
            behind(lacking)
        accepted = behind(lacking, accept_gap=True)
        assert accepted.gap is not None and accepted.gap.missing_gtids == missing
        assert (accepted.binlog_file, accepted.status) == ("binlog.000004", "accepted")


@pytest.mark.parametrize(
    ("received", "previous"),
    [
        pytest.param(UNTIL_100, f"{UUID}:1-100", id="mysql"),
        pytest.param(replace(UNTIL_100, next_file="binlog.000006"), f"{UUID}:1-100", id="the next file"),
        pytest.param(Received(None, "0-1-1 to 0-1-9"), "0-1-9", id="mariadb, in its first file"),
        pytest.param(Received(None, "0-1-9,0-2-6 to 0-2-8"), "0-1-9,0-2-8", id="mariadb, a server of the file"),
        pytest.param(Received("binlog.000006", "0-1-1 to 0-1-9"), "0-1-9", id="mariadb, the next file"),
        pytest.param(
            Received(None, f"{UUID}:1-100,a:1-5", own_gtids=f"{UUID}:51-100"),
            f"{UUID}:1-100",
            id="asked to skip what the server has never logged",
        ),
        pytest.param(Received(None, ""), "", id="nothing logged yet"),
    ],
)
def test_a_purged_file_is_continued_if_the_gtids_show_that_nothing_is_missing(
    received: Received, previous: str
) -> None:
    assert decide(view(6, previous), received) == Decision(0, "binlog.000006")


@pytest.mark.parametrize(
    ("received", "previous"),
    [
        pytest.param(UNTIL_100, f"{UUID}:1-40", id="it counts from 1 again"),
        pytest.param(replace(UNTIL_100, next_file="binlog.000006"), f"{UUID}:1-40", id="under the next file's name"),
        pytest.param(replace(UNTIL_100, next_file="binlog.000006"), f"{UUID}:1-140", id="the next file lists more"),
        pytest.param(UNTIL_100, "b:1-500", id="rebuilt from another server"),
        pytest.param(Received("binlog.000006", "0-1-9"), "0-1-5", id="mariadb"),
        pytest.param(Received("binlog.000006", "0-1-9"), "0-1-12", id="mariadb, the next file lists more"),
        pytest.param(replace(UNTIL_100, own_gtids=f"{UUID}:51-100"), f"{UUID}:1-40", id="started after a set"),
    ],
)
def test_a_server_that_has_logged_other_transactions_has_started_over(received: Received, previous: str) -> None:
    assert_is_reset(view(6, previous), received)
    assert_is_reset(view(6, previous, may_be_anonymous=True), received)


def test_nothing_is_known_to_be_missing_if_a_new_series_begins_with_a_later_number() -> None:
    """RESET … TO 6: the oldest file lists no transaction before it."""
    decision = decide(view(6, ""), UNTIL_100)
    assert (decision.epoch, decision.opens, decision.status) == (1, "reset", "unproven")
    with pytest.raises(GapError):
        decide(view(6, ""), UNTIL_100, was_at_end=False)


def test_gtids_that_were_not_received_are_a_gap_in_the_same_epoch() -> None:
    with pytest.raises(GapError, match=f"Missing: {UUID}:101-120") as refusal:
        decide(view(6, f"{UUID}:1-120"), UNTIL_100)
    assert (refusal.value.gap.reason, refusal.value.gap.to_epoch) == ("purged", 0)


@pytest.mark.parametrize(
    ("received", "previous", "may_be_anonymous"),
    [
        pytest.param(Received(None, None), None, True, id="no lists"),
        pytest.param(Received(None, ""), "", True, id="empty lists"),
        pytest.param(UNTIL_100, f"{UUID}:1-100", True, id="switched off"),
        pytest.param(Received(None, "", is_anonymous=True), "", False, id="switched on"),
        pytest.param(Received("binlog.000004", None), None, True, id="another file was next"),
    ],
)
def test_transactions_without_gtid_may_be_missing_although_no_gtid_is(
    received: Received, previous: str | None, may_be_anonymous: bool
) -> None:
    with pytest.raises(GapError, match="has deleted") as refusal:
        decide(view(6, previous, may_be_anonymous), received)
    assert (refusal.value.gap.reason, refusal.value.gap.missing_gtids) == ("purged", None)


WITHOUT_GTIDS: Final = [
    pytest.param(Received("binlog.000006", None, rotated_at=NOON), None, id="no lists"),
    pytest.param(Received("binlog.000006", "", rotated_at=NOON), "", id="empty lists"),
    pytest.param(replace(UNTIL_100, next_file="binlog.000006", rotated_at=NOON), f"{UUID}:1-100", id="switched off"),
]


@pytest.mark.parametrize(("received", "previous"), WITHOUT_GTIDS)
def test_without_gtids_the_next_file_begins_when_the_received_one_ended(
    received: Received, previous: str | None
) -> None:
    def begun(written_at: datetime | None) -> ServerView:
        server: ServerView = view(6, previous, may_be_anonymous=True, written_at=written_at)
        return server

    assert decide(begun(NOON + timedelta(seconds=1)), received) == Decision(0, "binlog.000006")
    assert_is_reset(begun(NOON + timedelta(hours=1)), received)
    assert_is_reset(begun(NOON - timedelta(hours=1)), received)


@pytest.mark.parametrize(("received", "previous"), WITHOUT_GTIDS)
@pytest.mark.parametrize(
    ("unknown", "written_at"),
    [(lambda received: replace(received, rotated_at=None), NOON), (lambda received: received, None)],
    ids=["end unknown", "begin unknown"],
)
def test_a_name_alone_proves_nothing(
    received: Received, previous: str | None, unknown: Callable[[Received], Received], written_at: datetime | None
) -> None:
    decision = decide(view(6, previous, may_be_anonymous=True, written_at=written_at), unknown(received))
    assert (decision.epoch, decision.opens, decision.status) == (0, None, "unproven")
    assert decision.gap is not None and decision.gap.reason == "purged"
