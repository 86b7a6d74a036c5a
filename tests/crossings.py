"""Small tables that cross, and dense linear algebra on them: the oracle of least squares."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl

from countwise.margins.measurement import Measurement
from countwise.noise.laws import DiscreteGaussian, Exact, IntegerLaw
from countwise.tables.variable import Variable, make_variable
from countwise.tables.workload import Margin, Workload


def variable(name: str, *fan_outs: Sequence[int]) -> Variable:
    """A tree by the children of every node, level by level from the root."""
    paths: list[tuple[str, ...]] = [()]
    for level in fan_outs:
        assert len(level) == len(paths)
        paths = [(*path, f"{i:05}") for path, n in zip(paths, level, strict=True) for i in range(n)]
    levels = [f"{name}{depth}" for depth in range(1, len(fan_outs) + 1)]
    frame = pl.DataFrame({level: [p[d] for p in paths] for d, level in enumerate(levels)})
    return make_variable(name, frame)[0]


def flat(name: str, size: int) -> Variable:
    """A variable of one level."""
    return variable(name, [size])


def random_tree(rng: np.random.Generator, name: str, depth: int) -> Variable:
    """A tree with one to three children a node."""
    levels, nodes = [], 1
    for _ in range(depth):
        levels.append(rng.integers(1, 4, nodes).tolist())
        nodes = sum(levels[-1])
    return variable(name, *levels)


def all_margins(variables: Sequence[Variable]) -> list[Margin]:
    """Every combination of levels."""
    return [Margin(each) for each in product(*(range(len(v.sizes)) for v in variables))]


def design(workload: Workload, margin: Margin) -> np.ndarray:
    """The matrix that sums cells to a margin, from the paths of the cells alone."""
    codes, shape = [], []
    for v, level in zip(workload.variables, margin.levels, strict=True):
        paths = list(zip(*v.tree.path_codes(len(v.levels)), strict=True))
        prefixes = [path[:level] for path in paths]
        order = {prefix: i for i, prefix in enumerate(dict.fromkeys(prefixes))}
        codes.append([order[prefix] for prefix in prefixes])
        shape.append(len(order))
    matrix = np.zeros((int(np.prod(shape)), workload.cells))
    for column, cell in enumerate(product(*codes)):
        matrix[np.ravel_multi_index(cell, shape), column] = 1
    return matrix


def measure(
    rng: np.random.Generator, workload: Workload, scales: Sequence[tuple[Margin, float]]
) -> tuple[np.ndarray, list[Measurement]]:
    """Cells at random, and a noisy margin for each pair; a scale of 0 measures exactly."""
    cells = rng.poisson(6.0, workload.shape)
    found = []
    for margin, scale in scales:
        law: IntegerLaw = Exact()
        if scale:
            law = DiscreteGaussian(scale=Fraction(scale).limit_denominator(1000))
        true = workload.sums(cells, margin)
        noise = np.rint(rng.normal(0, scale or 1, true.shape) * (scale > 0)).astype(np.int64)
        found.append(Measurement(margin=margin, law=law, noisy=true + noise))
    return cells, found


class Dense:
    """Least squares by matrices: the solution of least norm, and the covariance of its sums."""

    def __init__(self, workload: Workload, measurements: Sequence[Measurement]) -> None:
        self.workload = workload
        size = workload.cells
        normal, right = np.zeros((size, size)), np.zeros(size)
        known, counts = [np.zeros((0, size))], [np.zeros(0)]
        for each in measurements:
            matrix, values = design(workload, each.margin), each.noisy.reshape(-1)
            exact = np.zeros(len(values), dtype=bool)
            if each.exact is not None:
                exact = each.exact.reshape(-1)
            if each.law.variance == 0:
                exact[:] = True
            known.append(matrix[exact])
            counts.append(values[exact].astype(float))
            if not exact.all():
                noisy = matrix[~exact] / each.law.variance
                normal += matrix[~exact].T @ noisy
                right += noisy.T @ values[~exact]
        fixed, values = np.concatenate(known), np.concatenate(counts)
        start = np.linalg.lstsq(fixed, values, rcond=None)[0] if len(fixed) else np.zeros(size)
        free = _kernel(fixed) if len(fixed) else np.eye(size)
        inner = free.T @ normal @ free
        inverse = np.linalg.pinv(inner, rcond=1e-11, hermitian=True)
        self.covariance = free @ inverse @ free.T
        self.cells = start + self.covariance @ (right - normal @ start)
        self.unknown = free @ _kernel(inner, 1e-11)
        # Of all that fit equally well, the one of least norm.
        self.cells -= self.unknown @ (self.unknown.T @ self.cells)

    def margin(self, margin: Margin) -> np.ndarray:
        found = design(self.workload, margin) @ self.cells
        return found.reshape(self.workload.shape_of(margin))

    def variance(self, margin: Margin) -> np.ndarray:
        matrix = design(self.workload, margin)
        found = np.einsum("ij,jk,ik->i", matrix, self.covariance, matrix)
        found[np.abs(matrix @ self.unknown).max(axis=1, initial=0) > 1e-8] = np.inf
        return found.reshape(self.workload.shape_of(margin))


def _kernel(matrix: np.ndarray, tolerance: float = 1e-10) -> np.ndarray:
    """An orthonormal basis of what a matrix maps to nothing."""
    _, values, rows = np.linalg.svd(matrix)
    rank = int((values > tolerance * max(values.max(initial=0), 1e-300)).sum())
    return rows[rank:].T


def noise_of(measurements: Sequence[Measurement]) -> Mapping[Margin, float]:
    """Variance of the noise of each margin, measured once."""
    return {each.margin: each.law.variance for each in measurements}
