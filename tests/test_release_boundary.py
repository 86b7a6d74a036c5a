"""The boundary of releases from outside: true counts go into `measure`, and the noise is the rest.

Every mechanism with either backend and under every relation has the noise it should have, level by
level, and would be refused with 0.9 or 1.1 of it. The laws are written down here once more.
"""

import threading
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, norm

from cases import flat, tree
from countwise.errors import TableError
from countwise.release.checkpoints import Staging
from countwise.release.measure import measure
from countwise.release.piece_tasks import TaskContext, measured_name
from countwise.release.plan import Plan
from countwise.tables.confidential import Confidential
from countwise.tables.cut import cut_file
from countwise.tables.hierarchy import Hierarchy, build
from test_large_release import BY, frame, written

RELATIONS = [("add-remove", 1), ("add-remove", 3), ("replace-one", 1), ("replace-one", 3)]
LOSSES = (Fraction(1), Fraction(1, 2), Fraction(1, 4))
ACCEPT, REFUSE = 1e-9, 1e-6
WRONG = (0.9, 1.1)
CALLS = {"exact": 15_000, "opendp": 9_000}
JOINT_CALLS = 20_000

Law = Callable[[np.ndarray, float], np.ndarray]


def geometric(z: np.ndarray, scale: float) -> np.ndarray:
    return np.exp(-np.abs(z) / scale) * np.tanh(0.5 / scale)


def rounded_laplace(z: np.ndarray, scale: float) -> np.ndarray:
    beyond = np.exp(-(np.abs(z) - 0.5) / scale) * (1 - np.exp(-1 / scale)) / 2
    return np.where(z == 0, 1 - np.exp(-0.5 / scale), beyond)


def discrete_gaussian(z: np.ndarray, scale: float) -> np.ndarray:
    weights = np.exp(-0.5 * (z / scale) ** 2)
    return weights / weights.sum()


LAWS: dict[str, Law] = {
    "geometric": geometric,
    "laplace": rounded_laplace,
    "gaussian": discrete_gaussian,
}


def reach(relation: str, rows: int, nodes: int) -> tuple[int, int]:
    """The L1 and the squared L2 distance that a person moves a level, in so many words."""
    if relation == "add-remove":
        return rows, rows * rows
    return (rows - 1, (rows - 1) ** 2) if nodes == 1 else (2 * rows, 2 * rows * rows)


def stated_scale(mechanism: str, relation: str, rows: int, nodes: int, loss: Fraction) -> float:
    first, second = reach(relation, rows, nodes)
    if mechanism == "gaussian":
        return float(np.sqrt(second / (2 * float(loss))))
    return float(first / loss)


def p_value(draws: np.ndarray, z: np.ndarray, chances: np.ndarray) -> float:
    """Of two tests, one of the shape (chi-square) and one of the size (mean of |noise|)."""
    size = np.abs(z)
    mean, square = chances @ size, chances @ size**2
    far = (np.abs(draws).mean() - mean) / np.sqrt((square - mean**2) / len(draws))
    return float(2 * min(chi_square(draws, z, chances), 2 * norm.sf(abs(far))))


def chi_square(draws: np.ndarray, z: np.ndarray, chances: np.ndarray) -> float:
    """In bins that are about as likely, where that can be."""
    rising = np.cumsum(chances)
    edges = np.unique(np.searchsorted(rising, np.linspace(0.04, 0.96, 24)))
    bounds = np.concatenate(([0], edges + 1, [len(z)]))
    expected = np.array([chances[a:b].sum() for a, b in pairwise(bounds)]) * len(draws)
    found = np.bincount(np.searchsorted(z[edges], draws), minlength=len(expected))
    keep = expected > 25
    rest = expected[~keep].sum(), found[~keep].sum()
    terms = (found[keep] - expected[keep]) ** 2 / expected[keep]
    last = (rest[1] - rest[0]) ** 2 / max(rest[0], 25)
    return float(chi2.sf(terms.sum() + last, max(keep.sum() - 1, 1)))


def check(draws: np.ndarray, law: Law, scale: float) -> None:
    """The draws fit the law at its scale, and at nine or eleven tenths of it they do not."""
    z = np.arange(-int(60 * scale) - 5, int(60 * scale) + 6)
    assert p_value(draws, z, law(z, scale)) > ACCEPT
    for wrong in WRONG:
        assert p_value(draws, z, law(z, scale * wrong)) < REFUSE


def table_of(hierarchy: Hierarchy) -> Confidential:
    return Confidential(hierarchy, 1000 + 7 * np.arange(hierarchy.cells))


def noise(hierarchy: Hierarchy, plan: Plan, calls: int) -> list[np.ndarray]:
    """What many calls of the boundary add to the true counts, call by node, for every level."""
    true = hierarchy.sums(1000 + 7 * np.arange(hierarchy.cells))
    table, budget = table_of(hierarchy), plan.budget(hierarchy)
    drawn = [measure(table, budget, noise=plan.noise).noisy for _ in range(calls)]
    return [np.stack([each[level] for each in drawn]) - counts for level, counts in enumerate(true)]


def plan_for(
    hierarchy: Hierarchy, losses: Sequence[Fraction], relation: str, rows: int, **more: Any
) -> Plan:
    """A plan with a loss for every level, but for one that nobody can change."""
    free = relation == "replace-one" and rows == 1
    given = dict(zip(hierarchy.levels, losses, strict=True))
    spent = {level: loss for level, loss in given.items() if not (free and level == "total")}
    unit = "rho" if more.get("mechanism") == "gaussian" else "epsilon"
    return Plan(**{unit: spent}, neighbours=relation, rows=rows, **more)


@pytest.mark.parametrize(("relation", "rows"), RELATIONS)
@pytest.mark.parametrize("backend", ["exact", "opendp"])
@pytest.mark.parametrize("mechanism", sorted(LAWS))
def test_every_level_has_the_noise_of_its_loss(
    mechanism: str, backend: str, relation: str, rows: int
) -> None:
    hierarchy = tree(2, 2) if backend == "exact" else flat(2)
    losses = LOSSES[: len(hierarchy.sizes)]
    plan = plan_for(hierarchy, losses, relation, rows, mechanism=mechanism, noise=backend)
    found = noise(hierarchy, plan, CALLS[backend])
    for loss, draws, nodes in zip(losses, found, hierarchy.sizes, strict=True):
        scale = stated_scale(mechanism, relation, rows, nodes, loss)
        if not scale:
            assert not draws.any(), "nobody changes the total, so it carries no noise"
        else:
            check(draws.ravel(), LAWS[mechanism], scale)
    assert all(len(np.unique(draws)) > 1 for draws in found[1:])


def joint_chances(scales: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """The law of two cells' noise that adds up, P ∝ exp(-|z1|/s - |z2|/s - |z1+z2|/total)."""
    z = np.arange(-int(20 * scales[1]), int(20 * scales[1]) + 1)
    both = np.add.outer(z, z)
    above = np.abs(both) / scales[0] if scales[0] else np.where(both == 0, 0, np.inf)
    weights = np.exp(-above - np.add.outer(np.abs(z), np.abs(z)) / scales[1])
    return z, weights / weights.sum()


def joint_p_value(cells: np.ndarray, scales: Sequence[float]) -> float:
    """The least of the p-values of one cell and, where it has noise, of the total."""
    z, chances = joint_chances(scales)
    found = [p_value(cells[:, 0], z, chances.sum(axis=1))]
    sums = np.arange(2 * z[0], 2 * z[-1] + 1)
    total = np.bincount((np.add.outer(z, z) - sums[0]).ravel(), chances.ravel(), len(sums))
    if scales[0]:
        found.append(p_value(cells.sum(axis=1), sums, total))
    size = np.abs(z)
    both = np.add.outer(size, size)
    mean = float((chances * both).sum())
    spread = np.sqrt((chances * both**2).sum() - mean**2) / np.sqrt(len(cells))
    found.append(float(2 * norm.sf(abs(np.abs(cells).sum(axis=1).mean() - mean) / spread)))
    return 3 * min(found)


@pytest.mark.parametrize(("relation", "rows"), RELATIONS)
def test_joint_noise_has_its_law(relation: str, rows: int) -> None:
    """Refused if either level's scale, or both, were nine or eleven tenths of what they are."""
    hierarchy, losses = flat(2), (Fraction(3, 5), Fraction(2, 5))
    plan = plan_for(hierarchy, losses, relation, rows, mechanism="joint")
    total, cells = noise(hierarchy, plan, JOINT_CALLS)
    assert (total[:, 0] == cells.sum(axis=1)).all()
    scales = [
        stated_scale("joint", relation, rows, nodes, loss)
        for nodes, loss in zip(hierarchy.sizes, losses, strict=True)
    ]
    assert joint_p_value(cells, scales) > ACCEPT
    for wrong in WRONG:
        for factors in ((wrong, wrong), (1, wrong), *([(wrong, 1)] if scales[0] else [])):
            assert joint_p_value(cells, np.multiply(scales, factors)) < REFUSE, factors


@pytest.mark.parametrize("mechanism", ["geometric", "joint"])
def test_exact_counts_come_out_as_they_are_and_the_others_with_their_noise(mechanism: str) -> None:
    hierarchy = tree(2, 3)
    cells = np.array([5, 0, 7, 1, 2, 3])
    plan = Plan(epsilon="1/2", split="even", mechanism=mechanism, exact=["l0=00000"],
                zeros=["l0=00000,l1=00001"])  # fmt: skip
    budget, true = plan.budget(hierarchy), hierarchy.sums(cells)
    drawn = [measure(Confidential(hierarchy, cells), budget).noisy for _ in range(15_000)]
    found = [np.stack([each[d] for each in drawn]) - true[d] for d in range(3)]
    assert not found[1][:, 0].any()
    assert not found[2][:, 1].any()
    free = found[2][:, [0, 2, 3, 4, 5]]
    assert (free.std(axis=0) > 1).all()
    if mechanism == "geometric":
        for draws in (found[0], found[1][:, 1], free):
            check(draws.ravel(), geometric, 6.0)


@pytest.mark.parametrize("people", [1, 2, 10**9])
@pytest.mark.parametrize("place", [0, 3])
def test_a_single_person_where_nobody_can_be_is_seen(people: int, place: int) -> None:
    """Whoever is there would be published as they are: no noise is drawn, and none is shown."""
    hierarchy = tree(2, 2)
    budget = Plan(
        epsilon=1, mechanism="geometric", zeros=["l0=00000,l1=00000", "l0=00001,l1=00001"]
    ).budget(hierarchy)
    cells = np.array([0, 3, 4, 0])
    assert measure(Confidential(hierarchy, cells), budget).noisy[2][[0, 3]].tolist() == [0, 0]
    cells = np.where(np.arange(4) == place, people, cells)
    with pytest.raises(TableError, match="can only be zero") as refusal:
        measure(Confidential(hierarchy, cells), budget)
    if people > 1:
        assert str(people) not in str(refusal.value)


@pytest.mark.parametrize("backend", ["exact", "opendp"])
def test_no_two_calls_and_no_two_counts_share_their_noise(backend: str) -> None:
    """Of 40 calls with wide noise on 20 counts and a total, none repeats another."""
    plan = Plan(epsilon="0.000001", split="even", mechanism="geometric", noise=backend)
    total, cells = noise(flat(20), plan, 40)
    assert len(np.unique(cells)) > 790
    assert len(np.unique(total)) > 38
    correlation = np.corrcoef(np.column_stack([total, cells])[:, :2].T)[0, 1]
    assert abs(correlation) < 0.9


@pytest.fixture
def work(tmp_path: Path) -> tuple[TaskContext, Confidential]:
    """A release in pieces about to measure, and the table of its first piece."""
    cells = frame()
    cut = cut_file(written(tmp_path, cells), by=BY, most=80)
    assert cut is not None
    first = cells.filter(cells["state"] == "state 0")
    hierarchy, _ = build(first.select(BY))
    plan = Plan(epsilon=3, by=BY, split="even", mechanism="geometric", adjust="mode")
    (tmp_path / "staging").mkdir(mode=0o700)
    made = TaskContext(plan=plan, budget=plan.budget(hierarchy), method="mode", cut=cut,
                store=Staging(folder=tmp_path / "staging"), tie_key=None, adjust_key=(1,),
                seal=bytes(16))  # fmt: skip
    return made, Confidential(hierarchy, first["count"].to_numpy())


def test_a_second_attempt_at_a_piece_keeps_the_noise_of_the_first(
    work: tuple[TaskContext, Confidential],
) -> None:
    made, table = work
    kept = []
    for _ in range(2):
        made.measure(table, 0)
        kept.append(made.store.kept(measured_name(0), "noisy3")["noisy3"])
    assert (kept[0] == kept[1]).all()
    assert (kept[0] != table.reveal()).any()


def test_attempts_that_do_not_know_of_each_other_leave_one_noise(
    work: tuple[TaskContext, Confidential], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have drawn before either has kept: whoever comes second leaves what is there."""
    made, table = work
    name, barrier, seen = measured_name(0), threading.Barrier(6), []
    monkeypatch.setattr(Staging, "has", lambda *_: bool(barrier.wait()) and False)

    def attempt() -> None:
        made.measure(table, 0)
        seen.append(made.store.kept(name, "noisy3")["noisy3"])

    threads = [threading.Thread(target=attempt) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 6
    assert all((each == seen[0]).all() for each in seen)
