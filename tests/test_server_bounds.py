"""Nobody can stop the server: what is sent is bounded before it is worked on, and so is waiting."""

import json
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from countwise.errors import InputError, RequestError
from countwise.server.calculator import Calculator
from countwise.server.forecasts import MOST_WAITING, TOO_LONG
from countwise.server.refusals import TooMany
from countwise.server.service import Service
from countwise.verification import filters
from countwise.verification.formula import parse_model
from countwise.verification.grammar import MOST_MARKS
from offices import (
    ANN,
    BOB,
    PASSWORD,
    ask,
    body,
    client,
    example_config,
    new_key,
    open_office,
    serving,
    wait_for,
)

HUGE = ("1e12000000", "1e999999999", "9" * 101, "1/" + "9" * 99, "1e-999999999")
DEEP = ("+".join(["age"] * 900), "*".join(["1"] * 1900) + "*age", "age" + "[1]" * 1300)
HARMLESS = 10.0  # far more than a refusal takes, far less than these did


@pytest.fixture(scope="module")
def small(tmp_path_factory, computer):
    """An office on SQLite with little time for a plan."""
    folder = tmp_path_factory.mktemp("bounds")
    config = example_config(
        folder, f"sqlite:///{folder}/a.db", plan_seconds=0.5, rehearsal_seconds=20.0,
        arrival_seconds=1.0, connections=40,
    )  # fmt: skip
    made = open_office(config, computer)
    yield made
    made.engine.dispose()


@pytest.fixture(scope="module")
def address(small):
    with serving(small) as at:
        yield at


def test_a_number_that_would_take_for_ever_is_refused_unread(small, address):
    """Any of these, as an exact number, is more than the machine could write down."""
    before = small.spent()
    with client(address, new_key(small, "ann")) as caller:
        for text in HUGE:
            for path in ("plan", "rehearse", "jobs"):
                got = caller.post(f"/api/v1/{path}", json=body(epsilon=text),
                                  headers={"Idempotency-Key": "k"})  # fmt: skip
                assert got.status_code == 422, (path, text)
    with client(address, new_key(small, "steward")) as caller:
        for text in HUGE:
            for method, path, name in (
                ("PUT", "budgets/user/ann", "cap"),
                ("POST", "budgets/user/ann/grants", "epsilon"),
            ):
                got = caller.request(method, f"/api/v1/steward/{path}", json={name: text})
                assert got.status_code == 422, (path, text)
    assert small.spent() == before


def test_such_a_number_in_the_pages_form_is_refused_too(address):
    with client(address) as caller:
        csrf = sign_in(caller, "ann")
        for text in HUGE:
            form = body(epsilon=text) | {
                "partitions": "50", "family": "ols", "mechanism": "lattice", "alpha": "1",
                "project": "", "csrf_token": csrf,
            }  # fmt: skip
            got = caller.post("/ask/plan", data=form)
            assert "psilon must be" in got.text, text


def sign_in(caller, name):
    made = caller.post("/api/v1/session", json={"name": name, "password": PASSWORD})
    return made.json()["csrf"]


def test_a_plan_that_takes_too_long_is_ended_and_remembered(small):
    slow = ask(partitions=750, epsilon="0.02")
    service = Service(replace(small.config, plan_seconds=0.02), small.engine)
    found = service.plan(ANN, slow)
    assert (found.power, found.note, found.cost) == ((), TOO_LONG, "0.02")
    service.forecasts.calculator = None  # whatever is asked of it now is a fault
    assert service.plan(ANN, slow).note == TOO_LONG
    assert service.plan(ANN, ask(claim="age > 0", partitions=750, epsilon="0.02")).note
    with pytest.raises(AttributeError):
        service.plan(ANN, ask(partitions=749, epsilon="0.02"))


def test_plans_are_as_before_and_asked_for_once(small):
    first = small.service.plan(ANN, ask())
    assert [each.distance for each in first.power] == [1, 2, 4, 8]
    assert first.power[0].supported < first.power[3].supported
    calculator, small.service.forecasts.calculator = small.service.forecasts.calculator, None
    assert small.service.plan(BOB, ask(model="hours ~ age", claim="age > 0")).power == first.power
    small.service.forecasts.calculator = calculator


def test_a_rehearsal_that_takes_too_long_is_refused_and_the_next_one_answered(small):
    service = Service(replace(small.config, rehearsal_seconds=0.02), small.engine)
    with pytest.raises(InputError, match=r"took longer than 0\.02 s"):
        service.rehearse(ANN, ask(), 20)
    view = small.service.rehearse(ANN, ask(), 2)
    assert sum(view.verdicts.values()) == 1


def test_of_one_user_few_wait_and_others_do_not_wait_for_them(small):
    """Whoever asks for more at once than one is computed for is refused, and holds up nobody."""
    service = Service(small.config, small.engine)
    begun, go = threading.Semaphore(0), threading.Event()

    class Slow:
        def compute(self, work, **_):
            if work["question"]["partitions"] > 600:
                begun.release()
                go.wait(60)
            return []

    service.forecasts.calculator = Slow()
    waiting = [
        threading.Thread(target=service.plan, args=(ANN, ask(partitions=601 + i)))
        for i in range(MOST_WAITING)
    ]
    for each in waiting:
        each.start()
    assert begun.acquire(timeout=30)
    wait_for(lambda: service.forecasts._inside["ann"] == MOST_WAITING)
    with pytest.raises(TooMany, match="several plans"):
        service.plan(ANN, ask(partitions=700))
    assert service.plan(BOB, ask(partitions=60)).power == ()  # computed beside
    assert not begun.acquire(blocking=False)  # one of hers at a time
    go.set()
    for each in waiting:
        each.join()


def test_the_process_that_computes_plans_is_started_again(small):
    own = Calculator()
    work = {
        "kind": "chances", "schema": str(small.config.datasets["workers"].schema_file),
        "question": ask().to_dict(),
    }  # fmt: skip
    try:
        assert own.compute(work, seconds=60, memory_mb=2048)
        own._process.kill()
        own._process.wait()
        assert wait_for(lambda: own.compute(work, seconds=60, memory_mb=2048))
        rows = str(small.config.datasets["workers"].synthetic)
        work |= {"kind": "rehearsal", "synthetic": rows, "repetitions": 1}
        assert own.compute(work, seconds=60, memory_mb=1) is None  # has no room for anything
        assert own.compute(work, seconds=60, memory_mb=4096)
    finally:
        own.stop()


def test_boxes_of_a_filter_are_counted_before_they_are_made(small, monkeypatch):
    pairs = 0
    plain = filters._meet

    def counted(first, second, schema):
        nonlocal pairs
        pairs += len(first) * len(second)
        return plain(first, second, schema)

    monkeypatch.setattr(filters, "_meet", counted)
    schema = small.config.datasets["workers"].schema
    ages = ", ".join(str(each) for each in range(20, 73))
    years = ", ".join(str(each / 4) for each in range(40, 117))
    lists = [f"age in ({ages})", f"education_years in ({years})"] + [f"age in ({ages})"] * 10
    for where in (" and ".join(lists), " and ".join([*lists[:2], *["hours > 1"] * 150])):
        parse_model(f"hours ~ age where {where}", schema)
        assert pairs <= filters.MOST_MEETINGS
        pairs = 0
    with pytest.raises(RequestError, match="no row"):
        parse_model("hours ~ age where age > 60 and age < 30", schema)


def test_what_is_nested_without_parentheses_is_refused_and_not_a_fault(small, address, capfd):
    with client(address, new_key(small, "ann")) as caller:
        for text in DEEP:
            for field in ("model", "claim"):
                how = {field: f"{text} ~ age" if field == "model" else f"{text} > 0"}
                got = caller.post("/api/v1/plan", json=body(**how))
                assert got.status_code == 422, (field, text[:20])
                assert f"more than {MOST_MARKS} operators" in got.json()["error"]["message"]
        wide = body(model="+".join(["age"] * 200) + " ~ age", claim="age > 0")
        assert caller.post("/api/v1/plan", json=wide).status_code == 200
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert len(said) < 10_000


def test_a_recursion_anywhere_else_is_the_callers_fault(small, address, monkeypatch):
    def deep(*_):
        return deep()

    monkeypatch.setattr(Service, "budgets", deep)
    with client(address, new_key(small, "ann")) as caller:
        got = caller.get("/api/v1/budget")
    assert (got.status_code, got.json()["error"]["code"]) == (422, "input")


def test_requests_that_do_not_arrive_are_ended(address):
    """No byte, half a head, half a body, and a second request that stops: all are cut off."""
    host, port = address.removeprefix("http://").split(":")
    whole = b"GET /api/v1/key HTTP/1.1\r\nHost: x\r\n\r\n"
    begun = [
        b"", b"GET /health HTTP/1.1\r\nHost: x\r\n",
        b"POST /api/v1/session HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
        b"Content-Type: application/json\r\n\r\n{",
        whole + b"GET /he",
    ]  # fmt: skip
    with client(address) as other:
        sockets = [socket.create_connection((host, int(port))) for _ in range(5) for _ in begun]
        for i, each in enumerate(sockets):
            each.sendall(begun[i % len(begun)])
        for each in sockets:
            each.settimeout(HARMLESS)
            ended = False
            try:
                while not ended:
                    ended = each.recv(65536) == b""
            except ConnectionError:
                ended = True
            assert ended
            each.close()
        assert other.get("/api/v1/key").status_code == 200


def test_a_request_that_takes_long_to_answer_is_not_cut_off(small, address, monkeypatch):
    plain = Service.budgets

    def slow(self, actor):
        time.sleep(2.5 * small.config.arrival_seconds)
        return plain(self, actor)

    monkeypatch.setattr(Service, "budgets", slow)
    with client(address, new_key(small, "ann")) as caller:
        assert caller.get("/api/v1/budget").status_code == 200
        assert caller.get("/api/v1/session").status_code == 200  # on the same connection


def test_connections_are_counted(small, address):
    host, port = address.removeprefix("http://").split(":")
    many = [socket.create_connection((host, int(port))) for _ in range(80)]
    ended = 0
    for each in many:
        each.settimeout(0.3)
        try:
            ended += each.recv(1) == b""
        except ConnectionError:
            ended += 1
        except TimeoutError:
            pass
    for each in many:
        each.close()
    assert ended >= 80 - small.config.connections
    wait_for(lambda: answered(address), 20)


def answered(address):
    with client(address) as caller:
        return caller.get("/api/v1/key").status_code == 200


def test_metrics_have_labels_of_ours_only(small, address):
    with client(address) as caller:
        for i in range(40):
            assert caller.request(f"M{i:05}", f"/nope{i}").status_code in (404, 405)
    with client(address, new_key(small, "steward")) as caller:
        lines = caller.get("/metrics").text.splitlines()
    invented = [each for each in lines if "other" in each]
    assert len(invented) == 1
    assert invented[0].endswith(" 40")
    assert "M0000" not in "".join(lines)


LOGGING = """
import logging, threading, warnings
from countwise.server.logs import log, only_json
only_json()
log("first")
logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.\\nand more")
warnings.warn("old", DeprecationWarning, stacklevel=1)
def deep(n): return deep(n + 1)
try:
    deep(0)
except RecursionError:
    logging.getLogger("uvicorn.error").error("Exception in ASGI application", exc_info=True)
thread = threading.Thread(target=lambda: 1 / 0)
thread.start()
thread.join()
raise ValueError("a text that somebody sent")
"""


def test_every_line_of_the_log_is_json():
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", LOGGING], capture_output=True, text=True, check=False
    )
    lines = [json.loads(each) for each in done.stderr.splitlines()]
    assert [each["event"] for each in lines] == [
        "first", "library", "library", "fault", "fault", "fault"
    ]  # fmt: skip
    assert [each["kind"] for each in lines[3:]] == [
        "RecursionError", "ZeroDivisionError", "ValueError"
    ]  # fmt: skip
    assert "somebody" not in done.stderr
