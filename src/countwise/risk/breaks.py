"""Where an estimator changes its form along the last bin, the other bins fixed.

Between these points its squared error is a quadratic of the last noisy count. Points too many do
no harm, a point too few would.
"""

from itertools import combinations, pairwise

import numpy as np

from countwise.adjust.histogram import Estimator
from countwise.adjust.noise import Spread
from countwise.adjust.noisefirst import NoiseFirst, Segmented
from countwise.arrays import FloatArray
from countwise.errors import InputError


def breaks(estimator: Estimator, fixed: FloatArray, law: Spread) -> FloatArray:
    """Candidates, one row for each row of fixed bins; nan where there is none."""
    if isinstance(estimator, NoiseFirst | Segmented):
        return _merging(fixed, estimator.penalty(law, fixed.shape[1] + 1))
    if estimator.name == "resized":
        return _resizing(fixed)
    if estimator.name in {"identity", "clipped"}:
        return np.zeros((len(fixed), 1))
    raise InputError(f"no integration for the estimator {estimator.name!r}; simulate it.")


def _resizing(fixed: FloatArray) -> FloatArray:
    """Zeros in the last bin of |A|·x_i + Σ over j ∉ A of x_j, for i ∈ A: one count runs out."""
    last = fixed.shape[1]
    points = []
    for size in range(1, last + 2):
        for kept in combinations(range(last + 1), size):
            for i in kept:
                weights = np.array([float(j not in kept) for j in range(last + 1)])
                weights[i] += size
                if weights[last]:
                    points.append(-(fixed @ weights[:last]) / weights[last])
    return np.unique(np.stack(points, axis=1), axis=1)


def _merging(fixed: FloatArray, penalty: float) -> FloatArray:
    """Where two segmentations cost the same: roots of quadratics in the last bin."""
    bins = fixed.shape[1] + 1
    priced = [(distance_form(cuts, bins), penalty * (len(cuts) + 1)) for cuts in _cuts(bins)]
    points = []
    for (one, price), (other, other_price) in combinations(priced, 2):
        form = one - other
        a = form[-1, -1]
        b = 2 * fixed @ form[-1, :-1]
        c = np.einsum("mi,ij,mj->m", fixed, form[:-1, :-1], fixed) + price - other_price
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.sqrt(b * b - 4 * a * c)
            if abs(a) > 1e-12:
                points += [(-b - root) / (2 * a), (-b + root) / (2 * a)]
            else:
                points.append(-c / b)
    return np.stack(points, axis=1)


def _cuts(bins: int) -> list[tuple[int, ...]]:
    """All segmentations, each by the places where a run ends."""
    return [cut for size in range(bins) for cut in combinations(range(1, bins), size)]


def distance_form(cuts: tuple[int, ...], bins: int) -> FloatArray:
    """The quadratic form of the squared distance from the means of runs."""
    form = np.eye(bins)
    edges = [0, *cuts, bins]
    for start, stop in pairwise(edges):
        form[start:stop, start:stop] -= 1 / (stop - start)
    return form
