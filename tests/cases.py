"""The hard cases everything runs through, and the tables of the papers."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from countwise.arrays import IntArray
from countwise.release.plan import Plan
from countwise.tables.hierarchy import Hierarchy, build


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table with its true counts and a plan that is hard on something."""

    name: str
    hierarchy: Hierarchy
    cells: IntArray
    plan: dict[str, Any] = field(default_factory=lambda: {"epsilon": 1})

    def make_plan(self, **changes: Any) -> Plan:
        return Plan(**(self.plan | changes))


def flat(size: int) -> Hierarchy:
    """A total and `size` components."""
    return build(pl.DataFrame({"part": [f"{i:07}" for i in range(size)]}))[0]


def tree(*fan_out: int) -> Hierarchy:
    """A full tree in which every node of level d has fan_out[d] children."""
    grids = np.meshgrid(*(np.arange(n) for n in fan_out), indexing="ij")
    columns = {f"l{d}": [f"{v:05}" for v in grid.ravel()] for d, grid in enumerate(grids)}
    return build(pl.DataFrame(columns))[0]


def _case(name: str, hierarchy: Hierarchy, cells: Any, **plan: Any) -> Case:
    plan = {"epsilon": 1} | plan
    return Case(name=name, hierarchy=hierarchy, cells=np.array(cells, dtype=np.int64), plan=plan)


HARD_CASES = [
    _case("empty cell", flat(3), [5, 0, 7]),
    _case("single cell", flat(1), [4]),
    _case("all zero", tree(3, 4), [0] * 12),
    _case("one giant", flat(50), [10**12] + [0] * 49),
    _case("released total 0", tree(2, 2), [0, 0, 1, 0], epsilon="0.05"),
    _case("many ties", tree(4, 25), [1] * 100),
    _case("deep thin tree", tree(1, 2, 1, 2, 1, 2, 1, 2), list(range(16))),
    _case("wide flat tree", flat(20_000), np.arange(20_000) % 7),
    _case("epsilon tiny", tree(3, 3), list(range(9)), epsilon="0.0001"),
    _case("epsilon huge", tree(3, 3), list(range(9)), epsilon=200),
]

SCENARIO_4 = (
    "AK1 AZ9 AR4 CA53 CO7 CT5 DE1 FL27 GA14 HI2 ID2 IL18 IN9 IA4 KS4 KY6 LA6 ME2 MD8 MA9 MI14 "
    "MN8 MS4 MO8 MT1 NE3 NV4 NH2 NJ12 NM3 NY27 NC13 ND1 OH16 OK5 OR5 PA18 RI2 SC7 SD1 TN9 TX36 "
    "UT4 VT1 VA11 WA10 WV3 WI8 WY1 US435"
)
"""Seats of the House of Representatives after 2010 in the order of the states, from the second
state on, with the national total as the last component: the fifty counts of Wang & Reiter 2021,
Table 1."""


def scenario_4() -> dict[str, int]:
    return {entry[:2]: int(entry[2:]) for entry in SCENARIO_4.split()}


def scenario_1() -> IntArray:
    """Fifty counts built to the description of Wang & Reiter 2021, section 3.3.

    Three zeros; 1, 2, 3; five from 15 to 60; the rest from 60 to 977. Quartiles 60, 382 and
    736, maximum 977, total 21249.
    """
    small = [0, 0, 0, 1, 2, 3, 15, 22, 31, 44, 60]
    first = [60, 60, 60, *range(90, 381, 32)]
    second = [382, 382, *range(420, 700, 30)]
    third = [736, 736, *range(760, 961, 20), 977]
    counts = np.array([*small, *first, *second, *third], dtype=np.int64)
    counts[28:36] += (21249 - counts.sum()) // 8
    counts[35] += 21249 - counts.sum()
    return counts
