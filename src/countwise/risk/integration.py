"""Expected squared error of two or three bins by integration, with a bound on its error.

Laplace noise: along the last bin the error is quadratic between known points, so that integral
is exact; the other bins are integrated over boxes by two Gauss rules whose difference is the
error, the worst boxes being halved. Geometric noise: the sum over a window of the lattice, with a
bound for what lies outside.
"""

from fractions import Fraction
from itertools import pairwise, product
from math import exp, log

import numpy as np
from scipy.special import gammainc

from countwise.adjust.histogram import Estimator
from countwise.arrays import FloatArray
from countwise.errors import InputError
from countwise.privacy.laws import Geometric, Laplace
from countwise.risk.breaks import breaks

EDGE = 46.0  # e^-46 is 1e-20: noise beyond this many scales is left out
RULES = {2: (10, 14), 3: (5, 7)}
MOST_BOXES = {2: 20_000, 3: 1_500}  # enough; what is left shows in the error
LATTICE_POINTS = 30_000_000
UNIT = Laplace(scale=Fraction(1))


def integrate(
    estimator: Estimator, bins: FloatArray, law: Laplace | Geometric, *, relative: float
) -> tuple[float, float]:
    """The expected squared error of one histogram, and a bound on how far off that may be."""
    if len(bins) not in RULES:
        raise InputError(f"integration is for two or three bins, got {len(bins)}; simulate it.")
    if isinstance(law, Geometric):
        return _lattice(estimator, bins, law, relative=relative)
    scale = float(law.scale)
    value, error = _boxes(estimator, bins / scale, relative=relative)
    return value * scale**2, error * scale**2


def _boxes(estimator: Estimator, bins: FloatArray, *, relative: float) -> tuple[float, float]:
    outer = len(bins) - 1
    edges = _edges(estimator, bins)
    corners = [list(pairwise(each)) for each in edges]
    boxes = np.array(list(product(*corners)))
    values, errors = _gauss(estimator, bins, boxes)
    for _ in range(60):
        if errors.sum() <= relative * values.sum() or len(boxes) > MOST_BOXES[len(bins)]:
            break
        bad = errors > min(errors.max() / 8, errors.sum())
        halves = _halved(boxes[bad], outer)
        new_values, new_errors = _gauss(estimator, bins, halves)
        boxes = np.concatenate([boxes[~bad], halves])
        values = np.concatenate([values[~bad], new_values])
        errors = np.concatenate([errors[~bad], new_errors])
    # Outside, the loss is at most 2·(‖noise‖² + ‖bins‖² + price), generously.
    size = float(len(bins) * (EDGE + 2) ** 2 + (bins**2).sum() + 100)
    rounding = 1e-13 * float(values.sum())
    return float(values.sum()), float(errors.sum()) + 4 * outer * exp(-EDGE) * size + rounding


def _edges(estimator: Estimator, bins: FloatArray) -> list[FloatArray]:
    """Where to cut each outer noise at the start: at its kink, and where its bin turns negative.

    Of two bins all kinks are known: where the estimator changes its form while the last noisy
    count is at the kink of its own noise. All estimators here treat two bins alike.
    """
    edges = [np.array([-EDGE, -h, 0.0, 3.0, -3.0, EDGE]) for h in bins[:-1]]
    if len(bins) == 2:
        kinks = breaks(estimator, bins[None, 1:], UNIT)[0] - bins[0]
        edges[0] = np.concatenate([edges[0], kinks[np.isfinite(kinks)]])
    return [np.unique(np.clip(each, -EDGE, EDGE)) for each in edges]


def _halved(boxes: FloatArray, outer: int) -> FloatArray:
    """Every box cut in two along every axis."""
    middle = boxes.mean(axis=2)
    cut = []
    for side in product((0, 1), repeat=outer):
        part = boxes.copy()
        for axis, upper in enumerate(side):
            part[:, axis, 1 - upper] = middle[:, axis]
        cut.append(part)
    return np.concatenate(cut)


def _gauss(
    estimator: Estimator, bins: FloatArray, boxes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The integral over each box by the finer rule, and its distance from the coarser."""
    coarse, fine = (_rule(estimator, bins, boxes, n) for n in RULES[len(bins)])
    return fine, np.abs(fine - coarse)


def _rule(estimator: Estimator, bins: FloatArray, boxes: FloatArray, order: int) -> FloatArray:
    nodes, weights = np.polynomial.legendre.leggauss(order)
    outer = len(bins) - 1
    grid = np.stack(np.meshgrid(*[nodes] * outer, indexing="ij"), axis=-1).reshape(-1, outer)
    weight = np.prod(np.meshgrid(*[weights] * outer, indexing="ij"), axis=0).ravel()
    middle, half = boxes.mean(axis=2), (boxes[:, :, 1] - boxes[:, :, 0]) / 2
    noise = middle[:, None] + half[:, None] * grid
    density = np.exp(-np.abs(noise).sum(axis=2)) / 2**outer
    inner = _last_bin(estimator, bins, noise.reshape(-1, outer)).reshape(density.shape)
    return np.asarray((inner * density) @ weight * half.prod(axis=1))


def _last_bin(estimator: Estimator, bins: FloatArray, noise: FloatArray) -> FloatArray:
    """The expected loss over the noise of the last bin, exactly, given that of the others."""
    fixed, last = bins[:-1] + noise, bins[-1]
    points = breaks(estimator, fixed, UNIT)
    points = np.where(np.isfinite(points), np.clip(points - last, -EDGE, EDGE), 0.0)
    ends = np.full((len(fixed), 1), EDGE)
    points = np.sort(np.hstack([-ends, points, 0 * ends, ends]), axis=1)
    left, right = points[:, :-1], points[:, 1:]
    width = right - left
    # Measured from the end nearest to no noise, so that the weight falls along the piece.
    below = right <= 0
    start, sign = np.where(below, right, left), np.where(below, -1.0, 1.0)
    at = start[..., None] + (sign * width)[..., None] * np.array([0.25, 0.5, 0.75])
    loss = _losses(estimator, fixed, last + at, bins)
    one, two, three = loss[..., 0], loss[..., 1], loss[..., 2]
    square = 8 * (one - 2 * two + three)
    linear = 2 * (three - one) - square
    constant = two - linear / 2 - square / 4
    safe = np.where(width > 0, width, 1.0)
    total = constant * gammainc(1, width)
    total += linear * gammainc(2, width) / safe + square * 2 * gammainc(3, width) / safe**2
    return np.asarray((total * np.exp(-np.abs(start)) / 2).sum(axis=1))


def _losses(
    estimator: Estimator, fixed: FloatArray, last: FloatArray, bins: FloatArray
) -> FloatArray:
    shape = last.shape
    noisy = np.empty((*shape, len(bins)))
    noisy[..., :-1] = fixed[:, None, None, :]
    noisy[..., -1] = last
    return np.asarray(((estimator(noisy, law=UNIT) - bins) ** 2).sum(axis=-1))


def _lattice(
    estimator: Estimator, bins: FloatArray, law: Geometric, *, relative: float
) -> tuple[float, float]:
    """Σ over a window of noise vectors, chosen so that the rest weighs less than `relative`."""
    n = len(bins)
    reach = int((log(1 / relative) + 12) / law.rate) + 2
    if (2 * reach + 1) ** n > LATTICE_POINTS:
        raise InputError(
            f"the sum over {2 * reach + 1}^{n} noise vectors is too long; simulate it, or use a "
            "larger epsilon."
        )
    noise = np.arange(-reach, reach + 1)
    weight = law.pmf(noise)
    rest = np.stack(np.meshgrid(*[noise] * (n - 1), indexing="ij"), axis=-1).reshape(-1, n - 1)
    rest_weight = np.prod(np.meshgrid(*[weight] * (n - 1), indexing="ij"), axis=0).ravel()
    total = 0.0
    for first, mass in zip(noise, weight, strict=True):
        noisy = np.empty((len(rest), n))
        noisy[:, 0], noisy[:, 1:] = first, rest
        loss = ((estimator(noisy + bins, law=law) - bins) ** 2).sum(axis=1)
        total += float(mass * (loss @ rest_weight))
    size = n * (reach + 2 / law.rate) ** 2 + float((bins**2).sum()) + 100 * law.variance
    return total, 4 * n * float(law.sf(reach)) * size + 1e-13 * total
