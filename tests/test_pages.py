"""Every page, made by the real commands, looked at in a real browser."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import countwise as cw
from countwise.examples import clinics
from countwise.pages.bars import bars
from countwise.release.counts_page import release_page
from countwise.reports.posterior_page import posterior_page
from needs import chromium

PAGES = ("release", "certificate", "posterior", "mechanisms", "advice", "answer", "reproduction")
WIDTHS = {"phone": 390, "desktop": 1280}
LARGEST = 2_000_000
SMALLEST_LETTERS = 10.0
FAULTS = Path(__file__).with_name("page_faults.js").read_text()


def commands(folder: Path) -> list[list[str]]:
    model = ["--model", "hours ~ education_years + age + C(sex)", "--claim", "education_years > 0"]
    advise = ["--by", "region,clinic,diagnosis", "--count", "patients", "--repetitions", "5",
              "--epsilon", "1"]  # fmt: skip
    return [
        ["demo", "--out", str(folder / "demo")],
        ["risk", "mechanisms", "--epsilons", "0.1:5:0.2", "--out", str(folder / "mechanisms.html")],
        ["risk", "advise", str(clinics()), *advise, "--out", str(folder / "advice.html")],
        ["reproduce", "--quick", "--out", str(folder / "report")],
        ["verify", "example", "--out", str(folder / "try")],
        ["verify", str(folder / "try" / "workers.csv"), *model, "--epsilon", "1",
         "--schema", str(folder / "try" / "workers.toml"), "--partitions", "50",
         "--page", str(folder / "answer.html")],
    ]  # fmt: skip


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Where each page is, after the commands that write them."""
    folder = tmp_path_factory.mktemp("pages")
    for command in commands(folder):
        done = subprocess.run(
            [sys.executable, "-m", "countwise", *command], capture_output=True, text=True,
            check=False, timeout=280,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    places = {each.stem: each for each in (*folder.glob("*.html"), *folder.glob("demo/*.html"))}
    places["reproduction"] = folder / "report" / "index.html"
    assert set(places) == set(PAGES)
    return places


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = chromium()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


def opened(browser: Browser, place: Path, **context: Any) -> tuple[Page, list[str]]:
    """The page, and what went wrong while it was shown."""
    page = browser.new_context(**context).new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("request", lambda sent: sent.url.startswith("file:") or wrong.append(sent.url))
    page.goto(place.as_uri())
    return page, wrong


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_and_can_be_read(
    name: str, device: str, scheme: str, pages: dict[str, Path], browser: Browser
) -> None:
    size = {"width": WIDTHS[device], "height": 800}
    page, wrong = opened(browser, pages[name], viewport=size, color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert page.evaluate(FAULTS, SMALLEST_LETTERS) == []
    assert wrong == []
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_prints_on_white_with_its_folded_parts(
    name: str, pages: dict[str, Path], browser: Browser
) -> None:
    page, _ = opened(browser, pages[name], color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    folded = "[...document.querySelectorAll('details td')].filter(e => !e.checkVisibility()).length"
    assert page.evaluate(folded) == 0
    assert page.pdf().startswith(b"%PDF")
    page.context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_complete_in_itself(name: str, pages: dict[str, Path]) -> None:
    text = pages[name].read_text()
    assert len(text.encode()) < LARGEST
    for word in ("http://", "https://", "<script src", "@import", "url(", "fetch("):
        assert word not in text.replace("http://www.w3.org/2000/svg", "")


def test_curves_are_told_apart_without_colour(pages: dict[str, Path], browser: Browser) -> None:
    page, _ = opened(browser, pages["mechanisms"])
    dashes = "e => e.map(each => getComputedStyle(each).strokeDasharray)"
    drawn = page.eval_on_selector_all(".legend:first-of-type .curve", dashes)
    assert len(drawn) == 10
    assert len(set(drawn)) == 5
    page.context.close()


def test_bars_of_every_so_many_numbers_are_named_by_them() -> None:
    drawn = bars(10, [0.1, 0.3, 0.2], step=50, title="a", axis="b", marked=110)
    for words in ("from 10 to 110, the highest at 60", "10: 0.1000", "60: 0.3000", "110: 0.2000"):
        assert words in drawn
    assert 'text-anchor="middle">50<' in drawn
    assert 'x1="80.33%"' in drawn


LONG = ("Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch", "x", '<b>&amp;</b> a "label"')


@pytest.mark.parametrize("width", [320, 1280])
def test_long_names_and_large_counts_fit(width: int, tmp_path: Path, browser: Browser) -> None:
    cells = [{"part": a, "piece": f"{a} {b}", "n": len(a) ** b} for a in LONG for b in (1, 6)]
    pl.DataFrame(cells).write_csv(tmp_path / "cells.csv")
    table = cw.read_counts(
        tmp_path / "cells.csv", by=["part", "piece"], count="n", cells_are_public=True
    )
    made = cw.release(table, cw.Plan(epsilon="0.03"))
    for name, text in (("a", release_page(made)), ("b", posterior_page(cw.infer(made)))):
        place = tmp_path / f"{name}.html"
        place.write_text(text, encoding="utf-8")
        page, wrong = opened(browser, place, viewport={"width": width, "height": 800})
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert page.evaluate(FAULTS, SMALLEST_LETTERS) == []
        assert wrong == []
        page.context.close()


def test_the_look_finds_faults(tmp_path: Path, browser: Browser) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!doctype html><html><body><h1>a</h1><h3>b</h3><div style='width:2000px'>wide</div>"
        "<p style='font-size:6px'>small</p><p style='color:#ccc;background:#fff'>faint</p>"
        "<svg viewBox='0 0 1000 10' width='300'><text font-size='12' y='9'>tiny</text></svg>"
        "<table><tr><th>x</th></tr></table><img src='http://127.0.0.1:9/x.png'></body></html>"
    )
    page, wrong = opened(browser, bad, viewport={"width": 390, "height": 800})
    found = " ".join(page.evaluate(FAULTS, SMALLEST_LETTERS))
    for fault in ("wider", "small", "faint", "tiny", "scope", "lang", "main", "svg", "heading"):
        assert fault in found, fault
    assert any("127.0.0.1" in each for each in wrong)
    page.context.close()
