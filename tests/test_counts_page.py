"""The page of a release in a real browser: every count is found, with scripts and without."""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import countwise as cw
from countwise.pages.listing import PLAIN_ROWS, Listing, NumberColumn
from countwise.release.counts_page import listed, release_page
from countwise.tables.confidential import Confidential
from countwise.tables.hierarchy import build
from needs import chromium
from test_cli import run

LARGEST = 2_000_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield opened
        opened.close()


def shown(browser: Browser, place: Path, *, scripts: bool = True) -> Page:
    page = browser.new_context(java_script_enabled=scripts).new_page()
    page.goto(place.as_uri())
    if scripts:
        page.wait_for_selector(".listing[data-ready]")
    return page


def made(*sizes: int) -> cw.Release:
    levels = [f"level{depth}" for depth in range(len(sizes))]
    labels = [
        [f"{name} {i}" for i in range(size)] for name, size in zip("abc", sizes, strict=False)
    ]
    hierarchy, _ = build(pl.DataFrame(list(product(*labels)), schema=levels, orient="row"))
    cells = np.random.default_rng(2).integers(0, 90, hierarchy.cells)
    return cw.release(Confidential(hierarchy, cells), cw.Plan(epsilon=1, mechanism="geometric"))


def test_every_count_is_found_by_search_and_by_paging(tmp_path: Path, browser: Browser) -> None:
    release = made(6, 50, 8)
    place = tmp_path / "page.html"
    place.write_text(release_page(release), encoding="utf-8")
    page = shown(browser, place)
    rows = "e => e.map(row => [...row.children].map(cell => cell.textContent))"
    read: list[list[str]] = []
    while True:
        read += page.eval_on_selector_all(".listing tbody tr", rows)
        if page.locator(".listing .on").is_disabled():
            break
        page.locator(".listing .on").click()
    table = release.table()
    expected = [
        [*(label or "" for label in row[:3]), f"{row[4]:,}", f"{row[5]:,} to {row[6]:,}"]
        for row in table.rows()
    ]
    assert read == expected
    page.locator(".listing input").fill("A 3  b 41 C 7")
    (found,) = page.eval_on_selector_all(".listing tbody tr", rows)
    assert found == next(each for each in expected if each[:3] == ["a 3", "b 41", "c 7"])
    page.locator(".listing input").fill("nowhere")
    assert page.locator(".listing tbody tr").count() == 0
    assert "nothing found" in page.locator(".listing .place").inner_text()
    page.context.close()


def test_without_scripts_there_are_tables(tmp_path: Path, browser: Browser) -> None:
    release = made(3, 4, 5)
    place = tmp_path / "page.html"
    place.write_text(release_page(release), encoding="utf-8")
    page = shown(browser, place, scripts=False)
    assert page.locator(".listing tbody tr").count() == release.size
    assert not page.locator(".listing input").is_visible()
    assert page.locator(".drawn .between").first.is_hidden()
    page.locator(".drawn input").check()
    assert page.locator(".drawn .between").first.is_visible()
    page.context.close()


def test_a_page_of_many_counts_stays_small_and_says_what_is_left_out() -> None:
    hierarchy, _ = build(
        pl.DataFrame(
            {"a": [f"{i // 500}" for i in range(100_000)], "b": list(map(str, range(100_000)))}
        )
    )
    table = pl.concat(hierarchy.frame(level) for level in range(3)).with_columns(
        count=pl.Series(np.random.default_rng(3).integers(0, 5_000, hierarchy.nodes)),
    )
    table = table.with_columns(low=pl.col("count") - 300, high=pl.col("count") + 299)
    listing, left_out = listed(table, ["a", "b"])
    assert left_out == []
    assert len(listing.html().encode()) < LARGEST
    plain = Listing(
        frame=table, labels=["a"], numbers=(NumberColumn(name="count", heading="n"),), name="x"
    )
    assert plain.html().count("<tr>") == PLAIN_ROWS + 1
    wild = table.with_columns(
        pl.Series(name, np.random.default_rng(4).integers(0, 2**40, len(table)))
        for name in ("count", "low", "high")
    )
    listing, left_out = listed(wild, ["a", "b"])
    assert left_out == [("b", "100,000")]
    assert len(listing.frame) == 201


CELLS = "region,sex,n\nNorth,f,12\nNorth,m,9\nSouth,f,30\nSouth,m,1\n"
IMPRINT = (
    "--title",
    "Persons <2020>",
    "--producer",
    "Office of Counts",
    "--contact",
    "ask@x.example",
)


@pytest.mark.parametrize("crossed", [False, True])
def test_title_producer_date_and_contact_stand_on_every_page(tmp_path: Path, crossed: bool) -> None:
    (tmp_path / "cells.csv").write_text(CELLS)
    by = ("--by", "region", "--across", "sex", "--rho", "1") if crossed else (
        "--by", "region,sex", "--epsilon", "1")  # fmt: skip
    planned = run("plan", "cells.csv", *by, *IMPRINT, "--out", "p.toml", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    done = run("release", "cells.csv", "--plan", "p.toml", "--count", "n", "--cells-are-public",
               "--out", "r", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    pages = ["r/certificate.html", "r/release.html"]
    manifest = json.loads((tmp_path / "r" / "release.json").read_text())
    assert manifest["plan"]["producer"] == "Office of Counts"
    if not crossed:
        assert run("infer", "r", "--page", "p.html", cwd=tmp_path).returncode == 0
        pages.append("p.html")
    year, _, day = manifest["made"].split("-")
    for name in pages:
        text = (tmp_path / name).read_text()
        for words in ("Persons &lt;2020&gt;", "Office of Counts", "ask@x.example", f"{int(day)} "):
            assert words in text, (name, words)
        assert year in text
    back = cw.read_release(tmp_path / "r")
    assert back.imprint.title == "Persons <2020>"
    assert back.imprint.date == manifest["made"]


def test_a_release_of_an_earlier_version_has_no_date() -> None:
    release = made(2, 2)
    assert "made" in release.manifest()
    assert "title" not in release.manifest()["plan"]
