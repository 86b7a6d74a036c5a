"""The page of a plan, with its sliders moved in a real browser: its numbers are the command's."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import Result
from playwright.sync_api import Browser, Page
from typer.testing import CliRunner

from countwise.cli import app
from countwise.errors import InputError
from test_pages import FAULTS, SMALLEST_LETTERS, WIDTHS, browser, opened

__all__ = ["browser"]
SLIDE = "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', {bubbles: true})); }"
FOUR_DIGITS = 2e-4  # relative: the page and the command each round to four
NO_COUNT = 0.1  # errors below are none of a whole number
BETWEEN = 2e-2  # relative, and one count: between points of a curve without a formula
CROSSED = ("--by", "county,tract", "--across", "race, sex")
TREE = ("--by", "county,tract,race")


@dataclass(frozen=True)
class Case:
    """A plan, and whether its page has a slider for every measured table."""

    words: tuple[str, ...]
    shares: bool = True


REPLACED = ("--neighbours", "replace-one")
GEOMETRIC = ("--mechanism", "geometric")
CASES = {
    "crossed, ρ": Case((*CROSSED, "--rho", "1/2")),
    "crossed, ε": Case((*CROSSED, "--epsilon", "2", "--split", "even")),
    "crossed, the cells alone": Case((*CROSSED, "--epsilon", "2"), shares=False),
    "crossed, an exact table": Case((*CROSSED, "--rho", "1/10", "--exact", "county", *REPLACED)),
    "crossed, Laplace": Case(
        (*CROSSED, "--epsilon", "1", "--mechanism", "laplace", "--split", "even")
    ),
    "tree, geometric": Case((*TREE, "--epsilon", "1", *GEOMETRIC)),
    "tree, Gaussian": Case((*TREE, "--rho", "1/3", "--rows", "2")),
    "tree, joint": Case((*TREE, "--epsilon", "1", "--mechanism", "joint"), shares=False),
    "an exact count": Case(
        (*TREE, "--epsilon", "1", *GEOMETRIC, "--exact", "county=c1", *REPLACED), shares=False
    ),
}


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    """A list of cells, its tree uneven."""
    rows = [
        (f"c{county}", f"t{county}{tract}", race, sex)
        for county, tracts in enumerate((1, 3, 3, 7))
        for tract in range(tracts)
        for race in "abc"
        for sex in "FM"
    ]
    frame = pl.DataFrame(rows, schema=["county", "tract", "race", "sex"], orient="row")
    frame.write_csv(tmp_path / "cells.csv")
    return tmp_path / "cells.csv"


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["plan", *map(str, words)])


def by_tree(words: tuple[str, ...], cells: Path) -> Path:
    """The cells of a tree, which has no column for sex."""
    if "--across" not in words:
        pl.read_csv(cells).drop("sex").unique(maintain_order=True).write_csv(cells)
    return cells


def moved(page: Page, rng: np.random.Generator) -> None:
    """Every slider that can be seen, somewhere else."""
    for each in page.locator("input[type=range]:visible").all():
        low, high = (float(str(each.get_attribute(word))) for word in ("min", "max"))
        place = rng.uniform(0.3 * high + 0.7 * low, 0.9 * high + 0.1 * low)
        each.evaluate(SLIDE, place)


def widths(page: Page) -> list[float]:
    """What the page says now."""
    return [float(str(e.get_attribute("data-width"))) for e in page.locator("[data-width]").all()]


def planned(cells: Path, words: tuple[str, ...], stated: dict[str, Any]) -> list[float]:
    """The same from the command, with the loss and the split that the page states."""
    unit, split = next(iter(stated)), stated.get("split")
    given = run(cells, *words, "--out", cells.parent / "plan.toml", "--overwrite")
    assert given.exit_code == 0, given.output
    plan = tomllib.loads((cells.parent / "plan.toml").read_text())
    plan |= {unit: stated[unit]} | ({"split": split} if split else {})
    text = json.dumps(plan, ensure_ascii=False)
    done = run(cells, "--plan", _as_toml(cells.parent / "other.toml", json.loads(text)), "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    return [each["error95_fitted"] for each in found.get("tables", found.get("levels"))]


def _as_toml(path: Path, data: dict[str, Any]) -> Path:
    import tomli_w

    path.write_text(tomli_w.dumps(data), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", CASES)
def test_the_page_says_what_the_command_says(name: str, cells: Path, browser: Browser) -> None:
    case, place = CASES[name], cells.with_name("plan.html")
    cells = by_tree(case.words, cells)
    done = run(cells, *case.words, "--page", place)
    assert done.exit_code == 0, done.output
    page, wrong = opened(browser, place)
    rng = np.random.default_rng(7)
    sliders = page.locator("[data-measured]:visible").count()
    assert (sliders > 1) is case.shares
    for _ in range(3):
        stated = tomllib.loads(page.inner_text("#plan-text"))
        exactly = page.locator("#exactly").count() == 1
        rough = {"rtol": FOUR_DIGITS} if exactly else {"rtol": BETWEEN, "atol": 1}
        both = widths(page), planned(cells, case.words, stated)
        np.testing.assert_allclose(*(np.maximum(each, NO_COUNT) for each in both), **rough)
        moved(page, rng)
    page.click("#reset")
    again = tomllib.loads(page.inner_text("#plan-text"))
    np.testing.assert_allclose(widths(page), planned(cells, case.words, again), BETWEEN, atol=0.5)
    assert wrong == []
    page.context.close()


@pytest.mark.parametrize("device", WIDTHS)
def test_it_fits_and_has_no_network(device: str, cells: Path, browser: Browser) -> None:
    place = cells.with_name("plan.html")
    words = ("--tables", "county*race: ±20; tract: ±50; sex", "--unit", "rho")
    done = run(cells, *CROSSED, *words, "--page", place)
    assert done.exit_code == 0, done.output
    page, wrong = opened(browser, place, viewport={"width": WIDTHS[device], "height": 800})
    assert page.evaluate(FAULTS, SMALLEST_LETTERS) == []
    assert wrong == []
    page.locator("#loss").evaluate(SLIDE, page.locator("#loss").get_attribute("min"))
    assert page.locator("td.missed").count() == 5  # with the sums of county*race
    page.context.close()
    text = place.read_text()
    assert all(word not in text for word in ("http://", "https://", "src=", "@import"))


def test_without_scripts_the_plan_is_there(cells: Path, browser: Browser) -> None:
    place = cells.with_name("plan.html")
    assert run(cells, *CROSSED, "--rho", "1", "--page", place).exit_code == 0
    page, _ = opened(browser, place, java_script_enabled=False)
    shown = page.inner_text("main")
    assert "As planned" in shown
    assert "Try it" not in shown
    assert page.locator("tbody tr").count() == 12
    page.context.close()


def test_labels_can_not_end_the_script(tmp_path: Path) -> None:
    cells = tmp_path / "cells.csv"
    cells.write_text("</script><b>,b\n1,x\n1,y\n2,x\n2,y\n")
    place = tmp_path / "plan.html"
    done = run(cells, "--by", "</script><b>,b", "--rho", "1", "--page", place)
    assert done.exit_code == 0, done.output
    assert "</script><b>" not in place.read_text()


def test_a_page_is_not_written_over(cells: Path) -> None:
    place = cells.with_name("plan.html")
    place.write_text("mine")
    done = run(cells, *CROSSED, "--rho", "1", "--page", place)
    assert isinstance(done.exception, InputError)
    assert place.read_text() == "mine"
