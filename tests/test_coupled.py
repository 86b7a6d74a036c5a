"""Coupled sums against sums over all vectors, and against plain convolutions in long doubles."""

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.kernels import coupled


class Case(NamedTuple):
    """One problem: ragged weights, and T or None."""

    weights: list[FloatArray]
    lows: IntArray
    coupling: FloatArray | None
    coupling_low: int

    @property
    def offsets(self) -> IntArray:
        return np.concatenate([[0], np.cumsum([w.size for w in self.weights])])

    @property
    def arguments(self) -> tuple[FloatArray, IntArray]:
        return np.concatenate(self.weights), self.offsets

    @property
    def keywords(self) -> dict[str, object]:
        return {
            "lows": self.lows,
            "coupling": self.coupling,
            "coupling_low": self.coupling_low,
        }


class Truth(NamedTuple):
    log: float
    marginals: FloatArray
    messages: FloatArray
    sums: FloatArray
    low: int


def peak(size: int, rate: float, at: float) -> FloatArray:
    return np.exp(-rate * np.abs(np.arange(size) - at))


def geometric(count: int, size: int, rate: float, off: float, base: int = 0) -> Case:
    """Two-sided geometric weights around the middle, T of the same law off the middle."""
    rng = np.random.default_rng(count)
    weights = [peak(size, rate, size // 2 + shift) for shift in rng.integers(-1, 2, count)]
    lows = rng.integers(base, base + 50, count)
    half = int(30 / rate)
    middle = int(lows.sum() + count * (size // 2) + off)
    return Case(weights, lows, peak(2 * half + 1, rate, half), middle - half)


def ragged(seed: int, count: int) -> Case:
    """Random weights, some zero, supports of one to six values, random T."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, count)
    weights = [rng.exponential(size=n) * (rng.random(n) < 0.8) + 1e-9 for n in sizes]
    lows = rng.integers(-5, 5, count)
    coupling = rng.exponential(size=rng.integers(1, 9))
    start = lows.sum() + rng.integers(0, min(3, sizes.sum() - count + 1))
    return Case(weights, lows, coupling, int(start))


def brute(case: Case) -> Truth:
    """Every vector, one by one."""
    sizes = [w.size for w in case.weights]
    coupling, low = with_coupling(case)
    marginals, messages = np.zeros((2, sum(sizes)))
    sums = np.zeros(coupling.size)
    for x in product(*map(range, sizes)):
        t = sum(x) + int(case.lows.sum()) - low
        if not 0 <= t < coupling.size:
            continue
        factors = [w[i] for w, i in zip(case.weights, x, strict=True)]
        sums[t] += coupling[t] * np.prod(factors)
        for s, i in enumerate(x):
            others = coupling[t] * np.prod(factors[:s] + factors[s + 1 :])
            messages[case.offsets[s] + i] += others
            marginals[case.offsets[s] + i] += others * factors[s]
    total = sums.sum()
    return Truth(np.log(total), marginals / total, messages / total, sums / total, low)


def with_coupling(case: Case) -> tuple[FloatArray, int]:
    """T, or ones on the whole range of the sum."""
    if case.coupling is not None:
        return case.coupling, case.coupling_low
    return np.ones(sum(w.size - 1 for w in case.weights) + 1), int(case.lows.sum())


def plain(case: Case) -> Truth:
    """Leave-one-out laws from plain convolutions of everything before and after."""
    weights = [w.astype(np.longdouble) for w in case.weights]
    coupling, low = with_coupling(case)
    before = [np.ones(1, np.longdouble)]
    for w in weights:
        before.append(np.convolve(before[-1], w))
    after = [np.ones(1, np.longdouble)]
    for w in weights[::-1]:
        after.append(np.convolve(w, after[-1]))
    after.reverse()
    start = low - int(case.lows.sum())
    law = placed(before[-1], coupling.size, start) * coupling
    total = law.sum()
    messages = []
    for s, w in enumerate(weights):
        others = np.convolve(before[s], after[s + 1])
        rows = [placed(others, coupling.size, start - x) @ coupling for x in range(w.size)]
        messages.append(np.array(rows) / total)
    told = np.concatenate(messages)
    return Truth(
        float(np.log(total)),
        as_float(told * np.concatenate(weights)),
        as_float(told),
        as_float(law / total),
        low,
    )


def placed(values: FloatArray, size: int, start: int) -> FloatArray:
    """values[start], values[start + 1], …, zero outside."""
    result = np.zeros(size, values.dtype)
    first, last = max(0, -start), min(size, values.size - start)
    if first < last:
        result[first:last] = values[first + start : last + start]
    return result


def as_float(array: FloatArray) -> FloatArray:
    return array.astype(np.float64)


def compare(case: Case, truth: Truth, tolerance: float) -> None:
    arguments, keywords = case.arguments, case.keywords
    marginals = coupled.marginals(*arguments, **keywords)
    np.testing.assert_allclose(marginals, truth.marginals, atol=tolerance, rtol=0)
    messages, log = coupled.downward(*arguments, **keywords)
    np.testing.assert_allclose(messages * arguments[0], truth.marginals, atol=tolerance, rtol=0)
    low, law, up_log = coupled.upward(*arguments, **keywords)
    expected = placed(truth.sums, law.size, low - truth.low)
    np.testing.assert_allclose(law, expected, atol=tolerance, rtol=0)
    scale = max(1.0, abs(truth.log))
    assert abs(log - truth.log) < tolerance * scale
    assert up_log == pytest.approx(log, abs=tolerance * scale)


HARD = {
    "single component": Case([peak(9, 1.0, 3.0)], np.array([5]), peak(5, 1.0, 0.0), 9),
    "single component, no coupling": Case([peak(9, 1.0, 3.0)], np.array([5]), None, 0),
    "all mass on one value": Case([np.ones(1)] * 4, np.array([3, 0, 7, 1]), peak(9, 1.0, 4.0), 8),
    "mass on one of many values": Case(
        [np.eye(9)[2], np.eye(9)[8], peak(9, 0.5, 4.0)], np.array([0, 1, 2]), None, 0
    ),
    "point coupling": Case([peak(9, 1.0, 4.0)] * 4, np.arange(4), np.ones(1), 25),
    "giant counts": geometric(3, 11, 1.0, 2.0, base=10**9),
    "very narrow": geometric(4, 5, 10.0, 0.0),
    "very narrow, far coupling": geometric(4, 5, 10.0, 9.0),
    "sum at its lower end": geometric(4, 7, 1.0, 0.0)._replace(
        coupling=np.ones(1), coupling_low=int(geometric(4, 7, 1.0, 0.0).lows.sum())
    ),
    "far above": geometric(4, 7, 1.0, 35.0),
    "far below": geometric(4, 7, 1.0, -35.0),
    "no coupling": geometric(4, 9, 0.3, 0.0)._replace(coupling=None),
    "tiny and giant weights": Case(
        [np.array([1e-300, 1.0, 1e-300]), np.array([1e300, 1e290]), np.array([1e-250, 1e-260])],
        np.array([0, 0, 0]),
        np.array([1e-200, 0.0, 1e-290]),
        0,
    ),
    "steep coupling far from the weights": Case(
        [np.array([1.0, *[1e-300] * 6, 1e-7, 1e-8])] * 3,
        np.array([0, 4, 0]),
        np.array([1e-29] * 24 + [1.0]),
        4,
    ),
}


@pytest.mark.parametrize("case", HARD.values(), ids=HARD.keys())
def test_hard_cases_against_all_vectors(case: Case) -> None:
    truth = plain(case)
    if case is not HARD["tiny and giant weights"]:
        np.testing.assert_allclose(brute(case).marginals, truth.marginals, atol=1e-13)
    compare(case, truth, 1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_ragged_weights_against_all_vectors(seed: int) -> None:
    case = ragged(seed, 1 + seed % 5)
    truth = brute(case)
    compare(case, truth, 1e-12)
    messages, _ = coupled.downward(*case.arguments, **case.keywords)
    bulk = truth.marginals > 1e-3
    np.testing.assert_allclose(messages[bulk], truth.messages[bulk], rtol=1e-11)


@pytest.mark.parametrize("off", [0.0, 40.0, -150.0, 600.0])
def test_fifty_components_against_convolutions(off: float) -> None:
    case = geometric(50, 61, 1.0, off, base=10**9)
    compare(case, plain(case), 1e-12)


def test_tail_below_the_range_of_doubles() -> None:
    case = geometric(30, 61, 1.0, 820.0)
    truth = plain(case)
    assert truth.log < -745
    compare(case, truth, 1e-12)


@pytest.mark.parametrize("off", [0.0, 3000.0])
def test_wide_supports_against_convolutions(off: float) -> None:
    case = geometric(3, 5000, 0.01, off)._replace(coupling=peak(301, 0.02, 150.0))
    truth = plain(case)
    compare(case, truth, 1e-13)
    marginals = coupled.marginals(*case.arguments, **case.keywords)
    bulk = truth.marginals > 1e-8 * truth.marginals.max()
    np.testing.assert_allclose(marginals[bulk], truth.marginals[bulk], rtol=1e-7)


def test_coupling_with_two_distant_peaks_keeps_the_tails() -> None:
    case = geometric(6, 41, 1.0, 0.0)
    low, high = int(case.lows.sum()), int(case.lows.sum()) + 240
    coupling = np.zeros(high - low + 1)
    coupling[[0, -1]] = 1.0
    case = case._replace(coupling=coupling, coupling_low=low)
    compare(case, plain(case), 1e-12)


def test_coupling_in_a_gap_of_a_wide_law_keeps_the_tails() -> None:
    two_peaks = peak(3001, 0.03, 0.0) + peak(3001, 0.03, 3000.0)
    case = Case([two_peaks, two_peaks], np.zeros(2, np.int64), np.ones(1), 1500)
    compare(case, plain(case), 1e-12)


@pytest.mark.parametrize(
    ("weights", "coupling", "low"),
    [
        ([np.zeros(3), np.ones(2)], np.ones(9), 0),
        ([np.ones(3), np.ones(2)], np.zeros(9), 0),
        ([np.ones(3), np.ones(2)], np.ones(2), 4),
        ([np.ones(3), np.ones(2)], np.ones(2), -2),
        ([np.eye(3)[0], np.eye(3)[2]], np.array([1.0, 1.0, 0.0, 1.0, 1.0]), 0),
    ],
)
def test_impossible_problems_have_no_mass(
    weights: list[FloatArray], coupling: FloatArray, low: int
) -> None:
    case = Case(weights, np.zeros(2, np.int64), coupling, low)
    assert coupled.log_normaliser(*case.arguments, **case.keywords) == -np.inf
    assert not coupled.marginals(*case.arguments, **case.keywords).any()
    assert not coupled.downward(*case.arguments, **case.keywords)[0].any()
    with pytest.raises(InputError, match="positive joint weight"):
        coupled.mode(*case.arguments, **case.keywords)
    with pytest.raises(InputError, match="positive joint weight"):
        coupled.draws(
            2,
            case.arguments[0],
            offsets=case.offsets,
            **case.keywords,
            rng=np.random.default_rng(1),
        )


def test_two_levels_compose_from_messages() -> None:
    """Children under parents under a total: messages up and down, against all vectors at once."""
    children = ragged(8, 2), ragged(9, 2)
    tops = [coupled.upward(*c.arguments, **c.keywords) for c in children]
    root = Case([law for _, law, _ in tops], np.array([low for low, _, _ in tops]), np.ones(4), 1)
    told, _ = coupled.downward(*root.arguments, **root.keywords)
    parts = np.split(told, root.offsets[1:-1])
    for which, (child, part) in enumerate(zip(children, parts, strict=True)):
        assert child.coupling is not None
        below = child._replace(coupling=child.coupling * part)
        found = coupled.marginals(*below.arguments, **below.keywords)
        np.testing.assert_allclose(found, nested(children, which), atol=1e-12)


def nested(children: tuple[Case, Case], which: int) -> FloatArray:
    """Marginals of one pair of children when the sum of all four must be 1 to 4."""
    weights = [*children[0].weights, *children[1].weights]
    lows = np.concatenate([children[0].lows, children[1].lows])
    result = [np.zeros(w.size) for w in weights]
    for x in product(*(range(w.size) for w in weights)):
        v = np.array(x) + lows
        mass = np.prod([w[i] for w, i in zip(weights, x, strict=True)]) * (1 <= v.sum() <= 4)
        for child, total in zip(children, (v[:2].sum(), v[2:].sum()), strict=True):
            assert child.coupling is not None
            mass *= placed(child.coupling, 1, int(total) - child.coupling_low)[0]
        for s, i in enumerate(x):
            result[s][i] += mass
    pair = np.concatenate(result[2 * which : 2 * which + 2])
    return pair / result[0].sum()


def test_a_level_is_many_problems() -> None:
    cases = [case for case in HARD.values() if case.coupling is not None]
    weights = [w for case in cases for w in case.weights]
    couplings = [case.coupling for case in cases if case.coupling is not None]
    solved = coupled.level(
        np.concatenate(weights),
        np.concatenate([[0], np.cumsum([w.size for w in weights])]),
        lows=np.concatenate([case.lows for case in cases]),
        groups=np.concatenate([[0], np.cumsum([len(case.weights) for case in cases])]),
        couplings=np.concatenate(couplings),
        coupling_offsets=np.concatenate([[0], np.cumsum([c.size for c in couplings])]),
        coupling_lows=np.array([case.coupling_low for case in cases]),
    )
    alone = [coupled.marginals(*case.arguments, **case.keywords) for case in cases]
    np.testing.assert_array_equal(solved.marginals, np.concatenate(alone))
    logs = [coupled.log_normaliser(*case.arguments, **case.keywords) for case in cases]
    np.testing.assert_array_equal(solved.log_normalisers, logs)
    sums = [coupled.upward(*case.arguments, **case.keywords)[1] for case in cases]
    np.testing.assert_array_equal(solved.sums, np.concatenate(sums))


@pytest.mark.parametrize("name", ["giant counts", "far above", "no coupling", "single component"])
def test_draws_have_the_marginals_and_the_law_of_the_sum(name: str) -> None:
    case, count = HARD[name], 40_000
    truth = plain(case)
    rows = coupled.draws(
        count,
        case.arguments[0],
        offsets=case.offsets,
        **case.keywords,
        rng=np.random.default_rng(7),
    )
    for s, w in enumerate(case.weights):
        seen = np.bincount(rows[:, s] - case.lows[s], minlength=w.size)
        accept(seen, truth.marginals[case.offsets[s] : case.offsets[s + 1]] * count)
    accept(np.bincount(rows.sum(1) - truth.low, minlength=truth.sums.size), truth.sums * count)


def accept(seen: IntArray, expected: FloatArray) -> None:
    """Counts within six standard deviations, cell by cell."""
    assert (np.abs(seen - expected) <= 6 * np.sqrt(expected) + 6).all()
    assert seen[expected == 0.0].sum() == 0


def test_draws_depend_on_the_generator_only() -> None:
    case = HARD["giant counts"]
    first, second = (
        coupled.draws(
            5,
            case.arguments[0],
            offsets=case.offsets,
            **case.keywords,
            rng=np.random.default_rng(3),
        )
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("seed", range(40))
def test_mode_is_the_best_of_all_vectors(seed: int) -> None:
    case = ragged(seed, 1 + seed % 5)
    coupling, low = with_coupling(case)
    best = -np.inf
    for x in product(*(range(w.size) for w in case.weights)):
        at = placed(coupling, 1, sum(x) + int(case.lows.sum()) - low)[0]
        if at > 0:
            logs = [np.log(w[i]) for w, i in zip(case.weights, x, strict=True)]
            best = max(best, sum(logs) + np.log(at))
    vector, log = coupled.mode(*case.arguments, **case.keywords)
    assert log == pytest.approx(best, abs=1e-12)
    assert (vector >= case.lows).all()


@pytest.mark.parametrize("off", [0.0, 35.0, 200.0])
def test_mode_of_many_components_against_plain_maxima(off: float) -> None:
    case = geometric(20, 31, 1.0, off)
    best = np.zeros(1)
    for w in case.weights:
        grid = np.full(best.size + w.size - 1, -np.inf)
        for i, value in enumerate(np.log(w)):
            grid[i : i + best.size] = np.maximum(grid[i : i + best.size], best + value)
        best = grid
    assert case.coupling is not None
    start = case.coupling_low - int(case.lows.sum())
    inside = [t for t in range(case.coupling.size) if 0 <= t + start < best.size]
    expected = max(best[t + start] + np.log(case.coupling[t]) for t in inside)
    assert coupled.mode(*case.arguments, **case.keywords)[1] == pytest.approx(expected, abs=1e-9)


def test_layout_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="offsets must run from 0"):
        coupled.marginals(np.ones(4), np.array([0, 2, 3]), lows=np.zeros(2, np.int64))


@pytest.mark.parametrize("seed", range(20))
def test_best_of_every_sum_against_all_vectors(seed: int) -> None:
    case = ragged(seed, 1 + seed % 4)
    low, size = int(case.lows.sum()) - 1, sum(w.size - 1 for w in case.weights) + 3
    best = np.zeros(size)
    for x in product(*(range(w.size) for w in case.weights)):
        weight = np.prod([w[i] for w, i in zip(case.weights, x, strict=True)])
        best[sum(x) + 1] = max(best[sum(x) + 1], weight)
    found = coupled.best_by_sum(*case.arguments, lows=case.lows, sum_low=low, sums=size)
    np.testing.assert_allclose(found, best / best.max(), rtol=1e-12)
