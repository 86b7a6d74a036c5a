"""Noise on the counts of outcomes.

One person changes one partition, so the counts move by e_i - e_j: 1 up, 1 down. All three
mechanisms have noise of density or probability ∝ exp(-(ε/2)·|z_1| - … - (ε/2)·|z_K|) on their
own support, so a move of L1 length 2 changes any answer's chance by at most e^ε, and one
likelihood serves them all:

* `lattice`: whole z that add up to 0, so the noisy counts are whole and add up to M. Drawn as
  independent two-sided geometric noise, kept when it adds up to 0; that does not see the data.
* `laplace`: independent Laplace(2/ε) on every count (Balmat, Barrientos & Reiter 2018).
* `binary`: errors are counted as failures and the lattice has two outcomes; z and -z, with
  P(z) ∝ exp(-ε·|z|).
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.noise.laws import Geometric, Laplace
from countwise.noise.sampling import sample, sample_laplace

MECHANISMS = ("lattice", "laplace", "binary")
BATCH = 4096  # vectors drawn at once, to keep the first that adds up to zero


def measure(counts: IntArray, *, mechanism: str, epsilon: Fraction) -> FloatArray:
    """Noisy counts of outcomes, by exact noise from the operating system."""
    counts = visible(counts, mechanism=mechanism)
    if mechanism == "laplace":
        return counts + sample_laplace(Laplace(scale=2 / epsilon), len(counts))
    law = Geometric(scale=2 / epsilon)
    return (counts + zero_sum(len(counts), lambda size: sample(law, size))).astype(np.float64)


def simulate(
    counts: IntArray, *, mechanism: str, epsilon: Fraction, rng: np.random.Generator
) -> FloatArray:
    """The same noise from a seeded generator, on made-up counts, one vector a row."""
    rows = np.array([visible(row, mechanism=mechanism) for row in counts])
    if mechanism == "laplace":
        return rows + rng.laplace(scale=2 / float(epsilon), size=rows.shape)
    return (rows + _simulated(rows.shape, float(epsilon) / 2, rng)).astype(np.float64)


def _simulated(shape: tuple[int, ...], rate: float, rng: np.random.Generator) -> IntArray:
    """Lattice noise: all but the last are drawn, and kept with probability e^(-rate·|last|)."""
    count, size = shape
    fall = -np.expm1(-rate)
    kept: list[IntArray] = []
    while sum(map(len, kept)) < count:
        drawn = rng.geometric(fall, (2, count, size - 1))
        free = drawn[0] - drawn[1]
        last = -free.sum(axis=1, keepdims=True)
        keep = rng.random(count) < np.exp(-rate * np.abs(last[:, 0]))
        kept.append(np.hstack([free, last])[keep])
    return np.concatenate(kept)[:count]


def visible(counts: IntArray, *, mechanism: str) -> IntArray:
    """The counts a mechanism is about; `binary` adds the errors to the failures."""
    if mechanism != "binary":
        return counts
    return np.array([counts[0], counts[1:].sum()])


def outcomes(names: tuple[str, ...], *, mechanism: str) -> tuple[str, ...]:
    """The names of the counts a mechanism gives."""
    return (names[0], f"{names[1]} or {names[-1]}") if mechanism == "binary" else names


def zero_sum(size: int, draw: Callable[[int], IntArray]) -> IntArray:
    """Independent draws, given that they add up to 0: drawn whole, kept or thrown away whole."""
    while True:
        vectors = draw(BATCH * size).reshape(BATCH, size)
        kept = np.flatnonzero(vectors.sum(axis=1) == 0)
        if len(kept):
            return np.asarray(vectors[kept[0]])
