"""The walks of docs/architecture.md are the ways that data really go, and are short."""

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import countwise as cw
from countwise.examples import BY, COUNT, clinics
from countwise.examples.workers import workers

SOURCE = Path(cw.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
MOST = 20
FINDING = {"model": "hours ~ education_years + age + C(sex)", "claim": "education_years > 0.5"}
JOBS: dict[str, Callable[[Path], object]] = {
    "Release": lambda folder: cw.release(
        clinics(), by=BY, count=COUNT, epsilon=1, cells_are_public=True, out=folder / "release"
    ),
    "Infer": lambda folder: cw.infer(
        folder / "before", page=folder / "page.html", rng=np.random.default_rng(0)
    ),
    "Verify": lambda folder: cw.verify(
        workers(), schema=workers("workers.toml"), epsilon=1, page=folder / "page.html", **FINDING
    ),
    "Judge": lambda folder: cw.risk_advise(
        clinics(), by=BY, count=COUNT, epsilon=1, repetitions=3, out=folder / "advice.html"
    ),
    "Reproduce": lambda folder: cw.reproduce("wang2021/example", quick=True, out=folder / "report"),
}


def walks() -> dict[str, list[str]]:
    """The modules of each walk, from the numbered lists of the page."""
    text = PAGE.read_text(encoding="utf-8").partition("## Five walks")[2].partition("\n## ")[0]
    found = {}
    for title, _, walk in (part.partition("\n") for part in text.split("### ")[1:]):
        found[title.partition(":")[0]] = re.findall(r"^\d+\. `([\w.]+)`", walk, re.MULTILINE)
    return found


@contextmanager
def followed(walk: list[str]) -> Iterator[list[str]]:
    """Within this, the modules of a walk leave the list as functions of theirs are called."""
    left, files = list(walk), {}

    def called(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and left and code.co_flags & inspect.CO_OPTIMIZED:
            if code.co_filename not in files:
                files[code.co_filename] = dotted(code.co_filename)
            if files[code.co_filename] == left[0]:
                left.pop(0)

    sys.setprofile(called)
    try:
        yield left
    finally:
        sys.setprofile(None)


def dotted(file: str) -> str:
    path = Path(file)
    if not path.is_relative_to(SOURCE):
        return ""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def test_every_job_has_a_short_walk_on_which_no_module_is_met_twice() -> None:
    assert set(walks()) == set(JOBS)
    for job, walk in walks().items():
        assert 5 <= len(walk) <= MOST, (job, len(walk))
        assert len(set(walk)) == len(walk), job
        for each in walk:
            importlib.import_module(f"countwise.{each}")


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
@pytest.mark.parametrize("job", JOBS)
def test_a_datum_goes_the_way_that_is_written(job: str, tmp_path: Path) -> None:
    table = cw.read_counts(clinics(), by=BY, count=COUNT, cells_are_public=True)
    cw.release(table, cw.Plan(epsilon=1, by=BY)).save(tmp_path / "before")
    for each in walks()[job]:
        importlib.import_module(f"countwise.{each}")  # importing is not yet work
    with followed(walks()[job]) as left:
        JOBS[job](tmp_path)
    assert not left, f"after the modules before it, {left[0]} was not entered"
