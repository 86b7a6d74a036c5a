"""Accounts: what a password, a key, a role and a second steward can do, and what they can not."""

import asyncio
import json
import secrets
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlparse

import httpx
import pytest
import sqlalchemy as sa
import uvicorn
from joserfc import jwt
from joserfc.jwk import ECKey

from countwise.errors import ConfigError, InputError
from countwise.server import accounts, passwords
from countwise.server.accounts import ALLOWED, Actor
from countwise.server.app import create_app
from countwise.server.config import load_config
from countwise.server.identity_provider import MOST_ASKING, new_errand, read_roles
from countwise.server.refusals import (
    Conflict,
    Forbidden,
    NotSignedIn,
    PasswordFirst,
    Proposed,
    TooMany,
)
from countwise.server.sign_in_limits import BY_ADDRESS
from countwise.server.start import forwarding
from countwise.server.tables import audit, users
from offices import (
    ANN,
    EPSILON,
    PASSWORD,
    STEWARD,
    actor,
    client,
    example_config,
    new_key,
    open_office,
    serving,
)

OTHER = "another long phrase"


@pytest.fixture
def office(tmp_path, computer):
    config = example_config(
        tmp_path, f"sqlite:///{tmp_path}/a.db", sign_ins_per_minute=4, two_stewards_above=5.0
    )
    made = open_office(config, computer)
    with made.ledger.writing() as book:
        for name in ("stella", "otto"):
            role = "steward" if name == "stella" else "auditor"
            accounts.add_user(book.connection, name, role, PASSWORD)
    yield made
    made.engine.dispose()


def sign_in(caller, name, password=PASSWORD, **how):
    got = caller.post("/api/v1/session", json={"name": name, "password": password}, **how)
    if got.status_code == 200:
        caller.headers["X-CSRF-Token"] = got.json()["csrf"]
    return got


def events(office, event):
    query = sa.select(audit).where(audit.c.event == event).order_by(audit.c.id)
    with office.engine.connect() as connection:
        return connection.execute(query).all()


def in_one_minute():
    while time.time() % 60 > 45:
        time.sleep(0.5)


def test_keys_end_with_the_password_and_with_the_account(office):
    """By the user, by a steward, and by closing: a key from before is good no more."""
    with serving(office) as address:

        def good(key):
            with client(address, key) as program:
                return program.get("/api/v1/session").status_code == 200

        def change_own():
            with client(address) as caller:
                sign_in(caller, "ann")
                new = {"old": PASSWORD, "new": OTHER}
                assert caller.put("/api/v1/password", json=new).status_code == 204

        def reset():
            office.stewardship.set_password(STEWARD, "ann", PASSWORD + "!")

        def close_and_open():
            office.stewardship.set_disabled(STEWARD, "ann", True)
            office.stewardship.set_disabled(STEWARD, "ann", False)

        for end in (change_own, reset, close_and_open):
            key = new_key(office, "ann")
            assert good(key)
            end()
            assert not good(key), end.__name__
    for view in office.stewardship.keys(STEWARD):
        assert view.expires is not None  # none is for ever


def test_no_key_resets_passwords_makes_users_or_opens_accounts(office):
    key = new_key(office, "steward")
    with serving(office) as address, client(address, key) as program:
        calls = {
            ("PUT", "users/stella/password"): {"password": OTHER},
            ("POST", "users"): {"name": "zed", "role": "steward", "password": OTHER},
            ("PUT", "users/ann/disabled"): {"disabled": False},
        }
        for (method, path), body in calls.items():
            got = program.request(method, f"/api/v1/steward/{path}", json=body)
            assert got.status_code == 403, path
        assert program.post(f"/api/v1/steward/proposals/{'0' * 32}/approve").status_code == 403
        assert program.get("/api/v1/steward/users").status_code == 200
        with client(address) as caller:
            assert sign_in(caller, "stella").status_code == 200
            assert sign_in(caller, "stella", OTHER).status_code == 401


def test_an_old_session_signs_in_again_before_it_resets_passwords(office):
    stale = replace(STEWARD, since=time.time() - 3600)
    for act in (
        lambda: office.stewardship.set_password(stale, "ann", OTHER),
        lambda: office.stewardship.add_user(stale, "zed", "analyst", OTHER),
    ):
        with pytest.raises(Forbidden, match="sign-in of the last 30 minutes"):
            act()
    office.stewardship.add_user(replace(stale, since=time.time()), "zed", "analyst", OTHER)


def test_a_first_password_is_changed_before_anything_else(office):
    office.stewardship.add_user(STEWARD, "zed", "analyst", OTHER)
    with serving(office) as address, client(address) as caller:
        assert sign_in(caller, "zed", OTHER).json()["new_password"] is True
        for path in ("datasets", "jobs", "keys", "budget"):
            got = caller.get(f"/api/v1/{path}")
            assert (got.status_code, got.json()["error"]["code"]) == (403, "password_first")
        new = {"label": "x", "scopes": ["read"]}
        assert caller.post("/api/v1/keys", json=new).status_code == 403
        assert caller.get("/").headers["location"] == "/account"
        page = caller.get("/account")
        assert page.status_code == 200
        assert "Change your first password" in page.text
        assert "New key" not in page.text
        same = {"old": OTHER, "new": OTHER}
        assert caller.put("/api/v1/password", json=same).status_code == 422
        changed = {"old": OTHER, "new": PASSWORD}
        assert caller.put("/api/v1/password", json=changed).status_code == 204
        assert sign_in(caller, "zed").json()["new_password"] is False
        assert caller.get("/api/v1/datasets").json() == []
    with pytest.raises(PasswordFirst):
        office.service.new_key(replace(ANN, new_password=True), "x", ["read"])


def test_wrong_passwords_lock_out_nobody_but_whoever_sends_them(office, monkeypatch):
    """A name tried from one address, and many names tried: the right ones still come in."""
    monkeypatch.setattr(accounts, "matches", lambda kept, sent: bool(kept) and sent == PASSWORD)
    in_one_minute()
    with serving(office) as address:
        at_home = client(address)
        assert sign_in(at_home, "ann").status_code == 200  # this browser is known from now on
        with client(address) as stranger:
            tries = [sign_in(stranger, "ann", "wrong password").status_code for _ in range(6)]
            assert tries[:3] == [401] * 3
            assert tries[-1] == 429
            names = [f"name{i}" for i in range(30)]
            sprayed = [sign_in(stranger, each, "wrong password").status_code for each in names]
            assert sprayed.count(401) < 25
            assert sprayed[-1] == 429
            assert sign_in(stranger, "bob").status_code == 429  # the address is held up
    held = events(office, "sign-in held up")
    assert 1 <= len(held) <= 3
    known = at_home.cookies["countwise_device"]
    at_home.close()
    made = office.service.sign_in("bob", PASSWORD, "10.0.0.9")  # from another address
    assert made.actor.name == "bob"
    for i in range(80):  # ann, from eighty addresses
        with pytest.raises(Exception, match=r"wrong|too many"):
            office.service.sign_in("ann", "wrong password", f"10.0.1.{i}")
    with pytest.raises(Exception, match="too many"):
        office.service.sign_in("ann", PASSWORD, "10.0.2.1")
    assert office.service.sign_in("ann", PASSWORD, "10.0.2.1", known).actor.name == "ann"


def test_failed_sign_ins_are_in_the_audit_log(office):
    office.stewardship.set_disabled(STEWARD, "bob", True)
    for name, password, why in (
        ("ann", "wrong password", "wrong password"),
        ("my secret typed in the wrong field", "x", "unknown name"),
        ("bob", PASSWORD, "closed"),
    ):
        with pytest.raises(NotSignedIn):
            office.service.sign_in(name, password, "192.0.2.7")
        last = events(office, "sign-in failed")[-1]
        assert json.loads(last.detail) == {"address": "192.0.2.7", "why": why}
        assert last.actor == (name if why != "unknown name" else "")
    assert "secret" not in str(events(office, "sign-in failed"))


def test_the_callers_address_is_believed_from_trusted_proxies_only(office):
    """A made-up header does not give a new address for each try."""

    from countwise.server.bounded_connections import bounded  # noqa: F401

    app = create_app(office.config, office.engine)
    for trusted, expected in (("", "127.0.0.1"), ("10.0.0.0/8", "127.0.0.1"),
                              ("127.0.0.1", "198.51.100.9")):  # fmt: skip
        how = uvicorn.Config(app, **forwarding(replace(office.config, trusted_proxies=trusted)))
        how.load()
        assert asyncio.run(wrong_sign_in(how.loaded_app)) == 401
        assert json.loads(events(office, "sign-in failed")[-1].detail)["address"] == expected


async def wrong_sign_in(app):
    """The status of a sign-in that comes from 127.0.0.1 and says it comes from elsewhere."""
    sent = {"X-Forwarded-For": "203.0.113.1, 198.51.100.9"}
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as caller:
        wrong = {"name": "ann", "password": "wrong password"}
        return (await caller.post("/api/v1/session", json=wrong, headers=sent)).status_code


COMMON = ("password123", "P4ssw0rd!!", "qwertyuiop", "aaaaaaaaaa", "1234567890", "Welcome2026!",
          "letmeinletmein", "abcdefghij", "Summer2026!!", "0987654321", "monkeydragon",
          "ann2026ann!", "iloveyou!!!!", "Fussball1234", "abcabcabcabc")  # fmt: skip
GOOD = ("a long password", "correct horse battery", "Qh7-mmzL-20zx", "wet gravel tram", OTHER)


@pytest.mark.parametrize("password", COMMON)
def test_common_passwords_are_refused(password):
    with pytest.raises(InputError, match="tried first"):
        passwords.hash_password(password, name="ann")


def test_other_passwords_are_taken():
    for each in (*GOOD, *(secrets.token_urlsafe(12) for _ in range(500))):
        assert not passwords.is_common(each, name="ann"), each
    for short in ("", "short"):
        with pytest.raises(InputError, match="10 to 1,000"):
            passwords.hash_password(short)


def test_an_auditor_sees_and_changes_nothing(office):
    otto = Actor(name="otto", role="auditor", scopes=ALLOWED["auditor"], csrf="c")
    steward = office.stewardship
    for look in (steward.users, steward.balances, steward.keys, steward.jobs, steward.events,
                 steward.entries, steward.datasets, steward.proposals):  # fmt: skip
        look(otto)
    assert "actor" in steward.export(otto)
    changes = [
        lambda: steward.add_user(otto, "zed", "analyst", OTHER),
        lambda: steward.set_password(otto, "ann", OTHER),
        lambda: steward.set_disabled(otto, "ann", True),
        lambda: steward.set_disabled(otto, "ann", False),
        lambda: steward.allow(otto, "otto", "workers"),
        lambda: steward.join(otto, "otto", "pay"),
        lambda: steward.set_cap(otto, "user", "otto", "1"),
        lambda: steward.grant(otto, "user", "otto", "1"),
        lambda: steward.revoke_key(otto, "0" * 32),
        lambda: steward.decide(otto, "0" * 32, approve=True),
        lambda: office.service.submit(otto, None, "k"),
        lambda: office.service.cancel(otto, "0" * 32),
    ]
    for change in changes:
        with pytest.raises(Forbidden):
            change()
    with serving(office) as address, client(address) as caller:
        sign_in(caller, "otto")
        for path in ("", "/users", "/users/ann", "/budgets/user/ann", "/keys", "/jobs", "/audit",
                     "/ledger", "/datasets/workers"):  # fmt: skip
            page = caller.get(f"/steward{path}")
            assert page.status_code == 200, path
            forms = page.text.count('method="post"')
            assert forms == 1, path  # signing out
        csrf = caller.headers["X-CSRF-Token"]
        sent = {"csrf_token": csrf, "epsilon": "1"}
        assert caller.post("/steward/budgets/user/ann/grant", data=sent).status_code == 403


def test_large_budgets_need_two_stewards(office):
    stella, steward = actor("stella", "steward"), office.stewardship
    assert steward.grant(STEWARD, "dataset", "workers", "5").cap == "15"  # not above the threshold
    for change in (
        lambda: steward.grant(STEWARD, "dataset", "workers", "5.1"),
        lambda: steward.set_cap(STEWARD, "dataset", "workers", "100"),
    ):
        with pytest.raises(Proposed, match="waits for another steward"):
            change()
        assert office.finding().flaws == ()
    first, second = steward.proposals(STEWARD)
    assert (first.cap, second.cap) == ("20.1", "100")
    with pytest.raises(Forbidden, match="another steward"):
        steward.decide(STEWARD, first.id, approve=True)
    assert steward.decide(STEWARD, second.id, approve=False).cap == "15"
    assert steward.decide(stella, first.id, approve=True).cap == "20.1"
    with pytest.raises(Conflict):
        steward.decide(stella, first.id, approve=True)
    assert steward.proposals(STEWARD) == []
    with office.ledger.reading() as book:
        assert list(book.all())[-1].note == "by steward, approved by stella"
    assert steward.set_cap(STEWARD, "dataset", "workers", "1").cap == "1"  # lowering needs nobody
    with pytest.raises(Proposed):
        steward.set_cap(STEWARD, "dataset", "workers", "20.1")  # undoing that is a raise


def test_small_raises_add_up_until_two_stewards_agree(office):
    """Twenty grants of 5 are a hundred; the threshold is for all since the last agreed cap."""
    steward, stella = office.stewardship, actor("stella", "steward")
    for more in ("2", "3"):
        steward.grant(STEWARD, "dataset", "workers", more)
    for one in (STEWARD, stella):
        with pytest.raises(Proposed, match="above what two stewards agreed on"):
            steward.grant(one, "dataset", "workers", "0.1")
    steward.set_cap(STEWARD, "dataset", "workers", "12")
    steward.grant(STEWARD, "dataset", "workers", "3")  # no more than before
    steward.decide(stella, steward.proposals(STEWARD)[0].id, approve=True)
    assert steward.grant(STEWARD, "dataset", "workers", "5").cap == "20.1"
    with pytest.raises(Proposed):
        steward.grant(STEWARD, "dataset", "workers", "0.1")
    steward.grant(STEWARD, "project", "trees", "5")  # of which nobody set a cap before
    with pytest.raises(Proposed):
        steward.grant(STEWARD, "project", "trees", "5")


def test_a_proposal_is_made_and_approved_on_the_pages(office):
    with serving(office) as address, client(address) as one, client(address) as other:
        with office.engine.begin() as connection:
            accounts.set_password(connection, "steward", PASSWORD)
        csrf = [sign_in(one, "steward").json()["csrf"], sign_in(other, "stella").json()["csrf"]]
        sent = {"epsilon": "50", "csrf_token": csrf[0]}
        got = one.post("/steward/budgets/dataset/workers/grant", data=sent)
        assert "waits for another steward" in got.text
        proposal = office.stewardship.proposals(STEWARD)[0].id
        assert f"/steward/proposals/{proposal}/approve" not in one.get("/steward").text
        assert f"/steward/proposals/{proposal}/approve" in other.get("/steward").text
        done = other.post(f"/steward/proposals/{proposal}/approve", data={"csrf_token": csrf[1]})
        assert done.status_code == 303
    assert office.stewardship.balances(STEWARD)[0].scope == "user"
    with office.ledger.reading() as book:
        assert book.balance("dataset", "workers").cap == 60 * EPSILON


class Issuer:
    """A small identity provider: one person, whom it lets in without asking."""

    def __init__(self):
        self.key, self.codes, self.person, self.spoil = ECKey.generate_key("P-256"), {}, {}, {}
        self.calls = 0
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def say(self, data):
                body = json.dumps(data).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                if self.path.startswith("/.well-known"):
                    at = issuer.address
                    names = {"authorization_endpoint": "authorize", "token_endpoint": "token"}
                    names |= {"jwks_uri": "keys"}
                    self.say({"issuer": at} | {k: f"{at}/{v}" for k, v in names.items()})
                elif self.path.startswith("/keys"):
                    self.say({"keys": [issuer.key.as_dict(private=False, alg="ES256")]})
                else:
                    asked = {k: v[0] for k, v in parse_qs(urlparse(self.path).query).items()}
                    code = secrets.token_urlsafe(8)
                    issuer.codes[code] = asked
                    where = (
                        asked["redirect_uri"]
                        + "?"
                        + urlencode({"code": code, "state": asked["state"]})
                    )
                    self.send_response(302)
                    self.send_header("Location", where)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def do_POST(self):
                issuer.calls += 1
                size = int(self.headers["Content-Length"])
                sent = {k: v[0] for k, v in parse_qs(self.rfile.read(size).decode()).items()}
                asked = issuer.codes.pop(sent.get("code", ""), None)
                if asked is None or not verified(sent["code_verifier"], asked["code_challenge"]):
                    self.say({"error": "invalid_grant"})
                    return
                claims = {
                    "iss": issuer.address, "aud": asked["client_id"], "nonce": asked["nonce"],
                    "exp": int(time.time()) + 60, "iat": int(time.time()),
                } | issuer.person | issuer.spoil  # fmt: skip
                token = jwt.encode({"alg": "ES256"}, claims, issuer.key)
                self.say({"access_token": "a", "token_type": "Bearer", "id_token": token})

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def verified(verifier, challenge):
    import base64
    import hashlib

    found = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode()
    return found.rstrip("=") == challenge


@pytest.fixture
def issuer():
    made = Issuer()
    yield made
    made.stop()


def provided(office, at, **settings):
    """The same office with an identity provider."""
    config = replace(
        office.config, oidc_issuer=at, oidc_client="countwise",
        oidc_roles="stats = analyst, data-office = steward, audit = auditor",
        oidc_redirect="http://countwise.test/sign-in/office/back", **settings,
    )  # fmt: skip
    return type(office)(config, office.computer)


def way_back(browser, again=False):
    """The address that the provider sends a browser back to."""
    to = browser.get("/sign-in/office", params={"again": again}).headers["location"]
    back = urlparse(client("").get(to).headers["location"])
    return f"{back.path}?{back.query}"


def test_signing_in_at_an_identity_provider(office, issuer):
    """First sign-in makes a user; groups give the role, anew each time; nothing else comes in."""
    office = provided(office, issuer.address, sign_ins_per_minute=100)
    person = {"sub": "77", "preferred_username": "Ann", "groups": ["stats", "staff"]}
    issuer.person = person
    with serving(office) as address:

        def come_in(*, state=""):
            with client(address) as browser:
                assert "/sign-in/office" in browser.get("/sign-in").text
                path = way_back(browser)
                if state:
                    path = path.replace("state=", f"state={state}")
                page = browser.get(path)
                got = browser.get("/api/v1/session")
                again = browser.get(path)  # a code is good once
                assert again.status_code == 401
                return page, got

        page, got = come_in()
        assert "Signed in" in page.text
        assert got.json()["name"] == "ann-2"  # ann is somebody else
        assert got.json()["role"] == "analyst"
        for groups, role in ((["data-office", "stats"], "steward"), ("audit", "auditor")):
            issuer.person = person | {"groups": groups}
            _, got = come_in()
            assert (got.json()["name"], got.json()["role"]) == ("ann-2", role)
        issuer.person = person | {"groups": ["staff"]}
        page, got = come_in()
        assert "none of your groups" in page.text
        assert got.status_code == 401
        issuer.person = person
        assert "this account is closed" in come_in()[0].text.lower()
        office.stewardship.set_disabled(STEWARD, "ann-2", False)
        assert come_in()[1].status_code == 200
        for spoil in ({"aud": "another"}, {"nonce": "x"}, {"iss": "https://evil.example"},
                      {"exp": int(time.time()) - 900}, {"sub": None}):  # fmt: skip
            issuer.spoil = spoil
            assert come_in()[1].status_code == 401, spoil
        issuer.spoil = {}
        assert come_in(state="x")[1].status_code == 401
        key, issuer.key = issuer.key, ECKey.generate_key("P-256")
        keep = issuer.key.as_dict
        issuer.key.as_dict = key.as_dict  # signed with a key that it does not show
        assert come_in()[1].status_code == 401
        issuer.key.as_dict = keep
        with client(address) as caller:
            assert sign_in(caller, "ann-2", "").status_code == 401
    with pytest.raises(Conflict, match="identity provider"):
        office.stewardship.set_password(STEWARD, "ann-2", OTHER)
    office.stewardship.set_disabled(STEWARD, "ann-2", True)
    with office.engine.connect() as connection:
        row = connection.execute(sa.select(users).where(users.c.name == "ann-2")).one()
    assert row.password == ""
    assert events(office, "changed role")
    office.engine.dispose()


def test_whoever_loses_a_role_at_the_provider_loses_what_it_gave(office, issuer):
    """Fewer rights end keys and sessions; no role at all closes the account."""
    office = provided(office, issuer.address, sign_ins_per_minute=100)
    with serving(office) as address, client(address) as first, client(address) as later:

        def has_access():
            with client(address, key) as program:
                asked = [first.get("/api/v1/session"), program.get("/api/v1/session")]
            return [each.status_code == 200 for each in asked]

        def come(browser, *groups):
            issuer.person = {"sub": "77", "preferred_username": "zoe", "groups": groups}
            return browser.get(way_back(browser))

        for before, after, left in (
            ("stats", "data-office", [True, True]),
            ("data-office", "data-office", [True, True]),
            ("data-office", "stats", [False, False]),
            ("data-office", "audit", [False, False]),
            ("data-office", "staff", [False, False]),
        ):
            come(first, before)
            key = new_key(office, "zoe", "read")
            assert has_access() == [True, True]
            come(later, after)
            assert has_access() == left, (before, after)
        assert office.stewardship.user(STEWARD, "zoe").disabled
        come(later, "staff")
        assert len(events(office, "closed user")) == 1
    office.engine.dispose()


def test_a_provider_that_never_answers_stops_no_page(office):
    """It accepts and says nothing: one thread waits for it, whoever else asks is refused."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        at = f"http://127.0.0.1:{silent.getsockname()[1]}"
        office = provided(office, at, sign_ins_per_minute=100)
        with serving(office) as address, ThreadPoolExecutor(45) as crowd:

            def go(_):
                with client(address) as browser:
                    return browser.get("/sign-in/office").status_code

            going = [crowd.submit(go, i) for i in range(45)]
            with client(address) as browser:
                assert browser.get("/sign-in").status_code == 200
            assert {each.result() for each in going} <= {401, 429}
        silent.setblocking(False)
        asked = 0
        with suppress(BlockingIOError):
            while True:
                silent.accept()[0].close()
                asked += 1
        assert 1 <= asked <= 3  # not once for each, nor again at once
    office.engine.dispose()


def test_few_wait_for_the_provider_at_once(office, issuer):
    """Threads that ask it are counted, and given back whatever comes of it."""
    provider = provided(office, issuer.address).service.provider
    errand = new_errand()
    for _ in range(3 * MOST_ASKING):
        with pytest.raises(NotSignedIn):
            provider.claims(errand, {"state": errand.state, "code": "x"})
    calls = issuer.calls
    with ExitStack() as busy:
        for _ in range(MOST_ASKING):
            busy.enter_context(provider._asking())
        with pytest.raises(TooMany):
            provider.claims(errand, {"state": errand.state, "code": "x"})
        with pytest.raises(TooMany):
            provider.begin(errand)
    assert issuer.calls == calls
    assert provider.begin(errand)


def test_self_made_returns_from_the_provider_are_limited(office, issuer):
    """Past the limit of an address nothing is asked of the provider and nothing is noted."""
    office = provided(office, issuer.address, sign_ins_per_minute=2)
    most = 2 * BY_ADDRESS
    with serving(office) as address:
        in_one_minute()
        with client(address, cookies={"countwise_errand": "x.y.z.0"}) as browser:
            got = [
                browser.get("/sign-in/office/back?state=x&code=1").status_code
                for _ in range(2 * most)
            ]
        assert got == [401] * most + [429] * most
        assert issuer.calls == most
        assert len(events(office, "sign-in failed")) == most
        assert len(events(office, "sign-in held up")) == 1
        with client(address) as browser:
            went = [browser.get("/sign-in/office").status_code for _ in range(most + 1)]
        assert went == [303] * most + [429]
    office.engine.dispose()


def test_what_a_steward_does_in_person_needs_a_fresh_proof_at_the_provider(office, issuer):
    """A session there that goes on says nothing; asked anew, it must say when it asked."""
    office = provided(office, issuer.address, sign_ins_per_minute=100)
    issuer.person = {"sub": "7", "preferred_username": "zoe", "groups": ["data-office"]}
    user = {"name": "new", "role": "analyst", "password": OTHER}
    with serving(office) as address:

        def come_in(again, **claims):
            issuer.spoil = claims
            with client(address) as browser:
                page = browser.get(way_back(browser, again))
                got = browser.get("/api/v1/session")
                if got.status_code != 200:
                    return page.status_code
                browser.headers["X-CSRF-Token"] = got.json()["csrf"]
                return browser.post("/api/v1/steward/users", json=user).status_code

        now, old = int(time.time()), int(time.time() - 60 * office.config.fresh_minutes - 100)
        assert come_in(False) == 403
        assert come_in(False, auth_time=old) == 403
        for wrong in (None, True, "now", -1, float("nan"), old):
            assert come_in(True, auth_time=wrong) == 401, wrong
        with client(address) as browser:
            to = browser.get("/sign-in/office?again=true").headers["location"]
            assert parse_qs(urlparse(to).query)["max_age"] == ["1800"]
            to = browser.get("/sign-in/office").headers["location"]
            assert "max_age" not in parse_qs(urlparse(to).query)
        assert come_in(True, auth_time=now) == 201
        user["name"] = "newer"
        assert come_in(False, auth_time=now + 1000) == 201  # its clock is ahead
    office.engine.dispose()


def test_settings_of_an_identity_provider_are_checked(tmp_path):
    assert read_roles("a b = analyst,c=steward") == {"a b": "analyst", "c": "steward"}
    with pytest.raises(ConfigError, match="no group = role"):
        read_roles("a = boss")
    with pytest.raises(ConfigError, match="oidc_client and oidc_redirect and oidc_roles"):
        load_config(None, environment={}, state=tmp_path, oidc_issuer="https://id.example")
