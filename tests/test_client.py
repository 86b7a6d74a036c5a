"""The client against a running server, over connections that break where it hurts."""

import json
import re
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from pathlib import Path

import pytest

from countwise.client import (
    Client,
    NoAnswerError,
    Question,
    RefusedError,
    UnreachableError,
    read_receipt,
)
from countwise.errors import AnswerError, BudgetError, InputError
from offices import (
    CLAIM,
    EPSILON,
    MODEL,
    STEWARD,
    Office,
    example_config,
    new_key,
    open_office,
    serving,
)


@pytest.fixture(scope="module")
def office(tmp_path_factory, computer):
    folder = tmp_path_factory.mktemp("client")
    made = open_office(example_config(folder, f"sqlite:///{folder}/x.db"), computer, budget=50)
    yield made
    made.engine.dispose()


@pytest.fixture(scope="module")
def address(office):
    with serving(office) as found:
        yield found


@pytest.fixture(scope="module")
def client(office, address):
    return Client(address, new_key(office, "ann"), patience=10)


def question(**how):
    return Question(**{"dataset": "workers", "model": MODEL, "claim": CLAIM, "epsilon": "1"} | how)


@contextmanager
def working(office):
    """A worker beside whoever waits in this thread."""
    over = threading.Event()

    def work():
        while not over.wait(0.1):
            office.work()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def broken_line(address, faults):
    """The address of a relay that spoils one call for each fault, and passes on all others.

    `unsent`: closed before the server hears of it. `unheard`: the server's answer is thrown away.
    `cut`: half of the answer comes through.
    """
    host, port = address.removeprefix("http://").split(":")
    calls = []

    def relay(near):
        fault = faults.pop(0) if faults else None
        with near:
            request = received(near, head_of_body=True)
            calls.append(request)
            if fault == "unsent":
                return
            with socket.create_connection((host, int(port))) as far:
                far.sendall(request.replace(b"Connection: keep-alive", b"Connection: close"))
                answer = received(far)
            if fault == "cut":
                answer = answer[: len(answer) - 20]
            if fault != "unheard":
                near.sendall(answer)

    listening = socket.create_server(("127.0.0.1", 0))
    listening.settimeout(0.1)
    over = threading.Event()

    def listen():
        while not over.is_set():
            try:
                near, _ = listening.accept()
            except TimeoutError:
                continue
            near.settimeout(30)
            relay(near)

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", calls
    finally:
        over.set()
        thread.join()
        listening.close()


def received(line, *, head_of_body=False):
    """All that comes: of a request as much as its head says, of an answer until it ends."""
    data = b""
    while True:
        head, end, body = data.partition(b"\r\n\r\n")
        if head_of_body and end:
            size = [
                each for each in head.lower().split(b"\r\n") if each.startswith(b"content-length:")
            ]
            if len(body) >= (int(size[0].split(b":")[1]) if size else 0):
                return data
        piece = line.recv(65536)
        if not piece:
            return data
        data += piece


def test_data_sets_budgets_and_synthetic_rows(client):
    (found,) = client.datasets()
    assert (found.name, found.persons) == ("workers", 1500)
    assert {each.name: each.levels for each in found.columns}["sex"] == ("Female", "Male")
    assert {each.scope for each in client.budget()} == {"user", "dataset"}
    assert client.synthetic("workers").startswith(b"person,year,age")
    with pytest.raises(FrozenInstanceError):
        found.name = "x"


def test_plan_and_rehearsal_spend_nothing(office, client):
    before = office.spent()
    plan = client.plan(question(epsilon=Fraction(1, 4)))
    assert (plan.cost, plan.stored, plan.allowed) == ("0.25", False, True)
    chances = [each.supported for each in plan.power]
    assert chances == sorted(chances)
    found = client.rehearse(question(), repetitions=3)
    assert sum(found.verdicts.values()) == pytest.approx(1)
    assert found.answer.rehearsal
    assert found.answer.verdict in found.verdicts
    assert office.spent() == before


def test_ask_wait_and_check_the_receipt_offline(office, client, tmp_path):
    known = client.server_key()
    job = client.submit(question())
    assert (job.status, job.cost) == ("queued", "1")
    with pytest.raises(NoAnswerError, match="goes on"):
        client.wait(job, timeout=0.1)
    with working(office):
        answered = client.wait(job.id, timeout=60)
    assert answered.job.status == "answered"
    assert answered.answer.verdict == "supported"
    answered.receipt.save(tmp_path / "receipt.json")
    kept = read_receipt(tmp_path / "receipt.json")
    assert kept.check(known).noisy.tolist() == answered.answer.noisy.tolist()
    with pytest.raises(AnswerError, match="another key"):
        kept.check("00" * 32)
    forged = json.loads((tmp_path / "receipt.json").read_text())
    forged["answer"]["noisy"][0] += 1
    (tmp_path / "forged.json").write_text(json.dumps(forged))
    with pytest.raises(AnswerError, match="signature"):
        read_receipt(tmp_path / "forged.json").check(known)
    for name, words in (("none.json", "no such file"), ("broken.json", "not a receipt")):
        if name == "broken.json":
            (tmp_path / name).write_text("{")
        with pytest.raises(AnswerError, match=words):
            read_receipt(tmp_path / name)
    again = client.submit(question(claim="0.5 < education_years"))
    assert (again.status, again.cost) == ("answered", "0")


@pytest.mark.parametrize("fault", ["unsent", "unheard", "cut"])
def test_a_connection_that_breaks_while_submitting_is_paid_for_once(office, address, fault):
    before, jobs = office.spent(), len(office.stewardship.jobs(STEWARD))
    with broken_line(address, [fault, fault]) as (relay, calls):
        client = Client(relay, new_key(office, "ann"), patience=20)
        job = client.submit(question(epsilon="1.5", partitions=60 + len(fault)))
        assert job.status == "queued"
    keys = {
        line for call in calls for line in call.split(b"\r\n") if line.lower().startswith(b"idem")
    }
    assert (len(calls), len(keys)) == (3, 1)
    assert office.spent() - before == EPSILON * 3 // 2
    assert len(office.stewardship.jobs(STEWARD)) == jobs + 1


def test_giving_up_tells_the_key_to_go_on_with(office, address):
    before = office.spent()
    asked = question(epsilon="0.75")
    key = new_key(office, "ann")
    with broken_line(address, ["unheard"] * 50) as (relay, _):
        client = Client(relay, key, patience=0.6)
        with pytest.raises(UnreachableError, match="charged once at most") as caught:
            client.submit(asked)
    same = caught.value.key
    assert office.spent() - before == 750_000  # charged, and nobody heard of it
    found = Client(address, key).submit(asked, key=same)
    assert found.cost == "0.75"
    assert office.spent() - before == 750_000
    with pytest.raises(RefusedError, match="another submission") as caught:
        Client(address, key).submit(question(epsilon="2"), key=same)
    assert caught.value.status == 409


def test_refusals_are_errors_with_the_servers_words(office, client, address):
    with pytest.raises(InputError, match="Did you mean 'hours'"):
        client.plan(question(model="hour ~ age"))
    with pytest.raises(InputError, match="positive"):
        client.plan(question(epsilon="-1"))
    with pytest.raises(BudgetError):
        client.submit(question(epsilon="99"))
    with pytest.raises(RefusedError, match="no such data set") as caught:
        client.plan(question(dataset="none"))
    assert (caught.value.status, caught.value.code) == (404, "not_found")
    with pytest.raises(RefusedError, match="no such job"):
        client.job("0" * 32)
    with pytest.raises(RefusedError, match="not good"):
        Client(address, "cw_no_key").datasets()
    with pytest.raises(RefusedError, match="scope"):
        Client(address, new_key(office, "ann", "read")).submit(question())
    for url in ("verify.example.org", "ftp://x", "http://"):
        with pytest.raises(InputError, match="https://"):
            Client(url, "k")
    with pytest.raises(InputError, match="read the key"):
        Client("http://verify.example.org", "k")
    nobody = socket.create_server(("127.0.0.1", 0))
    port = nobody.getsockname()[1]
    nobody.close()
    begun = time.monotonic()
    with pytest.raises(UnreachableError, match=r"nothing answers at .* Nothing was sent"):
        Client(f"http://127.0.0.1:{port}", "k", patience=300).budget()
    assert time.monotonic() - begun < 100, "refused is an answer, and not waited over"


def test_a_key_is_never_taken_to_another_host():
    with (
        socket.create_server(("127.0.0.1", 0)) as here,
        socket.create_server(("127.0.0.1", 0)) as there,
    ):
        there.settimeout(0.3)
        target = f"http://127.0.0.1:{there.getsockname()[1]}/api/v1/budget"

        def send_elsewhere():
            near, _ = here.accept()
            with near:
                received(near, head_of_body=True)
                near.sendall(f"HTTP/1.1 302 Found\r\nLocation: {target}\r\n\r\n".encode())

        thread = threading.Thread(target=send_elsewhere)
        thread.start()
        with pytest.raises(RefusedError, match="not an answer of a countwise server"):
            Client(f"http://127.0.0.1:{here.getsockname()[1]}", "cw_secret").budget()
        thread.join()
        with pytest.raises(TimeoutError):
            there.accept()


def test_too_many_requests_are_said_at_once_when_patience_is_short(office):
    slow = Office(replace(office.config, queries_per_minute=1), office.computer)
    with serving(slow) as address:
        client = Client(address, new_key(office, "bob"), patience=5)
        with pytest.raises(RefusedError, match="too many") as caught:
            [client.plan(question()) for _ in range(3)]  # two of them in one minute
    slow.engine.dispose()
    assert (caught.value.status, caught.value.pause) == (429, 60)


def test_the_documented_code_runs(office, address, tmp_path, monkeypatch, capsys):
    page = (Path(__file__).parents[1] / "docs" / "client.md").read_text()
    known = {"https://verify.example.org": address, "cw_…": new_key(office, "bob")}
    known |= {"3b6a27bc…": Client(address, "k").server_key(), "…": "pass"}
    monkeypatch.chdir(tmp_path)
    for old, new in known.items():
        page = page.replace(old, new)
    names = {}
    with working(office):
        for code in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
            exec(compile(code, "client.md", "exec"), names)
    assert names["answer"].verdict == "supported"
    assert "supported" in capsys.readouterr().out


def test_a_job_given_up_has_no_answer(office, client):
    before = office.spent()
    job = client.submit(question(epsilon="1.25"))
    assert client.cancel(job).status == "cancelled"
    assert client.cancel(job).status == "cancelled"
    with pytest.raises(NoAnswerError, match="cancelled"):
        client.wait(job)
    assert office.spent() == before
