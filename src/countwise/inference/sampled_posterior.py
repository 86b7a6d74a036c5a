"""A posterior that is known by draws of a sampler: the same answers, with their errors."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.inference.combinations import Combination, most_frequent
from countwise.inference.diagnostics import effective_size, split_rhat
from countwise.inference.draws import Draws
from countwise.inference.node_names import find
from countwise.inference.posterior import Posterior
from countwise.inference.statement_probabilities import Probability, estimate, evaluated, judged
from countwise.inference.statements import parse, parse_linear
from countwise.negligible import SAMPLED
from countwise.progress import Tell, silent
from countwise.sumproduct.count_laws import Laws, joined
from countwise.sumproduct.node_noise import Noise, reach
from countwise.sumproduct.priors import Prior
from countwise.sumproduct.summaries import Law, Summaries, summarise
from countwise.tables.hierarchy import Hierarchy
from countwise.withheld.gibbs import Chains, Making, run

CHAINS, SWEEPS, WARMUP = 64, 1_000, 300  # a probability is then within 0.002 where sweeps mix
ENTRIES = 6_400  # of all chains in one conditional law; fewer chains where noise is wide


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SampledPosterior(Posterior):
    """As `Posterior`, from chains; errors count effective draws."""

    chains: Chains

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree of counts."""
        return self.chains.hierarchy

    @cached_property
    def all_draws(self) -> Draws:
        """The draws of all chains, one after another."""
        cells = self.chains.cells.reshape(-1, self.hierarchy.cells)
        levels = [cells]
        for offsets in reversed(self.hierarchy.offsets):
            levels.append(np.add.reduceat(levels[-1], offsets[:-1], axis=1))
        return Draws(hierarchy=self.hierarchy, levels=tuple(reversed(levels)))

    @cached_property
    def effective(self) -> float:
        """The smallest effective sample size of a cell."""
        return float(effective_size(self.chains.cells.astype(np.float64)).min())

    @cached_property
    def rhat(self) -> float:
        """The largest split R-hat of a cell."""
        return float(split_rhat(self.chains.cells.astype(np.float64)).max())

    @property
    def diagnostics(self) -> str:
        """What the sampler says about itself."""
        return (
            f"{len(self.all_draws):,} draws of a Gibbs sampler, effective sample size at least "
            f"{self.effective:,.0f}, R-hat at most {self.rhat:.3f}."
        )

    def laws(self, level: int) -> Laws:
        """The frequencies of every node's counts."""
        return joined([_frequencies(column) for column in self.all_draws.levels[level].T])

    def _law(self, level: int, place: int) -> tuple[int, FloatArray]:
        return _frequencies(self.all_draws.levels[level][:, place]).one(0)

    def summaries(
        self, level: int, *, probability: float = 0.95, interval: str = "highest"
    ) -> Summaries:
        """Mean, mode, deviation and interval of every node of a level, from draws."""
        return summarise(self.laws(level), level=probability, interval=interval)

    def draws(self, count: int, *, rng: np.random.Generator) -> Draws:
        """Joint draws, taken from those of the chains."""
        rows = rng.choice(len(self.all_draws), count, replace=count > len(self.all_draws))
        levels = tuple(level[rows] for level in self.all_draws.levels)
        return Draws(hierarchy=self.hierarchy, levels=levels)

    def law(self, expression: str, *, rng: np.random.Generator | None = None) -> Law:
        """The frequencies of a sum of counts."""
        del rng
        values = evaluated(parse_linear(expression, self.hierarchy), self.all_draws)
        low, chances = _frequencies(values).one(0)
        error = 0.5 / np.sqrt(self.effective)
        return Law(low=low, chances=chances, error=error, prior=self.prior)

    def probability(self, statement: str, *, rng: np.random.Generator | None = None) -> Probability:
        """The share of draws in which a statement is true."""
        del rng
        true = judged(parse(statement, self.hierarchy), self.all_draws)
        return estimate(true, self.effective, prior=self.prior)

    def top(
        self, count: int = 10, *, parent: str = "total", rng: np.random.Generator | None = None
    ) -> list[Combination]:
        """The most frequent combinations of a parent's children."""
        del rng
        level, node = find(self.hierarchy, parent)
        if level == len(self.hierarchy.offsets):
            raise InputError("a cell has no children. To fix, name a parent.")
        rows = self.all_draws.levels[level + 1][:, self.hierarchy.children(level, node)]
        return most_frequent(rows, count, self.effective)

    def joint_mode(self, *, tell: Tell = silent) -> tuple[IntArray, ...]:
        """The most frequent combination of all cells."""
        del tell
        rows = Counter(map(tuple, self.all_draws.cells.tolist()))
        return self.hierarchy.sums(np.array(rows.most_common(1)[0][0]))


def _frequencies(values: IntArray) -> Laws:
    low = int(values.min())
    counts = np.bincount(values - low) / len(values)
    return Laws(lows=np.array([low]), offsets=np.array([0, len(counts)]), values=counts)


def sample(
    hierarchy: Hierarchy,
    noise: tuple[Noise, ...],
    making: Making,
    prior: Prior,
    *,
    released: tuple[IntArray, ...] | None,
    route: str,
    cells: IntArray | None = None,
    rng: np.random.Generator | None,
    tell: Tell,
) -> SampledPosterior:
    """The posterior by the Gibbs sampler."""
    if rng is None:
        raise InputError(
            "this release needs draws of a sampler. To fix, give rng=numpy.random.default_rng()."
        )
    tell("sampling")
    widest = 2 * max(reach(law, SAMPLED) for each in noise for law in each.laws) + 1
    chains = run(
        hierarchy,
        noise,
        making,
        prior,
        chains=int(np.clip(ENTRIES // widest, 8, CHAINS)),
        sweeps=SWEEPS,
        warmup=WARMUP,
        rng=rng,
        cells=cells,
    )
    return SampledPosterior(chains=chains, released=released, route=route, prior=prior.words())
