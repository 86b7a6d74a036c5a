"""Noisy margins and a prior as the arrays that moves on the lattice of cells take."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from countwise.arrays import BoolArray, FloatArray, Int32Array, IntArray
from countwise.errors import InputError
from countwise.kernels.lattice_moves import CellGrid, CellScatter, LatticeNoise, move_cells
from countwise.kernels.margin_factors import draw_factors
from countwise.margins.certainties import certainties
from countwise.margins.division import CellDivision
from countwise.margins.incidence import stacked_nodes
from countwise.margins.measurement import Measurement
from countwise.noise.laws import IntegerLaw
from countwise.tables.variable import Variable
from countwise.tables.workload import Workload

MOST_PLACES = 500_000_000  # nodes of cells that are held, two gigabytes
SETTLING = 30  # rounds of factors alone, until the first means go with the first cells


@dataclass(frozen=True, kw_only=True, eq=False)
class Lattice:
    """All that the law of the cells takes, flat."""

    shape: tuple[int, ...]
    noise: LatticeNoise
    grid: CellGrid
    prior: CellScatter
    noisy: IntArray
    nodes: Int32Array
    starts: IntArray
    shapes: FloatArray
    rates: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class LatticeChain:
    """Where a chain is: its cells, how far their sums are from the noisy ones, means, factors."""

    lattice: Lattice
    cells: IntArray
    deviations: IntArray
    means: FloatArray
    factors: FloatArray
    rng: np.random.Generator

    def sweep(self, times: int) -> None:
        """Every cell, and every factor, so many times."""
        for _ in range(times):
            self.move(1)
            self.draw_factors()

    def move(self, times: int) -> None:
        """Every cell so many times, factors as they are."""
        one = self.lattice
        for _ in range(times):
            move_cells(
                self.cells, self.deviations, self.means, one.prior, one.noise, one.grid, self.rng
            )

    def draw_factors(self) -> None:
        """Every factor once, given the cells."""
        one = self.lattice
        if len(one.nodes):
            draw_factors(
                self.cells,
                self.means,
                one.prior,
                one.grid.free,
                one.nodes,
                one.starts,
                self.factors,
                one.shapes,
                one.rates,
                self.rng,
            )


def lattice(
    workload: Workload, measurements: Sequence[Measurement], division: CellDivision
) -> Lattice:
    """The arrays for these noisy margins under this prior."""
    rows = len(measurements) + len(division.margins)
    if rows * workload.cells > MOST_PLACES:
        raise InputError(
            f"{workload.cells:,} cells in {rows} tables are too many for joint draws. To fix, ask "
            "for ranges, which need none."
        )
    free = certainties(workload, measurements).free.reshape(-1)
    sizes = [workload.size(each) for each in division.margins]
    return Lattice(
        shape=workload.shape,
        noise=_noise(workload, measurements),
        grid=_grid(workload, free),
        prior=CellScatter(np.ascontiguousarray(division.scatter), division.diffuse),
        noisy=np.concatenate([each.noisy.reshape(-1) for each in measurements]),
        nodes=stacked_nodes(workload, division.margins),
        starts=np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64),
        shapes=np.concatenate([np.empty(0), *division.shapes]),
        rates=np.concatenate([np.empty(0), *division.rates]),
    )


def begun(
    one: Lattice, cells: IntArray, rng: np.random.Generator, means: FloatArray | None = None
) -> LatticeChain:
    """A chain at these cells; `means` are needed where no factors make them."""
    flat = np.array(cells, dtype=np.int64).reshape(-1)
    deviations = -one.noisy
    for row in one.noise.nodes:
        np.add.at(deviations, row, flat)
    factors = np.ones(len(one.shapes))
    if means is None:
        factors[0] = max(flat.sum(), 1) / max(one.grid.free.sum(), 1)
        means = np.full(flat.size, factors[0])
    chain = LatticeChain(
        lattice=one,
        cells=flat,
        deviations=deviations,
        means=np.array(means, dtype=np.float64).reshape(-1),
        factors=factors,
        rng=rng,
    )
    for _ in range(SETTLING):
        chain.draw_factors()
    return chain


def _noise(workload: Workload, measurements: Sequence[Measurement]) -> LatticeNoise:
    exact = [
        np.full(each.noisy.size, each.certain)
        if each.exact is None or each.certain
        else each.exact.reshape(-1)
        for each in measurements
    ]
    squares, slopes, peaks = np.array([_terms(each.law) for each in measurements]).T.copy()
    precisions = [1.0 / each.law.variance if each.law.variance else 0.0 for each in measurements]
    return LatticeNoise(
        stacked_nodes(workload, [each.margin for each in measurements]),
        np.concatenate(exact),
        squares,
        slopes,
        peaks,
        np.array(precisions),
    )


def _terms(law: IntegerLaw) -> tuple[float, float, float]:
    """What a law multiplies the square of a deviation by, its size, and what it adds at 0.

    >>> from fractions import Fraction
    >>> from countwise.noise.laws import DiscreteGaussian
    >>> _terms(DiscreteGaussian(scale=Fraction(2)))
    (0.125, 0.0, 0.0)
    """
    if not law.variance:
        return 0.0, 0.0, 0.0
    if not law.memoryless:
        return float(1 / (2 * law.scale**2)), 0.0, 0.0
    peak, first, second = law.logpmf([0, 1, 2]).tolist()
    slope = first - second
    return 0.0, slope, peak - first - slope


def _grid(workload: Workload, free: BoolArray) -> CellGrid:
    shape = workload.shape
    ranges = [_partners(each) for each in workload.variables]
    lengths = [len(firsts) for firsts, _ in ranges]
    return CellGrid(
        free=np.ascontiguousarray(free),
        strides=np.array([prod(shape[axis + 1 :]) for axis in range(len(shape))], dtype=np.int64),
        sizes=np.array(shape, dtype=np.int64),
        depths=np.array([len(each.levels) for each in workload.variables], dtype=np.int64),
        places=np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64),
        firsts=np.concatenate([firsts for firsts, _ in ranges]),
        lasts=np.concatenate([lasts for _, lasts in ranges]),
    )


def _partners(variable: Variable) -> tuple[IntArray, IntArray]:
    """For every level above the leaves, from below, the range of leaves under each one's node."""
    depth, firsts, lasts = len(variable.levels), list[IntArray](), list[IntArray]()
    for level in range(depth - 1, -1, -1):
        starts = np.append(variable.starts(level), variable.leaves)
        above = variable.parents(depth, of=level)
        firsts.append(starts[above])
        lasts.append(starts[above + 1])
    return np.concatenate(firsts).astype(np.int64), np.concatenate(lasts).astype(np.int64)
