"""Simulation-based calibration: truths from the prior, releases made from them, intervals judged.

A 95% interval of whole numbers holds at least 95%, and says how much: coverage must agree with
that to one point, for every route and shape, in so many worlds that a point is three standard
errors. Without a prior it may be more, as counts near zero are cut to zero, and not less. Truths,
noise and adjustments come from the code that makes releases, and the worlds are always the same
ones; `benchmarks/calibration.py` prints the figures, also of more worlds.
"""

from fractions import Fraction

import numpy as np
import pytest

from cases import flat
from countwise.inference.routes import infer_measurements
from countwise.noise.laws import Geometric
from countwise.tables.measurements import Measurements
from worlds import PRIOR, PRIOR_FREE, ROUTES, SETTINGS, SPARSE_WORLDS, WORLDS, coverage, simulate

STUDIED = ((10,), (50,))
"""Shapes that are left to `./check --studies`; two components and a tree are tried always."""
SAMPLED = ("gibbs",)
"""Routes that take seconds a world: in fewer worlds, and in all of them in `./check --studies`."""
FEW = 15  # times fewer worlds


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("route", "shape"),
    [
        pytest.param(
            route, shape,
            marks=pytest.mark.study if shape in STUDIED or route in SAMPLED else (),
        )
        for route in ROUTES for shape in WORLDS
    ],
)  # fmt: skip
def test_intervals_cover_what_they_say(route: str, shape: tuple[int, ...]) -> None:
    found = coverage(route, shape, WORLDS[shape])
    assert 3 * found.error < 0.01
    assert found.off < 0.01 or (route in PRIOR_FREE and 0.0 < found.more < 0.02)
    assert found.promised > 0.95


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("shape", list(SPARSE_WORLDS))
@pytest.mark.parametrize("setting", ["skewed", "sparse"])
@pytest.mark.parametrize("route", [route for route in ROUTES if route not in SAMPLED])
def test_intervals_of_small_counts_cover_what_they_say(
    route: str, setting: str, shape: tuple[int, ...]
) -> None:
    """Means of 2 and 0.3, skewed, under narrow noise: most counts are 0, 1 or 2."""
    found = coverage(route, shape, SPARSE_WORLDS[shape], SETTINGS[setting])
    assert found.error < 0.01
    assert found.more > -3.5 * found.error
    assert route in PRIOR_FREE or found.more < 3.5 * found.error
    assert found.promised > 0.95


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "times", [1, pytest.param(FEW, marks=[pytest.mark.study, pytest.mark.timeout(3600)])]
)
@pytest.mark.parametrize("setting", ["plain", "skewed", "sparse"])
@pytest.mark.parametrize("route", SAMPLED)
def test_samplers_cover_what_they_say(route: str, setting: str, times: int) -> None:
    """The same by draws; their intervals are as good as the draws, so a little is given for that.

    In the worlds of every run the error is about two points, in those of a study half a point.
    """
    shape = (2, 2)
    found = coverage(route, shape, SPARSE_WORLDS[shape] // FEW * times, SETTINGS[setting])
    assert found.error < 0.05 / np.sqrt(times)
    assert found.off < 3.5 * found.error + 0.002
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
