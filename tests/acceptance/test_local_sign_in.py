"""SEC-7: on a laptop, the printed key signs in one browser, and nobody else becomes administrator."""

from __future__ import annotations

import httpx
import pytest

from functions.core import errors
from functions.local.server import sign_in
from functions.local.server.sign_in import SignIn
from tests.support.local_server import LocalServer, problem_of, run_local_server


def key_of(server: LocalServer) -> str:
    key: str = server.app.state.sign_in.key
    return key


def enter(client: httpx.Client, key: str | None) -> httpx.Response:
    return client.post("/api/local/token", json=None if key is None else {"key": key})


@pytest.mark.parametrize("key", [None, "", "guessed", "\u00e9"])
def test_without_the_key_nobody_is_signed_in(server: LocalServer, key: str | None) -> None:
    """SEC-7"""
    answer = enter(server.http, key)
    assert problem_of(answer) == (401, "not_signed_in")
    assert "functions.local token --admin" in answer.json()["detail"]
    assert "set-cookie" not in answer.headers


def test_the_key_signs_in_one_browser_only(server: LocalServer) -> None:
    """SEC-7"""
    key = key_of(server)
    with server.open_client() as first, server.open_client() as second:
        assert [enter(first, key).status_code, enter(second, key).status_code] == [200, 401]
        assert [enter(second, key_of(server)).status_code, enter(first, key).status_code] == [200, 200]


def test_the_cookie_is_bound_to_the_key(server: LocalServer) -> None:
    """Browsers send the cookie to every port of the host, so it is worth nothing to another server there."""
    with server.open_client() as browser, server.open_client() as other:
        enter(browser, first := key_of(server))
        enter(other, second := key_of(server))
        assert [enter(browser, key).status_code for key in (None, "", second, first)] == [401, 401, 401, 200]


def test_the_cookie_is_for_this_server_and_hidden_from_scripts(server: LocalServer) -> None:
    with server.open_client() as client:
        name, *attributes = enter(client, key_of(server)).headers["set-cookie"].split("; ")
    assert name.split("=")[0] == f"ibid_{httpx.URL(server.base_url).port}"
    assert set(attributes) == {"HttpOnly", "Max-Age=2592000", "Path=/api/local/token", "SameSite=strict"}


def test_a_browser_stays_signed_in_when_the_server_restarts(server: LocalServer) -> None:
    key, config = key_of(server), server.services.config
    assert config.database_url is not None
    with server.open_client() as client:
        cookie = enter(client, key).cookies[f"ibid_{httpx.URL(server.base_url).port}"]
    with run_local_server(config.database_url.get_secret_value(), config.home, worker=False) as again:
        again.http.cookies.set(f"ibid_{httpx.URL(again.base_url).port}", cookie)
        assert enter(again.http, key).status_code == 200


def test_a_cookie_expires_and_one_of_another_installation_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = SignIn(b"1" * 32), SignIn(b"2" * 32)
    key = ours.key
    foreign = theirs.accept(theirs.key, None)
    monkeypatch.setattr(sign_in, "COOKIE_SECONDS", -1)
    expired = ours.accept(key, None)
    for cookie in (expired, foreign, "", "a.b.c"):
        with pytest.raises(errors.NotSignedInError, match="Open the address"):
            ours.accept(key, cookie)


def test_a_used_key_is_replaced_by_an_announced_one() -> None:
    announced: list[str] = []
    door = SignIn(b"1" * 32, announced.append)
    first = door.key
    cookie = door.accept(first, None)
    door.accept(first, cookie)
    assert (announced, first != door.key) == ([door.key], True)
