"""The children of a root whose released total depends on the sum of their noisy counts.

Beside its true count, every child carries how far its noisy count is from the released one; the
two sums are what the rule of the total (`summed_total.TotalMode`) asks for.
"""

from typing import NamedTuple

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.negligible import LEFT_OUT
from countwise.noise.laws import IntegerLaw
from countwise.sumproduct.count_laws import Laws
from countwise.sumproduct.node_noise import mixed_noise, reach
from countwise.withheld.count_windows import CountWindows
from countwise.withheld.cut_windows import FAR
from countwise.withheld.noise_reach import noise_sum_reach
from countwise.withheld.packed_pairs import Block, Paired, packed
from countwise.withheld.pair_columns import CutPieces
from countwise.withheld.pair_runs import TiltedRun, in_windows
from countwise.withheld.pair_tilts import SumTable
from countwise.withheld.summed_total import TotalMode

FEW = 50_000  # packed pairs up to which their convolution is faster than transforms


Coupled = tuple[int, FloatArray]  # what is known of ΣN, from a lowest value on


class Hull(NamedTuple):
    """The least and the largest Σ(noisy - released), as far as they matter."""

    least: int
    most: int

    @property
    def stride(self) -> int:
        """How many there are."""
        return self.most - self.least + 1


def with_sums(
    children: Laws, rule: TotalMode, k: IntArray, pieces: CutPieces, ranges: CountWindows
) -> Paired:
    """Steps whose chances are P(x + Z = n) for every noisy count n of a window."""
    reaches = [reach(law, ranges.depth) for law in rule.parts]
    around = hull(rule, k, pieces, (int(ranges.lows[0][0]), int(ranges.highs[0][0])))
    least, most = rule.sums(rule.released + around.least, rule.released + around.most)
    blocks = []
    for s, low, high in zip(pieces.components, pieces.lows, pieces.highs, strict=True):
        first, far = -FAR if low == 0 else int(low), reaches[s]
        lowest, highest = int(children.lows[s]), int(children.highs[s])
        bottom = min(max(first - far, lowest), highest)
        top = max(min(int(high) + far, highest), bottom)
        begin = max(first, bottom - far, int(k[s]) + around.least)
        end = max(min(int(high), top + far, int(k[s]) + around.most), begin)
        chances = transitions(rule.parts[s], bottom, top, begin, end)
        blocks.append(Block(low=bottom, first=begin - int(k[s]), chances=chances))

    def known(x: IntArray, y: IntArray) -> FloatArray:
        return rule.chances(rule.released + y, x)

    return packed(
        children,
        pieces.components,
        pieces.bounds,
        blocks,
        stride=around.stride,
        least=around.least,
        known=known,
        band=(least - rule.released, most - rule.released),
    )


def in_runs(
    children: Laws,
    rule: TotalMode,
    k: IntArray,
    pieces: CutPieces,
    ranges: CountWindows,
    coupled: Coupled,
) -> tuple[list[TiltedRun], SumTable] | None:
    """The runs of all steps and what is known of the two sums; None where nothing is possible."""
    if pieces.bounds.size < 2:
        return None
    around = hull(rule, k, pieces, (int(ranges.lows[0][0]), int(ranges.highs[0][0])))
    ends = rule.sums(rule.released + around.least, rule.released + around.most)
    couple = couple_of(rule, *ends, coupled)
    depth = max(ranges.depth, LEFT_OUT)
    return in_windows(children, mixed_noise(rule.parts), k, pieces, couple, depth), couple


def couple_of(rule: TotalMode, least: int, most: int, coupled: Coupled) -> SumTable:
    """What is known of ΣN, and of the sum of the noisy parts from least to most."""
    low, coupling = coupled
    x, sums = low + np.arange(len(coupling)), np.arange(least, most + 1)
    return SumTable(
        m=rule.released,
        low=low,
        least=least - rule.released,
        table=coupling[:, None] * rule.chances(*np.broadcast_arrays(sums, x[:, None])),
    )


def few(
    children: Laws, rule: TotalMode, k: IntArray, pieces: CutPieces, ranges: CountWindows
) -> bool:
    """Whether the packed pairs are so few that their convolution is faster than transforms."""
    around = hull(rule, k, pieces, (int(ranges.lows[0][0]), int(ranges.highs[0][0])))
    return around.stride * int(children.sizes[pieces.components].sum()) < FEW


def sums_within(rule: TotalMode, k: IntArray, lowest: float, highest: float) -> tuple[float, float]:
    """The range of Σv, cut to where the sum of the noisy parts can lead to the release."""
    spread = rule.spread(LEFT_OUT)
    least, most = rule.sums(int(lowest) - spread, int(highest) + spread)
    below = below_zero(rule, np.flatnonzero(k == 0))
    return max(lowest, float(least)), min(highest, float(most + below))


def below_zero(rule: TotalMode, loose: IntArray) -> int:
    """How far some of the noisy parts can add up below zero when they are negative."""
    return noise_sum_reach(tuple(rule.parts[s] for s in loose), LEFT_OUT, below=True)


def transitions(law: IntegerLaw, low: int, high: int, first: int, last: int) -> FloatArray:
    """P(n | x) for counts low..high (rows) and noisy counts first..last."""
    return law.pmf(np.arange(first, last + 1) - np.arange(low, high + 1)[:, None])


def hull(rule: TotalMode, k: IntArray, pieces: CutPieces, total: tuple[int, int]) -> Hull:
    """Bounds from the windows of all steps, and from how far noises add up.

    A component whose window holds 0 may have any negative noisy count. Sums of these fall off at
    least as fast beyond a point as from the start, so as much is kept below the largest sum that
    leads to the release as a sum of them can reach by itself. The bounds hold for every part of
    the sum too.
    """
    m, spread = rule.released, rule.spread(LEFT_OUT)
    lows, highs = step_sums(pieces, len(k))
    below = below_zero(rule, np.unique(pieces.components[pieces.lows == 0]))
    _, largest = rule.sums(total[0] - spread, total[1] + spread)
    least = max(min(lows.min(), largest) - below, total[0] - spread)
    most = min(highs.max(), total[1] + spread)
    return Hull(min(int(least) - m, 0), max(int(most) - m, 0))


def step_sums(pieces: CutPieces, size: int) -> tuple[FloatArray, FloatArray]:
    """The least and the largest Σv of every step."""
    current = np.zeros((2, size))
    sums = []
    for step in range(len(pieces.bounds) - 1):
        here = slice(pieces.bounds[step], pieces.bounds[step + 1])
        current[:, pieces.components[here]] = pieces.lows[here], pieces.highs[here]
        sums.append(current.sum(axis=1))
    return np.array(sums)[:, 0], np.array(sums)[:, 1]
