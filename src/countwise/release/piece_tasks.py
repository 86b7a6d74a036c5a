"""The stages of a release of one tree: the part of its top, and of each piece below.

Every function here can be called again after a stop, on any machine that sees what is kept, and
does nothing twice: what a piece has completed is not made again. A tree that memory holds is all
top, without a piece, and what it keeps is in memory.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np

from countwise.adjust.adjustments import ADJUSTMENTS, Choices
from countwise.adjust.mode import Total
from countwise.adjust.protocol import Adjusted, Adjustment, SubtreeAdjustment
from countwise.adjust.tree_walk import Piece
from countwise.arrays import IntArray
from countwise.release import count_ranges
from countwise.release.budget import Budget
from countwise.release.checkpoints import Arrays, Store, shape_arrays, shape_of
from countwise.release.document import check_counts
from countwise.release.measure import measure
from countwise.release.plan import Plan
from countwise.sumproduct.normal_approximation import Normal
from countwise.tables.confidential import Confidential
from countwise.tables.cut import Cut
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.measurements import Measurements

TOP, TOP_COUNTS = "top.npz", "top-counts.npz"
COLUMNS = {"count": ("count", "low", "high"), "noisy": ("noisy",)}
"""The values of each table's rows."""
BELOW, TOLD = ("below-means", "below-variances"), ("told-means", "told-variances")


def measured_name(piece: int) -> str:
    """The file of a piece's noisy counts."""
    return f"measured-{piece:06}.npz"


def adjusted_name(piece: int) -> str:
    """The file of a piece's adjusted counts."""
    return f"adjusted-{piece:06}.npz"


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskContext:
    """What a task on a piece knows: the plan, the public tree, the keys. It holds no count.

    `seal` is the key under which true sums go from a piece to the top, and only in memory.
    """

    plan: Plan
    budget: Budget
    method: str
    cut: Cut
    store: Store
    tie_key: int | None
    adjust_key: tuple[int, ...]
    seal: bytes = field(repr=False)

    def adjustment(self, stream: int = 0) -> Adjustment:
        """The plan's adjustment; its randomness is the same in every attempt, and protects none."""
        rng, total = np.random.default_rng([*self.adjust_key, stream]), cast(Total, self.plan.total)
        choices = Choices(tie_key=self.tie_key, rng=rng, total=total, pool=self.plan.pool)
        return ADJUSTMENTS[self.method].make(choices)

    def in_pieces(self, stream: int = 0) -> SubtreeAdjustment:
        """The same of a tree that is cut, where it is one that never looks at all cells."""
        return cast(SubtreeAdjustment, self.adjustment(stream))

    @cached_property
    def _firsts(self) -> IntArray:
        return self.store.kept(TOP, "firsts")["firsts"].reshape(len(self.cut), -1)

    def measure(self, table: Confidential, piece: int) -> bytes:
        """Noisy counts of a piece, drawn once; the true sums at the cut, sealed, for the top.

        Of the levels above the cut the piece has a part only; noise for these is drawn by
        `measure_top`, and what is drawn for the parts is dropped.
        """
        if not self.store.has(measured_name(piece)):
            noisy = measure(table, self.budget, noise=self.plan.noise)
            self.store.keep(measured_name(piece), self._arrays(noisy))
        return table.level(self.cut.depth).sealed(self.seal)

    def _arrays(self, noisy: Measurements) -> Arrays:
        piece = self._piece(noisy, tuple(0 for _ in noisy.laws))
        gathered = np.concatenate([np.empty(0, np.int64), *self.in_pieces().up(piece)])
        kept = {f"noisy{level}": noisy.noisy[level] for level in piece.below}
        sizes = {"sizes": np.array(noisy.hierarchy.sizes)}
        said = count_ranges.as_arrays("below", count_ranges.gathered(noisy, self.cut.depth))
        return {**shape_arrays(noisy.hierarchy), **kept, "up": gathered, **said, **sizes}

    def _piece(self, noisy: Measurements, firsts: tuple[int, ...]) -> Piece:
        return Piece(measurements=[noisy], depth=self.cut.depth, firsts=firsts)

    def gathered(self, sealed: list[bytes]) -> Confidential:
        """The true counts of the top, whose last nodes are in the pieces."""
        return Confidential.gathered(self.cut.top, sealed, self.seal)

    def measure_top(self, table: Confidential) -> None:
        """Noisy counts of the top, and where in the whole tree each piece begins."""
        noisy, depth = measure(table, self.top_budget, noise=self.plan.noise), self.cut.depth
        sizes = np.zeros((len(self.cut), len(self.budget.levels)), np.int64)
        for i in range(len(self.cut)):
            sizes[i] = self.store.kept(measured_name(i), "sizes")["sizes"]
        sizes[:, : depth + 1] = 0
        whole = sizes.sum(axis=0)
        whole[: depth + 1] = self.cut.top.sizes
        firsts = np.cumsum(whole) - whole + np.cumsum(sizes, axis=0) - sizes
        arrays = {f"noisy{level}": each for level, each in enumerate(noisy.noisy)}
        self.store.keep(TOP, {"sizes": whole, "firsts": firsts.ravel(), **arrays})

    @property
    def top_budget(self) -> Budget:
        """The budget of the levels down to the cut: all of it where there is none."""
        if not len(self.cut):
            return self.budget
        return Budget(levels=self.budget.levels[: self.cut.depth + 1], unit=self.budget.unit)

    def top_measurements(self) -> Measurements:
        """The noisy counts of the top."""
        kept = self.store.kept(TOP)
        laws = self.top_budget.laws
        noisy = tuple(kept[f"noisy{level}"] for level in range(len(laws)))
        exact = self.top_budget.exact
        return Measurements(hierarchy=self.cut.top, laws=laws, noisy=noisy, exact=exact)

    def sizes(self) -> tuple[int, ...]:
        """Nodes of each level of the whole tree."""
        return tuple(int(size) for size in self.store.kept(TOP, "sizes")["sizes"])

    def piece(self, i: int) -> Piece:
        """The noisy counts of a piece, as kept."""
        kept = self.store.kept(measured_name(i))
        nothing = np.empty(0, dtype=np.int64)
        noisy = tuple(
            kept.get(f"noisy{level}", nothing) for level in range(len(self.budget.levels))
        )
        measured = Measurements(hierarchy=shape_of(kept), laws=self.budget.laws, noisy=noisy)
        return self._piece(measured, tuple(int(first) for first in self._firsts[i]))

    def shape(self, i: int, level: int) -> Hierarchy:
        """The tree of a piece down to a level; its level columns are all there."""
        names = [f"{kind}{d}" for d in range(level) for kind in ("codes", "offsets")]
        kept = self.store.kept(measured_name(i), "labels", *names)
        return shape_of(kept, depth=level)

    def top_values(self, kind: str, level: int) -> dict[str, IntArray]:
        """The columns of counts, or of noisy counts, of a level of the top."""
        return self._columns(kind, level, TOP if kind == "noisy" else TOP_COUNTS)

    def values(self, kind: str, i: int, level: int) -> dict[str, IntArray]:
        """The same of a piece."""
        return self._columns(kind, level, measured_name(i) if kind == "noisy" else adjusted_name(i))

    def _columns(self, kind: str, level: int, name: str) -> dict[str, IntArray]:
        kept = self.store.kept(name, *(f"{column}{level}" for column in COLUMNS[kind]))
        return {column: kept[f"{column}{level}"] for column in COLUMNS[kind]}

    def adjust_top(self) -> Adjusted:
        """Counts of the top, from its noisy counts and what the pieces gathered."""
        top = self.top_measurements()
        if self.store.has(TOP_COUNTS):
            kept = self.store.kept(TOP_COUNTS)
            counts = tuple(kept[f"count{level}"] for level in range(len(top.laws)))
            return Adjusted(counts=counts, method=self.method)
        if not len(self.cut):
            made = self.adjustment().adjusted([top])
            check_counts(top.hierarchy, made.counts)
            return made
        parts = [self._gathered(i) for i in range(len(self.cut))]
        gathered = tuple(np.concatenate(each) for each in zip(*parts, strict=True))
        counts = self.in_pieces().across([top], gathered)
        check_counts(top.hierarchy, counts)
        self._keep_top(top, counts)
        return Adjusted(counts=counts, method=self.method)

    def _keep_top(self, top: Measurements, counts: tuple[IntArray, ...]) -> None:
        """What pieces and tables need of the top: its counts and ranges, and what is told below."""
        moved = np.array(
            [np.abs(a - b).sum(dtype=np.float64) for a, b in zip(counts, top.noisy, strict=True)]
        )
        below = [
            count_ranges.of_arrays("below", self.store.kept(measured_name(i), *BELOW))
            for i in range(len(self.cut))
        ]
        found, told = count_ranges.top_ranges(
            top, Normal(*map(np.concatenate, zip(*below, strict=True)))
        )
        arrays: Arrays = {f"count{level}": each for level, each in enumerate(counts)}
        arrays |= _range_arrays(dict(enumerate(found)))
        arrays |= count_ranges.as_arrays("told", told)
        self.store.keep(TOP_COUNTS, {"moved": moved, **arrays})

    def _gathered(self, i: int) -> tuple[IntArray, ...]:
        nodes = int(self.cut.bounds[i + 1] - self.cut.bounds[i])
        return tuple(self.store.kept(measured_name(i), "up")["up"].reshape(-1, nodes))

    def adjust(self, i: int) -> bytes:
        """Counts of a piece below the cut."""
        if self.store.has(adjusted_name(i)):
            return b""
        piece, cut = self.piece(i), self.cut
        top = self.store.kept(TOP_COUNTS, f"count{cut.depth}", *TOLD)
        given = top[f"count{cut.depth}"][cut.nodes(i)]
        told = Normal(*(each[cut.nodes(i)] for each in count_ranges.of_arrays("told", top)))
        below = self.in_pieces(i + 1).down(piece, given)
        counts = dict(zip(piece.below, below, strict=True))
        check_counts(piece.hierarchy, [given, *below], depth=cut.depth)
        moved = np.zeros(len(self.budget.levels))
        for level, each in counts.items():
            moved[level] = np.abs(each - piece.measurements[0].noisy[level]).sum(dtype=np.float64)
        arrays = {f"count{level}": each for level, each in counts.items()}
        arrays |= _range_arrays(count_ranges.piece_ranges(piece.measurements[0], told, cut.depth))
        self.store.keep(adjusted_name(i), {"moved": moved, **arrays})
        return b""

    def moved(self) -> list[float]:
        """How far adjustment moved the counts of each level, on average."""
        total = np.zeros(len(self.budget.levels))
        top = self.store.kept(TOP_COUNTS, "moved")["moved"]
        total[: len(top)] += top
        for i in range(len(self.cut)):
            total += self.store.kept(adjusted_name(i), "moved")["moved"]
        return [float(x) for x in total / np.array(self.sizes())]


def _range_arrays(found: dict[int, tuple[IntArray, IntArray]]) -> Arrays:
    lows = {f"low{level}": low for level, (low, _) in found.items()}
    return lows | {f"high{level}": high for level, (_, high) in found.items()}
