"""The server's pages in a real browser: a question from signing in to its answer, on two screens.

Screenshots of every step are left in build/screenshots.
"""

import re
import shutil
from pathlib import Path

import pytest

from countwise.server.jobs import give_up, take
from needs import needs
from offices import (
    ANN,
    CLAIM,
    MODEL,
    PASSWORD,
    STEWARD,
    ask,
    example_config,
    open_office,
    own_password,
    serving,
)

SHOTS = Path(__file__).parents[1] / "build" / "screenshots"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
SCREENS = {
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark", "has_touch": True},
    "desk": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
}

VIOLATIONS = """document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`))"""
FOCUSED = """() => { const it = document.activeElement;
  const name = it === document.body ? "BODY" : it.id || it.textContent.trim();
  return [name, getComputedStyle(it).outlineStyle]; }"""
HEADINGS = ["Cost and power", "Rehearse first", "Rehearsal on synthetic data"]
FAULTS = (Path(__file__).parent / "visitor_faults.js").read_text()


@pytest.fixture(scope="module")
def browser():
    needs(CHROMIUM is not None, "Chromium (Debian's package chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield made
        made.close()


@pytest.fixture(scope="module")
def office(tmp_path_factory, computer):
    folder = tmp_path_factory.mktemp("browser")
    made = open_office(example_config(folder, f"sqlite:///{folder}/x.db"), computer, budget=50)
    own_password(made, "steward")
    yield made
    made.engine.dispose()


@pytest.fixture(scope="module")
def address(office):
    with serving(office) as found:
        yield found


class Visit:
    """A page in a browser of its own, which notes whatever should not happen."""

    def __init__(self, browser, address, screen):
        self.screen, self.address = screen, address
        self.context = browser.new_context(**SCREENS[screen], base_url=address)
        self.context.set_default_timeout(30_000)
        self.page, self.wrong = self.context.new_page(), []
        self.page.on("console", lambda said: self.wrong.append(f"{said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.wrong.append(f"script: {error}"))
        self.page.on("request", self._requested)
        self.page.add_init_script(VIOLATIONS)

    def _requested(self, request):
        if not request.url.startswith((self.address, "data:")):
            self.wrong.append(f"left the host: {request.url}")

    def shot(self, name):
        """A screenshot, of a page with which nothing is wrong."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{self.screen}-{name}.png", full_page=True)
        assert self.page.evaluate(FAULTS) == [], name
        assert self.wrong == [], name

    def sign_in(self, name):
        self.page.goto("/")
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(f"{self.address}/")

    def sign_out(self):
        self.page.get_by_role("button", name="Sign out").click()
        self.page.wait_for_url("**/sign-in")
        self.context.close()


@pytest.fixture(params=list(SCREENS))
def screen(request):
    return request.param


def test_a_question_from_signing_in_to_signing_out(browser, address, office, screen):
    epsilon = "0.6" if screen == "phone" else "0.5"
    office.stewardship.set_cap(STEWARD, "user", "ann", left_for(office, epsilon))
    visit = Visit(browser, address, screen)
    looks_around(visit)
    writes_a_claim(visit, epsilon)
    asks(visit, office, epsilon)
    runs_out(visit)
    granted(browser, address, screen)
    gives_up(visit)
    makes_a_key(visit)
    visit.sign_out()


def looks_around(visit):
    page = visit.page
    page.goto("/ask")
    visit.shot("01-sign-in")
    visit.sign_in("ann")
    visit.shot("02-data-sets")
    page.get_by_role("link", name="Working hours").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download synthetic data").click()
    assert download.value.suggested_filename == "workers_synthetic.csv"
    visit.shot("03-data-set")
    page.get_by_role("link", name="Ask about this data").click()
    visit.shot("04-ask")


def writes_a_claim(visit, epsilon):
    page = visit.page
    model, loss = page.get_by_label("Model", exact=True), page.get_by_label("Privacy loss ε")
    model.fill("hours ~ educaton_years")
    page.get_by_label("What should hold?").fill(CLAIM)
    loss.focus()
    page.get_by_text("Did you mean 'education_years'?").wait_for()
    page.locator("#model[aria-invalid=true]").wait_for()
    visit.shot("05-message-beside-its-field")
    model.fill("")
    for name in ("hours", "education_years", "age", "sex"):
        page.locator("#columns").get_by_role("button", name=re.compile(f"^{name} ?,")).click()
    assert model.input_value() == MODEL
    loss.fill(epsilon)
    loss.press("Enter")
    page.get_by_role("button", name=f"Ask, and spend ε = {epsilon}").wait_for()
    assert page.url.endswith("/ask?dataset=workers")  # Enter looks at the cost and spends nothing
    page.locator("#model:not([aria-invalid])").wait_for()
    visit.shot("06-cost-and-power")
    page.get_by_label("How often").select_option("5")
    with page.expect_response(planned("49")):  # looked at anew while the rehearsal goes on
        page.get_by_label("Partitions M").fill("49")
        page.get_by_role("button", name="Rehearse").click()
    page.locator("#rehearsal").get_by_text("Of 5 rehearsals").wait_for()
    with page.expect_response(planned("50")):
        page.get_by_label("Partitions M").fill("50")
        page.get_by_label("How often").focus()
    page.wait_for_timeout(300)
    assert page.get_by_role("heading", level=2).all_text_contents() == HEADINGS
    visit.shot("07-rehearsal")


def planned(partitions):
    """Whether a response is the plan of a claim with so many partitions."""

    def fits(response):
        sent = response.request.post_data or ""
        return response.url.endswith("/ask/plan") and f"partitions={partitions}" in sent

    return fits


def asks(visit, office, epsilon):
    page = visit.page
    before = office.spent("user", "ann")
    page.get_by_role("button", name=f"Ask, and spend ε = {epsilon}").click()
    page.get_by_text("waits for its turn").wait_for()
    assert office.spent("user", "ann") - before == int(float(epsilon) * 1_000_000)
    visit.shot("08-waiting")
    office.work()
    page.get_by_role("heading", level=1, name="Supported").wait_for()  # without a click
    visit.shot("09-answer")
    with page.expect_download() as download:
        page.get_by_role("link", name="Signed receipt").click()
    assert download.value.suggested_filename.startswith("receipt-")
    page.get_by_role("link", name="History").click()
    visit.shot("10-history")


def runs_out(visit):
    page = visit.page
    page.get_by_role("link", name="education_years").first.click()
    page.get_by_role("link", name="Ask something like it").click()
    page.get_by_text("This costs nothing").wait_for()
    page.get_by_label("What should hold?").fill("age > 0")
    page.get_by_label("Partitions M").focus()
    page.get_by_text("The budget does not allow it").wait_for()
    assert page.get_by_role("button", name="Ask, and spend").count() == 0
    visit.shot("11-out-of-budget")


def gives_up(visit):
    page = visit.page
    page.get_by_role("button", name="See cost and power").click()
    page.get_by_role("button", name="Ask, and spend").click()
    page.get_by_text("waits for its turn").wait_for()
    page.get_by_text("Cancel this question").click()
    page.get_by_role("button", name="Cancel the question").click()
    page.get_by_role("status").filter(has_text="was cancelled").wait_for()
    visit.shot("20-cancelled")


def makes_a_key(visit):
    page = visit.page
    page.get_by_role("link", name="Account").click()
    page.get_by_label("Label").fill("notebook")
    page.get_by_role("button", name="Make a key").click()
    page.get_by_text("Your new key").wait_for()
    visit.shot("21-account")


def left_for(office, epsilon):
    """A cap that leaves just enough for one answer."""
    return str(office.spent("user", "ann") / 1_000_000 + float(epsilon))


def granted(browser, address, screen):
    """A steward looks around and gives ann more."""
    visit = Visit(browser, address, screen)
    page = visit.page
    visit.sign_in("steward")
    page.get_by_role("link", name="Steward").click()
    visit.shot("12-budgets")
    page.get_by_role("link", name="ann").click()
    page.get_by_label("ε to add").fill("much")
    page.get_by_label("ε to add").press("Enter")
    page.get_by_text("positive decimal").wait_for()
    assert visit.wrong.pop().startswith("error: Failed to load resource")  # the 422 of that message
    page.get_by_label("ε to add").fill("1.5")
    page.get_by_role("button", name="Grant").click()
    page.get_by_text("The budget was raised.").wait_for()
    visit.shot("13-granted")
    steward = page.get_by_role("navigation", name="Steward")
    for number, name in enumerate(("Users", "Keys", "Questions", "Audit log", "Ledger"), 14):
        steward.get_by_role("link", name=name).click()
        page.get_by_role("heading", level=1).wait_for()
        visit.shot(f"{number}-{name.lower().replace(' ', '-')}")
    steward.get_by_role("link", name="Users").click()
    page.get_by_label("Name").fill(f"new-{screen}")
    page.get_by_role("button", name="Add the user").click()
    page.get_by_text("It is shown this once").wait_for()
    page.get_by_label("Working hours").check()
    page.get_by_role("button", name="Save").click()
    visit.shot("19-user")
    visit.sign_out()


def test_by_keyboard_alone(browser, address, office):
    office.stewardship.grant(STEWARD, "user", "ann", "2")
    visit = Visit(browser, address, "desk")
    page = visit.page
    page.goto("/sign-in")
    page.keyboard.type("ann")  # the first field has the focus
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{address}/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.evaluate("document.activeElement.getBoundingClientRect().top") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.goto("/ask")
    page.locator("#dataset").focus()
    page.keyboard.press("Tab")
    page.keyboard.type(MODEL)
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "claim":
            break
    page.keyboard.type(CLAIM)
    page.keyboard.press("Enter")
    page.locator(".spend").wait_for()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(FOCUSED)
        reached.add(name)
        assert outline != "none" or name == "BODY", name
    assert {"epsilon", "partitions", "repetitions", "Rehearse", "See cost and power"} <= reached
    assert any(each.startswith(("Ask, and spend", "Show the answer")) for each in reached)
    assert visit.wrong == []
    visit.context.close()


def test_watching_a_question_that_fails(browser, address, office):
    office.stewardship.grant(STEWARD, "user", "ann", "2")
    office.work(3)  # whatever other tests left
    job = office.service.submit(ANN, ask(epsilon="0.8"), "fails")
    visit = Visit(browser, address, "phone")
    visit.sign_in("ann")
    visit.page.goto(f"/jobs/{job.id}")
    visit.page.get_by_text("waits for its turn").wait_for()
    work = take(office.ledger, "w", start=office.clock, slot_seconds=5, attempts=3)
    said = visit.page.get_by_role("status")
    said.get_by_text("At work.").wait_for()  # for those who do not see the page
    visit.page.get_by_text("The answer can be seen from").wait_for()
    visit.page.get_by_text("Cancel this question").click()
    visit.page.get_by_text("stays spent").wait_for()
    visit.shot("22-at-work")
    give_up(office.ledger, work)
    said.get_by_text("Failed.").wait_for()
    visit.page.get_by_text("could not be computed").wait_for()
    visit.shot("23-failed")
    visit.context.close()


def test_trouble_in_the_background_is_said(browser, address):
    visit = Visit(browser, address, "desk")
    visit.sign_in("ann")
    page = visit.page
    page.goto("/ask")
    page.get_by_label("Model", exact=True).fill(MODEL)
    page.get_by_label("What should hold?").fill(CLAIM)
    visit.context.set_offline(True)
    look = page.get_by_role("button", name="See cost and power")
    look.click()
    page.get_by_role("alert").get_by_text("can not be reached").wait_for()
    visit.context.set_offline(False)
    look.click()
    page.get_by_role("heading", name="How likely is a verdict?").wait_for()
    page.locator("#trouble:empty").wait_for(state="attached")
    page.evaluate("document.body.setAttribute('hx-headers', '{\"X-CSRF-Token\": \"other\"}')")
    look.click()
    page.get_by_role("alert").get_by_text("Reload the page").wait_for()
    assert page.evaluate(FAULTS) == []
    assert visit.wrong
    assert all(each.startswith("error: ") and "policy" not in each for each in visit.wrong)
    visit.context.close()


def test_a_session_that_ends_while_watching_leads_to_signing_in(browser, address, office):
    office.stewardship.grant(STEWARD, "user", "ann", "2")
    job = office.service.submit(ANN, ask(epsilon="0.9"), "watched")
    visit = Visit(browser, address, "phone")
    visit.sign_in("ann")
    visit.page.goto(f"/jobs/{job.id}")
    visit.context.clear_cookies()
    visit.page.evaluate("htmx.ajax('GET', location.pathname + '/status?was=x', '#state')")
    visit.page.wait_for_url("**/sign-in")
    visit.context.close()
