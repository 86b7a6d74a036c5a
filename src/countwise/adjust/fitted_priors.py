"""Priors fitted to the noisy cells of a table: one distribution a pool, or shares of parents.

Both are priors like any other, so inference can use them too; `to_dict` and `read_fitted` are the
form in which a release publishes them (docs/release-format.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from countwise.adjust.cellprior import CellPrior
from countwise.adjust.shareprior import DENSE, Means, SpreadWeights, means_of, spread_table
from countwise.arrays import FloatArray, IntArray, frozen
from countwise.errors import ReleaseError
from countwise.sumproduct.priors import Independent
from countwise.tables.hierarchy import Hierarchy

FORMAT = 1  # of the file; a reader refuses others


@dataclass(frozen=True, kw_only=True, eq=False)
class PooledPrior(Independent):
    """A fitted distribution for each pool of cells; `members` says which pool a cell is in."""

    level: str
    names: tuple[str, ...]
    pools: tuple[CellPrior, ...]
    members: IntArray

    def log_cells(self, cells: IntArray, x: IntArray) -> FloatArray:
        """log P(N = x) in the pool of each cell."""
        logs = np.empty(len(x))
        pools = self.members[cells]
        for i, prior in enumerate(self.pools):
            mine = pools == i
            logs[mine] = prior.logs(x[mine])
        return logs

    def words(self) -> str:
        """How many pools there are."""
        return f"fitted to the noisy cells, a distribution for each of {len(self.pools)} pool(s)"

    def to_dict(self) -> dict[str, Any]:
        """The prior as plain data."""
        return {
            "format": FORMAT,
            "model": "blocks",
            "level": self.level,
            "pools": {
                name: {
                    "starts": pool.starts.tolist(),
                    "weights": pool.weights.tolist(),
                    "tail": pool.tail,
                }
                for name, pool in zip(self.names, self.pools, strict=True)
            },
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class SharePrior(Independent):
    """What is expected of each cell, as a grade, and how its pool scatters around that."""

    level: str
    names: tuple[str, ...]
    pools: tuple[SpreadWeights, ...]
    members: IntArray
    grades: IntArray

    @cached_property
    def _means(self) -> Means:
        return means_of(self.grades, self.pools[0].top)

    @cached_property
    def _tables(self) -> tuple[IntArray, FloatArray]:
        """For each cell the row of its pool and grade, and the rows of log P on the grid."""
        lowest, highest = int(self.grades.min()), int(self.grades.max())
        keys = self.members * (highest - lowest + 1) + self.grades - lowest
        used, row = np.unique(keys, return_inverse=True)
        pool, grade = np.divmod(used, highest - lowest + 1)
        tables = [
            spread_table(spread, self._means, grade[pool == i] + lowest)
            for i, spread in enumerate(self.pools)
            if (pool == i).any()
        ]
        return row, np.concatenate(tables)

    def log_cells(self, cells: IntArray, x: IntArray) -> FloatArray:
        """log P(N = x), interpolated between the tabled counts."""
        rows, tables = self._tables
        grid, row = self._means.grid, rows[cells]
        logs = tables[row, np.minimum(x, DENSE)]
        far = np.flatnonzero(x > DENSE)
        if len(far):
            beyond = np.minimum(x[far], grid[-1])
            place = np.searchsorted(grid, beyond, side="left")
            part = (grid[place] - beyond) / (grid[place] - grid[place - 1])
            mine = row[far]
            logs[far] = part * tables[mine, place - 1] + (1 - part) * tables[mine, place]
        return np.asarray(logs)

    def words(self) -> str:
        """What it expects, and how many pools there are."""
        return (
            "fitted to the noisy cells: a parent's size times its label's share nearby, with a "
            f"spread for each of {len(self.pools)} pool(s)"
        )

    def to_dict(self) -> dict[str, Any]:
        """The prior as plain data; the grades are a column of the measurements."""
        return {
            "format": FORMAT,
            "model": "shares",
            "level": self.level,
            "top": self.pools[0].top,
            "pools": {
                name: {"weights": pool.weights.tolist()}
                for name, pool in zip(self.names, self.pools, strict=True)
            },
        }


Fitted = PooledPrior | SharePrior


def pools_of(hierarchy: Hierarchy, level: str) -> tuple[IntArray, tuple[str, ...]]:
    """The pool of each cell, by its label of a level; one pool where no level is named."""
    if not level:
        return np.zeros(hierarchy.cells, dtype=np.int64), ("all",)
    depth = hierarchy.by.index(level)
    codes = hierarchy.path_codes(len(hierarchy.by))[depth]
    return codes.astype(np.int64), hierarchy.labels[depth]


def read_fitted(
    data: Mapping[str, Any], hierarchy: Hierarchy, grades: IntArray | None, *, where: str
) -> Fitted:
    """A published prior; refused unless it is one of this format."""
    try:
        if data["format"] != FORMAT or data["model"] not in ("blocks", "shares"):
            raise ReleaseError(f"{where}: the prior is not of format {FORMAT}.")
        members, names = pools_of(hierarchy, data["level"])
        pools = [data["pools"][name] for name in names]
        common = {"level": data["level"], "names": names, "members": members}
        if data["model"] == "blocks":
            return PooledPrior(
                **common,
                pools=tuple(
                    CellPrior(
                        starts=frozen(np.array(pool["starts"], dtype=np.int64)),
                        weights=frozen(np.array(pool["weights"], dtype=np.float64)),
                        tail=float(pool["tail"]),
                    )
                    for pool in pools
                ),
            )
        if grades is None:
            raise ReleaseError(f"{where}: the measurements have no column 'grade'.")
        return SharePrior(
            **common,
            pools=tuple(
                SpreadWeights(weights=np.array(pool["weights"], np.float64), top=int(data["top"]))
                for pool in pools
            ),
            grades=grades,
        )
    except (KeyError, TypeError, ValueError) as problem:
        raise ReleaseError(f"{where}: the prior lacks or garbles {problem}.") from None
