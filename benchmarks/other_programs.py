"""Programs that `crossed.py` compares with and that need an environment of their own.

`former`: an earlier version of countwise, in the environment where it is installed, releases one
tree of all variables by command as it comes. `mbi` (private-pgm) estimates a table from the same
noisy margins in its own environment; its fractional table is taken as it is.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from accuracy_tables import Table
from countwise.margins.measurement import Measurement
from countwise.tables.workload import Workload

OURS = ("PYTHONPATH", "NUMBA_CACHE_DIR")  # would hand our code to another interpreter
MBI = Path(__file__).with_name("mbi_margins.py")


@contextmanager
def former(python: Path, tree: Table, unit: str, loss: str) -> Iterator["Former"]:
    """Releases of one tree by the countwise of an interpreter."""
    with TemporaryDirectory() as folder:
        cells = Path(folder) / "cells.csv"
        hierarchy = tree.hierarchy
        frame = hierarchy.frame(len(hierarchy.by), n=tree.cells).drop("level")
        frame.write_csv(cells)
        noise = ["--mechanism", "gaussian"] if unit == "rho" else []
        yield Former(python, cells, hierarchy.by, [f"--{unit}={loss}", *noise])


class Former:
    """One release after another of the same cells."""

    def __init__(self, python: Path, cells: Path, by: Sequence[str], loss: list[str]) -> None:
        self._cells, self._by = cells, list(by)
        self._command = [str(python), "-m", "countwise", "release", str(cells), "--count", "n",
                         "--cells-are-public", "--by", ",".join(by), *loss]  # fmt: skip

    def cells(self) -> np.ndarray:
        """The released cells, in the order of the table."""
        out = self._cells.with_name("release")
        _run([*self._command, "--out", str(out), "--overwrite"])
        text = [pl.col(name).cast(pl.String) for name in self._by]
        made = pl.read_parquet(out / "counts.parquet").filter(pl.col("level") == self._by[-1])
        order = pl.read_csv(self._cells, infer_schema=False).select(self._by)
        found = order.join(made.select(*text, "count"), on=self._by, how="left", validate="1:1")
        return found["count"].to_numpy()


def _run(command: list[str]) -> None:
    """A program of another environment, which sees nothing of this one."""
    others = {name: value for name, value in os.environ.items() if name not in OURS}
    subprocess.run(command, check=True, capture_output=True, env=others)


def mbi_cells(python: Path, workload: Workload, measured: Sequence[Measurement]) -> np.ndarray:
    """The table that mbi fits to noisy margins, cell by cell; it is fractional."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        names = [each.name for each in workload.variables]
        asked = {"names": names, "shape": list(workload.shape), "margins": []}
        arrays = {}
        for i, each in enumerate(measured):
            levels = zip(names, workload.variables, each.margin.levels, strict=True)
            if any(0 < level < len(variable.levels) for _, variable, level in levels):
                raise ValueError("mbi has no variables of several levels.")
            chosen = [n for n, level in zip(names, each.margin.levels, strict=True) if level]
            asked["margins"].append({"by": chosen, "sd": each.law.variance**0.5})
            arrays[str(i)] = each.noisy.reshape(-1)
        (place / "asked.json").write_text(json.dumps(asked))
        np.savez(place / "noisy.npz", **arrays)
        _run([str(python), str(MBI), folder])
        return np.load(place / "cells.npy").reshape(workload.shape)
