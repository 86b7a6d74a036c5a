"""The exact posterior of a large release from its noisy counts, a subtree at a time.

Messages go up within each piece to the cut, up and down the top in memory, and down within each
piece again; only one piece's messages are held by a worker. What comes out is the posterior of
the whole tree.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from countwise.errors import InputError
from countwise.inference.posterior import in_brief, summary_rows
from countwise.negligible import WINDOW
from countwise.noise.laws import IntegerLaw
from countwise.progress import Tell, silent
from countwise.release.execution import Runner, StageRunner, in_threads
from countwise.release.large_release import LargeRelease, PublishedPiece
from countwise.sumproduct.count_laws import Laws, joined
from countwise.sumproduct.evidence import Evidence
from countwise.sumproduct.implied_bounds import BOUNDLESS
from countwise.sumproduct.measured_nodes import MeasuredTies, measured
from countwise.sumproduct.node_noise import same_noise
from countwise.sumproduct.prior_free_laws import cut
from countwise.sumproduct.priors import Prior, Uniform
from countwise.sumproduct.pruned_tree import PrunedTies, TooNarrowError, packed, unpacked
from countwise.sumproduct.summaries import check_interval, summarise_all
from countwise.sumproduct.tree import (
    WIDENINGS,
    Solved,
    Touched,
    pass_down,
    pass_up,
    solve,
)
from countwise.tables.hierarchy import Hierarchy

NOTHING = Laws(lows=np.empty(0, np.int64), offsets=np.zeros(1, np.int64), values=np.empty(0))


@dataclass(frozen=True, kw_only=True, eq=False)
class PieceWork:
    """What a worker does with a piece of a release."""

    release: LargeRelease
    prior: Prior
    reach: float
    folder: Path
    probability: float
    interval: str
    round: int = 0

    def _ties(self, i: int, piece: PublishedPiece) -> MeasuredTies:
        """What ties a piece together, in windows as wide as earlier rounds found they must be."""
        depth, hierarchy = self.release.cut.depth, piece.hierarchy
        seen = _seen(self.release.laws, piece, hierarchy)
        depths = [np.full(n, WINDOW) for n in hierarchy.sizes]
        rounds = (self.folder / _depths_name(i, r) for r in range(self.round, 0, -1))
        found = next((path for path in rounds if path.exists()), None)
        if found is not None:
            with np.load(found) as wider:
                depths = [wider[f"arr_{level}"] for level in range(len(depths))]
        depths[depth] = np.full(hierarchy.sizes[depth], self.reach)
        return measured(hierarchy, seen, self.prior, depths=depths)

    def up(self, i: int) -> bytes:
        """What a piece says about its nodes at the cut; their own noisy counts are in it."""
        ups, _ = self._ups(self._ties(i, self.release.piece(i)))
        return packed(ups[self.release.cut.depth])

    def _ups(self, ties: MeasuredTies) -> tuple[list[Laws], list[Laws]]:
        depth, last = self.release.cut.depth, len(ties.hierarchy.offsets)
        owns = [NOTHING] * depth
        owns += [ties.own(d, 0, ties.hierarchy.sizes[d]) for d in range(depth, last)]
        ups = list(owns)
        for level in range(last - 1, depth - 1, -1):
            ups[level] = pass_up(ties, level, ups, owns[level])
        return ups, owns

    def down(self, i: int) -> bytes:
        """Write the posterior of every node of a piece below the cut.

        Where a window ends where there is mass, wider ones are left for another round instead,
        and the answer is not empty.
        """
        piece, depth = self.release.piece(i), self.release.cut.depth
        ties = self._ties(i, piece)
        ups, owns = self._ups(ties)
        rest = unpacked((self.folder / _rest_name(i)).read_bytes())
        couplings = (*([NOTHING] * depth), owns[depth].times(rest.values))
        solved = Solved(ties=ties, ups=tuple(ups), couplings=couplings, kept={})
        touched: Touched = [
            (np.zeros(n, np.bool_), np.zeros(n, np.bool_))
            for n in ties.hierarchy.sizes[: depth + 1]
        ]
        for level in range(depth, len(ties.hierarchy.offsets)):
            solved = pass_down(solved, level, owns, touched)
        wider = ties.widened(touched)
        if wider is not None:
            self._write(_depths_name(i, self.round + 1), lambda to: np.savez(to, *wider.depths))
            return b"wider"
        levels = range(depth + 1, len(piece.hierarchy.sizes))
        frames = [self.frame(solved, level, piece) for level in levels]
        self._write(part_name(i), pl.concat(frames, how="vertical_relaxed").write_parquet)
        return b""

    def _write(self, name: str, write: Callable[[Path], object]) -> None:
        partial = self.folder / f".{secrets.token_hex(4)}.npz"
        write(partial)
        partial.replace(self.folder / name)

    def _cut(self, laws: Laws) -> Laws:
        """Without a prior, the counts that are 0 or more."""
        if self.prior.lower == 0:
            return laws
        return cut(laws, np.zeros(laws.nodes, np.int64), np.full(laws.nodes, BOUNDLESS))

    def frame(self, solved: Solved, level: int, piece: PublishedPiece) -> pl.DataFrame:
        """One row a node of a level."""
        laws = map(self._cut, solved.marginals(level))
        found = summarise_all(laws, level=self.probability, interval=self.interval)
        frame = summary_rows(piece.hierarchy, level, found, piece.counts[level])
        names = [*piece.hierarchy.by, "level"]
        missing = [name for name in self.release.by if name not in names]
        return frame.with_columns(
            *(pl.col(name).cast(pl.String) for name in names),
            *(pl.lit(None, dtype=pl.String).alias(name) for name in missing),
            pl.lit(in_brief(self.prior.words())).alias("prior"),
        ).select(*self.release.by, *frame.columns[len(piece.hierarchy.by) :], "prior")


def _seen(
    laws: Sequence[IntegerLaw], piece: PublishedPiece, hierarchy: Hierarchy
) -> list[list[Evidence]]:
    """The noisy counts of the levels that a piece has; nothing of the others."""
    return [
        [Evidence(noise=same_noise(laws[level], size), values=piece.noisy[level])]
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
    report: Tell = silent,
) -> list[Path]:
    """Write the posterior of every node into Parquet files in a folder: the top, then each piece.

    Returns the files in order.
    """
    check_interval(probability, interval)
    _refuse_own_prior(prior)
    work = PieceWork(
        release=release,
        prior=prior,
        reach=WINDOW,
        folder=folder,
        probability=probability,
        interval=interval,
    )
    up = StageRunner(runner=runner, stage="passing messages up", report=report)
    down = StageRunner(runner=runner, stage="passing messages down", report=report)
    parts = up(work.up, len(release.cut))
    for _ in range(WIDENINGS):
        try:
            solved = _solve_top(work, joined([unpacked(part) for part in parts]))
        except TooNarrowError:
            work = replace(work, reach=2 * work.reach)
            parts = up(work.up, len(release.cut))
            continue
        _leave_rest(work, solved)
        narrow = [i for i, told in enumerate(down(work.down, len(release.cut))) if told]
        if not narrow:
            frames = [
                work.frame(solved, level, release.top) for level in range(release.cut.depth + 1)
            ]
            pl.concat(frames, how="vertical_relaxed").write_parquet(folder / TOP)
            return [folder / TOP, *(folder / part_name(i) for i in range(len(release.cut)))]
        work = replace(work, round=work.round + 1)
        for i, part in zip(narrow, up(_Some(work.up, narrow), len(narrow)), strict=True):
            parts[i] = part
    raise InputError("the release has probability zero under this prior and noise.")


@dataclass(frozen=True)
class _Some:
    """Work on some of the pieces."""

    work: Callable[[int], bytes]
    pieces: Sequence[int]

    def __call__(self, i: int) -> bytes:
        return self.work(self.pieces[i])


def _solve_top(work: PieceWork, leaves: Laws) -> Solved:
    release, cells = work.release, work.release.sizes[-1]
    seen = _seen(release.laws, release.top, release.cut.top)
    depths = [np.full(n, WINDOW) for n in release.cut.top.sizes]
    depths[-1] = np.full(release.cut.top.sizes[-1], work.reach)
    prior = work.prior if work.prior.nested or work.prior.lower is None else Uniform()
    top = measured(release.cut.top, seen, prior, depths=depths)
    ties = PrunedTies(top=top, leaves=leaves)
    return solve(ties, log_total=lambda t: work.prior.log_total(t, cells))


def _leave_rest(work: PieceWork, solved: Solved) -> None:
    """What the rest of the tree says about the nodes at the cut, a file a piece."""
    cut = work.release.cut
    parents = cut.top.sizes[cut.depth - 1]
    rest = solved.family(cut.depth - 1, 0, parents).messages
    for i in range(len(cut)):
        here = cut.nodes(i)
        (work.folder / _rest_name(i)).write_bytes(packed(rest.part(here.start, here.stop)))


TOP = "part-top.parquet"


def part_name(i: int) -> str:
    """The file of a piece's posterior, in order after that of the top."""
    return f"piece-{i:06}.parquet"


def _depths_name(i: int, number: int) -> str:
    """How wide the windows of a piece are from a round on."""
    return f".depths-{i:06}-{number}.npz"


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


def write_one(files: Sequence[Path], file: Path) -> None:
    """The rows of several Parquet files in one CSV or Parquet file, as they are read."""
    if file.suffix.lower() == ".parquet":
        with pq.ParquetWriter(file, pq.read_schema(files[0]), compression="zstd") as writer:
            for path in files:
                for batch in pq.ParquetFile(path).iter_batches():
                    writer.write_batch(batch)
    else:
        pl.scan_parquet(list(files)).sink_csv(file)
