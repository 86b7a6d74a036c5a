"""Windows of clipped noisy counts as steps of a mixture: what a cut says about every child."""

from dataclasses import replace

import numpy as np

from countwise.sumproduct.count_laws import Laws, grid
from countwise.sumproduct.node_noise import Noise
from countwise.sumproduct.step_mixture import Steps, laid_out
from countwise.withheld.pair_columns import CutPieces

FAR = 1 << 60  # no end; sums of two still fit in 64 bits


def with_all_zero(pieces: CutPieces, size: int) -> CutPieces:
    """One more step, in which every clipped noisy count is zero."""
    zeros, everyone = np.zeros(size, np.int64), np.arange(size)
    components = np.concatenate([pieces.components, everyone])
    return CutPieces(
        components,
        np.append(pieces.bounds, len(components)),
        np.concatenate([pieces.lows, zeros]),
        np.concatenate([pieces.highs, zeros]),
    )


def windowed(children: Laws, noise: Noise, pieces: CutPieces, depth: float) -> Steps:
    """Steps whose chances are P(low ≤ max(x + Z, 0) ≤ high)."""
    far = noise.reach(np.full(children.nodes, depth))[pieces.components]
    highs = np.minimum(pieces.highs, FAR)
    steps = laid_out(
        children, pieces.components, pieces.bounds, pieces.lows - far, np.minimum(highs + far, FAR)
    )
    sizes = np.diff(steps.offsets)
    x = grid(steps.lows, steps.offsets)
    low = np.repeat(np.where(pieces.lows == 0, -FAR, pieces.lows), sizes)
    owners = np.repeat(pieces.components, sizes)
    chances = noise.between(owners, low - x, np.repeat(highs, sizes) - x)
    return replace(steps, chances=chances)


def impossible(children: Laws) -> Steps:
    """A single step that can not happen."""
    everyone = np.arange(children.nodes)
    steps = laid_out(
        children, everyone, np.array([0, children.nodes]), children.lows, children.highs
    )
    return replace(steps, chances=np.zeros(len(steps.places)))
