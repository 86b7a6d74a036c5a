"""Exact variances where several variables are trees that are not balanced.

The functions on the leaves of a tree fall into blocks that no sum along its levels mixes: those
that are the same at all leaves of a class, and for each class of nodes with equal siblings the
contrasts among them. Within a block sums are small matrices, so least squares along the spine is
done with matrices in the place of numbers. docs/explain/crossed-least-squares.md, section 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.margins.condensed import Condensed, condense
from countwise.margins.crossing import Crossing
from countwise.tables.workload import Margin

MOST_NUMBERS = 3 * 10**7  # of all matrices together: 240 MB
NEXT_TO = 1e-7  # stands for no precision, and its inverse for any, in the precisions there are
TINY = 1e-9  # of a unit vector: what is left of it is rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeBlock:
    """Functions on the leaves of a tree that sums along its levels keep among themselves.

    `gains[l]` is A'A of the sums to level l in an orthonormal basis of one copy; `vectors[l]` the
    values of all copies at a node of each class of level l (rows), such that their product with a
    covariance from both sides is the variance there.
    """

    gains: FloatArray
    vectors: tuple[FloatArray, ...]
    copies: float


def blocks_of(tree: Condensed) -> list[TreeBlock]:
    """The blocks of a tree; those of a balanced one have size 1."""
    above = _ancestors(tree)
    blocks = [_block(tree, above, 0, 0, 1.0, 1.0)]
    for level, (parents, times) in enumerate(zip(tree.parents, tree.times, strict=True), start=1):
        for k, siblings in enumerate(times):
            if siblings > 1:
                copies = float(tree.nodes[level - 1][parents[k]]) * (siblings - 1)
                blocks.append(_block(tree, above, level, k, 1 - 1 / siblings, copies))
    return blocks


def _ancestors(tree: Condensed) -> list[IntArray]:
    """For each level the class above every class of leaves."""
    above = [np.arange(len(tree.nodes[-1]))]
    for parents in reversed(tree.parents):
        above.append(parents[above[-1]])
    return above[::-1]


def _block(
    tree: Condensed, above: list[IntArray], top: int, k: int, part: float, copies: float
) -> TreeBlock:
    """The functions below a node of class k of a level, in a basis that refines level by level."""
    members = np.flatnonzero(above[top] == k)
    roots = np.sqrt(tree.nodes[-1][members])
    places = [each[members] for each in above]
    basis = _nested(roots, places[top:])
    gains, vectors = [], []
    for level, place in enumerate(places):
        own = np.zeros((len(tree.nodes[level]), len(members)))
        if level >= top:
            own[place, np.arange(len(members))] = roots
        own /= tree.nodes[level][:, None]
        within = tree.nodes[level][:, None] * own
        gains.append(basis.T @ (own.T @ within) @ basis)
        vectors.append(own @ basis * np.sqrt(part * tree.nodes[top][k]))
    return TreeBlock(gains=np.array(gains), vectors=tuple(vectors), copies=copies)


def _nested(roots: FloatArray, places: Sequence[IntArray]) -> FloatArray:
    """Orthonormal columns: first what is constant in classes of the top level, then of the next."""
    columns: FloatArray = np.zeros((len(roots), 0))
    for place in places:
        for k in np.unique(place):
            vector = np.where(place == k, roots, 0.0)
            vector /= np.linalg.norm(vector)
            for _ in range(2):
                vector = vector - columns @ (columns.T @ vector)
            size = np.linalg.norm(vector)
            if size > TINY:
                columns = np.column_stack([columns, vector / size])
    return columns


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockVariances:
    """Variances of the estimates of every margin, by combinations of blocks of the axes."""

    crossing: Crossing
    noise: Mapping[Margin, float]

    @cached_property
    def trees(self) -> list[Condensed]:
        """The axes with their equal branches drawn once."""
        return [condense(axis.variable) for axis in self.crossing.axes]

    @cached_property
    def blocks(self) -> list[list[TreeBlock]]:
        """The blocks of each axis."""
        return [blocks_of(tree) for tree in self.trees]

    @property
    def affordable(self) -> bool:
        """Whether the matrices of all combinations of blocks can be held."""
        squares = (sum(len(block.gains[0]) ** 2 for block in blocks) for blocks in self.blocks)
        classes = sum(len(each) for each in self.crossing.tree.nodes)
        return prod(squares) * classes <= MOST_NUMBERS

    @cached_property
    def _precisions(self) -> dict[Margin, float]:
        """One over the variances; of what is exact, next to infinite."""
        positive = [1 / each for each in self.noise.values() if each > 0] or [1.0]
        known = max(positive) / NEXT_TO
        return {margin: 1 / each if each > 0 else known for margin, each in self.noise.items()}

    @cached_property
    def _covariances(self) -> list[tuple[tuple[TreeBlock, ...], list[FloatArray]]]:
        """For each combination of blocks, a matrix for every class of each level of the spine."""
        found = []
        for chosen in product(*self.blocks):
            size = prod(len(block.gains[0]) for block in chosen)
            matrices = np.zeros((len(self.crossing.variable.sizes), size, size))
            matrices[-1] += np.eye(size) * NEXT_TO * min(self._precisions.values(), default=1.0)
            for margin, precision in self._precisions.items():
                level, levels = self.crossing.split(margin)
                gains = [block.gains[b] for block, b in zip(chosen, levels, strict=True)]
                matrices[level] += precision * _kronecker(gains)
            found.append((chosen, _fit(self.crossing.tree, matrices)))
        return found

    def variance(self, margin: Margin) -> FloatArray:
        """Variance of each count of a margin that is determined, not exact."""
        level, levels = self.crossing.split(margin)
        total: FloatArray = np.zeros(())
        for chosen, covariances in self._covariances:
            vectors = [block.vectors[b] for block, b in zip(chosen, levels, strict=True)]
            rows = _kronecker(vectors)
            total = total + np.einsum(
                "uab,xa,xb->ux", covariances[level], rows, rows, optimize=True
            )
        counts = [len(tree.nodes[b]) for tree, b in zip(self.trees, levels, strict=True)]
        values = total.reshape(len(total), *counts)
        classes = [tree.classes[b] for tree, b in zip(self.trees, levels, strict=True)]
        values = values[np.ix_(self.crossing.tree.classes[level], *classes)]
        return np.moveaxis(values, 0, self.crossing.spine)

    def mean_variance(self, margin: Margin) -> float:
        """Mean over the counts of a margin of their variances."""
        level, levels = self.crossing.split(margin)
        nodes, total = self.crossing.tree.nodes[level], 0.0
        for chosen, covariances in self._covariances:
            gains = [block.gains[b] for block, b in zip(chosen, levels, strict=True)]
            covariance = np.tensordot(nodes, covariances[level], axes=1)
            inner = float((covariance * _kronecker(gains)).sum())
            total += inner * prod(block.copies for block in chosen)
        return total / self.crossing.workload.size(margin)


def _kronecker(matrices: Sequence[FloatArray]) -> FloatArray:
    """The Kronecker product of matrices, one for each axis."""
    found: FloatArray = np.ones((1, 1))
    for each in matrices:
        rows, columns = len(found) * len(each), found.shape[1] * each.shape[1]
        found = (found[:, None, :, None] * each[None, :, None, :]).reshape(rows, columns)
    return found


def _fit(tree: Condensed, precisions: FloatArray) -> list[FloatArray]:
    """Covariances of the estimates of every class of each level: `weigh` with matrices."""
    size, last = precisions.shape[1], len(precisions) - 1
    upward = [np.repeat(_inverse(precisions[-1:]), len(tree.nodes[last]), axis=0)]
    sums = list[FloatArray]()
    for level in range(last - 1, -1, -1):
        below = tree.below(level, upward[-1].reshape(-1, size * size)).reshape(-1, size, size)
        upward.append(_inverse(precisions[level] + _inverse(below)))
        sums.append(_inverse(below))
    upward.reverse()
    sums.reverse()
    found = [upward[0]]
    for level in range(1, last + 1):
        above = tree.parents[level - 1]
        own = upward[level]
        share = own @ sums[level - 1][above]
        parent = share @ found[-1][above] @ share.transpose(0, 2, 1)
        found.append(own - share @ own + parent)
    return found


def _inverse(matrices: FloatArray) -> FloatArray:
    """Inverses of positive definite matrices whose rows may be of very different size."""
    scale = 1 / np.sqrt(np.einsum("kii->ki", matrices))
    both = scale[:, :, None] * scale[:, None, :]
    return np.asarray(np.linalg.inv(matrices * both) * both)
