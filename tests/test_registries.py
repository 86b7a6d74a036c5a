"""An adjustment and a noise law of one's own: an entry in one table, and all else knows them."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import countwise as cw
from countwise.adjust.adjustments import ADJUSTMENTS, AdjustmentKind
from countwise.adjust.protocol import Adjustment
from countwise.adjust.tree_walk import whole_tree
from countwise.arrays import IntArray
from countwise.errors import PlanError
from countwise.examples import BY, COUNT, clinics
from countwise.noise.count_noise import MECHANISMS, Mechanism, law_named
from countwise.noise.laws import Geometric, RoundedLaplace
from countwise.release.document import Release, check_counts
from countwise.tables.measurements import Measurements


@dataclass(frozen=True, kw_only=True)
class AllToTheFirst(Adjustment):
    """Every count goes to the first child."""

    name: ClassVar[str] = "all-to-the-first"

    def __call__(self, measurements: Sequence[Measurements]) -> tuple[IntArray, ...]:
        tree = whole_tree(measurements)
        found = [np.maximum(measurements[0].noisy[0], 0)]
        for offsets, size in zip(tree.hierarchy.offsets, tree.hierarchy.sizes[1:], strict=True):
            found.append(np.zeros(size, np.int64))
            found[-1][offsets[:-1]] = found[-2]
        return tuple(found)


class Wide(RoundedLaplace):
    """A law under a name of its own."""

    name: ClassVar[str] = "wide"


@pytest.fixture
def table() -> object:
    return cw.read_counts(clinics(), by=BY, count=COUNT, cells_are_public=True)


def test_an_adjustment_is_one_entry(
    table: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = AdjustmentKind(make=lambda _: AllToTheFirst())
    monkeypatch.setitem(ADJUSTMENTS, AllToTheFirst.name, kind)
    made = cw.release(table, cw.Plan(epsilon=3, by=BY, adjust="all-to-the-first"))
    assert isinstance(made, Release)
    check_counts(made.hierarchy, made.counts)
    assert (made.counts[-1] > 0).sum() == 1
    made.save(tmp_path / "release")
    back = cw.read_release(tmp_path / "release")
    assert back.method == "all-to-the-first"
    assert back.counts[0] == made.counts[0]


def test_a_noise_law_is_one_entry(
    table: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its noise is drawn, ranged, written, read and inferred from."""
    entry = Mechanism(law=Wide, variance=MECHANISMS["laplace"].variance)
    monkeypatch.setitem(MECHANISMS, "wide", entry)
    made = cw.release(table, cw.Plan(epsilon=1, by=BY, mechanism="wide"))
    assert isinstance(made, Release)
    assert {type(law) for law in made.budget.laws} == {Wide}
    made.save(tmp_path / "release")
    back = cw.read_release(tmp_path / "release")
    assert back.budget == made.budget
    posterior = cw.infer(back).table()
    assert posterior.height == made.size
    low, high = (np.concatenate(each) for each in (made.ranges.low, made.ranges.high))
    assert (low <= high).all()
    with pytest.raises(PlanError, match="noise=opendp has no wide noise"):
        cw.release(table, cw.Plan(epsilon=1, by=BY, mechanism="wide", noise="opendp"))


def test_every_law_is_known_by_its_name() -> None:
    assert law_named("geometric") is Geometric
    assert law_named("exact")(scale=Fraction(0)).variance == 0
    for each in MECHANISMS.values():
        assert law_named(each.law.name) is each.law
        assert each.variance(3.0) == pytest.approx(each.law(scale=Fraction(3)).variance, rel=0.05)
