"""Simulation-based calibration: truths from the prior, releases made from them, intervals judged.

A 95% interval of whole numbers holds at least 95%, and says how much: coverage must agree with
that to one point. Truths, noise and adjustments come from the code that makes releases. Here the
number of worlds is bounded, and the error of the slow routes is near a point;
`benchmarks/calibration.py` does the same with an error of a third of a point or less.
"""

from fractions import Fraction

import numpy as np
import pytest

from cases import flat
from countwise.inference.routes import infer_measurements
from countwise.privacy.laws import Geometric
from countwise.privacy.measurements import Measurements
from worlds import PRIOR, coverage, simulate

SHAPES = [(2,), (10,), (50,), (3, 2, 3)]
QUICK = (2500, 500, 100, 320)
SLOW = {
    "mode": (400, 180, 60, 50),
    "summed": (50, 12, 0, 40),  # fifty components take half a minute a world
    "draw-2": (400, 80, 10, 10),
    "draw-1": (100, 30, 6, 8),
}


@pytest.mark.parametrize(("shape", "worlds"), list(zip(SHAPES, QUICK, strict=True)))
@pytest.mark.parametrize("route", ["measurements", "clipped"])
def test_intervals_cover_what_they_say(route: str, shape: tuple[int, ...], worlds: int) -> None:
    found = coverage(route, shape, worlds)
    assert 3 * found.error < 0.01
    assert found.off < 0.01
    assert found.promised > 0.95


@pytest.mark.parametrize(
    ("route", "shape", "worlds"),
    [
        (route, shape, worlds)
        for route, many in SLOW.items()
        for shape, worlds in zip(SHAPES, many, strict=True)
        if worlds
    ],
)
def test_intervals_from_adjusted_counts_cover_what_they_say(
    route: str, shape: tuple[int, ...], worlds: int
) -> None:
    found = coverage(route, shape, worlds)
    assert found.off < max(0.01, 3 * found.error)
    assert found.promised > 0.95


def test_a_wrong_noise_scale_is_found_out() -> None:
    """The test above has power: with the noise taken as half as wide, coverage drops."""
    rng = np.random.default_rng(1)
    inside, promised = [], []
    for _ in range(100):
        world = simulate(flat(10), rng)
        narrow = (Geometric(scale=Fraction(2)), Geometric(scale=Fraction(1)))
        wrong = Measurements(hierarchy=world.hierarchy, laws=narrow, noisy=world.measurements.noisy)
        found = infer_measurements([wrong], prior=PRIOR).summaries(1)
        true = world.true[-1]
        inside.append(np.mean((found.lower <= true) & (true <= found.upper)))
        promised.append(found.chance.mean())
    assert np.mean(promised) - np.mean(inside) > 0.05
