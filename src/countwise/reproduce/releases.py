"""Many simulated releases at once, by the methods of Wang (2020) and of Wang & Reiter (2021)."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from countwise.adjust.count_modes import posterior_modes
from countwise.adjust.draw import deal, draw_from_likelihood, posterior_draws
from countwise.arrays import FloatArray, IntArray
from countwise.kernels.apportion import apportion_children, random_ranks
from countwise.noise.laws import Geometric
from countwise.noise.noise_sums import sum_of
from countwise.risk.simulation import simulate_noise


@dataclass(frozen=True, kw_only=True, eq=False)
class Noisy:
    """Noisy totals and noisy components, one row a run, and their laws."""

    totals: IntArray
    parts: IntArray
    total_law: Geometric
    part_law: Geometric

    @property
    def summed(self) -> IntArray:
        """Posterior modes of the total given its noisy value and the noisy sum. Step 3'."""
        terms = sum_of({self.part_law: self.parts.shape[1]})
        return posterior_modes([(self.totals, self.total_law), (self.parts.sum(axis=1), terms)])

    @property
    def alone(self) -> IntArray:
        """Posterior modes of the total given its own noisy value. Step 3."""
        return np.maximum(self.totals, 0)


def geometric(epsilon: str) -> Geometric:
    """Two-sided geometric noise at ε."""
    return Geometric(scale=1 / Fraction(epsilon))


def noisy_runs(
    counts: IntArray, *, total: str, parts: str, runs: int, rng: np.random.Generator
) -> Noisy:
    """Noise at ε = `total` on the total and ε = `parts` on the components."""
    total_law, part_law = geometric(total), geometric(parts)
    noise = simulate_noise(part_law, runs * len(counts), rng=rng).reshape(runs, len(counts))
    totals = counts.sum() + simulate_noise(total_law, runs, rng=rng)
    return Noisy(totals=totals, parts=counts + noise, total_law=total_law, part_law=part_law)


def modes(noisy: IntArray, totals: IntArray, *, rng: np.random.Generator) -> IntArray:
    """A mode of the multinomial in each run, in whole numbers, ties by a new random order."""
    runs, size = noisy.shape
    ranks = random_ranks(np.uint64(rng.integers(2**63)), 0, runs * size)
    offsets = np.arange(runs + 1) * size
    out = np.empty(runs * size, dtype=np.int64)
    values = np.maximum(noisy, 0).ravel()
    apportion_children(offsets, totals, values, ranks, out, 0, runs)
    return out.reshape(runs, size)


def printed_modes(noisy: IntArray, totals: IntArray) -> IntArray:
    """Finucan's loop as it is printed, in double precision, the first smallest quotient served.

    Wang & Reiter 2021, section 2.2. Quotients that tie as fractions differ in their last bits,
    so rounding decides whom a tie favours. An empty component is never docked (R's which.min
    passes over 0/0).
    """
    values = np.maximum(noisy, 0).astype(np.float64)
    size = values.shape[1]
    share = values / values.sum(axis=1, keepdims=True)
    aim = (totals[:, None] + size / 2) * share
    k = np.floor(aim)
    f = aim - k
    for step in (1, -1):
        while True:
            rows = np.flatnonzero(step * (totals - k.sum(axis=1)) > 0)
            if not len(rows):
                break
            quotients = _quotients(k[rows], f[rows], step)
            place = quotients.argmin(axis=1)
            k[rows, place] += step
            f[rows, place] -= step
    return np.asarray(k, dtype=np.int64)


def _quotients(k: FloatArray, f: FloatArray, step: int) -> FloatArray:
    if step > 0:
        return (1 - f) / (k + 1)
    return np.where(k > 0, f / np.maximum(k, 1), np.inf)


def algorithm_1(noisy: Noisy, *, summed: bool, rng: np.random.Generator) -> IntArray:
    """Multinomial draws around posterior draws, of a drawn total. Wang 2020, section 3.1.1."""
    runs, size = noisy.parts.shape
    values = posterior_draws(noisy.parts.ravel(), noisy.part_law, rng=rng)
    if summed:
        terms, sums = sum_of({noisy.part_law: size}), noisy.parts.sum(axis=1)
        totals = np.concatenate(
            [
                draw_from_likelihood(
                    [
                        (noisy.totals[i : i + 1], noisy.total_law),
                        (sums[i : i + 1], terms),
                    ],
                    rng=rng,
                )
                for i in range(runs)
            ]
        )
    else:
        totals = posterior_draws(noisy.totals, noisy.total_law, rng=rng)
    return deal(np.arange(runs + 1) * size, totals, values, rng=rng).reshape(runs, size)


def algorithm_2(noisy: Noisy, *, rng: np.random.Generator) -> IntArray:
    """Multinomial draws around the noisy counts, negative ones as zero."""
    runs, size = noisy.parts.shape
    values = np.maximum(noisy.parts, 0).ravel()
    return deal(np.arange(runs + 1) * size, noisy.alone, values, rng=rng).reshape(runs, size)
