"""How accurate releases are at the same privacy loss, method by method.

    python benchmarks/accuracy.py --tree nc_tracts_2020.csv --out docs/accuracy.md

or in parts, each of them stopped whenever you like, and put together afterwards:

    python benchmarks/accuracy.py --json flat.json
    python benchmarks/accuracy.py --tree nc_tracts_2020.csv --only "ε = 1 " --json tree.json
    python benchmarks/accuracy.py --page flat.json tree.json --out docs/accuracy.md

The releases of a row that several files have are taken together.

Every method of a row sees the same noisy counts, except that those marked joint see joint noise of
the same privacy loss. Noise is fresh in every run: figures differ within their standard errors.
"""

import argparse
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from accuracy_page import as_page
from accuracy_tables import Table, fresh_tables, tables, trees
from competitors import COMPETITORS
from countwise.adjust.auto import Auto
from countwise.adjust.bayes import EmpiricalBayes
from countwise.adjust.learning import learn
from countwise.adjust.leastsquares import LeastSquares
from countwise.inference.routes import infer_measurements
from countwise.privacy.measurements import Measurements
from countwise.release.measure import draw_noise
from countwise.release.plan import Plan

Counts = tuple[np.ndarray, ...]
SECONDS_TO_TELL = 10.0


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
    """Errors of every method on one table, told now and then on the way."""
    true, rng = table.hierarchy.sums(table.cells), np.random.default_rng()
    scores: dict[str, list[dict[str, Any]]] = {}
    intervals: list[dict[str, list[float]]] = []
    chosen: dict[str, int] = {}
    started = last = monotonic()
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
        over = monotonic() - started > 60 * table.minutes
        if over or repetition + 1 == table.repetitions or monotonic() - last > SECONDS_TO_TELL:
            tell(told(table, scores, intervals, chosen))
            last = monotonic()
        if over:
            break


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
        "fresh": table.fresh,
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


def pooled(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The figures of the releases of both."""
    sizes = one["repetitions"], other["repetitions"]
    judged = one["covered_releases"], other["covered_releases"]
    names = one["chosen"].keys() | other["chosen"].keys()
    return one | {
        "repetitions": sum(sizes),
        "chosen": {each: sum(row["chosen"].get(each, 0) for row in (one, other)) for each in names},
        "methods": {
            name: {
                key: _together(key, figure, other["methods"][name][key], sizes)
                for key, figure in figures.items()
            }
            for name, figures in one["methods"].items()
        },
        "covered": {
            prior: _together("", shares, other["covered"][prior], judged)
            for prior, shares in one["covered"].items()
        },
        "covered_releases": sum(judged),
    }


def _together(key: str, one: Any, other: Any, sizes: tuple[int, int]) -> Any:
    if one is None or key in ("cells", "categories"):
        return one and one + other
    return np.average([one, other], axis=0, weights=sizes).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--only", help="rows whose name has this, a regular expression")
    parser.add_argument("--tree", type=Path, help="census tracts: county, tract, race, count")
    parser.add_argument("--tree-epsilons", default="0.5,1,2,4")
    parser.add_argument("--tree-minutes", type=float, default=float("inf"), help="for each epsilon")
    parser.add_argument("--json", type=Path, help="write the figures here, again and again")
    parser.add_argument("--page", type=Path, nargs="+", help="make the page of these figures only")
    parser.add_argument("--out", type=Path, help="write the page here")
    options = parser.parse_args()
    if options.page:
        results = {}
        for path in options.page:
            for name, row in json.loads(path.read_text()).items():
                results[name] = pooled(results[name], row) if name in results else row
        options.out.write_text(as_page(results) + "\n")
        return
    rows = tables(options.repetitions) + fresh_tables(options.repetitions)
    if options.tree:
        rows += trees(
            options.tree, options.tree_epsilons, options.repetitions, options.tree_minutes
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
    if options.out:
        options.out.write_text(as_page(results) + "\n")


if __name__ == "__main__":
    main()
