"""One contract for every histogram estimator, and each estimator's own promise."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from countwise.adjust.histogram import ESTIMATORS, SIGNED, FromCells, rounded
from countwise.adjust.noisefirst import NoiseFirst, Segmented
from countwise.arrays import FloatArray
from countwise.errors import PlanError
from countwise.kernels.segmentation import run_means
from countwise.noise.laws import Exact, Geometric, Laplace
from countwise.release.document import check_counts
from countwise.release.plan import Plan
from countwise.release.run import release
from countwise.tables.confidential import Confidential
from countwise.tables.hierarchy import build
from countwise.tables.measurements import Measurements
from segmentation_table import segment_by_table

LAW = Laplace(scale=Fraction(1))
HARD = {
    "single": [3.0],
    "single negative": [-3.0],
    "zeros": [0.0, 0, 0, 0],
    "all negative": [-1.0, -2, -30, -4],
    "sum zero": [5.0, -5, 2, -2],
    "one giant": [1e12, 0, -1, 2],
    "ties": [2.0, 2, 2, -1, -1, 2],
    "wide": list(np.random.default_rng(0).laplace(scale=4, size=300)),
}
TOTAL_KEPT = ("identity", "noisefirst", "segmented")
ANY_ORDER = ("identity", "clipped", "resized")


@pytest.fixture(params=HARD)
def noisy(request: pytest.FixtureRequest) -> FloatArray:
    return np.array(HARD[request.param])


@pytest.mark.parametrize("name", ESTIMATORS)
def test_contract(name: str, noisy: FloatArray) -> None:
    estimator = ESTIMATORS[name]
    assert estimator.name == name
    before = noisy.copy()
    once = estimator(noisy, law=LAW)
    assert np.array_equal(noisy, before)
    assert once.shape == noisy.shape
    assert np.isfinite(once).all()
    stacked = np.stack([noisy, noisy[::-1]])[None]
    both = estimator(stacked, law=LAW)
    assert both.shape == (1, 2, len(noisy))
    assert both[0, 0] == pytest.approx(once, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_twice_is_once(name: str, noisy: FloatArray) -> None:
    once = ESTIMATORS[name](noisy, law=LAW)
    assert ESTIMATORS[name](once, law=LAW) == pytest.approx(once, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("name", TOTAL_KEPT)
def test_total_is_kept(name: str, noisy: FloatArray) -> None:
    kept = ESTIMATORS[name](noisy, law=LAW).sum()
    assert kept == pytest.approx(noisy.sum(), rel=1e-9, abs=1e-9)


def test_resized_keeps_the_total_unless_it_is_negative(noisy: FloatArray) -> None:
    made = ESTIMATORS["resized"](noisy, law=LAW)
    assert made.sum() == pytest.approx(max(noisy.sum(), 0), rel=1e-9, abs=1e-9)
    assert (made >= 0).all()


@pytest.mark.parametrize("name", ANY_ORDER)
def test_order_does_not_matter(name: str, noisy: FloatArray) -> None:
    order = np.random.default_rng(1).permutation(len(noisy))
    straight, shuffled = (ESTIMATORS[name](x, law=LAW) for x in (noisy, noisy[order]))
    assert shuffled == pytest.approx(straight[order], rel=1e-9, abs=1e-9)


def test_order_matters_to_runs() -> None:
    noisy = np.array([0.0, 3, 0, 3, 0, 3])
    merged = ESTIMATORS["segmented"](np.sort(noisy), law=LAW)
    assert not np.array_equal(np.sort(ESTIMATORS["segmented"](noisy, law=LAW)), merged)


def test_resized_example_of_the_thesis() -> None:
    noisy = np.array([5.0, 5, -1, 12, -8])
    assert list(ESTIMATORS["clipped"](noisy, law=LAW)) == [5, 5, 0, 12, 0]
    assert list(ESTIMATORS["resized"](noisy, law=LAW)) == [2, 2, 0, 9, 0]


def test_resized_is_the_nearest_point() -> None:
    """No feasible direction brings it closer: y - x is a constant where y > 0, not less else."""
    rng = np.random.default_rng(2)
    for noisy in rng.laplace(scale=3, size=(200, 7)) + 1:
        made = ESTIMATORS["resized"](noisy, law=LAW)
        if noisy.sum() <= 0:
            assert not made.any()
            continue
        docks = (noisy - made)[made > 0]
        assert np.ptp(docks) < 1e-12
        assert (noisy[made == 0] <= docks[0] + 1e-12).all()


def test_noisefirst_is_the_table_with_both_readings() -> None:
    law = Geometric(scale=Fraction(2))
    rng = np.random.default_rng(3)
    for reading, price in (("variance", 2 * law.variance), ("published", 16.0)):
        for noisy in rng.laplace(scale=2, size=(50, 25)) + 5:
            expected = run_means(noisy, segment_by_table(noisy, price))
            made = NoiseFirst(reading=reading)(noisy, law=law)
            assert made == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_two_bins_are_merged_as_longer_rows_are() -> None:
    rng = np.random.default_rng(4)
    for estimator in (NoiseFirst(), Segmented()):
        for noisy in rng.laplace(scale=3, size=(300, 2)):
            price = estimator.penalty(LAW, 2)
            expected = run_means(noisy, segment_by_table(noisy, price))
            assert estimator(noisy, law=LAW) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_noisefirst_cuts_a_flat_histogram_to_pieces_and_segmented_does_not() -> None:
    noisy = np.random.default_rng(7).laplace(size=(40, 1024))
    square = {n: (ESTIMATORS[n](noisy, law=LAW) ** 2).sum(axis=1).mean() for n in ESTIMATORS}
    assert 1100 < square["noisefirst"] < 1450
    assert square["segmented"] < 120
    assert square["identity"] == pytest.approx(2048, rel=0.05)


def test_rounding_keeps_the_sum_and_stays_within_one() -> None:
    rng = np.random.default_rng(8)
    for values in rng.exponential(size=(100, 30)):
        whole = rounded(values)
        assert whole.sum() == round(values.sum())
        assert np.abs(whole - values).max() < 1
    assert list(rounded(np.array([3.0, 0.0, -2.0]))) == [3, 0, -2]


HIERARCHY, _ = build(pl.DataFrame({"a": ["x", "x", "y", "y", "y"], "b": ["1", "2", "1", "2", "3"]}))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_as_an_adjustment_counts_add_up(name: str) -> None:
    rng = np.random.default_rng(9)
    laws = (Geometric(scale=Fraction(3)),) * 3
    for _ in range(30):
        noisy = tuple(rng.integers(-6, 9, size) for size in HIERARCHY.sizes)
        measured = Measurements(hierarchy=HIERARCHY, laws=laws, noisy=noisy)
        counts = FromCells(estimator=ESTIMATORS[name])([measured])
        if name == "identity":
            assert list(counts[-1]) == list(noisy[-1])
            assert counts[0][0] == noisy[-1].sum()
        else:
            check_counts(HIERARCHY, counts)


def test_exact_counts_are_left_alone() -> None:
    noisy = HIERARCHY.sums(np.array([0, 3, 3, 0, 7]))
    measured = Measurements(hierarchy=HIERARCHY, laws=(Exact(),) * 3, noisy=noisy)
    for name in ESTIMATORS:
        counts = FromCells(estimator=ESTIMATORS[name])([measured])
        assert list(counts[-1]) == [0, 3, 3, 0, 7], name


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != SIGNED])
def test_in_a_release(name: str) -> None:
    table = Confidential(HIERARCHY, np.array([0, 3, 50, 0, 7]))
    made = release(table, Plan(epsilon=1, adjust=name))
    check_counts(HIERARCHY, made.counts)


def test_a_release_refuses_signed_counts_and_several_measurements() -> None:
    with pytest.raises(PlanError, match="negative counts"):
        Plan(epsilon=1, adjust="identity")
    measured = Measurements(
        hierarchy=HIERARCHY, laws=(Exact(),) * 3, noisy=HIERARCHY.sums(np.arange(5))
    )
    with pytest.raises(PlanError, match="one noisy value"):
        FromCells(estimator=ESTIMATORS["clipped"])([measured, measured])
