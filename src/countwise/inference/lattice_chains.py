"""Chains of whole cells side by side, block by block, so that a run that was stopped goes on.

Each chain starts at whole cells of noisy counts to which noise of their own laws was added once
more, so that chains begin further apart than they end. After every block the draws and the state
of all chains are in one new file of the run's folder.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.margins.cell_lattice import Lattice, LatticeChain, begun, lattice
from countwise.margins.division import learned_division
from countwise.margins.measurement import Measurement
from countwise.margins.reconstruction import Reconstruction
from countwise.margins.whole import whole_cells
from countwise.progress import Tell, silent
from countwise.tables.workload import Workload
from countwise.threads import run_tasks

CHAINS = 4  # that are compared with each other
WARMUP = 304  # sweeps that are dropped
THIN = 8  # sweeps from one draw to the next
FEWEST = 100  # draws of a chain: fewer do not tell how it mixes
BLOCK = 20  # draws of a chain between two files
MOST_NUMBERS = 10**9  # counts of all draws, four gigabytes
LARGE = 2**30  # half of what 32 bits hold, so that a move does not leave them
STAGE = "drawing whole cells"
DrawnCells = npt.NDArray[np.int32 | np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class LatticeDraws:
    """Cells by chain and draw, and the prior in words."""

    cells: DrawnCells
    prior: str


def lattice_draws(
    workload: Workload,
    measurements: Sequence[Measurement],
    count: int,
    *,
    rng: np.random.Generator,
    folder: Path | None = None,
    report: Tell = silent,
) -> LatticeDraws:
    """At least so many draws, evenly from several chains; `folder` keeps those of a stopped run."""
    each = max(-(-count // CHAINS), FEWEST)
    if each * CHAINS * workload.cells > MOST_NUMBERS:
        raise InputError(
            f"{each * CHAINS:,} draws of {workload.cells:,} cells are more than {MOST_NUMBERS:,} "
            "counts. To fix, ask for fewer draws."
        )
    seen = Reconstruction(workload=workload, measurements=measurements)
    division = learned_division(seen, rng)
    one = lattice(workload, measurements, division)
    found = np.empty((CHAINS, each, workload.cells), _kind(measurements))
    done, states = (0, None) if folder is None else _resumed(folder, found)
    if states is None:
        chains = _started(workload, measurements, one, rng)
        report(STAGE, 0, each + WARMUP // THIN)
        run_tasks(lambda i: chains[i].sweep(WARMUP), CHAINS)
        _keep(folder, 0, found[:, :0], chains)
    else:
        chains = [_restored(one, state) for state in states]
    while done < each:
        report(STAGE, done + WARMUP // THIN, each + WARMUP // THIN)
        block = found[:, done : done + BLOCK]
        run_tasks(partial(_fill, chains, block), CHAINS)
        done += block.shape[1]
        _keep(folder, done, block, chains)
    report(STAGE, each + WARMUP // THIN, each + WARMUP // THIN)
    return LatticeDraws(cells=found, prior=division.words())


def run_name(measurements: Sequence[Measurement], count: int, seed: int | None) -> str:
    """A name that two runs share only where one can go on with what the other has drawn."""
    digest = sha256(repr((count, seed, CHAINS, WARMUP, THIN, FEWEST, BLOCK)).encode())
    for each in measurements:
        digest.update(repr((each.margin.levels, each.law, each.noisy.shape)).encode())
        digest.update(np.ascontiguousarray(each.noisy).tobytes())
        if each.exact is not None:
            digest.update(np.ascontiguousarray(each.exact).tobytes())
    return digest.hexdigest()[:16]


def _kind(measurements: Sequence[Measurement]) -> type[np.int32] | type[np.int64]:
    """Half the room, where counts leave no doubt that it is enough."""
    largest = max(int(np.abs(each.noisy).max(initial=0)) for each in measurements)
    return np.int32 if largest < LARGE else np.int64


def _fill(chains: Sequence[LatticeChain], block: DrawnCells, i: int) -> None:
    """Fill the rows of a chain with what it draws."""
    for row in block[i]:
        chains[i].sweep(THIN)
        row[:] = chains[i].cells


def _started(
    workload: Workload,
    measurements: Sequence[Measurement],
    one: Lattice,
    rng: np.random.Generator,
) -> list[LatticeChain]:
    chains: list[Any] = [None] * CHAINS
    rngs = rng.spawn(CHAINS)

    def start(i: int) -> None:
        shaken = [_shaken(each, rngs[i]) for each in measurements]
        cells = whole_cells(workload, shaken, method="least-squares", rng=rngs[i]).cells
        chains[i] = begun(one, cells, rngs[i])

    run_tasks(start, CHAINS)
    return chains


def _shaken(measured: Measurement, rng: np.random.Generator) -> Measurement:
    """A measurement with noise once more, where it had any; not noise that protects anybody."""
    if not measured.law.variance:
        return measured
    chances = rng.uniform(1e-9, 1.0 - 1e-9, measured.noisy.shape)
    noise = measured.law.quantile(chances)
    if measured.exact is not None:
        noise = np.where(measured.exact, 0, noise)
    return replace(measured, noisy=measured.noisy + noise)


def _keep(
    folder: Path | None, done: int, draws: DrawnCells, chains: Sequence[LatticeChain]
) -> None:
    """Write a block and where all chains are; a file is there whole or not at all."""
    if folder is None:
        return
    arrays: dict[str, Any] = {
        "draws": draws,
        "cells": np.stack([each.cells for each in chains]),
        "means": np.stack([each.means for each in chains]),
        "factors": np.stack([each.factors for each in chains]),
        "generators": np.array([json.dumps(each.rng.bit_generator.state) for each in chains]),
    }
    unnamed = folder / "partial.npz"
    np.savez(unnamed, **arrays)
    unnamed.rename(folder / f"block-{done:06}.npz")


def _resumed(folder: Path, found: DrawnCells) -> tuple[int, list[tuple[Any, ...]] | None]:
    """Fill in the draws of a stopped run; how many there are, and where its chains were."""
    blocks = sorted(folder.glob("block-*.npz"))
    done = 0
    for path in blocks:
        with np.load(path) as kept:
            draws = kept["draws"]
            found[:, done : done + draws.shape[1]] = draws
            done += draws.shape[1]
    if not blocks:
        return 0, None
    with np.load(blocks[-1]) as kept:
        names = ("cells", "means", "factors", "generators")
        return done, list(zip(*(kept[name] for name in names), strict=True))


def _restored(one: Lattice, kept: tuple[IntArray, FloatArray, FloatArray, str]) -> LatticeChain:
    cells, means, factors, generator = kept
    state = json.loads(str(generator))
    rng = np.random.Generator(getattr(np.random, state["bit_generator"])())
    rng.bit_generator.state = state
    chain = begun(one, cells, np.random.default_rng(0))
    return replace(chain, means=means.copy(), factors=factors.copy(), rng=rng)
