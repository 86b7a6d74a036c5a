"""Simulation-based calibration: truths from the prior, releases made from them, intervals judged.

A 95% interval of whole numbers holds at least 95%, and says how much: coverage must agree with
that to one point. Truths, noise and adjustments come from the code that makes releases, and the
worlds are always the same ones. Of the slow routes there are as many as fit, with an error near
a point for a single shape and below half a point for all shapes of a route;
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
    "mode": (600, 160, 36, 40),
    "summed": (600, 60, 12, 60),
    "draw-2": (600, 120, 30, 30),
    "draw-1": (300, 50, 8, 16),
}


@pytest.mark.parametrize(("shape", "worlds"), list(zip(SHAPES, QUICK, strict=True)))
@pytest.mark.parametrize("route", ["measurements", "clipped"])
def test_intervals_cover_what_they_say(route: str, shape: tuple[int, ...], worlds: int) -> None:
    found = coverage(route, shape, worlds)
    assert 3 * found.error < 0.01
    assert found.off < 0.01
    assert found.promised > 0.95


@pytest.mark.parametrize("route", list(SLOW))
def test_intervals_from_adjusted_counts_cover_what_they_say(route: str) -> None:
    """Shape by shape as far as chance allows, all shapes together to one point."""
    every = [
        coverage(route, shape, worlds) for shape, worlds in zip(SHAPES, SLOW[route], strict=True)
    ]
    for found in every:
        assert found.error < 0.0125
        assert found.off < max(0.01, 3 * found.error)
        assert found.promised > 0.95
    precision = np.array([found.error**-2 for found in every])
    gaps = np.array([found.found - found.promised for found in every])
    assert precision.sum() ** -0.5 < 0.005
    assert abs(precision @ gaps / precision.sum()) < 0.01


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
