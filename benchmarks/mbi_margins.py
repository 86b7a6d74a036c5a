"""Run by the interpreter that has mbi: the table it fits to noisy margins in a folder.

Mirror descent, its authors' recommendation, in double precision until the loss stands still.
"""

import json
import sys
from pathlib import Path

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_enable_compilation_cache", False)

import mbi  # noqa: E402
import numpy as np  # noqa: E402

STEPS, STILL = 10_000, 1e-7


def main() -> None:
    folder = Path(sys.argv[1])
    asked = json.loads((folder / "asked.json").read_text())
    noisy = np.load(folder / "noisy.npz")
    domain = mbi.Domain(asked["names"], asked["shape"])
    measured = [
        mbi.LinearMeasurement(noisy[str(i)].astype(float), tuple(each["by"]), stddev=each["sd"])
        for i, each in enumerate(asked["margins"])
    ]
    model = mbi.estimation.MirrorDescent().estimate(domain, measured, iters=STEPS, tol=STILL)
    cells = model.project(tuple(asked["names"])).datavector()
    np.save(folder / "cells.npy", np.asarray(cells, dtype=float))


if __name__ == "__main__":
    main()
