"""Plans: exact arithmetic, splits, sensitivities by brute force, refusals."""

from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pytest

from cases import HARD_CASES, Case, flat, tree
from countwise.errors import PlanError
from countwise.noise.laws import Exact
from countwise.noise.numbers import exact, written
from countwise.noise.sensitivity import (
    NEIGHBOURS,
    Neighbours,
    level_sensitivity,
    squared_level_sensitivity,
)
from countwise.noise.zcdp import epsilon_at
from countwise.release.plan import Plan, from_dict, read_plan


@pytest.mark.parametrize(
    ("value", "number"),
    [("0.1", Fraction(1, 10)), (0.1, Fraction(1, 10)), ("1/3", Fraction(1, 3)), (2, Fraction(2)),
     ("1e-3", Fraction(1, 1000)), (" 0.50 ", Fraction(1, 2)), ("+2", Fraction(2)),
     (".5", Fraction(1, 2)), ("2.", Fraction(2)), ("1E+2", Fraction(100)),
     (Decimal("1E-3"), Fraction(1, 1000)), (Fraction(2, 7), Fraction(2, 7)),
     (np.float64(0.1), Fraction(1, 10)), (np.float32(0.1), Fraction(1, 10)),
     (np.float16(0.5), Fraction(1, 2)), (np.int64(3), Fraction(3)), (np.uint8(3), Fraction(3))],
)  # fmt: skip
def test_epsilon_is_the_number_the_user_wrote(value: str | float, number: Fraction) -> None:
    assert exact(value) == number
    assert exact(written(number)) == number


NO_EPSILONS = (
    "0", "-1", "nan", "inf", "-inf", "1/0", "x", "", float("nan"), True, np.bool_(True),
    np.float64("inf"), "1_0", "0.1_0", "٣", "1/٣", "１", "²", "0x1", "1 / 3", "1/3/4", "1/0.5",
    "1e1.5", "1e1234", "1e-999999999", "1e999999999", "1" * 101, "0." + "0" * 100 + "1",
    "1/" + "9" * 100, 10**5000, Fraction(1, 10**200), "0.5\n0.5", "0.5;", ".", "e5", "+", "--1",
)  # fmt: skip


@pytest.mark.parametrize("value", NO_EPSILONS, ids=lambda value: str(type(value).__name__))
@pytest.mark.timeout(5)
def test_epsilon_that_is_no_epsilon(value: str | float) -> None:
    with pytest.raises(PlanError, match="epsilon must be") as refusal:
        Plan(epsilon=value)
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize("value", ["1e-400", "1e400", "1e7", "1e999", 10**50, 1e300])
def test_epsilon_out_of_all_reason_is_refused(value: str) -> None:
    with pytest.raises(PlanError, match="between 1e-12 and 1e6"):
        Plan(epsilon=value)


@pytest.mark.parametrize("case", HARD_CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("split", ["even", "relative"])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_losses_add_up_exactly(case: Case, split: str, neighbours: str) -> None:
    plan = case.make_plan(split=split, neighbours=neighbours)
    budget = plan.budget(case.hierarchy)
    spent = [each.loss for each in budget.levels]
    assert all(
        (epsilon > 0) == (each.sensitivity > 0)
        for epsilon, each in zip(spent, budget.levels, strict=True)
    )
    if any(spent):
        assert sum(spent) == plan.epsilon
    for each in budget.levels:
        if each.sensitivity:
            assert each.law.scale == each.sensitivity / each.loss
        else:
            assert isinstance(each.law, Exact)


def test_the_papers_example_of_privacy_loss() -> None:
    """Wang & Reiter 2021, section 5: ε = 1 on a total and on three components is 2 in all."""
    budget = Plan(epsilon={"total": 1, "part": 1}).budget(flat(3))
    assert budget.loss == 2
    assert budget.sum_in_words() == "1 (total) + 1 (part) = 2"


def test_weights_divide_in_proportion() -> None:
    budget = Plan(epsilon="1/3", split={"total": 1, "l0": 2, "l1": "0.5"}).budget(tree(2, 2))
    assert [each.loss for each in budget.levels] == [
        Fraction(2, 21), Fraction(4, 21), Fraction(1, 21),
    ]  # fmt: skip


def test_relative_split_equalises_relative_error() -> None:
    budget = Plan(epsilon=4, split="relative").budget(tree(4, 10))
    relative = [np.sqrt(each.law.variance) * each.nodes for each in budget.levels]
    assert relative == pytest.approx([relative[0]] * 3, rel=1e-4)


def test_gaussian_losses_are_in_rho() -> None:
    """σ² = Δ²/(2ρ), rounded up; shares of the relative split go with the squares."""
    plan = Plan(rho="1/2", mechanism="gaussian", split={"total": 1, "l0": 1, "l1": 2}, rows=3)
    budget = plan.budget(tree(2, 2))
    assert budget.loss == Fraction(1, 2)
    assert [each.loss for each in budget.levels] == [Fraction(1, 8), Fraction(1, 8), Fraction(1, 4)]
    for each in budget.levels:
        assert 9 / (2 * each.law.scale**2) <= each.loss
        assert float(9 / (2 * each.law.scale**2)) == pytest.approx(float(each.loss), rel=1e-8)
    relative = Plan(rho=2, mechanism="gaussian", split="relative").budget(tree(4, 10))
    spread = [float(each.law.scale) * each.nodes for each in relative.levels]
    assert spread == pytest.approx([spread[0]] * 3, rel=1e-6)


def test_rho_in_epsilon_and_delta() -> None:
    """Against the classical bound, and against a search over a fine grid of orders."""
    for rho in ("0.001", "0.1", "1/2", "1", "5"):
        for delta in (Fraction(1, 10**6), Fraction(1, 10**10)):
            epsilon = epsilon_at(Fraction(rho), delta=delta)
            r, tail = float(Fraction(rho)), float(np.log(float(1 / delta)))
            assert epsilon < r + 2 * np.sqrt(r * tail)
            order = 1 + np.logspace(-3, 5, 400_001)
            bounds = order * r + np.log1p(-1 / order) + (tail - np.log(order)) / (order - 1)
            assert epsilon == pytest.approx(bounds.min(), rel=1e-6)
    assert epsilon_at(Fraction(0)) == 0


def test_plan_files_come_back_as_they_were(tmp_path: Path) -> None:
    plans = [
        Plan(epsilon=0.1),
        Plan(epsilon={"total": "1/3", "a": 2}, by=("a",), neighbours="replace-one", rows=3),
        Plan(epsilon=1, split={"total": 1, "a": 2}, mechanism="laplace", adjust="draw-1",
             total="summed", ties="last", noise="opendp"),
        Plan(rho="0.25", mechanism="gaussian"),
    ]  # fmt: skip
    for plan in plans:
        path = tmp_path / "plan.toml"
        path.write_text(plan.to_toml())
        assert read_plan(path) == plan


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mechanism": "geometrik"}, "Did you mean 'geometric'"),
        ({"mechanism": "gaussian"}, "takes its loss as rho"),
        ({"rho": 1}, "either epsilon, or rho"),
        ({"epsilon": None}, "either epsilon, or rho"),
        (
            {"epsilon": None, "rho": 1, "mechanism": "geometric"},
            "other mechanisms take theirs as epsilon",
        ),
        ({"epsilon": None, "rho": -1, "mechanism": "gaussian"}, "rho must be positive"),
        ({"adjust": "magic"}, "adjust must be one of"),
        ({"split": "odd"}, "split must be one of"),
        ({"neighbours": "any"}, "neighbours must be one of"),
        ({"rows": 0}, "rows a person"),
        ({"adjust": "draw-2", "total": "summed"}, "total=independent"),
        ({"adjust": "auto", "total": "summed"}, "choose adjust=mode"),
        ({"split": {"total": 0}}, "weight of level 'total' must be positive"),
    ],
)
def test_words_that_mean_nothing(changes: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Plan(**({"epsilon": 1} | changes))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(epsilon={"total": 1}), "level 'part' has no epsilon"),
        (Plan(epsilon={"part": 1}), "grand total is the level 'total'"),
        (Plan(epsilon={"total": 1, "part": 1, "county": 1}), "must be one of total, part"),
        (Plan(epsilon={"total": 1, "part": 1}, neighbours="replace-one"), "released exactly"),
        (Plan(epsilon=1, split={"total": 1}), "level 'part' has no weight"),
        (Plan(epsilon=1, by=("county",)), "the plan is for the levels county"),
    ],
)
def test_plans_that_do_not_fit_the_table(plan: Plan, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        plan.budget(flat(3))


def test_plan_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no such plan"):
        read_plan(tmp_path / "plan.toml")
    (tmp_path / "plan.toml").write_text("epsilon = = 1")
    with pytest.raises(PlanError, match="not a plan in TOML"):
        read_plan(tmp_path / "plan.toml")
    with pytest.raises(PlanError, match="Did you mean 'epsilon'"):
        from_dict({"epsilonn": 1})
    with pytest.raises(PlanError, match="no epsilon"):
        from_dict({"rows": 1})


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_sensitivities_are_reached_and_never_passed(neighbours: Neighbours, rows: int) -> None:
    """Brute force: every neighbour of a table, measured at every level."""
    hierarchy = tree(2, 2)
    base = np.full(hierarchy.cells, 10)
    person = [
        np.bincount(cells, minlength=hierarchy.cells)
        for size in range(1, rows + 1)
        for cells in combinations_with_replacement(range(hierarchy.cells), size)
    ]
    if neighbours == "add-remove":
        pairs = [(base, base + rows_of_one) for rows_of_one in person]
    else:
        pairs = [(base + one, base + other) for one in person for other in person]
    for level, nodes in enumerate(hierarchy.sizes):
        moved = max(
            int(np.abs(hierarchy.sums(a)[level] - hierarchy.sums(b)[level]).sum()) for a, b in pairs
        )
        assert moved == level_sensitivity(neighbours, rows=rows, nodes=nodes)
        squared = max(
            int(((hierarchy.sums(a)[level] - hierarchy.sums(b)[level]) ** 2).sum())
            for a, b in pairs
        )
        assert squared == squared_level_sensitivity(neighbours, rows=rows, nodes=nodes)


def test_a_plan_without_noise_to_speak_of_says_so() -> None:
    assert not Plan(epsilon=2).budget(tree(2, 3)).warning()
    said = Plan(epsilon={"total": 1, "l0": 1, "l1": 50}).budget(tree(2, 3)).warning()
    assert "l1 carry no noise" in said
