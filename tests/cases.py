"""The hard cases everything runs through."""

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
