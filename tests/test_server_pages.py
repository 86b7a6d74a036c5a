"""The pages, as a browser without scripts sees them: who sees what, forms, messages, refusals."""

import re
from contextlib import contextmanager
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import cycle
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute

from countwise.server.app import create_app
from countwise.server.pages import shell
from countwise.server.pages.session import FORM_COOKIE
from countwise.verification.receipt import check_receipt
from offices import (
    ANN,
    CLAIM,
    EPSILON,
    MODEL,
    PASSWORD,
    ask,
    example_config,
    open_office,
    own_password,
    serving,
)

INJECTIONS = (Path(__file__).parent / "verification" / "injections.txt").read_text().splitlines()
PAGES = ("/", "/ask", "/jobs", "/account", "/datasets/workers")
STEWARD_PAGES = (
    "/steward",
    "/steward/users",
    "/steward/users/ann",
    "/steward/budgets/user/ann",
    "/steward/budgets/dataset/workers",
    "/steward/datasets/workers",
    "/steward/keys",
    "/steward/jobs",
    "/steward/audit",
    "/steward/ledger",
)


@pytest.fixture(scope="module")
def office(shared_database, tmp_path_factory, computer):
    """An office whose web part is told of a data file that is not there: it never needs it."""
    folder = tmp_path_factory.mktemp("pages")
    config = example_config(folder, shared_database)
    known = replace(config.datasets["workers"], data=folder / "not" / "here.csv")
    made = open_office(replace(config, datasets={"workers": known}), computer, budget=500)
    own_password(made, "steward")
    yield made
    made.engine.dispose()


@pytest.fixture(scope="module")
def address(office):
    with serving(office) as found:
        yield found


def steward():
    return replace(ANN, name="steward", role="steward", scopes=frozenset(("read", "steward")))


class Visitor(httpx.Client):
    """A browser without scripts: keeps cookies, sends forms, follows nothing by itself."""

    def send_form(self, path, **fields):
        return self.post(path, data={"csrf_token": self.token} | fields)

    def read(self, path, status=200):
        found = self.get(path)
        assert found.status_code == status, found.text
        return unescape(found.text)


@contextmanager
def visitor(address, name=""):
    with Visitor(base_url=address, timeout=60) as made:
        made.token = hidden(made.get("/sign-in").text, "csrf_token")
        if name:
            found = made.send_form("/sign-in", name=name, password=PASSWORD)
            assert (found.status_code, found.headers["location"]) == (303, "/")
            made.token = hidden(made.get("/").text, "csrf_token")
        yield made


@pytest.fixture(scope="module")
def ann(address):
    with visitor(address, "ann") as made:
        yield made


@pytest.fixture(scope="module")
def boss(address):
    with visitor(address, "steward") as made:
        yield made


def hidden(text, name):
    return re.search(rf'name="{name}" value="([^"]*)"', text)[1]


def message(text, name):
    return unescape(re.search(rf'id="error-{name}"[^>]*>(.*?)</p>', text, re.DOTALL)[1]).strip()


def claim_form(**how):
    fields = {"dataset": "workers", "model": MODEL, "claim": CLAIM, "epsilon": "1"}
    others = {"partitions": "50", "family": "ols", "mechanism": "lattice", "alpha": "1"}
    return fields | others | {"project": "", "key": "k"} | how


def asked(visit, **how):
    """What comes of sending a claim whose cost was looked at."""
    planned = visit.send_form("/ask/plan", **claim_form(**how)).text
    return visit.send_form("/ask", **claim_form(**how), seen=hidden(planned, "seen"))


def test_signing_in(address):
    with visitor(address) as guest:
        for name, password in (("ann", "wrong"), ("nobody", PASSWORD), ("ann\x01", PASSWORD)):
            guest.token = hidden(guest.get("/sign-in").text, "csrf_token")
            found = guest.send_form("/sign-in", name=name, password=password)
            assert found.status_code in (401, 422)
            assert "countwise_session" not in guest.cookies
        for token in ("", "x" * 43):
            found = guest.post(
                "/sign-in", data={"name": "ann", "password": PASSWORD, "csrf_token": token}
            )
            assert found.status_code == 403
        guest.token = hidden(guest.get("/sign-in").text, "csrf_token")
        guest.cookies.delete(FORM_COOKIE)
        assert guest.send_form("/sign-in", name="ann", password=PASSWORD).status_code == 403
    for place, end in (
        ("/jobs", "/jobs"),
        ("//evil.org", "/"),
        ("https://evil.org", "/"),
        ("/\\x", "/"),
    ):
        with visitor(address) as guest:
            found = guest.send_form("/sign-in", name="ann", password=PASSWORD, next=place)
            assert found.headers["location"] == end
            cookie = found.headers["set-cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=strict" in cookie


def test_without_a_session_every_page_leads_to_signing_in(office, address):
    paths = {(each.path, method) for each in routes(office) for method in each.methods}
    assert len(paths) > 35
    with visitor(address) as guest:
        for path, method in paths:
            found = guest.request(method, filled(path))
            if path == "/static/{name}" or path.startswith("/sign-in"):
                continue
            assert found.status_code == 303, path
            assert found.headers["location"].startswith("/sign-in")
        found = guest.get("/jobs", headers={"HX-Request": "true"})
        assert found.headers["hx-redirect"] == "/sign-in"
        guest.cookies.set("countwise_session", "stale")
        assert guest.get("/account").headers["location"] == "/sign-in?next=/account"
        assert guest.get("/sign-in").status_code == 200


def routes(office):
    """The routes of pages, as the application knows them."""
    from countwise.server.pages import site

    found = [
        route
        for part in (
            site.assets, site.session, site.datasets, site.questions, site.answers, site.keys,
            site.users, site.budgets, site.history,
        )
        for route in part.router.routes
        if isinstance(route, APIRoute)
    ]  # fmt: skip
    assert create_app(office.config, office.engine).routes
    return found


def filled(path):
    for name, value in {
        "{id}": "0" * 32,
        "{scope}": "user",
        "{project}": "p",
        "{how}": "grant",
    }.items():
        path = path.replace(name, value)
    return path.replace("{name}", "ann")


def test_no_form_works_without_its_token(office, ann, boss):
    before = state(office)
    sent = 0
    for route in routes(office):
        if route.methods != {"POST"} or route.path == "/sign-in":
            continue
        for visit in (ann, boss):
            for token in ({}, {"csrf_token": ann.token[::-1]}):
                found = visit.post(filled(route.path), data=claim_form(**token, name="eve"))
                assert found.status_code == 403, route.path
                sent += 1
    assert sent >= 60
    assert state(office) == before


def state(office):
    return office.stewardship.entries(steward())[-1], office.stewardship.events(steward())[0]


def test_an_analyst_sees_no_steward_page(office, ann):
    for path in STEWARD_PAGES:
        assert ann.get(path).status_code == 403, path
    for route in routes(office):
        if route.path.startswith("/steward") and route.methods == {"POST"}:
            assert ann.send_form(filled(route.path), name="eve").status_code == 403
    assert "Steward" not in ann.read("/")


def test_what_is_another_persons_is_not_there(office, ann, address):
    job = office.service.submit(ANN, ask(epsilon="0.7"), "mine")
    office.work()
    with visitor(address, "bob") as bob:
        for rest in ("", "/status", "/receipt"):
            assert ann.get(f"/jobs/{job.id}{rest}").status_code == 200
            assert bob.get(f"/jobs/{job.id}{rest}").status_code == 404
        assert bob.send_form(f"/jobs/{job.id}/cancel").status_code == 404
        assert bob.get(f"/ask?like={job.id}").status_code == 404
        assert job.id not in bob.read("/jobs")
        assert bob.get("/datasets/none").status_code == 404


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("model", "", "The model is empty"),
        ("model", "hours ~ educaton_years", "Did you mean 'education_years'?"),
        ("model", "hours ~ log(days_absent)", "log(days_absent + 1)"),
        ("model", "hours ~ age where age > 99", "can pass it"),
        ("claim", "education_years = 1", "within 0.1 of it"),
        ("claim", "height > 0", "no coefficient 'height'"),
        ("claim", "age > 0 & 1", "has no meaning here"),
        ("epsilon", "lots", "such as 0.5 or 1/3"),
        ("epsilon", "-1", "must be positive"),
        ("epsilon", "nan", "positive decimal"),
        ("epsilon", "0.001", "no verdict can ever be given"),
        ("partitions", "many", "whole number"),
        ("partitions", "900", "choose 750 or fewer"),
        ("family", "cubic", "one of ols, logistic, poisson"),
        ("mechanism", "loud", "one of lattice"),
        ("alpha", "1,x", "several with commas"),
        ("alpha", "0", "from 0.01 to 1000"),
        ("project", "secret", "no such project"),
        ("dataset", "secret", "no such data set"),
    ],
)
def test_messages_stand_beside_their_fields(ann, field, value, words):
    for path, status in (("/ask/plan", 200), ("/ask/rehearse", 200), ("/ask", 422)):
        if path == "/ask/plan" and value == "":
            continue  # a form not filled in yet is no mistake
        found = ann.send_form(path, **claim_form(**{field: value}))
        assert found.status_code == status
        assert words in message(found.text, field)
        assert f'name="{field}"' in found.text
    piece = ann.post(
        "/ask/rehearse",
        data={"csrf_token": ann.token} | claim_form(**{field: value}),
        headers={"HX-Request": "true"},
    )
    assert words in message(piece.text, field)
    assert "<html" not in piece.text


def test_plan_and_rehearsal_spend_nothing_and_say_what_to_expect(office, ann):
    before = office.spent()
    text = unescape(ann.send_form("/ask/plan", **claim_form(epsilon="0.25")).text)
    assert "This costs <strong>ε = 0.25</strong>" in text
    assert text.count('<svg class="shares"') == 4
    assert 'data-insert="C(sex)[Male]"' in text
    text = unescape(ann.send_form("/ask/rehearse", **claim_form(), repetitions="5").text)
    assert "Of 5 rehearsals" in text
    assert "nothing was spent" in text
    assert '<svg class="chart"' in text
    text = ann.send_form("/ask/plan", **claim_form(claim="age cut at 0, 1")).text
    assert "below 0, 0 to 1, 1 or more" in text
    assert office.spent() == before


def test_from_the_form_to_the_answer_and_its_receipt(office, ann):
    before = office.spent("user", "ann")
    form = claim_form(epsilon="0.5", key="a form's own")
    sent = asked(ann, **form)
    place = sent.headers["location"]
    assert sent.status_code == 303
    assert asked(ann, **form).headers["location"] == place  # sent twice
    assert office.spent("user", "ann") - before == EPSILON // 2
    assert "waits for its turn" in ann.read(place)
    piece = ann.get(f"{place}/status?was=x")
    assert 'hx-trigger="every 1s"' in piece.text
    assert ann.get(f"{place}/status?was=queued").status_code == 204
    office.work()
    assert ann.get(f"{place}/status?was=queued").headers["hx-refresh"] == "true"
    text = ann.read(place)
    assert "✓</span> Supported</h1>" in text
    assert CLAIM in text
    assert '<svg class="chart"' in text
    assert "Budget" in text
    receipt = ann.get(f"{place}/receipt")
    assert "attachment" in receipt.headers["content-disposition"]
    assert check_receipt(receipt.json()).verdict == "supported"
    assert place in ann.read("/jobs")
    again = ann.read(f"/ask?like={place.removeprefix('/jobs/')}")
    assert "This costs nothing" in again
    other = ann.send_form("/ask", **claim_form(epsilon="0.6", key="a form's own"))
    assert other.status_code == 422
    assert "You changed the question" in other.text
    used = asked(ann, **claim_form(epsilon="0.6", key="a form's own"))
    assert used.status_code == 409
    assert hidden(used.text, "key") != "a form's own"
    assert office.spent("user", "ann") - before == EPSILON // 2


def test_a_question_that_is_given_up(office, ann):
    before = office.spent()
    place = asked(ann, epsilon="0.3", key="cancelled").headers["location"]
    assert "comes back" in ann.read(place)
    done = ann.send_form(f"{place}/cancel")
    assert "was cancelled" in ann.read(done.headers["location"])
    assert office.spent() == before
    assert ann.send_form(f"{place}/cancel").status_code == 303
    assert ann.get(f"{place}/receipt").status_code == 409


def test_running_out_and_being_given_more(office, address, boss):
    made = boss.send_form("/steward/users", name="cal", role="analyst")
    assert made.status_code == 201
    password = re.search(r'class="secret">([^<]+)<', made.text)[1]
    own_password(office, "cal")
    assert boss.send_form("/steward/users", name="cal", role="analyst").status_code == 422
    with visitor(address, "cal") as cal:
        assert "No data set is open to you" in cal.read("/")
        boss.send_form("/steward/users/cal/datasets", datasets="workers")
        form = claim_form(epsilon="0.4", key="c", claim="age > 0")
        text = cal.send_form("/ask/plan", **form).text
        assert "The budget does not allow it" in text
        assert "and spend" not in text
        sent = cal.send_form("/ask", **form, seen=hidden(text, "seen"))
        assert (sent.status_code, office.spent("user", "cal")) == (402, 0)
        done = boss.send_form("/steward/budgets/user/cal/grant", epsilon="0.4")
        assert "The budget was raised" in boss.read(done.headers["location"])
        sent = cal.send_form("/ask", **form, seen=hidden(text, "seen"))
        assert sent.status_code == 303
        assert office.spent("user", "cal") == 400_000
        boss.send_form("/steward/budgets/user/cal/cap", epsilon="0")
        assert "ε = 0</strong> left of 0" in cal.read("/").replace("&nbsp;", " ")
        for wrong in ("-1", "nan", "x", ""):
            for what in ("grant", "cap"):
                found = boss.send_form(f"/steward/budgets/user/cal/{what}", epsilon=wrong)
                assert found.status_code == 422
                assert message(found.text, what)
        boss.send_form("/steward/users/cal/close")
        assert cal.get("/").headers["location"] == "/sign-in"
    with visitor(address) as cal:
        assert cal.send_form("/sign-in", name="cal", password=PASSWORD).status_code == 401
        boss.send_form("/steward/users/cal/open")
        fresh = boss.send_form("/steward/users/cal/password")
        fresh = re.search(r'class="secret">([^<]+)<', fresh.text)[1]
        assert fresh != password
        cal.token = hidden(cal.get("/sign-in").text, "csrf_token")
        assert cal.send_form("/sign-in", name="cal", password=fresh).status_code == 303
    assert boss.send_form("/steward/users/steward/close").status_code == 409


def test_projects_and_their_budget(office, boss, ann):
    assert boss.send_form("/steward/users/ann/projects", project="A b").status_code == 422
    boss.send_form("/steward/users/ann/projects", project="wages")
    boss.send_form("/steward/budgets/project/wages/grant", epsilon="2")
    assert "<option>wages</option>" in ann.read("/ask")
    assert "Project wages" in ann.read("/")
    sent = asked(ann, project="wages", key="p", epsilon="0.9")
    assert sent.status_code == 303
    assert office.spent("project", "wages") == 900_000
    assert "wages" in boss.read("/steward/ledger?project=wages")
    boss.send_form("/steward/users/ann/projects/wages/leave")
    assert "<option>wages</option>" not in ann.read("/ask")


def test_keys_are_shown_once_and_ended(office, ann, boss, address):
    label = "<script>alert(1)</script>"
    made = ann.send_form("/account/keys", label=label, scopes="read", days="30")
    key = re.search(r'class="secret">([^<]+)<', made.text)[1]
    assert made.status_code == 201
    assert label not in made.text
    assert key not in ann.get("/account").text
    bearer = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=address, headers=bearer) as program:
        assert program.get("/api/v1/budget").status_code == 200
        assert program.get("/").status_code == 200  # no cookie, so no forms to forge
        identity = office.service.keys(ANN)[-1].id
        assert label not in boss.get("/steward/keys").text
        boss.send_form(f"/steward/keys/{identity}/revoke")
        assert program.get("/api/v1/budget").status_code == 401
    assert "revoked" in ann.read("/account")
    assert ann.send_form(f"/account/keys/{identity}/revoke").status_code == 404
    for wrong in ({"label": ""}, {"scopes": "steward"}, {"days": "x"}, {"days": "-1"}):
        form = {"label": "l", "scopes": "read", "days": "1"} | wrong
        found = ann.send_form("/account/keys", **form)
        assert found.status_code == 422
        assert message(found.text, "key")


def test_another_password(address, office):
    office.stewardship.add_user(steward(), "dee", "analyst", PASSWORD)
    own_password(office, "dee")
    with visitor(address, "dee") as dee:
        found = dee.send_form("/account/password", old="wrong", new="another long one")
        assert "old password is wrong" in message(found.text, "password")
        found = dee.send_form("/account/password", old=PASSWORD, new="short")
        assert "characters" in message(found.text, "password")
        assert (
            dee.send_form("/account/password", old=PASSWORD, new="another long one").status_code
            == 303
        )
        assert dee.get("/").status_code == 303


def test_audit_log_filter_and_export(boss):
    boss.send_form("/steward/users/bob/datasets", datasets="workers")
    text = boss.read("/steward/audit?by=steward&event=added+user")
    rows = re.findall(r'data-label="Event">([^<]*)<', text)
    assert rows
    assert set(rows) == {"added user"}
    assert "No event fits" in boss.read("/steward/audit?until=2001-01-01")
    assert "No event fits" in boss.read("/steward/audit?since=2999-01-01")
    assert "a day is written" in boss.read("/steward/audit?since=yesterday", 422)
    assert boss.get("/steward/audit.csv?since=yesterday").status_code == 422
    assert boss.get("/steward/audit?by=%00").status_code == 422
    found = boss.get("/steward/audit.csv?by=steward&event=added+user")
    lines = found.text.splitlines()
    assert found.headers["content-type"].startswith("text/csv")
    assert lines[0] == "id,at,actor,event,subject,detail"
    assert len(lines) - 1 == len(rows)


def test_addresses_that_are_none_of_ours(ann):
    for path in ("/nowhere", "/jobs/xyz", "/datasets/A%20B", "/static/x", "/ask?like=%22"):
        found = ann.get(path)
        assert found.status_code in (404, 422)
        assert "<h1>" in found.text
    assert "Not this way" in ann.read("/sign-out", 405)


def test_pages_load_nothing_from_elsewhere_and_hold_no_code(office, ann, boss):
    place = asked(ann, key="looks", epsilon="0.8").headers["location"]
    waiting = ann.get(place)
    office.work(3)
    pages = [
        waiting,
        ann.get(place),
        ann.get("/nowhere"),
        ann.get("/sign-in"),
        ann.get("/datasets/no"),
    ]
    pages += [ann.send_form("/ask/rehearse", **claim_form())]
    pages += [ann.get(path) for path in PAGES] + [boss.get(path) for path in STEWARD_PAGES]
    for page in pages:
        assert page.headers["content-type"].startswith("text/html")
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["cache-control"] == "no-store"
        text = page.text
        assert text.count("<h1") == 1
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
        assert all(" src=" in each for each in re.findall(r"<script[^>]*>", text))
        linked = re.findall(r'(?:src|href|action|formaction|hx-get|hx-post)="([^"]*)"', text)
        assert linked
        assert all(re.match(r"[/#](?!/)", each) for each in linked), linked
        assert len(set(ids := re.findall(r'\sid="([^"]+)"', text))) == len(ids)
        for script in re.findall(r'/static/[^"]+', text):
            found = ann.get(script)
            assert found.status_code == 200
            assert "immutable" in found.headers["cache-control"]
    assert ann.get("/static/../pages/site.py").status_code == 404
    assert ann.get("/static/htmx.LICENSE.txt").status_code == 404


class Markup(HTMLParser):
    """The elements and attributes of a page as a browser reads them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.values = set(), set(), {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.tags.add(tag)
        self.attributes |= set(given)
        if tag == "input":
            self.values[given["name"]] = given.get("value")


def test_injections_through_the_form_are_text(office, ann):
    before = office.spent()
    harmless = Markup(ann.send_form("/ask/plan", **claim_form()).text)
    others = cycle(("epsilon", "partitions", "alpha", "project", "dataset", "family"))
    for text in INJECTIONS:
        for fields in (("claim",), ("model", next(others))):
            sent = dict.fromkeys(fields, text)
            found = ann.send_form("/ask/plan", **claim_form(**sent))
            assert found.status_code == (200 if shell.plain(text) else 422)
            page = Markup(found.text)
            assert page.tags <= harmless.tags
            assert page.attributes <= harmless.attributes | {"aria-invalid", "open"}
            if found.status_code == 200:
                assert page.values[fields[0]] == text.strip()[:4000]
    assert office.spent() == before
