"""Signing in on the page of an installation with Supabase, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, expect
from pydantic import SecretStr
from supabase_auth import SyncGoTrueClient
from supabase_auth.errors import AuthApiError

from tests.support import database as database_servers
from tests.support.fakes.auth_server import PUBLISHABLE_KEY, FakeAuthServer
from tests.support.local_server import LocalServer, run_local_server

ADA = "ada@example.org"


@pytest.fixture(scope="module")
def auth_server() -> Iterator[FakeAuthServer]:
    with FakeAuthServer() as running:
        running.invite(ADA)
        yield running


@pytest.fixture(scope="module")
def server(
    clusters: database_servers.Clusters,
    postgres_major: int,
    auth_server: FakeAuthServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LocalServer]:
    with run_local_server(
        clusters.get(postgres_major).clone(),
        tmp_path_factory.mktemp("home"),
        worker=False,
        supabase_url=auth_server.base_url,
        supabase_publishable_key=PUBLISHABLE_KEY,
        supabase_secret_key=SecretStr("sb_secret_test"),
    ) as running:
        yield running


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context(locale="en-GB") as opened:
        yield opened


@pytest.fixture
def page(context: BrowserContext, server: LocalServer) -> Page:
    page = context.new_page()
    page.goto(server.base_url)
    return page


def sign_in(page: Page, password: str = "correct horse") -> None:
    page.get_by_test_id("sign-in-email").fill(ADA)
    page.get_by_test_id("sign-in-password").fill(password)
    page.get_by_test_id("sign-in-submit").click()


def expect_signed_in(page: Page) -> None:
    expect(page.get_by_test_id("sign-out")).to_be_visible()
    expect(page.get_by_test_id("welcome")).to_have_attribute("data-state", "empty")


def change_session(page: Page, **changes: Any) -> None:
    kept = json.loads(page.evaluate("localStorage.getItem('ibid.session')"))
    page.evaluate("(changed) => localStorage.setItem('ibid.session', changed)", json.dumps(kept | changes))


def expect_asked(page: Page) -> None:
    expect(page.get_by_test_id("sign-in-dialog")).to_be_visible()


def test_the_fake_answers_like_supabase_auth(auth_server: FakeAuthServer) -> None:
    """The vendor's own client signs in, renews its session and is refused, as the page is."""
    headers = {"apikey": PUBLISHABLE_KEY}
    client = SyncGoTrueClient(url=f"{auth_server.base_url}/auth/v1", headers=headers, persist_session=False)
    session = client.sign_in_with_password({"email": ADA, "password": "correct horse"}).session
    assert session is not None
    renewed = client.refresh_session(session.refresh_token).user
    assert renewed is not None
    assert renewed.email == ADA
    with pytest.raises(AuthApiError) as refused:
        client.refresh_session(session.refresh_token)
    assert str(refused.value.code) == "refresh_token_not_found"
    client.close()


def test_a_password_signs_in_and_the_session_outlasts_the_tab(
    page: Page, context: BrowserContext, server: LocalServer
) -> None:
    """SEC-1"""
    sign_in(page)
    expect_signed_in(page)
    page.close()
    again = context.new_page()
    again.goto(server.base_url)
    expect_signed_in(again)


def test_a_wrong_password_shows_an_error_and_can_be_corrected(page: Page) -> None:
    sign_in(page, "wrong")
    expect(page.get_by_test_id("sign-in-fault")).to_have_text("The email address or password is wrong.")
    sign_in(page)
    expect_signed_in(page)


def test_a_sign_in_link_signs_in_and_leaves_no_token_in_the_address(
    page: Page, auth_server: FakeAuthServer, server: LocalServer
) -> None:
    page.get_by_test_id("sign-in-email").fill(ADA)
    page.get_by_test_id("sign-in-link").click()
    expect(page.get_by_test_id("sign-in-said")).to_contain_text(ADA)
    asked: list[str] = []

    def accept(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.accept()

    page.on("dialog", accept)
    page.goto("about:blank")
    page.goto(auth_server.links[ADA])
    expect_signed_in(page)
    assert (page.url, asked) == (f"{server.base_url}/", [f"Sign in as {ADA}?"])


def test_a_link_with_another_users_session_can_be_declined(
    context: BrowserContext, auth_server: FakeAuthServer, server: LocalServer
) -> None:
    session = auth_server.open_session(ADA)
    page = context.new_page()
    page.on("dialog", lambda dialog: dialog.dismiss())
    page.goto(f"{server.base_url}/#access_token={session['access_token']}&refresh_token=x&expires_in=3600")
    expect_asked(page)


def test_a_link_that_has_expired_says_so(context: BrowserContext, server: LocalServer) -> None:
    page = context.new_page()
    page.goto(f"{server.base_url}/#error=access_denied&error_code=otp_expired&error_description=Email+link+has+expired")
    expect(page.get_by_test_id("sign-in-fault")).to_have_text("Email link has expired")


def test_a_link_with_another_users_session_does_not_replace_the_session(
    page: Page, context: BrowserContext, auth_server: FakeAuthServer, server: LocalServer
) -> None:
    sign_in(page)
    expect_signed_in(page)
    kept = page.evaluate("localStorage.getItem('ibid.session')")
    auth_server.invite("mallory@example.org")
    session = auth_server.open_session("mallory@example.org")
    page.goto("about:blank")
    page.goto(f"{server.base_url}/#access_token={session['access_token']}&refresh_token=x&expires_in=3600")
    expect_signed_in(page)
    assert page.evaluate("localStorage.getItem('ibid.session')") == kept


def test_a_link_for_an_unknown_address_creates_no_account(page: Page) -> None:
    page.get_by_test_id("sign-in-email").fill("nobody@example.org")
    page.get_by_test_id("sign-in-link").click()
    expect(page.get_by_test_id("sign-in-fault")).to_contain_text("There is no account for this address.")


def test_an_expiring_session_is_renewed_in_the_background(page: Page, auth_server: FakeAuthServer) -> None:
    sign_in(page)
    expect_signed_in(page)
    before = auth_server.refreshes
    change_session(page, expires_at=0)
    page.reload()
    expect_signed_in(page)
    assert auth_server.refreshes == before + 1


def test_a_token_that_the_server_refuses_is_renewed_once(page: Page, auth_server: FakeAuthServer) -> None:
    sign_in(page)
    expect_signed_in(page)
    before = auth_server.refreshes
    change_session(page, access_token="x.y.z")
    page.reload()
    expect_signed_in(page)
    assert auth_server.refreshes == before + 1


def test_a_session_ended_elsewhere_asks_to_sign_in_again(page: Page, auth_server: FakeAuthServer) -> None:
    sign_in(page)
    expect_signed_in(page)
    auth_server.sign_everybody_out()
    change_session(page, expires_at=0)
    page.reload()
    expect_asked(page)
    sign_in(page)
    expect_signed_in(page)


def test_signing_out_leaves_nothing_behind(page: Page) -> None:
    sign_in(page)
    expect_signed_in(page)
    page.get_by_test_id("sign-out").click()
    expect_asked(page)
    assert page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('ibid.session'))") == []


def test_the_form_is_in_the_language_of_the_page(browser: Browser, server: LocalServer) -> None:
    with browser.new_context(locale="fr-FR") as french:
        page = french.new_page()
        page.goto(server.base_url)
        expect(page.get_by_test_id("sign-in-submit")).to_have_text("Se connecter")
        page.get_by_test_id("sign-in-email").fill("x")
        page.get_by_test_id("sign-in-link").click()  # the browser reports the missing address
        expect_asked(page)
