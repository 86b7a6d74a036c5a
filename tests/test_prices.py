"""Prices in a ledger against every pair of neighbours of small tables, and what is refused."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from countwise.errors import BudgetError, InputError
from countwise.ledger.prices import (
    ANY,
    RELATIONS,
    Amount,
    Loss,
    Terms,
    at_delta,
    price,
    read_loss,
    read_terms,
)
from countwise.noise.sensitivity import level_sensitivity, squared_level_sensitivity
from countwise.noise.zcdp import epsilon_at

REGIONS = np.array([[1, 1, 0, 0], [0, 0, 1, 1]])  # four cells in two regions
LEVELS = {"total": np.ones((1, 4), dtype=int), "region": REGIONS, "cell": np.eye(4, dtype=int)}
LOSSES = {"total": Fraction(1, 2), "region": Fraction(1, 3), "cell": Fraction(1, 6)}


def rows_of(most: int, least: int) -> Iterator[np.ndarray]:
    """All that one person's rows can add to the four cells."""
    for size in range(least, most + 1):
        for cells in combinations_with_replacement(range(4), size):
            yield np.bincount(np.array(cells, dtype=int), minlength=4)


def moves(relation: str, rows: int) -> Iterator[np.ndarray]:
    """What the cells of two neighbouring tables can differ by."""
    least = 1 if relation == "replace-one" else 0
    for before, after in product(rows_of(rows, least), repeat=2):
        if relation != "add-remove" or not before.any() or not after.any():
            yield after - before


def worst(
    made: str, counted: str, *, rows: int, unit: str, exact: tuple[str, ...] = ()
) -> Fraction | None:
    """The largest loss over all neighbours, level by level; None where it is infinite.

    Laplace and geometric noise of scale Δ/ε lose ε·d/Δ where a level moves by d; Gaussian noise
    with Δ²/(2σ²) = ρ loses ρ·d²/Δ². Pairs that differ in an exact count are left out, for all
    levels that are declared exact.
    """
    found = Fraction(0)
    for move in moves(counted, rows):
        at = {name: nodes @ move for name, nodes in LEVELS.items()}
        if any(at[name].any() for name in exact):
            continue
        loss = Fraction(0)
        for name, d in at.items():
            if name in exact:
                continue
            size = len(d)
            if unit == "epsilon":
                reach, moved = level_sensitivity(made, rows=rows, nodes=size), abs(d).sum()
            else:
                reach = squared_level_sensitivity(made, rows=rows, nodes=size)
                moved = (d**2).sum()
            if not moved:
                continue
            if not reach:
                return None
            loss += LOSSES[name] * Fraction(int(moved), reach)
        found = max(found, loss)
    return found


def loss(made: str = "add-remove", **how: object) -> Loss:
    fields = {"what": "release", "epsilon": Fraction(1), "neighbours": made, "rows": 1}
    return Loss(**fields | how)


@pytest.mark.parametrize("unit", ["epsilon", "rho"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("counted", RELATIONS)
@pytest.mark.parametrize("made", ["add-remove", "replace-one"])
def test_no_pair_of_neighbours_loses_more_than_the_price(
    made: str, counted: str, rows: int, unit: str
) -> None:
    """And where all is in one unit, the price is what the worst pair loses, but for the total."""
    lost = worst(made, counted, rows=rows, unit=unit)
    terms = Terms(neighbours=counted, rows=rows, unit=unit)
    asked = loss(made, rows=rows, **{"epsilon": None} | {unit: sum(LOSSES.values())})
    try:
        found = price(asked, terms, dataset="d")
    except BudgetError:
        assert (made, counted) in {("replace-one", "add-remove"), ("replace-one", "any-change")}
        assert rows > 1 or lost is None
        return
    assert lost is not None
    assert lost <= found.factor
    below_the_total = 1 - LOSSES["total"]
    assert lost >= found.factor * below_the_total
    assert found.amount == Amount(**{unit: found.factor * (10**6 if unit == "epsilon" else 10**12)})


@pytest.mark.parametrize("unit", ["epsilon", "rho"])
@pytest.mark.parametrize("exact", [("total",), ("total", "region")])
@pytest.mark.parametrize("made", ["add-remove", "replace-one"])
def test_exact_counts_cost_what_a_person_who_moves_below_them_loses(
    made: str, exact: tuple[str, ...], unit: str
) -> None:
    """Between tables that agree on the exact counts, where all of the loss is below them."""
    inner = sum((LOSSES[name] for name in LEVELS if name not in exact), Fraction(0))
    lost = worst(made, "replace-one", rows=1, unit=unit, exact=exact)
    asked = loss(made, exact=exact, **{"epsilon": None} | {unit: inner})
    found = price(asked, Terms(neighbours="replace-one", unit=unit), dataset="d")
    assert lost == found.factor * inner
    assert found.factor == (2 if made == "add-remove" else 1)
    for counted in ("add-remove", "any-change"):
        with pytest.raises(BudgetError, match="exact counts show who comes or goes"):
            price(loss(exact=exact), Terms(neighbours=counted), dataset="d")


@pytest.mark.parametrize("rows", [1, 2])
def test_exact_totals_are_a_condition_unless_nobody_can_change_them(rows: int) -> None:
    """With one row each, no two neighbours differ in the number of rows; with two, some do."""
    changes = any(move.sum() for move in moves("replace-one", rows))
    terms = Terms(neighbours="replace-one", rows=rows)
    found = price(loss(exact=("total",), rows=rows), terms, dataset="d")
    assert found.given == (("total",) if changes else ())
    bounded = loss(exact=("total",), rows=1, bounded=True)
    assert price(bounded, terms, dataset="d").given == ()
    assert price(loss(exact=("region",)), Terms(neighbours="replace-one"), dataset="d").given == (
        "region",
    )


@pytest.mark.parametrize("counted", RELATIONS)
def test_a_verification_costs_its_loss_in_every_relation(counted: str) -> None:
    asked = Loss(what="verification", epsilon=Fraction(1, 3), neighbours=ANY)
    found = price(asked, Terms(neighbours=counted, rows=7), dataset="d")
    assert found.amount == Amount(epsilon=333_334)
    assert price(asked, None, dataset="d") == found
    each_row = Loss(what="verification", epsilon=Fraction(1), neighbours=ANY, rows=1, bounded=False)
    assert price(each_row, Terms(neighbours=counted), dataset="d").amount == Amount(epsilon=10**6)
    with pytest.raises(BudgetError, match="takes on trust that nobody has more than one row"):
        price(each_row, Terms(neighbours=counted, rows=2), dataset="d")


def test_rows_that_are_taken_on_trust_must_be_as_many() -> None:
    for rows, bounded, priced in ((1, False, False), (1, True, True), (2, False, True)):
        asked = loss(rows=rows, bounded=bounded)
        if priced:
            assert price(asked, Terms(rows=2), dataset="d").amount == Amount(epsilon=10**6)
        else:
            with pytest.raises(BudgetError, match="To fix, plan for --rows 2"):
                price(asked, Terms(rows=2), dataset="d")


def test_units() -> None:
    """ε has a price in ρ (ε²/2); ρ has none in ε alone; both keep apart."""
    gaussian = loss(epsilon=None, rho=Fraction("0.1"))
    with pytest.raises(BudgetError, match="no finite ε"):
        price(gaussian, Terms(), dataset="d")
    for unit in ("rho", "both"):
        assert price(gaussian, Terms(unit=unit), dataset="d").amount == Amount(rho=10**11)
    assert price(loss(), Terms(unit="both"), dataset="d").amount == Amount(epsilon=10**6)
    assert price(loss(), Terms(unit="rho"), dataset="d").amount == Amount(rho=10**12 // 2)
    twice = price(loss(), Terms(unit="rho", neighbours=ANY), dataset="d")
    assert twice.amount == Amount(rho=2 * 10**12)  # (2ε)²/2
    third = price(loss(epsilon=None, rho=Fraction(1, 3)), Terms(unit="rho"), dataset="d")
    assert third.amount.rho == -(-(10**12) // 3)
    spent = Amount(epsilon=10**6, rho=10**11)
    assert at_delta(spent, Terms(unit="both")) == 1 + epsilon_at(Fraction(1, 10))


def test_a_release_waits_for_the_relation_to_be_fixed() -> None:
    with pytest.raises(BudgetError, match="does not say yet whose change it counts"):
        price(loss(), None, dataset="d")


def test_what_an_entry_keeps_can_be_read_again() -> None:
    asked = loss(exact=("total", "region=N"), plan="a" * 64, epsilon=None, rho=Fraction(1, 3))
    assert read_loss(asked.to_text()) == asked
    terms = Terms(neighbours=ANY, rows=3, unit="both", delta=Fraction(1, 10**9))
    assert read_terms(terms.to_text()) == terms


@pytest.mark.parametrize(
    "bad", [{"neighbours": "x"}, {"unit": "x"}, {"rows": 0}, {"rows": True}, {"delta": Fraction(1)}]
)
def test_terms_that_are_none(bad: dict[str, object]) -> None:
    with pytest.raises(InputError):
        Terms(**bad)
