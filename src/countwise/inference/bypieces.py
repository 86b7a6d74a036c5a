"""The exact posterior of a large release from its noisy counts, a subtree at a time.

Messages go up within each piece to the cut, up and down the top in memory, and down within each
piece again; only one piece's messages are held by a worker. What comes out is the posterior of
the whole tree.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.errors import InputError
from countwise.inference.summaries import check_interval, summarise
from countwise.privacy.laws import IntegerLaw
from countwise.progress import Report, unheard
from countwise.release.published import LargeRelease, PublishedPiece
from countwise.release.runners import Named, Runner, in_threads
from countwise.sumproduct.evidence import Seen
from countwise.sumproduct.laws import Laws, joined
from countwise.sumproduct.measured import DEPTH, Measured, measured
from countwise.sumproduct.noise import same_noise
from countwise.sumproduct.priors import Prior, Uniform
from countwise.sumproduct.steps import Steps
from countwise.sumproduct.tree import (
    WIDENINGS,
    Family,
    Solved,
    Touched,
    pass_down,
    pass_up,
    solve,
)
from countwise.tables.hierarchy import Hierarchy

NOTHING = Laws(lows=np.empty(0, np.int64), offsets=np.zeros(1, np.int64), values=np.empty(0))


@dataclass(frozen=True, kw_only=True)
class Grafted:
    """Ties of the top, whose nodes at the cut know what came up to them from below."""

    top: Measured
    leaves: Laws

    @property
    def hierarchy(self) -> Hierarchy:
        """The top."""
        return self.top.hierarchy

    @property
    def largest(self) -> int:
        """The largest count in any window at the cut."""
        return int(self.leaves.highs.max())

    def own(self, level: int, first: int, last: int) -> Laws:
        """Of nodes at the cut, all that is known from their pieces."""
        if level == len(self.hierarchy.offsets):
            return self.leaves.part(first, last)
        return self.top.own(level, first, last)

    def up(self, level: int, first: int, last: int, children: Laws, own: Laws) -> Laws:
        """As of any measured tree."""
        return self.top.up(level, first, last, children, own)

    def down(self, level: int, first: int, last: int, children: Laws, coupling: Laws) -> Family:
        """As of any measured tree."""
        return self.top.down(level, first, last, children, coupling)

    def steps(self, level: int, parent: int, children: Laws) -> Steps:
        """As of any measured tree."""
        return self.top.steps(level, parent, children)

    def widened(self, touched: list[tuple[BoolArray, BoolArray]]) -> "Grafted | None":
        """Wider windows above the cut; at the cut they are as wide as the pieces made them."""
        low, high = touched[-1]
        if bool((low & (self.leaves.lows > 0)).any() or high.any()):
            raise TooNarrowError
        wider = self.top.widened(touched)
        return None if wider is None else Grafted(top=wider, leaves=self.leaves)


class TooNarrowError(Exception):
    """The windows at the cut end where there is mass."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PieceWork:
    """What a worker does with a piece of a release."""

    release: LargeRelease
    prior: Prior
    reach: float
    folder: Path
    probability: float
    interval: str

    def _ties(self, piece: PublishedPiece) -> Measured:
        depth, hierarchy = self.release.cut.depth, piece.hierarchy
        seen = _seen(self.release.laws, piece, hierarchy)
        depths = [np.full(n, DEPTH) for n in hierarchy.sizes]
        depths[depth] = np.full(hierarchy.sizes[depth], self.reach)
        return measured(hierarchy, seen, self.prior, depths=depths)

    def up(self, i: int) -> bytes:
        """What a piece says about its nodes at the cut; their own noisy counts are in it."""
        ups, _ = self._ups(self._ties(self.release.piece(i)))
        return _packed(ups[self.release.cut.depth])

    def _ups(self, ties: Measured) -> tuple[list[Laws], list[Laws]]:
        depth, last = self.release.cut.depth, len(ties.hierarchy.offsets)
        owns = [NOTHING] * depth
        owns += [ties.own(d, 0, ties.hierarchy.sizes[d]) for d in range(depth, last)]
        ups = list(owns)
        for level in range(last - 1, depth - 1, -1):
            ups[level] = pass_up(ties, level, ups, owns[level])
        return ups, owns

    def down(self, i: int) -> bytes:
        """Write the posterior of every node of a piece below the cut."""
        piece, depth = self.release.piece(i), self.release.cut.depth
        rest = _unpacked((self.folder / _rest_name(i)).read_bytes())
        ties: Measured | None = self._ties(piece)
        for _ in range(WIDENINGS):
            assert ties is not None
            ups, owns = self._ups(ties)
            coupling = owns[depth].times(_aligned(rest, owns[depth]))
            couplings = (*([NOTHING] * depth), coupling)
            solved = Solved(ties=ties, ups=tuple(ups), couplings=couplings, kept={})
            touched: Touched = []
            for level in range(depth, len(ties.hierarchy.offsets)):
                solved = pass_down(solved, level, owns, touched)
            none = [(np.zeros(n, np.bool_),) * 2 for n in ties.hierarchy.sizes[: depth + 1]]
            ties = ties.widened([(a, b) for a, b in none] + touched) if _any(touched) else None
            if ties is None:
                break
        levels = range(depth + 1, len(piece.hierarchy.sizes))
        frames = [self.frame(solved, level, piece) for level in levels]
        partial = self.folder / f".{secrets.token_hex(4)}"
        pl.concat(frames, how="vertical_relaxed").write_parquet(partial)
        partial.replace(self.folder / part_name(i))
        return b""

    def frame(self, solved: Solved, level: int, piece: PublishedPiece) -> pl.DataFrame:
        """One row a node of a level."""
        parts = [
            summarise(laws, level=self.probability, interval=self.interval)._asdict()
            for laws in solved.marginals(level)
        ]
        found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        found["probability"] = found.pop("chance")
        frame = piece.hierarchy.frame(level, released=piece.counts[level], **found)
        names = [*piece.hierarchy.by, "level"]
        missing = [name for name in self.release.by if name not in names]
        return frame.with_columns(
            *(pl.col(name).cast(pl.String) for name in names),
            *(pl.lit(None, dtype=pl.String).alias(name) for name in missing),
        ).select(*self.release.by, "level", "released", *found)


def _seen(
    laws: Sequence[IntegerLaw], piece: PublishedPiece, hierarchy: Hierarchy
) -> list[list[Seen]]:
    """The noisy counts of the levels that a piece has; nothing of the others."""
    return [
        [Seen(noise=same_noise(laws[level], size), values=piece.noisy[level])]
        if level in piece.noisy
        else []
        for level, size in enumerate(hierarchy.sizes)
    ]


def infer_by_pieces(
    release: LargeRelease,
    folder: Path,
    *,
    prior: Prior,
    probability: float = 0.95,
    interval: str = "highest",
    runner: Runner = in_threads,
    report: Report = unheard,
) -> list[Path]:
    """Write the posterior of every node into Parquet files in a folder: the top, then each piece.

    Returns the files in order.
    """
    check_interval(probability, interval)
    _refuse_own_prior(prior)
    reach = DEPTH
    for _ in range(WIDENINGS):
        work = PieceWork(
            release=release,
            prior=prior,
            reach=reach,
            folder=folder,
            probability=probability,
            interval=interval,
        )
        each = Named(runner=runner, stage="passing messages up", report=report)
        leaves = joined([_unpacked(part) for part in each(work.up, len(release.cut))])
        try:
            solved = _solve_top(work, leaves)
            break
        except TooNarrowError:
            reach *= 2
    else:
        raise InputError("the release has probability zero under this prior and noise.")
    _leave_rest(work, solved)
    frames = [work.frame(solved, level, release.top) for level in range(release.cut.depth + 1)]
    pl.concat(frames, how="vertical_relaxed").write_parquet(folder / TOP)
    down = Named(runner=runner, stage="passing messages down", report=report)
    down(work.down, len(release.cut))
    return [folder / TOP, *(folder / part_name(i) for i in range(len(release.cut)))]


def _solve_top(work: PieceWork, leaves: Laws) -> Solved:
    release, cells = work.release, work.release.sizes[-1]
    seen = _seen(release.laws, release.top, release.cut.top)
    depths = [np.full(n, DEPTH) for n in release.cut.top.sizes]
    depths[-1] = np.full(release.cut.top.sizes[-1], work.reach)
    top = measured(release.cut.top, seen, Uniform(), depths=depths)
    ties = Grafted(top=top, leaves=leaves)
    return solve(ties, log_total=lambda t: work.prior.log_total(t, cells))


def _leave_rest(work: PieceWork, solved: Solved) -> None:
    """What the rest of the tree says about the nodes at the cut, a file a piece."""
    cut = work.release.cut
    parents = cut.top.sizes[cut.depth - 1]
    rest = solved.family(cut.depth - 1, 0, parents).messages
    for i in range(len(cut)):
        here = cut.nodes(i)
        (work.folder / _rest_name(i)).write_bytes(_packed(rest.part(here.start, here.stop)))


TOP = "part-top.parquet"


def part_name(i: int) -> str:
    """The file of a piece's posterior, in order after that of the top."""
    return f"piece-{i:06}.parquet"


def _rest_name(i: int) -> str:
    return f".rest-{i:06}"


def _refuse_own_prior(prior: Prior) -> None:
    """A prior with a number of its own for each cell would have to be cut as well."""
    for value in vars(prior).values():
        if isinstance(value, tuple | list) and len(value) > 1 and type(prior).__name__ != "Pmf":
            raise InputError(
                "a release of this size is inferred in pieces, with the same prior for every "
                "cell. To fix, give one number, not one a cell."
            )


def _any(touched: Touched) -> bool:
    return any(bool(low.any() or high.any()) for low, high in touched)


def _aligned(law: Laws, window: Laws) -> FloatArray:
    """Values of functions on other windows, zero where they had none."""
    out = np.zeros(len(window.values))
    at = window.grid - law.lows[window.owners]
    inside = (at >= 0) & (at < law.sizes[window.owners])
    out[inside] = law.values[(law.offsets[:-1][window.owners] + at)[inside]]
    return out


def _packed(laws: Laws) -> bytes:
    head = np.array([laws.nodes], np.int64)
    return b"".join(each.tobytes() for each in (head, laws.lows, laws.offsets, laws.values))


def _unpacked(data: bytes) -> Laws:
    nodes = int(np.frombuffer(data, np.int64, 1)[0])
    lows = np.frombuffer(data, np.int64, nodes, 8)
    offsets: IntArray = np.frombuffer(data, np.int64, nodes + 1, 8 * (1 + nodes))
    values = np.frombuffer(data, np.float64, offset=8 * (2 + 2 * nodes))
    return Laws(lows=lows, offsets=offsets, values=values)


def write_one(files: Sequence[Path], file: Path) -> None:
    """The rows of several Parquet files in one CSV or Parquet file, as they are read."""
    if file.suffix.lower() == ".parquet":
        with pq.ParquetWriter(file, pq.read_schema(files[0]), compression="zstd") as writer:
            for path in files:
                for batch in pq.ParquetFile(path).iter_batches():
                    writer.write_batch(batch)
    else:
        pl.scan_parquet(list(files)).sink_csv(file)
