"""How accurate releases are at the same privacy loss, method by method.

    python benchmarks/accuracy.py --repetitions 500 --json flat.json
    python benchmarks/accuracy.py --tree nc_tracts_2020.csv --tree-repetitions 10 --json tree.json
    python benchmarks/accuracy.py --page flat.json tree.json --out docs/accuracy.md

Every method of a row sees the same noisy counts, except that those marked joint see joint noise of
the same privacy loss. Noise is fresh in every run: figures differ within their standard errors.
"""

import argparse
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from accuracy_page import as_page
from competitors import COMPETITORS
from countwise.adjust.auto import Auto
from countwise.adjust.bayes import EmpiricalBayes
from countwise.adjust.learning import learn
from countwise.adjust.leastsquares import LeastSquares
from countwise.inference.routes import infer_measurements
from countwise.privacy.measurements import Measurements
from countwise.release.measure import draw_noise
from countwise.release.plan import Plan
from countwise.tables.hierarchy import Hierarchy, build
from countwise.tables.reading import read_public_counts

Counts = tuple[np.ndarray, ...]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Counts to release, at a loss."""

    name: str
    hierarchy: Hierarchy
    cells: np.ndarray
    epsilon: dict[str, str]
    repetitions: int
    covered: int
    categories: bool = False


def flat(name: str, cells: Any, total: str, parts: str, repetitions: int) -> Table:
    labels = pl.DataFrame({"part": [f"{i:06}" for i in range(len(cells))]})
    return Table(
        name=name,
        hierarchy=build(labels)[0],
        cells=np.array(cells, dtype=np.int64),
        epsilon={"total": total, "part": parts},
        repetitions=repetitions,
        covered=min(repetitions, 40),
    )


def tables(repetitions: int) -> list[Table]:
    rng = np.random.default_rng(7)
    spread = np.concatenate([[0, 0, 0, 1, 2, 3, 15, 22, 31, 44, 60], rng.integers(60, 978, 39)])
    seats = np.repeat(
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 27, 36, 53, 435],
        [7, 5, 3, 6, 3, 2, 2, 4, 4, 1, 1, 1, 1, 2, 1, 2, 2, 1, 1, 1],
    )
    empty = [0] * 200 + [500, 2000, 9000]
    return [
        flat("scenario 1", spread, "1", "1", repetitions),
        flat("scenario 2", spread, "0.1", "5", repetitions),
        flat("scenario 3", spread, "5", "0.1", repetitions),
        flat("scenario 4", rng.permutation(seats), "1", "1", repetitions),
        flat("200 empty cells and three large", empty, "1", "1", repetitions),
        flat("500 Poisson(3) cells", rng.poisson(3, 500), "0.5", "0.5", repetitions),
        flat("300 Zipf cells", np.minimum(rng.zipf(1.6, 300), 10**5), "1", "1", repetitions),
    ]


def trees(path: Path, epsilons: str, repetitions: int) -> list[Table]:
    by = ("county", "tract", "race")
    hierarchy, cells = read_public_counts(path, by=by, count="count")
    return [
        Table(
            name=f"North Carolina, ε = {epsilon} in all",
            hierarchy=hierarchy,
            cells=cells,
            epsilon=dict.fromkeys(("total", *by), str(Fraction(epsilon) / 4)),
            repetitions=repetitions,
            covered=min(repetitions, 1),
            categories=True,
        )
        for epsilon in epsilons.split(",")
    ]


def measure(table: Table, mechanism: str) -> Measurements:
    budget = Plan(epsilon=table.epsilon, mechanism=mechanism).budget(table.hierarchy)
    noise = draw_noise(table.hierarchy, budget, noise="exact")
    true = table.hierarchy.sums(table.cells)
    noisy = tuple(t + z for t, z in zip(true, noise, strict=True))
    return Measurements(hierarchy=table.hierarchy, laws=budget.laws, noisy=noisy)


def ours(measured: Measurements) -> dict[str, Counts]:
    """What each of our adjustments makes of a measurement."""
    return {
        "least-squares": LeastSquares(tie_key=1)([measured]),
        "bayes": EmpiricalBayes(tie_key=1)([measured]),
    }


def covered(table: Table, measured: Measurements) -> dict[str, list[float]]:
    """The share of each level's true counts that 95% intervals hold, by prior."""
    true = table.hierarchy.sums(table.cells)
    found = {}
    for name, prior in {"uniform": "uniform", "published": learn([measured], "").prior}.items():
        posterior = infer_measurements([measured], prior=prior)
        summaries = [posterior.summaries(level) for level in range(len(true))]
        found[name] = [
            float(((s.lower <= t) & (t <= s.upper)).mean())
            for s, t in zip(summaries, true, strict=True)
        ]
    return found


def run(table: Table, tell: Callable[[dict[str, Any]], None]) -> None:
    """Errors of every method on one table, told ten times on the way."""
    true, rng = table.hierarchy.sums(table.cells), np.random.default_rng()
    scores: dict[str, list[dict[str, Any]]] = {}
    intervals: list[dict[str, list[float]]] = []
    chosen: dict[str, int] = {}
    for repetition in range(table.repetitions):
        independent = measure(table, "geometric")
        made: dict[str, Counts] = {n: method([independent]) for n, method in COMPETITORS.items()}
        made |= ours(independent)
        choice = Auto(tie_key=1, rng=rng).chosen([independent]).adjustment.name
        chosen[choice] = chosen.get(choice, 0) + 1
        made["auto"] = made[choice]
        joint = ours(measure(table, "joint"))
        made |= {f"{name}, joint noise": each for name, each in joint.items()}
        for name, counts in made.items():
            off = [c - t for c, t in zip(counts, true, strict=True)]
            scores.setdefault(name, []).append(scored(off, table))
        if repetition < table.covered:
            intervals.append(covered(table, independent))
        if (repetition + 1) % max(table.repetitions // 10, 1) == 0:
            tell(told(table, scores, intervals, chosen))


def told(
    table: Table,
    scores: dict[str, list[dict[str, Any]]],
    intervals: list[dict[str, list[float]]],
    chosen: dict[str, int],
) -> dict[str, Any]:
    """The figures so far."""
    categories = list(table.hierarchy.labels[-1]) if table.categories else []
    return {
        "repetitions": sum(chosen.values()),
        "levels": list(table.hierarchy.levels),
        "categories": categories,
        "sparsest": int(by_category(table, table.cells).argmin()) if categories else None,
        "chosen": dict(chosen),
        "methods": {name: averaged(rows) for name, rows in scores.items()},
        "covered": {
            prior: np.mean([each[prior] for each in intervals], axis=0).tolist()
            for prior in ("uniform", "published")
        },
        "covered_releases": len(intervals),
    }


def by_category(table: Table, values: np.ndarray) -> np.ndarray:
    return np.bincount(table.hierarchy.codes[-1], weights=values)


def scored(off: list[np.ndarray], table: Table) -> dict[str, Any]:
    empty = table.cells == 0
    result: dict[str, Any] = {
        "squared": [float((each**2).sum()) for each in off],
        "absolute": [float(np.abs(each).sum()) for each in off],
        "bias_smallest": float(off[-1][table.cells == table.cells.min()].mean()),
        "bias_largest": float(off[-1][table.cells.argmax()]),
        "empty_kept": float((off[-1][empty] == 0).mean()) if empty.any() else None,
    }
    if table.categories:
        result["by_category"] = by_category(table, off[-1] ** 2).tolist()
    return result


def averaged(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean of every figure; with the squared errors of the cells themselves, for ratios."""
    means = {
        key: None if rows[0][key] is None else np.mean([row[key] for row in rows], axis=0).tolist()
        for key in rows[0]
    }
    draws = {"cells": [row["squared"][-1] for row in rows]}
    if "by_category" in rows[0]:
        draws["categories"] = [row["by_category"] for row in rows]
    return means | draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--only", help="rows whose name has this, a regular expression")
    parser.add_argument("--tree", type=Path, help="census tracts: county, tract, race, count")
    parser.add_argument("--tree-repetitions", type=int, default=10)
    parser.add_argument("--tree-epsilons", default="0.5,1,2,4")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--page", type=Path, nargs="+", help="figures to make a page of")
    parser.add_argument("--out", type=Path, help="write the page here")
    options = parser.parse_args()
    if options.page:
        results = {}
        for path in options.page:
            results |= json.loads(path.read_text())
        options.out.write_text(as_page(results) + "\n")
        return
    rows = (
        trees(options.tree, options.tree_epsilons, options.tree_repetitions)
        if options.tree
        else tables(options.repetitions)
    )
    results: dict[str, Any] = {}

    def tell(table: str, row: dict[str, Any]) -> None:
        results[table] = row
        print(f"{table}: {row['repetitions']} releases", flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1) + "\n")

    for table in rows:
        if options.only is None or re.search(options.only, table.name):
            run(table, partial(tell, table.name))


if __name__ == "__main__":
    main()
