"""Looking around in a release: sums of what is clicked, for this machine alone, in a browser."""

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright

import countwise as cw
from countwise.errors import InputError
from countwise.examples import BY, COUNT, clinics
from countwise.inference.chosen_sums import ChosenSums, overlap
from countwise.release.crossed_release import CrossedRelease
from countwise.release.document import Release
from countwise.reports.explorer import explorer_server
from needs import chromium


def tree(mechanism: str) -> Release:
    table = cw.read_counts(clinics(), by=BY, count=COUNT, cells_are_public=True)
    return cw.release(table, cw.Plan(epsilon=3, mechanism=mechanism))  # type: ignore[return-value]


def crossed() -> CrossedRelease:
    across = {"d": [BY[2]]}
    table = cw.read_counts(clinics(), by=BY[:2], across=across, count=COUNT, cells_are_public=True)
    return cw.release(table, cw.Plan(rho=1, by=BY[:2], across=across))  # type: ignore[return-value]


def sums(release: Release | CrossedRelease) -> ChosenSums:
    return ChosenSums(release=release, table=release.table())


@pytest.mark.parametrize("make", [lambda: tree("geometric"), crossed])
def test_sums_are_those_of_inference(make: object) -> None:
    release = make()  # type: ignore[operator]
    chosen = sums(release)
    table = release.table().cast(dict.fromkeys((*BY, "level"), str))
    level = "diagnosis" if isinstance(release, Release) else "clinic*diagnosis"
    rows = table.with_row_index().filter(level=level, region="Harbour", diagnosis="Asthma")
    found = chosen.sum(rows["index"].to_list())
    assert found.released == rows["count"].sum()
    post = cw.infer(release) if isinstance(release, CrossedRelease) else None
    if post is not None:
        wanted = post.sum("region=Harbour, diagnosis=Asthma")
        own = rows["index"].to_list()
        assert abs((found.low + found.high) / 2 - wanted.mean) <= 1
        assert chosen.sum(own[:1]).low == table["low"][own[0]]


def test_ranges_of_chosen_sums_hold_the_truth() -> None:
    table = cw.read_counts(clinics(), by=BY, count=COUNT, cells_are_public=True)
    truth = table.reveal()
    held = 0
    for _ in range(60):
        release = cw.release(table, cw.Plan(epsilon=1, mechanism="geometric"))
        first = release.size - release.hierarchy.cells
        places = np.random.default_rng().choice(release.hierarchy.cells, 6, replace=False)
        found = sums(release).sum([first + int(i) for i in places])
        held += found.low <= truth[places].sum() <= found.high
    assert held >= 50


def test_joint_noise_has_sums_too() -> None:
    release = tree("joint")
    found = sums(release).sum([1, 3])
    assert found.low <= found.released <= found.high


def test_people_are_counted_once() -> None:
    release = tree("geometric")
    with pytest.raises(InputError, match="Harbour and Harbour / Anchor Street have people"):
        sums(release).sum([1, 4])
    with pytest.raises(InputError, match="not different rows"):
        sums(release).sum([1, 1])
    assert overlap(("a", None, "x"), ("a", "b", None))
    assert not overlap(("a", None, "x"), ("a", "b", "y"))


@contextmanager
def serving(release: Release | CrossedRelease) -> Iterator[int]:
    server = explorer_server(release, port=0)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def ask(port: int, path: str, *, method: str = "GET", host: str = "") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, headers={"Host": host} if host else {})
    reply = connection.getresponse()
    body = reply.read().decode()
    connection.close()
    return reply.status, body


def test_it_answers_this_machine_alone_and_changes_nothing() -> None:
    with serving(tree("geometric")) as port:
        assert ask(port, "/")[0] == 200
        assert "What is promised" in ask(port, "/certificate.html")[1]
        assert json.loads(ask(port, "/sum?rows=1,2")[1])["counts"] == 2
        assert ask(port, "/sum?rows=1,4")[0] == 400
        assert ask(port, "/sum?rows=x")[0] == 400
        assert ask(port, "/sum?rows=9999")[0] == 400
        assert ask(port, "/../etc/passwd")[0] == 404
        assert ask(port, "/", host=f"evil.example:{port}")[0] == 403
        for method in ("POST", "PUT", "DELETE"):
            assert ask(port, "/sum?rows=1", method=method)[0] == 501


@pytest.mark.parametrize("width", [390, 1280])
def test_clicked_counts_are_added_up(width: int) -> None:
    with serving(crossed()) as port, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 800})
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_selector(".listing[data-ready]")
        page.locator(".listing input").fill("old docks asthma")
        page.locator(".listing tbody tr").click()
        page.locator(".listing input").fill("pinewood asthma")
        page.locator(".listing tbody tr").focus()
        page.keyboard.press("Enter")
        said = page.locator(".chosen output")
        expect(said).to_contain_text("2 counts")
        assert "2 counts: released" in said.inner_text()
        assert "in 95 of 100 releases" in said.inner_text()
        page.locator(".chosen button").click()
        assert page.locator(".chosen").is_hidden()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert wrong == []
        browser.close()


def test_the_command_says_where_and_ends_when_interrupted(tmp_path: Path) -> None:
    tree("geometric").save(tmp_path / "r")
    with subprocess.Popen(
        [sys.executable, "-m", "countwise", "explore", "r", "--port", "0", "--json"],
        cwd=tmp_path, stdout=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        lines = [running.stdout.readline() for _ in range(3)]
        port = int(json.loads("".join(lines))["address"].rstrip("/").rpartition(":")[2])
        before = {each: each.stat().st_mtime_ns for each in (tmp_path / "r").iterdir()}
        assert ask(port, "/sum?rows=0")[0] == 200
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 0
    assert before == {each: each.stat().st_mtime_ns for each in (tmp_path / "r").iterdir()}
