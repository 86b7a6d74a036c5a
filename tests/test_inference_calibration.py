"""Simulation-based calibration: truths from the prior, releases made from them, intervals judged.

A 95% interval of whole numbers holds at least 95%, and says how much: coverage must agree with
that to one point, from so many worlds that three standard errors are less than a point. Truths,
noise and adjustments come from the code that makes releases; the total is noisier than the rest,
so that a summed total leans on its parts.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from cases import flat, tree
from countwise.adjust.draw import MultinomialDraw
from countwise.adjust.mode import Mode
from countwise.adjust.topdown import ranks
from countwise.arrays import IntArray
from countwise.inference.posterior import Posterior
from countwise.inference.published import Published
from countwise.inference.routes import infer_measurements, infer_published
from countwise.privacy.laws import Geometric
from countwise.privacy.measurements import Measurements
from countwise.sumproduct.noise import same_noise
from countwise.sumproduct.priors import NegativeBinomial
from countwise.tables.hierarchy import Hierarchy

PRIOR = NegativeBinomial(12.0, 1.5)


@dataclass(frozen=True)
class World:
    """True counts, and noisy counts of them."""

    hierarchy: Hierarchy
    true: tuple[IntArray, ...]
    measurements: Measurements


def simulate(hierarchy: Hierarchy, rng: np.random.Generator) -> World:
    mean, size = PRIOR.mean, PRIOR.size
    cells = rng.negative_binomial(size, size / (size + mean), hierarchy.cells)
    true = hierarchy.sums(cells.astype(np.int64))
    laws = (Geometric(scale=Fraction(4)), *[Geometric(scale=Fraction(2))] * (len(true) - 1))
    noisy = tuple(
        each + law.isf(1 - rng.random(len(each))) for each, law in zip(true, laws, strict=True)
    )
    return World(hierarchy, true, Measurements(hierarchy=hierarchy, laws=laws, noisy=noisy))


def posterior(route: str, world: World, rng: np.random.Generator) -> Posterior:
    if route == "measurements":
        return infer_measurements([world.measurements], prior=PRIOR)
    key = int(rng.integers(2**62))
    total = "summed" if route == "summed" else "independent"
    if route in ("mode", "summed"):
        counts = Mode(tie_key=key, total=total)([world.measurements])
    elif route == "clipped":
        counts = world.hierarchy.sums(np.maximum(world.measurements.noisy[-1], 0))
    else:
        counts = MultinomialDraw(rng=rng, algorithm=int(route[-1]))([world.measurements])
    levels = range(len(counts))
    published = Published(
        hierarchy=world.hierarchy,
        counts=counts,
        order=tuple(
            ranks(world.hierarchy, level, key).argsort().argsort().astype(np.int64)
            for level in levels
        ),
        noise=tuple(same_noise(world.measurements.laws[d], len(counts[d])) for d in levels),
        adjust="mode" if route == "summed" else route,
        total=total,
    )
    return infer_published(published, prior=PRIOR, method="exact")


@pytest.mark.parametrize(
    ("shape", "worlds"), [((2,), 2000), ((10,), 400), ((50,), 90), ((3, 2, 3), 220)]
)
@pytest.mark.parametrize("route", ["measurements", "mode", "summed", "clipped", "draw-2", "draw-1"])
def test_intervals_cover_what_they_say(route: str, shape: tuple[int, ...], worlds: int) -> None:
    rng = np.random.default_rng([worlds, *shape])
    hierarchy = flat(shape[0]) if len(shape) == 1 else tree(*shape)
    inside, promised = [], []
    for _ in range(worlds):
        world = simulate(hierarchy, rng)
        found = posterior(route, world, rng).summaries(len(shape))
        true = world.true[-1]
        inside.append(np.mean((found.lower <= true) & (true <= found.upper)))
        promised.append(found.chance.mean())
    off = np.array(inside) - np.array(promised)
    assert np.std(off) / np.sqrt(worlds) < 0.01 / 3
    assert abs(off.mean()) < 0.01
    assert np.mean(promised) > 0.95


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
