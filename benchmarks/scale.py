"""How releases grow from a hundred thousand to a hundred million cells, and what Spark adds.

    python benchmarks/scale.py [--cells 100000000] [--spark 20000000] [--infer 1000000]
                               [--json results.json]

Each release is a process of its own, from a Parquet file of cells in a tree of six levels below
the total to the finished folder; its peak resident memory is what the system says. The reference is
OpenDP's noise alone for as many cells, extrapolated from one million draws in the same run; both
are compared in seconds of processors, which other work on the machine does not change much. The
releases on Spark have two local workers; their memory is not counted. Both releases of the same
table are compared: noise and adjusted counts must have the same distribution.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import opendp.prelude as dp
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import ks_2samp

Row = dict[str, object]
BY = ("region", "state", "county", "tract", "block", "kind")
SHAPES = {
    100_000: (5, 4, 5, 5, 10, 20),
    1_000_000: (10, 5, 10, 10, 10, 20),
    10_000_000: (10, 10, 10, 10, 10, 100),
    20_000_000: (10, 10, 10, 20, 10, 100),
    100_000_000: (10, 10, 10, 20, 50, 100),
}


def write_cells(path: Path, shape: tuple[int, ...]) -> None:
    """Cells of a full tree, most counts small, a state at a time."""
    labels = [
        pa.array([f"{name} {i:04}" for i in range(size)])
        for name, size in zip(BY, shape, strict=True)
    ]
    kinds = [(name, pa.dictionary(pa.int32(), pa.string())) for name in BY]
    schema = pa.schema([*kinds, ("count", pa.int64())])
    rng = np.random.default_rng(2)
    inner = [grid.ravel().astype(np.int32) for grid in np.indices(shape[2:])]
    with pq.ParquetWriter(path, schema) as writer:
        for state in range(shape[0] * shape[1]):
            outer = [np.full(len(inner[0]), n, np.int32) for n in divmod(state, shape[1])]
            columns = [
                pa.DictionaryArray.from_arrays(codes, names)
                for codes, names in zip([*outer, *inner], labels, strict=True)
            ]
            counts = rng.negative_binomial(0.5, 0.02, len(inner[0]))
            writer.write_table(pa.table([*columns, pa.array(counts)], schema=schema))


def opendp_second_a_cell(draws: int = 1_000_000) -> float:
    """Seconds of OpenDP's vector mechanism for one cell, at the scale of the releases."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    mechanism = dp.m.make_laplace(*space, scale=float(Fraction(7, 2)))
    start = time.process_time()
    mechanism([0] * draws)
    return (time.process_time() - start) / draws


class Cost(NamedTuple):
    """Seconds on the clock, seconds of processors, and peak resident GiB."""

    clock: float
    cpu: float
    memory: float


def in_process(*arguments: str, **environment: str) -> Cost:
    """What the command line costs in a process of its own."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "countwise", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(process.stderr.read().decode())
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(time.perf_counter() - start, cpu, usage.ru_maxrss / 2**20)


def release(table: Path, out: Path, *more: str, **environment: str) -> Cost:
    """A whole release of a table, without counts.csv."""
    return in_process(
        "release", str(table), "--by", ",".join(BY), "--cells-are-public", "--epsilon", "2",
        "--adjust", "mode", "--no-csv", "--out", str(out), *more, **environment,
    )  # fmt: skip


def growth(folder: Path, cells: int) -> list[Row]:
    """Releases of growing size against the extrapolated noise of OpenDP."""
    a_cell = opendp_second_a_cell()
    print(f"OpenDP's noise: {1e6 * a_cell:.1f} µs a cell", flush=True)
    rows: list[Row] = []
    for size, shape in SHAPES.items():
        if size > cells or (size == 20_000_000 and size != cells):
            continue
        table = folder / f"cells{size}.parquet"
        write_cells(table, shape)
        cost = release(table, folder / f"release{size}")
        ratio = a_cell * size / cost.cpu
        rows.append(
            {
                "cells": size,
                "clock_s": cost.clock,
                "cpu_s": cost.cpu,
                "resident_gib": cost.memory,
                "opendp_cpu_s": a_cell * size,
                "ratio": ratio,
            }
        )
        print(
            f"release of {size:>11,} cells {cost.clock:8.1f} s, {cost.cpu:7.1f} s of processors "
            f"({1e6 * cost.cpu / size:6.2f} µs a cell), {cost.memory:5.2f} GiB; OpenDP's noise "
            f"alone takes {ratio:5.1f}× the processors' time",
            flush=True,
        )
    return rows


def noise_and_counts(folder: Path, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The noise of the cells of a release, and their adjusted counts' distance from the truth."""
    found = []
    for name, column in (("measurements.parquet", "noisy"), ("counts.parquet", "count")):
        path = folder / name
        files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        values = pl.scan_parquet(files).filter(pl.col("level") == BY[-1]).select(column).collect()
        found.append(values[column].to_numpy() - truth)
    return found[0], found[1]


def on_spark(folder: Path, size: int) -> list[Row]:
    """The same release on one machine and on Spark with two workers."""
    table = folder / f"cells{size}.parquet"
    write_cells(table, SHAPES[size])
    here = release(table, folder / "here")
    master = {"PYSPARK_SUBMIT_ARGS": "--master local[2] --driver-memory 2g pyspark-shell"}
    there = release(table, folder / "there", "--engine", "spark", **master)
    truth = pl.read_parquet(table, columns=["count"])["count"].to_numpy()
    sample = np.random.default_rng(3).choice(size, 200_000, replace=False)
    one, two = (noise_and_counts(folder / name, truth) for name in ("here", "there"))
    p_noise, p_count = (
        ks_2samp(a[sample], b[sample]).pvalue for a, b in zip(one, two, strict=True)
    )
    print(
        f"release of {size:,} cells: {here.clock:.1f} s on one machine, {there.clock:.1f} s on "
        f"Spark; same law of the noise p = {p_noise:.2f}, of the counts p = {p_count:.2f}"
    )
    return [
        {
            "cells": size,
            "one_machine_s": here.clock,
            "spark_s": there.clock,
            "p_noise": p_noise,
            "p_counts": p_count,
        }
    ]


def inference(folder: Path, size: int) -> list[Row]:
    """The posterior of every count of a release, in pieces."""
    table = folder / f"cells{size}.parquet"
    if not table.exists():
        write_cells(table, SHAPES[size])
        release(table, folder / f"release{size}")
    cost = in_process(
        "infer", str(folder / f"release{size}"), "--piece", "200000",
        "--out", str(folder / "posterior.parquet"),
    )  # fmt: skip
    print(f"posterior of {size:,} cells: {cost.clock:.1f} s, {cost.memory:.2f} GiB")
    return [{"cells": size, "infer_s": cost.clock, "resident_gib": cost.memory}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cells", type=int, default=100_000_000, help="of the largest release")
    parser.add_argument("--spark", type=int, default=20_000_000, help="cells on Spark; 0 for none")
    parser.add_argument("--infer", type=int, default=1_000_000, help="cells to infer; 0 for none")
    parser.add_argument("--json", type=Path, help="write the results here too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = growth(folder, options.cells) if options.cells else []
        rows += inference(folder, options.infer) if options.infer else []
        rows += on_spark(folder, options.spark) if options.spark else []
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
