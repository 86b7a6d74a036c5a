"""(ε, δ) of discrete Gaussian noise: against direct sums, and against dp-accounting."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from time import process_time

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.optimize import brentq

from cases import tree
from countwise.noise.lossdistribution import epsilon_of_noise
from countwise.noise.sensitivity import NEIGHBOURS
from countwise.noise.zcdp import (
    DELTA,
    epsilon_at,
    epsilon_of_levels,
    gaussian_scale,
    rounded_up,
)
from countwise.release.plan import Plan

RHOS = ("1e-12", "1e-9", "1e-6", "0.001", "0.1", "0.5", "3", "50", "1000")


def losses(moves: Sequence[int], sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Every loss of noise on counts that move so far, with its probability, one by one."""
    reach = int(9 * sigma) + 6
    noise = np.arange(-reach, reach + 1)
    weights = np.exp(-(noise**2) / (2 * sigma**2))
    weights /= weights.sum()
    loss, chance = np.zeros(1), np.ones(1)
    for move in moves:
        mine = (2 * move * noise + move**2) / (2 * sigma**2)
        loss = np.add.outer(loss, mine).ravel()
        chance = np.multiply.outer(chance, weights).ravel()
    return loss, chance


def true_delta(moves: Sequence[int], sigma: float, epsilon: float) -> float:
    loss, chance = losses(moves, sigma)
    over = loss > epsilon
    return float(-(chance[over] @ np.expm1(epsilon - loss[over])))


def true_epsilon(moves: Sequence[int], sigma: float, delta: float) -> float:
    if true_delta(moves, sigma, 0.0) <= delta:
        return 0.0
    top = float(losses(moves, sigma)[0].max())
    return float(brentq(lambda e: true_delta(moves, sigma, e) - delta, 0.0, top, xtol=1e-12))


@pytest.mark.parametrize("delta", ["1e-6", "1e-4", "0.1"])
@pytest.mark.parametrize("sigma", ["0.2", "0.6", "1", "3", "20"])
@pytest.mark.parametrize("moves", [(1,), (1, 1), (3,), (2, -1)])
def test_never_below_the_direct_sum_and_close_to_it(
    moves: tuple[int, ...], sigma: str, delta: str
) -> None:
    found = epsilon_of_noise([(m, Fraction(sigma)) for m in moves], delta=Fraction(delta))
    true = true_epsilon([abs(m) for m in moves], float(sigma), float(delta))
    assert true - 1e-9 <= found <= true * 1.003 + 1e-6
    mirrored = true_epsilon([-m for m in moves], float(sigma), float(delta))
    assert mirrored == pytest.approx(true, abs=1e-9), "coming and going have one loss"


@pytest.mark.parametrize("counts", [1, 3, 40])
@pytest.mark.parametrize("rho", ["0.001", "0.1", "1", "5"])
def test_dp_accounting_agrees(rho: str, counts: int) -> None:
    """Between its optimistic and its pessimistic answer, but for a thousandth."""
    sigma = gaussian_scale(Fraction(rho) / counts, squared_sensitivity=1)
    found = epsilon_of_noise([(1, sigma)] * counts, delta=DELTA)
    bounds = []
    for pessimistic in (False, True):
        one = privacy_loss_distribution.from_discrete_gaussian_mechanism(
            float(sigma),
            pessimistic_estimate=pessimistic,
            value_discretization_interval=1e-3 if counts == 1 else 2e-4,
            use_connect_dots=pessimistic,
        )
        bounds.append(one.self_compose(counts).get_epsilon_for_delta(float(DELTA)))
    assert bounds[0] * (1 - 1e-9) <= found <= bounds[1] * 1.001


def partitions(rows: int, most: int | None = None) -> list[tuple[int, ...]]:
    """Ways to put up to so many rows into counts."""
    most = rows if most is None else most
    found: list[tuple[int, ...]] = [()]
    for first in range(1, min(rows, most) + 1):
        found += [(first, *rest) for rest in partitions(rows - first, first)]
    return found


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
@pytest.mark.parametrize("sigmas", [("0.4", "0.5"), ("0.8", "1"), ("2", "1.5"), ("1", "4")])
def test_wherever_a_persons_rows_are_the_epsilon_holds(sigmas: tuple[str, str], rows: int) -> None:
    """Add-remove, two levels: every way to scatter the rows, also one that no tree allows."""
    above, below = (Fraction(each) for each in sigmas)
    stated = epsilon_of_levels([((rows,), above), ((rows,), below)])
    for up, down in product(partitions(rows), partitions(rows)):
        if len(down) < len(up) or not down:
            continue
        parts = [(m, above) for m in up] + [(m, below) for m in down]
        found = epsilon_of_noise(parts, delta=DELTA)
        if down == (rows,) or rows <= 2:
            assert found <= stated * (1 + 1e-6), (up, down)
        else:
            assert found <= stated, (up, down)


@pytest.mark.parametrize("sigma", ["0.25", "0.5", "1", "2"])
def test_two_rows_in_two_counts_tell_less_than_two_in_one(sigma: str) -> None:
    """At every ε, which composition needs: the argument for one and two rows."""
    for epsilon in np.linspace(0, 60, 241):
        apart, together = (true_delta(m, float(sigma), epsilon) for m in ((1, 1), (2,)))
        assert apart <= together + 1e-13


@pytest.mark.parametrize("rows", [1, 2, 3, 50])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_any_loss_on_any_tree_has_an_epsilon(neighbours: str, rows: int) -> None:
    """Never above the bound from ρ alone, growing with ρ, and at once."""
    deep = tree(2, *[1] * 30, 2)
    for shape in (tree(3), tree(3, 4), deep):
        before = 0.0
        for rho in RHOS:
            plan = Plan(rho=rho, split="even", neighbours=neighbours, rows=rows)
            budget, begun = plan.budget(shape), process_time()
            found = budget.epsilon_of_noise()
            assert process_time() - begun < 1
            assert before <= found <= epsilon_at(Fraction(rho))
            before = found
        assert before > 100


def test_a_twice_moved_person_costs_more_and_exact_levels_nothing() -> None:
    plan = Plan(rho=1, mechanism="gaussian", split="even", exact=["total"])
    budget = plan.budget(tree(2, 2))
    doubled = epsilon_of_levels([((1, 1), each.law.scale) for each in budget.levels[1:]])
    assert budget.epsilon_of_noise(twice=True) == doubled > budget.epsilon_of_noise()


def test_where_it_can_not_be_computed_the_bound_is_taken() -> None:
    wide = Fraction(10**6)
    assert epsilon_of_noise([(1, wide)], delta=DELTA) == np.inf
    assert epsilon_of_noise([(1, Fraction(1))], delta=Fraction(1, 10**12)) == np.inf
    assert epsilon_of_levels([((1,), wide)]) == epsilon_at(Fraction(1, 2 * 10**12))
    assert epsilon_of_levels([]) == epsilon_of_noise([], delta=DELTA) == 0


def test_numbers_are_rounded_up() -> None:
    assert rounded_up(4.83960122) == "4.840"
    assert rounded_up(0.0039915401) == "0.003992"
    assert rounded_up(0.0) == "0"
