"""The stages of a release that is made in pieces: each piece's part of each of them.

Every function here can be called again after a stop, on any machine that sees the staging
folder, and does nothing twice: what a piece has completed is kept and not made again.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from countwise.adjust.adjustments import ADJUSTMENTS, Choices
from countwise.adjust.mode import Total
from countwise.adjust.protocol import SubtreeAdjustment
from countwise.adjust.tree_walk import Piece
from countwise.arrays import IntArray
from countwise.errors import CountwiseError
from countwise.release import count_ranges
from countwise.release.budget import Budget
from countwise.release.checkpoints import Arrays, Staging, shape_arrays, shape_of
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
    staging: Staging
    tie_key: int | None
    adjust_key: tuple[int, ...]
    seal: bytes

    def adjustment(self, stream: int = 0) -> SubtreeAdjustment:
        """The plan's adjustment; its randomness is the same in every attempt, and protects none."""
        rng, total = np.random.default_rng([*self.adjust_key, stream]), cast(Total, self.plan.total)
        choices = Choices(tie_key=self.tie_key, rng=rng, total=total, pool=self.plan.pool)
        return cast(SubtreeAdjustment, ADJUSTMENTS[self.method].make(choices))

    @cached_property
    def _firsts(self) -> IntArray:
        return self.staging.kept(TOP, "firsts")["firsts"].reshape(len(self.cut), -1)

    def measure(self, table: Confidential, piece: int) -> bytes:
        """Noisy counts of a piece, drawn once; the true sums at the cut, sealed, for the top.

        Of the levels above the cut the piece has a part only; noise for these is drawn by
        `measure_top`, and what is drawn for the parts is dropped.
        """
        if not self.staging.has(measured_name(piece)):
            noisy = measure(table, self.budget, noise=self.plan.noise)
            self.staging.keep(measured_name(piece), self._arrays(noisy))
        return table.level(self.cut.depth).sealed(self.seal)

    def _arrays(self, noisy: Measurements) -> Arrays:
        piece = self._piece(noisy, tuple(0 for _ in noisy.laws))
        gathered = np.concatenate([np.empty(0, np.int64), *self.adjustment().up(piece)])
        kept = {f"noisy{level}": noisy.noisy[level] for level in piece.below}
        sizes = {"sizes": np.array(noisy.hierarchy.sizes)}
        said = count_ranges.as_arrays("below", count_ranges.gathered(noisy, self.cut.depth))
        return {**shape_arrays(noisy.hierarchy), **kept, "up": gathered, **said, **sizes}

    def _piece(self, noisy: Measurements, firsts: tuple[int, ...]) -> Piece:
        return Piece(measurements=[noisy], depth=self.cut.depth, firsts=firsts)

    def measure_top(self, sealed: list[bytes]) -> None:
        """Noisy counts of the top, and where in the whole tree each piece begins."""
        top, depth = self.cut.top, self.cut.depth
        table = Confidential.gathered(top, sealed, self.seal)
        noisy = measure(table, self.top_budget, noise=self.plan.noise)
        sizes = np.stack(
            [self.staging.kept(measured_name(i), "sizes")["sizes"] for i in range(len(self.cut))]
        )
        sizes[:, : depth + 1] = 0
        whole = sizes.sum(axis=0)
        whole[: depth + 1] = top.sizes
        firsts = np.cumsum(whole) - whole + np.cumsum(sizes, axis=0) - sizes
        arrays = {f"noisy{level}": each for level, each in enumerate(noisy.noisy)}
        self.staging.keep(TOP, {"sizes": whole, "firsts": firsts.ravel(), **arrays})

    @property
    def top_budget(self) -> Budget:
        """The budget of the levels down to the cut."""
        return Budget(levels=self.budget.levels[: self.cut.depth + 1], unit=self.budget.unit)

    def top_measurements(self) -> Measurements:
        """The noisy counts of the top."""
        kept = self.staging.kept(TOP)
        laws = self.top_budget.laws
        noisy = tuple(kept[f"noisy{level}"] for level in range(len(laws)))
        return Measurements(hierarchy=self.cut.top, laws=laws, noisy=noisy)

    def sizes(self) -> tuple[int, ...]:
        """Nodes of each level of the whole tree."""
        return tuple(int(size) for size in self.staging.kept(TOP, "sizes")["sizes"])

    def piece(self, i: int) -> Piece:
        """The noisy counts of a piece, as kept."""
        kept = self.staging.kept(measured_name(i))
        nothing = np.empty(0, dtype=np.int64)
        noisy = tuple(
            kept.get(f"noisy{level}", nothing) for level in range(len(self.budget.levels))
        )
        measured = Measurements(hierarchy=shape_of(kept), laws=self.budget.laws, noisy=noisy)
        return self._piece(measured, tuple(int(first) for first in self._firsts[i]))

    def shape(self, i: int, level: int) -> Hierarchy:
        """The tree of a piece down to a level; its level columns are all there."""
        names = [f"{kind}{d}" for d in range(level) for kind in ("codes", "offsets")]
        kept = self.staging.kept(measured_name(i), "labels", *names)
        return shape_of(kept, depth=level)

    def top_values(self, kind: str, level: int) -> dict[str, IntArray]:
        """The columns of counts, or of noisy counts, of a level of the top."""
        return self._columns(kind, level, TOP if kind == "noisy" else TOP_COUNTS)

    def values(self, kind: str, i: int, level: int) -> dict[str, IntArray]:
        """The same of a piece."""
        return self._columns(kind, level, measured_name(i) if kind == "noisy" else adjusted_name(i))

    def _columns(self, kind: str, level: int, name: str) -> dict[str, IntArray]:
        kept = self.staging.kept(name, *(f"{column}{level}" for column in COLUMNS[kind]))
        return {column: kept[f"{column}{level}"] for column in COLUMNS[kind]}

    def adjust_top(self) -> None:
        """Counts of the top, from its noisy counts and what the pieces gathered."""
        if self.staging.has(TOP_COUNTS):
            return
        parts = [self._gathered(i) for i in range(len(self.cut))]
        gathered = tuple(np.concatenate(each) for each in zip(*parts, strict=True))
        top = self.top_measurements()
        counts = self.adjustment().across([top], gathered)
        check_family(top.hierarchy, range(1, len(counts)), dict(enumerate(counts)))
        moved = np.array(
            [np.abs(a - b).sum(dtype=np.float64) for a, b in zip(counts, top.noisy, strict=True)]
        )
        below = [
            count_ranges.of_arrays("below", self.staging.kept(measured_name(i), *BELOW))
            for i in range(len(self.cut))
        ]
        found, told = count_ranges.top_ranges(
            top, Normal(*map(np.concatenate, zip(*below, strict=True)))
        )
        arrays: Arrays = {f"count{level}": each for level, each in enumerate(counts)}
        arrays |= _range_arrays(dict(enumerate(found)))
        arrays |= count_ranges.as_arrays("told", told)
        self.staging.keep(TOP_COUNTS, {"moved": moved, **arrays})

    def _gathered(self, i: int) -> tuple[IntArray, ...]:
        nodes = int(self.cut.bounds[i + 1] - self.cut.bounds[i])
        return tuple(self.staging.kept(measured_name(i), "up")["up"].reshape(-1, nodes))

    def adjust(self, i: int) -> bytes:
        """Counts of a piece below the cut."""
        if self.staging.has(adjusted_name(i)):
            return b""
        piece, cut = self.piece(i), self.cut
        top = self.staging.kept(TOP_COUNTS, f"count{cut.depth}", *TOLD)
        given = top[f"count{cut.depth}"][cut.nodes(i)]
        told = Normal(*(each[cut.nodes(i)] for each in count_ranges.of_arrays("told", top)))
        below = self.adjustment(i + 1).down(piece, given)
        counts = dict(zip(piece.below, below, strict=True))
        check_family(piece.hierarchy, piece.below, {cut.depth: given, **counts})
        moved = np.zeros(len(self.budget.levels))
        for level, each in counts.items():
            moved[level] = np.abs(each - piece.measurements[0].noisy[level]).sum(dtype=np.float64)
        arrays = {f"count{level}": each for level, each in counts.items()}
        arrays |= _range_arrays(count_ranges.piece_ranges(piece.measurements[0], told, cut.depth))
        self.staging.keep(adjusted_name(i), {"moved": moved, **arrays})
        return b""

    def moved(self) -> list[float]:
        """How far adjustment moved the counts of each level, on average."""
        total = np.zeros(len(self.budget.levels))
        top = self.staging.kept(TOP_COUNTS, "moved")["moved"]
        total[: len(top)] += top
        for i in range(len(self.cut)):
            total += self.staging.kept(adjusted_name(i), "moved")["moved"]
        return [float(x) for x in total / np.array(self.sizes())]


def _range_arrays(found: dict[int, tuple[IntArray, IntArray]]) -> Arrays:
    lows = {f"low{level}": low for level, (low, _) in found.items()}
    return lows | {f"high{level}": high for level, (_, high) in found.items()}


def check_family(hierarchy: Hierarchy, levels: range, counts: dict[int, IntArray]) -> None:
    """Counts are whole, none negative, and children add up to their parent."""
    for level in levels:
        sums = np.add.reduceat(counts[level], hierarchy.offsets[level - 1][:-1])
        if (counts[level] < 0).any() or (sums != counts[level - 1]).any():
            raise CountwiseError(f"counts of level {hierarchy.levels[level]!r} do not add up.")
