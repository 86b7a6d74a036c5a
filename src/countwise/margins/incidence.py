"""Which node of a margin every cell is in, as flat positions."""

from collections.abc import Sequence
from math import prod

import numpy as np

from countwise.arrays import Int32Array
from countwise.tables.workload import Margin, Workload


def node_of_each(workload: Workload, margin: Margin, *, of: Margin) -> Int32Array:
    """For every node of a finer margin, in order, the place of the node that it adds to."""
    shape = workload.shape_of(margin)
    found = np.zeros((1,) * len(shape), dtype=np.int32)
    triples = zip(workload.variables, margin.levels, of.levels, strict=True)
    for axis, (variable, coarse, fine) in enumerate(triples):
        line = [1] * len(shape)
        line[axis] = variable.sizes[fine]
        parents = variable.parents(fine, of=coarse).astype(np.int32).reshape(line)
        found = found + parents * np.int32(prod(shape[axis + 1 :]))
    return np.ascontiguousarray(np.broadcast_to(found, workload.shape_of(of))).reshape(-1)


def stacked_nodes(workload: Workload, margins: Sequence[Margin]) -> Int32Array:
    """A row a margin: the place of every cell's node among the nodes of all margins in turn."""
    rows = np.empty((len(margins), workload.cells), dtype=np.int32)
    before = 0
    for k, margin in enumerate(margins):
        rows[k] = node_of_each(workload, margin, of=workload.finest) + np.int32(before)
        before += workload.size(margin)
    return rows
