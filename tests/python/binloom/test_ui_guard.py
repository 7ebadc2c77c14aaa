"""Who may see the pages of `binloom ui`."""

import re
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from binloom.ui.app import VIEWS
from binloom.ui.guard import HEADERS, Guard
from tests.support.pages import ADDRESS, HOST, guarded, sample_inputs

COOKIE = "binloom-8000"


@pytest.fixture(scope="module")
def guard() -> Iterator[Guard]:
    with guarded(sample_inputs()) as found:
        yield found


def stranger(guard: Guard) -> TestClient:
    return TestClient(guard, base_url=ADDRESS)


def friend(guard: Guard) -> TestClient:
    client = stranger(guard)
    client.get("/", params={"token": guard.token})
    return client


def test_the_first_address_sets_a_cookie_that_scripts_and_other_sites_do_not_get(guard: Guard) -> None:
    client = stranger(guard)
    answer = client.get("/", params={"token": guard.token}, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200 and 'content="0; url=/"' in answer.text and guard.token not in answer.text
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and cookie.startswith(f"{COOKIE}=")
    assert client.cookies[COOKIE] != guard.token and client.get("/").status_code == 200
    assert "397 row changes" in client.get("/").text


@pytest.mark.parametrize("path", [*VIEWS, "/nothing"])
def test_without_the_cookie_there_is_nothing(guard: Guard, path: str) -> None:
    answer = stranger(guard).get(path)
    assert answer.status_code == 403 and "was not let in" in answer.text
    other = TestClient(guard, base_url=ADDRESS, cookies={COOKIE: guard.token})
    assert other.get(path).status_code == 403


@pytest.mark.parametrize("token", ["", "x", "\udc80", "ü"])
def test_another_token_is_refused(guard: Guard, token: str) -> None:
    sent = token.encode("utf-8", "surrogateescape")
    answer = stranger(guard).get("/", params={"token": sent})
    assert answer.status_code == 403 and "set-cookie" not in answer.headers
    both = stranger(guard).get(f"/?token={guard.token}&token=x")
    elsewhere = stranger(guard).get(f"/transactions?token={guard.token}")
    assert both.status_code == elsewhere.status_code == 403


def test_the_address_with_the_token_keeps_its_other_words(guard: Guard) -> None:
    opened = stranger(guard).get("/", params={"table": 'shop."><b', "token": guard.token, "key": "1|2"})
    assert opened.status_code == 200
    assert re.findall(r'(?:url=|href=")(/[^"]*)"', opened.text) == ["/?table=shop.%22%3E%3Cb&amp;key=1%7C2"] * 2


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1", "127.0.0.1:8001", "127.0.0.1.evil.example:8000", ""]
)
def test_another_host_is_refused(guard: Guard, host: str) -> None:
    answer = friend(guard).get("/", headers={"Host": host})
    assert answer.status_code == 403 and "not the address" in answer.text
    assert stranger(guard).get("/", params={"token": guard.token}, headers={"Host": host}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:8001"},
        {"Origin": f"https://{HOST}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_site_is_refused(guard: Guard, headers: dict[str, str]) -> None:
    client = friend(guard)
    assert client.get("/", headers=headers).status_code == 403
    assert client.get("/", headers={"Origin": ADDRESS, "Sec-Fetch-Site": "same-origin"}).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_pages_are_only_read(guard: Guard, method: str) -> None:
    answer = friend(guard).request(method, "/undo")
    assert answer.status_code == 405 and answer.headers["allow"] == "GET, HEAD"
    assert friend(guard).head("/").status_code == 200


@pytest.mark.parametrize("path", [*VIEWS, "/nothing", "/?token=x"])
def test_every_answer_has_the_headers(guard: Guard, path: str) -> None:
    for client in (friend(guard), stranger(guard)):
        answer = client.get(path)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    policy = HEADERS["Content-Security-Policy"]
    assert "script" not in policy and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    ("host", "own", "foreign"),
    [
        ("0.0.0.0", ("127.0.0.1:8000", "10.1.2.3:8000", "localhost:8000"), ("evil.example:8000", "10.1.2.3")),
        ("db1.example", ("db1.example:8000", "DB1.example:8000"), ("127.0.0.1:8000", "evil.example:8000")),
        ("::1", ("[::1]:8000", "localhost:8000"), ("[::2]:8000", "evil.example:8000")),
    ],
)
def test_the_host_is_the_address_that_is_listened_on(
    guard: Guard, host: str, own: tuple[str, ...], foreign: tuple[str, ...]
) -> None:
    there = Guard(guard._app, host, 8000)
    for name in own:
        assert "was not let in" in stranger(there).get("/", headers={"Host": name}).text, name
    for name in foreign:
        assert "not the address" in stranger(there).get("/", headers={"Host": name}).text, name
