"""The sampler of whole cells: enumeration at small size, and ranks of truths from its own prior."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare, nbinom

from countwise.arrays import FloatArray, IntArray
from countwise.inference.diagnostics import effective_size
from countwise.kernels.lattice_moves import POISSON
from countwise.margins.cell_lattice import LatticeChain, begun, lattice
from countwise.margins.division import CellDivision
from countwise.margins.measurement import Measurement
from countwise.noise.laws import Exact, IntegerLaw, RoundedLaplace
from countwise.tables.workload import Margin, Workload
from crossed_tables import every_margin, flat, gaussian, geometric, matrix, measured

DIFFUSE = 0.05


def cube(sizes: tuple[int, ...]) -> Workload:
    variables = tuple(flat(name, size) for name, size in zip("abc", sizes, strict=False))
    return Workload(variables=variables, margins=every_margin(variables))


def fixed(cells: int, shape: float) -> CellDivision:
    """Cells about means that are given, without factors."""
    return CellDivision(
        margins=(), shapes=(), rates=(), scatter=np.full(cells, shape), diffuse=DIFFUSE
    )


def kept(chain: LatticeChain, sweeps: int) -> IntArray:
    found = np.empty((1, sweeps, chain.cells.size), np.int64)
    for i in range(sweeps):
        chain.sweep(1)
        found[0, i] = chain.cells
    return found


def prior_of_cells(most: int, means: FloatArray, shape: float) -> FloatArray:
    """A row a cell: the prior of counts 0, 1, …"""
    x = np.arange(most + 1)
    scattered = nbinom.pmf(x, shape, shape / (shape + means.reshape(-1, 1)))
    return (1 - DIFFUSE) * scattered + DIFFUSE / ((x + 1) * (x + 2))


def enumerated(
    workload: Workload, seen: list[Measurement], prior: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Every table with cells up to a largest count, and its posterior probability."""
    most = prior.shape[1] - 1
    tables = np.array(list(product(range(most + 1), repeat=workload.cells)), dtype=np.int64)
    logs = np.log(prior)[np.arange(workload.cells), tables].sum(axis=1)
    for each in seen:
        sums = tables @ matrix(workload, each.margin).T.astype(np.int64)
        deviations = each.noisy.reshape(1, -1) - sums
        with np.errstate(divide="ignore"):
            own = each.law.logpmf(deviations)
        if each.exact is not None:
            known = np.where(deviations == 0, 0.0, -np.inf)
            own = np.where(each.exact.reshape(1, -1), known, own)
        logs = logs + own.sum(axis=1)
    weights = np.exp(logs - logs.max())
    return tables, weights / weights.sum()


CUBES: dict[str, tuple[tuple[int, ...], dict[tuple[int, ...], IntegerLaw], int]] = {
    "gaussian, all margins": (
        (2, 2, 2),
        {each: gaussian(1.5) for each in product((0, 1), repeat=3)},
        4,
    ),
    "geometric, some margins": (
        (2, 2, 2),
        {(0, 0, 0): geometric(1.0), (1, 1, 0): geometric(2.0), (0, 1, 1): geometric(1.5),
         (1, 1, 1): geometric(1.0)},
        4,
    ),
    "laplace and gaussian": (
        (2, 3),
        {(0, 1): RoundedLaplace(scale=geometric(0.7).scale), (1, 1): gaussian(2.0)},
        7,
    ),
    "exact margins": (
        (2, 2, 2),
        {(1, 1, 0): Exact(), (0, 0, 1): Exact(), (1, 1, 1): gaussian(1.0)},
        5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CUBES)
@pytest.mark.parametrize("shape", [0.6, POISSON])
def test_draws_have_the_law_that_enumeration_gives(name: str, shape: float) -> None:
    sizes, laws, most = CUBES[name]
    workload, rng = cube(sizes), np.random.default_rng(5)
    true = rng.poisson(1.0, workload.shape)
    seen = measured(workload, true, {Margin(each): law for each, law in laws.items()}, rng)
    means = rng.gamma(2.0, 0.4, workload.cells)
    tables, chances = enumerated(workload, seen, prior_of_cells(most, means, min(shape, 1e6)))
    within = lattice(workload, seen, fixed(workload.cells, shape))
    chain = begun(within, true, rng, means)
    chain.sweep(100)
    draws = kept(chain, 20_000)
    inside = (draws[0] <= most).all(axis=1)
    assert inside.mean() > 0.5
    for column in [*np.eye(workload.cells, dtype=np.int64), np.arange(workload.cells) % 2]:
        exact = np.bincount(tables @ column, weights=chances)
        found = np.bincount((draws[0] @ column)[inside], minlength=exact.size) / inside.sum()
        size = effective_size((draws @ column).astype(float)) * inside.mean()
        errors = np.sqrt(np.maximum(exact * (1 - exact), 0) / size) + 0.001
        assert (np.abs(found - exact) < 4 * errors).all()


def division(workload: Workload, total: float) -> CellDivision:
    """Rows, columns and cells that scatter; a total of about this size."""
    margins = (Margin((0, 0, 0)), Margin((1, 0, 0)), Margin((0, 1, 1)))
    shapes = tuple(np.full(workload.size(each), 2.0) for each in margins)
    rates = (np.full(1, 2.0 * workload.cells / total), *shapes[1:])
    scatter = np.full(workload.cells, 1.5)
    return CellDivision(margins=margins, shapes=shapes, rates=rates, scatter=scatter, diffuse=0.01)


def drawn_from(prior: CellDivision, workload: Workload, rng: np.random.Generator) -> IntArray:
    """Cells as the prior has them."""
    means = np.ones(workload.shape)
    for margin, shapes, rates in zip(prior.margins, prior.shapes, prior.rates, strict=True):
        factors = (rng.standard_gamma(shapes) / rates).reshape(workload.shape_of(margin))
        means *= workload.spread(factors, margin)
    scatter = prior.scatter.reshape(workload.shape)
    cells = rng.poisson(means * rng.standard_gamma(scatter) / scatter)
    odd = rng.random(workload.shape) < prior.diffuse
    far = np.minimum(1.0 / rng.random(workload.shape), 1000.0).astype(np.int64) - 1
    return np.where(odd, far, cells).astype(np.int64)


@pytest.mark.parametrize("law", [gaussian(6.0), geometric(0.6)], ids=["gaussian", "geometric"])
def test_truths_from_the_prior_have_even_ranks_among_draws(law: IntegerLaw) -> None:
    """Talts et al. 2018. A cell that is forgotten, or a factor that is kept, shows here."""
    workload, rng = cube((2, 3, 2)), np.random.default_rng(8)
    prior = division(workload, 30.0)
    asked = [np.arange(12) == 0, np.arange(12) < 6, np.ones(12), np.arange(12) % 2]
    ranks = []
    for _ in range(300):
        true = drawn_from(prior, workload, rng)
        laws = {Margin(each): law for each in ((0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 1, 1))}
        seen = measured(workload, true, laws, rng)
        start = np.maximum(seen[-1].noisy, 0)
        chain = begun(lattice(workload, seen, prior), start, rng)
        chain.sweep(150)
        draws = np.empty((39, 12))
        for i in range(39):
            chain.sweep(8)
            draws[i] = chain.cells
        for column in asked:
            values, truth = draws @ column, float(true.reshape(-1) @ column)
            below, ties = (values < truth).sum(), (values == truth).sum()
            ranks.append(below + rng.integers(0, ties + 1))
    counts = np.array(ranks).reshape(-1, len(asked)).T // 4
    for each in counts:
        assert chisquare(np.bincount(each, minlength=10)).pvalue > 1e-3
