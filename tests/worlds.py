"""Made-up worlds for calibration: truths from a prior, noise, releases, and posteriors of these.

The total is noisier than the rest, so that a summed total leans on its parts.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cases import flat, tree
from countwise.adjust.draw import MultinomialDraw
from countwise.adjust.mode import Mode
from countwise.adjust.tree_walk import ranks
from countwise.arrays import IntArray
from countwise.inference.posterior import Posterior
from countwise.inference.prior_free_posterior import PriorFreePosterior
from countwise.inference.routes import infer_measurements, infer_published
from countwise.inference.sampled_posterior import SampledPosterior
from countwise.noise.laws import Geometric
from countwise.sumproduct.measured_nodes import seen_by
from countwise.sumproduct.node_noise import node_noise, same_noise
from countwise.sumproduct.prior_free_laws import ByNormal
from countwise.sumproduct.priors import NegativeBinomial, NestedCompositions, NoPrior
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.measurements import Measurements
from countwise.withheld.counts_only import CountsOnly
from countwise.withheld.gibbs import run
from countwise.withheld.release_models import PublishedNoise

ROUTES = (
    "none", "normal", "measurements", "nested", "clipped", "mode", "summed", "draw-2", "draw-1",
    "gibbs",
)  # fmt: skip
PRIOR_FREE = ("none", "normal")
"""Routes that promise to cover no less than they say, for every truth."""
WORLDS = {(2,): 2600, (10,): 520, (50,): 110, (3, 2, 3): 320}  # an error of 0.3 points by shape


@dataclass(frozen=True)
class Setting:
    """Where truths come from, and the scales of the noise of the total and below it."""

    prior: NegativeBinomial
    total: Fraction
    below: Fraction


SETTINGS = {
    "plain": Setting(NegativeBinomial(12.0, 1.5), Fraction(4), Fraction(2)),
    "skewed": Setting(NegativeBinomial(2.0, 0.5), Fraction(1), Fraction(1, 2)),
    "sparse": Setting(NegativeBinomial(0.3, 0.3), Fraction(1), Fraction(13, 45)),
}
PRIOR = SETTINGS["plain"].prior
SPARSE_WORLDS = {(3,): 400, (2, 2): 300}  # of the skewed and the sparse setting, by shape


@dataclass(frozen=True)
class World:
    """True counts, and noisy counts of them."""

    hierarchy: Hierarchy
    true: tuple[IntArray, ...]
    measurements: Measurements


def simulate(
    hierarchy: Hierarchy,
    rng: np.random.Generator,
    setting: Setting = SETTINGS["plain"],
    *,
    nested: bool = False,
) -> World:
    """Cells from the setting's prior; where nested, it is the total's, divided level by level."""
    mean, size = setting.prior.mean, setting.prior.size
    few = 1 if nested else hierarchy.cells
    cells = rng.negative_binomial(size, size / (size + mean), few).astype(np.int64)
    if nested:
        for offsets in hierarchy.offsets:
            ways = zip(cells, np.diff(offsets), strict=True)
            cells = np.concatenate([composition(int(n), int(s), rng) for n, s in ways])
    true = hierarchy.sums(cells)
    below = [Geometric(scale=setting.below)] * (len(true) - 1)
    laws = (Geometric(scale=setting.total), *below)
    noisy = tuple(
        each + law.isf(1 - rng.random(len(each))) for each, law in zip(true, laws, strict=True)
    )
    return World(hierarchy, true, Measurements(hierarchy=hierarchy, laws=laws, noisy=noisy))


def composition(count: int, parts: int, rng: np.random.Generator) -> IntArray:
    """One of the ways to write a count as a sum of so many parts: bars between stars."""
    bars = np.sort(rng.choice(count + parts - 1, parts - 1, replace=False))
    return np.diff(np.concatenate([[-1], bars, [count + parts - 1]])) - 1


def posterior(
    route: str, world: World, rng: np.random.Generator, prior: NegativeBinomial = PRIOR
) -> Posterior:
    if route == "none":
        return infer_measurements([world.measurements])
    if route == "normal":
        return PriorFreePosterior(
            released=None,
            route=route,
            prior=NoPrior().words(),
            free=ByNormal(measurements=(world.measurements,)),
            signed=seen_by([world.measurements], NoPrior()),
            joint_belief=NestedCompositions(),
            make_joint=lambda belief: infer_measurements([world.measurements], prior=belief),
        )
    if route == "measurements":
        return infer_measurements([world.measurements], prior=prior)
    if route == "nested":
        return infer_measurements([world.measurements], prior=NestedCompositions(total=prior))
    if route == "gibbs":
        return by_sampler(world.measurements, rng, prior)
    key = int(rng.integers(2**62))
    total = "summed" if route == "summed" else "independent"
    if route in ("mode", "summed"):
        counts = Mode(tie_key=key, total=total)([world.measurements])
    elif route == "clipped":
        counts = world.hierarchy.sums(np.maximum(world.measurements.noisy[-1], 0))
    else:
        counts = MultinomialDraw(rng=rng, algorithm=int(route[-1]))([world.measurements])
    levels = range(len(counts))
    published = CountsOnly(
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
    return infer_published(published, prior=prior, method="exact")


def by_sampler(
    measured: Measurements, rng: np.random.Generator, prior: NegativeBinomial
) -> SampledPosterior:
    """As `infer --method gibbs`, by fewer and shorter chains: 4,000 draws are enough here."""
    noise = node_noise(measured)
    making = PublishedNoise(noisy=measured.noisy, noise=noise)
    chains = run(
        measured.hierarchy, noise, making, prior, chains=16, sweeps=250, warmup=60, rng=rng
    )
    return SampledPosterior(chains=chains, released=None, route="gibbs", prior=prior.words())


@dataclass(frozen=True)
class Coverage:
    """How often 95% intervals of the cells hold the truth, and how much they promise to."""

    found: float
    promised: float
    error: float

    @property
    def more(self) -> float:
        """By how much it is more than promised."""
        return self.found - self.promised

    @property
    def off(self) -> float:
        """The difference."""
        return abs(self.more)


def coverage(
    route: str, shape: tuple[int, ...], worlds: int, setting: Setting = SETTINGS["plain"]
) -> Coverage:
    """The coverage in so many worlds, always the same ones, and its standard error.

    The error is at least that of as many independent intervals: few worlds may agree by chance.
    """
    rng = np.random.default_rng([worlds, *shape])
    hierarchy = flat(shape[0]) if len(shape) == 1 else tree(*shape)
    inside, promised = np.empty(worlds), np.empty(worlds)
    for i in range(worlds):
        world = simulate(hierarchy, rng, setting, nested=route == "nested")
        found = posterior(route, world, rng, setting.prior).summaries(len(shape))
        true = world.true[-1]
        inside[i] = np.mean((found.lower <= true) & (true <= found.upper))
        promised[i] = found.chance.mean()
    spread = float(np.std(inside - promised) / np.sqrt(worlds))
    chance = float(promised.mean())
    alone = float(np.sqrt(chance * (1 - chance) / (worlds * hierarchy.cells)))
    return Coverage(float(inside.mean()), chance, max(spread, alone))
