"""What a release needs is known from its plan before it is paid for."""

import numpy as np
import pytest

import countwise as cw
from cases import flat, tree
from countwise.errors import PlanError
from countwise.noise import opendp_backend
from countwise.release import feasible, run
from countwise.release.feasible import refuse_infeasible
from countwise.tables.confidential import Confidential


@pytest.fixture(autouse=True)
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here gets as far as noise."""

    def drawn(*_: object, **__: object) -> None:
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(run, "measure", drawn)


def refused(message: str, **plan: object) -> None:
    table = Confidential(tree(20, 50), np.arange(1000))
    with pytest.raises(PlanError, match=message):
        cw.release(table, cw.Plan(**plan))


def test_noise_too_wide_for_its_table_is_refused_first() -> None:
    refused("tabled up to a scale of 100,000", rho="1e-12", mechanism="gaussian")


def test_a_backend_that_is_missing_is_refused_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise PlanError("noise=opendp needs the OpenDP library.")

    monkeypatch.setattr(opendp_backend, "_opendp", missing)
    refused("needs the OpenDP library", epsilon=1, noise="opendp")


def test_joint_noise_that_is_drawn_too_rarely_is_refused_first() -> None:
    refused("too rarely", epsilon={"total": 100, "l0": "0.01", "l1": "0.001"}, mechanism="joint")


@pytest.mark.parametrize("adjust", ["bayes", "least-squares"])
def test_counts_that_memory_can_not_hold_are_refused_first(
    adjust: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feasible, "memory", lambda: 90_000)
    refused(
        f"adjust {adjust} takes about 0.000(102|306) GB for 1,021 counts", epsilon=1, adjust=adjust
    )


def test_a_fitted_prior_takes_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feasible, "memory", lambda: 41 * feasible.BYTES_A_NODE)
    refuse_infeasible(cw.Plan(epsilon=1, adjust="mode"), flat(40))
    with pytest.raises(PlanError, match="this machine has"):
        refuse_infeasible(cw.Plan(epsilon=1, adjust="bayes"), flat(40))


def test_this_machine_has_some_memory() -> None:
    assert 10**8 < feasible.memory() < 10**15
