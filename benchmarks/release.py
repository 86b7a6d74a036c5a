"""How fast noise, the mode method and whole releases are, against honest references.

    python benchmarks/release.py [--cells 10000000] [--json results.json]

Every ratio is measured in one run on one machine. References: OpenDP's vector mechanism, a
least-squares fit to the total by OSQP with rounding, the papers' loop with an argmin each step
in NumPy, and Polars reading the same Parquet file and writing the same columns.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import opendp.prelude as dp
import osqp
import polars as pl
from scipy import sparse

from countwise.kernels.apportion import apportion, random_ranks
from countwise.noise.laws import Geometric
from countwise.noise.sampling import sample

Row = dict[str, object]


def seconds(work: Callable[[], object], *, repeats: int = 1) -> float:
    """The best of several runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def row(work: str, reference: str, ours: float, theirs: float, target: str) -> Row:
    entry = {
        "work": work,
        "reference": reference,
        "ours_s": ours,
        "reference_s": theirs,
        "ratio": theirs / ours,
        "target": target,
    }
    print(
        f"{work:48} {ours:10.4f} s   {theirs:10.3f} s  {theirs / ours:9.1f}×  {target}", flush=True
    )
    return entry


def noise_rows(size: int = 1_000_000) -> list[Row]:
    """Geometric draws against OpenDP's vector mechanism."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    zeros = [0] * size
    rows = []
    for scale in (1, 10):
        law = Geometric(scale=Fraction(scale))
        sample(law, 10)
        mechanism = dp.m.make_laplace(*space, scale=float(scale))
        ours = seconds(lambda law=law: sample(law, size), repeats=5)
        theirs = seconds(lambda mechanism=mechanism: mechanism(zeros))
        rows.append(
            row(f"{size:,} geometric draws, scale {scale}", "OpenDP", ours, theirs, "≥ 300×")
        )
    return rows


def noisy_counts(size: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Clipped noisy counts of a skewed table, and the released total."""
    true = rng.negative_binomial(0.5, 0.02, size)
    noise = rng.geometric(1 - np.exp(-1), size) - rng.geometric(1 - np.exp(-1), size)
    return np.maximum(true + noise, 0), int(true.sum())


def mode(values: np.ndarray, total: int) -> np.ndarray:
    out = np.empty_like(values)
    apportion(values, total, random_ranks(np.uint64(1), 0, len(values)), out)
    return out


def least_squares(values: np.ndarray, total: int) -> np.ndarray:
    """The nearest non-negative vector with the total, rounded by largest remainders."""
    size = len(values)
    solver = osqp.OSQP()
    solver.setup(
        P=sparse.eye(size, format="csc"),
        q=-values.astype(float),
        A=sparse.vstack([np.ones((1, size)), sparse.eye(size)], format="csc"),
        l=np.concatenate([[total], np.zeros(size)]),
        u=np.concatenate([[total], np.full(size, np.inf)]),
        verbose=False,
    )
    fitted = np.maximum(solver.solve().x, 0)
    counts = np.floor(fitted).astype(np.int64)
    short = int(total - counts.sum())
    counts[np.argsort(counts - fitted)[: max(short, 0)]] += 1
    return counts


def paper_loop(values: np.ndarray, total: int) -> np.ndarray:
    """The loop of the papers: start near the mode, then one argmin a step."""
    size = len(values)
    target = (total + size / 2) * values / values.sum()
    k = np.floor(target)
    f = target - k
    with np.errstate(divide="ignore", invalid="ignore"):
        if k.sum() < total:
            q = (1 - f) / (k + 1)
            for _ in range(int(total - k.sum())):
                a = np.argmin(q)
                k[a], f[a] = k[a] + 1, f[a] - 1
                q[a] = (1 - f[a]) / (k[a] + 1)
        else:
            q = np.where(k > 0, f / k, np.inf)
            for _ in range(int(k.sum() - total)):
                a = np.argmin(q)
                k[a], f[a] = k[a] - 1, f[a] + 1
                q[a] = f[a] / k[a] if k[a] else np.inf
    return k.astype(np.int64)


def mode_rows() -> list[Row]:
    """The mode of many components against a solver and against the papers' loop."""
    rng = np.random.default_rng(1)
    rows = []
    for size, name, reference, target in (
        (1_000_000, "OSQP", least_squares, "≥ 300×"),
        (100_000, "the papers' loop", paper_loop, "≥ 100×"),
    ):
        values, total = noisy_counts(size, rng)
        mode(values, total)
        ours = seconds(lambda v=values, t=total: mode(v, t), repeats=5)
        theirs = seconds(lambda v=values, t=total, r=reference: r(v, t))
        rows.append(row(f"mode of {size:,} components, against {name}", name, ours, theirs, target))
    return rows


def write_cells(path: Path, cells: int) -> None:
    """A tree of five levels with the given number of cells, most counts small."""
    fan_out = (10, max(cells // 100_000, 1), 100, min(cells, 100_000) // 1000)
    grids = np.indices(fan_out).reshape(4, -1)
    rng = np.random.default_rng(2)
    names = ("region", "county", "tract", "kind")
    labels = {
        name: [f"{name} {i:04}" for i in range(size)]
        for name, size in zip(names, fan_out, strict=True)
    }
    frame = pl.DataFrame(
        [
            pl.Series(name, grid.astype(np.uint32)).cat.to(pl.Enum(labels[name])).cast(pl.String)
            for name, grid in zip(names, grids, strict=True)
        ]
    ).with_columns(count=pl.Series(rng.negative_binomial(0.5, 0.02, grids.shape[1])))
    frame.write_parquet(path)


RELEASE = """
import sys
from countwise.cli import main
sys.argv = ["countwise", "release", sys.argv[1], "--by", "region,county,tract,kind",
            "--epsilon", "2", "--adjust", "mode", "--cells-are-public", "--out", sys.argv[2],
            "--overwrite"]
main()
"""

POLARS = """
import sys
from pathlib import Path
import polars as pl
by = ["region", "county", "tract", "kind"]
out = Path(sys.argv[2])
out.mkdir(exist_ok=True)
frame = pl.read_parquet(sys.argv[1]).with_columns(level=pl.lit("kind"), noisy=pl.col("count"))
frame.select(*by, "level", "count").write_parquet(out / "counts.parquet")
frame.select(*by, "level", "count").write_csv(out / "counts.csv")
frame.select(*by, "level", "noisy").write_parquet(out / "measurements.parquet")
"""


def in_process(code: str, *arguments: str) -> tuple[float, float]:
    """Seconds and peak resident GiB of a Python program of its own."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(process.stderr.read().decode())
    return time.perf_counter() - start, usage.ru_maxrss / 2**20


def release_rows(cells: int) -> list[Row]:
    """A whole release, Parquet to folder, against Polars copying the columns; then its growth."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        sizes = [size for size in (10_000, 100_000, 1_000_000) if size < cells]
        for size in [*sizes, cells]:
            path = Path(folder) / f"cells{size}.parquet"
            write_cells(path, size)
            ours, memory = in_process(RELEASE, str(path), f"{folder}/release")
            theirs, _ = in_process(POLARS, str(path), f"{folder}/copy")
            work = f"release of {size:,} cells, {memory:.1f} GiB resident"
            entry = row(work, "Polars copy", ours, theirs, "≤ 6× its time" if size == cells else "")
            rows.append(
                entry | {"cells": size, "resident_gib": memory, "times_reference": ours / theirs}
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--cells", type=int, default=10_000_000, help="cells of the largest release"
    )
    parser.add_argument("--json", type=Path, help="write the results here too")
    options = parser.parse_args()
    print(f"{'work':48} {'ours':>12}   {'reference':>12}  {'ratio':>9}")
    rows = [*noise_rows(), *mode_rows(), *release_rows(options.cells)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"this process itself: {peak:.1f} GiB")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
