"""Draws of tables of which each refines the one before: a tree, and its exact messages."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from countwise.arrays import IntArray
from countwise.inference.draws import draw
from countwise.margins.incidence import node_of_each
from countwise.margins.measurement import Measurement
from countwise.sumproduct.measured_nodes import seen_by
from countwise.sumproduct.priors import NestedCompositions
from countwise.sumproduct.tree import solve
from countwise.tables.hierarchy import build
from countwise.tables.measurements import Measurements
from countwise.tables.workload import Workload


def is_chain(workload: Workload, measurements: Sequence[Measurement]) -> bool:
    """Whether the measured tables, each once, are a tree from everyone down to the cells."""
    margins = tuple(each.margin for each in measurements)
    if len(set(margins)) < len(margins):
        return False
    chain = replace(workload, margins=margins).chain()
    return chain is not None and not any(chain[0].levels) and chain[-1] == workload.finest


def chain_draws(
    workload: Workload,
    measurements: Sequence[Measurement],
    count: int,
    *,
    rng: np.random.Generator,
) -> tuple[IntArray, str]:
    """Independent draws of the cells, a row a draw, and the prior in words."""
    seen = sorted(measurements, key=lambda each: sum(each.margin.levels))
    nodes = [node_of_each(workload, each.margin, of=workload.finest) for each in seen]
    width = len(str(workload.cells))
    frame = pl.DataFrame(
        {
            workload.name(each.margin): pl.Series(places).cast(pl.String).str.zfill(width)
            for each, places in zip(seen[1:], nodes[1:], strict=True)
        }
    )
    hierarchy, order = build(frame)
    firsts = [np.zeros(1, np.int64)]
    leaves = np.arange(workload.cells)
    for offsets in reversed(hierarchy.offsets):
        firsts.insert(1, leaves)
        leaves = leaves[offsets[:-1]]
    places = [own[order[first]] for own, first in zip(nodes, firsts, strict=True)]
    exact = [
        np.zeros(each.noisy.size, np.bool_) if each.exact is None else each.exact.reshape(-1)
        for each in seen
    ]
    measured = Measurements(
        hierarchy=hierarchy,
        laws=tuple(each.law for each in seen),
        noisy=tuple(
            each.noisy.reshape(-1)[place] for each, place in zip(seen, places, strict=True)
        ),
        exact=tuple(mask[place] for mask, place in zip(exact, places, strict=True))
        if any(mask.any() for mask in exact)
        else None,
    )
    prior = NestedCompositions()
    ties = seen_by([measured], prior)
    solved = solve(ties, log_total=lambda total: prior.log_total(total, hierarchy.cells))
    drawn = draw(solved, count, rng=rng).cells
    cells = np.empty_like(drawn)
    cells[:, order] = drawn
    return cells, prior.words()
