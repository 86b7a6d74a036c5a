"""How accurate releases are at the same privacy loss, method by method.

    python benchmarks/accuracy.py [--repetitions 500] [--tree nc_tracts_2020.csv] [--out page.md]

Every method of a row sees the same noisy counts, except that the last ones see joint noise of
the same privacy loss. Competitors: the mode (Wang & Reiter 2021), the divisor methods' Webster
and the quota method's Hamilton apportionment, and least squares by OSQP with largest-remainder
rounding, one level at a time, as in the 2020 census. Figures are mean squared errors of all
cells, with the mean absolute error, the share of empty cells released empty, and the bias of
the smallest and largest cell.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import osqp
import polars as pl
from scipy import sparse

from countwise.adjust.bayes import EmpiricalBayes
from countwise.adjust.leastsquares import LeastSquares
from countwise.adjust.mode import Mode
from countwise.privacy.measurements import Measurements
from countwise.release.measure import draw_noise
from countwise.release.plan import Plan
from countwise.tables.hierarchy import Hierarchy, build
from countwise.tables.reading import read_public_counts

Share = Callable[[np.ndarray, int], np.ndarray]


def largest_remainders(shares: np.ndarray, total: int) -> np.ndarray:
    counts = np.floor(shares).astype(np.int64)
    order = np.argsort(counts - shares, kind="stable")
    counts[order[: max(total - int(counts.sum()), 0)]] += 1
    return counts


def hamilton(noisy: np.ndarray, total: int) -> np.ndarray:
    """Shares of the clipped noisy counts, rounded by largest remainders."""
    weights = np.maximum(noisy, 0)
    weights = weights if weights.any() else np.ones_like(weights)
    return largest_remainders(total * weights / weights.sum(), total)


def webster(noisy: np.ndarray, total: int) -> np.ndarray:
    """The divisor method that rounds at one half, by bisection on the divisor."""
    weights = np.maximum(noisy, 0)
    weights = weights if weights.any() else np.ones_like(weights)
    low, high = 0.0, 2 * (total + len(weights)) / weights.sum()
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if np.rint(middle * weights).sum() < total else (low, middle)
    counts = np.floor(low * weights + 0.5).astype(np.int64)
    quotients = np.where(weights > 0, weights / (counts + 0.5), -1.0)
    counts[np.argsort(-quotients, kind="stable")[: max(total - int(counts.sum()), 0)]] += 1
    return counts


def solver(noisy: np.ndarray, total: int) -> np.ndarray:
    """Least squares to the total by OSQP, rounded by largest remainders."""
    size = len(noisy)
    problem = osqp.OSQP()
    problem.setup(
        P=sparse.eye(size, format="csc"),
        q=-noisy.astype(float),
        A=sparse.vstack([np.ones((1, size)), sparse.eye(size)], format="csc"),
        l=np.concatenate([[total], np.zeros(size)]),
        u=np.concatenate([[total], np.full(size, np.inf)]),
        eps_abs=1e-6,
        eps_rel=1e-8,
        max_iter=20_000,
        verbose=False,
    )
    return largest_remainders(np.maximum(problem.solve().x, 0), total)


@dataclass(frozen=True)
class TopDown:
    """A way to share a total, used from the root down."""

    share: Share

    def __call__(self, measurements: list[Measurements]) -> tuple[np.ndarray, ...]:
        each = measurements[0]
        counts = [np.maximum(each.noisy[0], 0)]
        for level, offsets in enumerate(each.hierarchy.offsets):
            out = np.empty_like(each.noisy[level + 1])
            for i, (start, stop) in enumerate(pairwise(offsets)):
                out[start:stop] = self.share(each.noisy[level + 1][start:stop], int(counts[-1][i]))
            counts.append(out)
        return tuple(counts)


COMPETITORS = {
    "mode": Mode(tie_key=1),
    "Webster": TopDown(webster),
    "Hamilton": TopDown(hamilton),
    "OSQP": TopDown(solver),
}
OURS = {"least-squares": LeastSquares(tie_key=1), "bayes": EmpiricalBayes(tie_key=1)}


@dataclass(frozen=True, kw_only=True)
class Table:
    """Counts to release, at a loss."""

    name: str
    hierarchy: Hierarchy
    cells: np.ndarray
    epsilon: dict[str, str]
    repetitions: int
    pool: str = ""


def flat(
    name: str, cells: list[int] | np.ndarray, total: str, parts: str, repetitions: int
) -> Table:
    labels = pl.DataFrame({"part": [f"{i:06}" for i in range(len(cells))]})
    epsilon = {"total": total, "part": parts}
    counts = np.array(cells, dtype=np.int64)
    return Table(name=name, hierarchy=build(labels)[0], cells=counts, epsilon=epsilon,
                 repetitions=repetitions)  # fmt: skip


def tables(repetitions: int) -> list[Table]:
    rng = np.random.default_rng(7)
    spread = np.concatenate([[0, 0, 0, 1, 2, 3, 15, 22, 31, 44, 60], rng.integers(60, 978, 39)])
    seats = np.repeat(
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 27, 36, 53, 435],
        [7, 5, 3, 6, 3, 2, 2, 4, 4, 1, 1, 1, 1, 2, 1, 2, 2, 1, 1, 1],
    )
    return [
        flat("scenario 1", spread, "1", "1", repetitions),
        flat("scenario 2", spread, "0.1", "5", repetitions),
        flat("scenario 3", spread, "5", "0.1", repetitions),
        flat("scenario 4", rng.permutation(seats), "1", "1", repetitions),
        flat(
            "200 empty cells and three large", [0] * 200 + [500, 2000, 9000], "1", "1", repetitions
        ),
        flat("500 Poisson(3) cells", rng.poisson(3, 500), "0.5", "0.5", repetitions),
        flat("300 Zipf cells", np.minimum(rng.zipf(1.6, 300), 10**5), "1", "1", repetitions),
    ]


def measure(table: Table, mechanism: str) -> Measurements:
    budget = Plan(epsilon=table.epsilon, mechanism=mechanism).budget(table.hierarchy)
    noise = draw_noise(table.hierarchy, budget, noise="exact")
    true = table.hierarchy.sums(table.cells)
    noisy = tuple(t + z for t, z in zip(true, noise, strict=True))
    return Measurements(hierarchy=table.hierarchy, laws=budget.laws, noisy=noisy)


def run(table: Table) -> dict[str, dict[str, float]]:
    """Mean errors of every method on one table."""
    ours = dict(OURS)
    if table.pool:
        ours[f"bayes by {table.pool}"] = EmpiricalBayes(tie_key=1, pool=table.pool)
    errors: dict[str, list[np.ndarray]] = {}
    for _ in range(table.repetitions):
        independent, joint = measure(table, "geometric"), measure(table, "joint")
        for name, method in (COMPETITORS | ours).items():
            errors.setdefault(name, []).append(method([independent])[-1] - table.cells)
        for name, method in ours.items():
            errors.setdefault(f"{name}, joint noise", []).append(method([joint])[-1] - table.cells)
    return {name: summary(np.array(each), table) for name, each in errors.items()}


def summary(errors: np.ndarray, table: Table) -> dict[str, float]:
    empty = table.cells == 0
    result = {
        "squared": float((errors**2).sum(axis=1).mean()),
        "absolute": float(np.abs(errors).sum(axis=1).mean()),
        "bias_smallest": float(errors[:, np.argmin(table.cells)].mean()),
        "bias_largest": float(errors[:, np.argmax(table.cells)].mean()),
    }
    if empty.any():
        result["empty_kept"] = float((errors[:, empty] == 0).mean())
    if table.pool:
        level = table.hierarchy.by.index(table.pool)
        codes = table.hierarchy.path_codes(len(table.hierarchy.by))[level]
        sizes = np.bincount(codes, weights=table.cells)
        result["squared_sparsest"] = float(
            (errors[:, codes == sizes.argmin()] ** 2).sum(axis=1).mean()
        )
    return result


def as_page(results: dict[str, dict[str, dict[str, float]]], counts: dict[str, int]) -> str:
    """The results as Markdown."""
    lines = ["# Accuracy at the same privacy loss", "", __doc__.split("\n\n", 2)[2].strip(), ""]
    for table, methods in results.items():
        lines += [f"## {table}", "", f"{counts[table]} releases.", ""]
        best = min(methods[name]["squared"] for name in COMPETITORS)
        keys = list(next(iter(methods.values())))
        lines.append("| method | " + " | ".join(key.replace("_", " ") for key in keys)
                     + " | against the best competitor |")  # fmt: skip
        lines.append("|---" * (len(keys) + 2) + "|")
        for name, values in methods.items():
            cells = [f"{values[key]:,.3g}" if abs(values[key]) < 100 else f"{values[key]:,.0f}"
                     for key in keys]  # fmt: skip
            lines.append(
                f"| {name} | "
                + " | ".join(cells)
                + f" | {best / max(values['squared'], 1e-9):.2f}× |"
            )
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--tree", type=Path, help="census tracts: county, tract, race, count")
    parser.add_argument("--tree-repetitions", type=int, default=5)
    parser.add_argument("--tree-epsilons", default="0.5,1,2,4")
    parser.add_argument("--out", type=Path, help="write the page here")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    rows = tables(options.repetitions)
    if options.tree:
        by = ("county", "tract", "race")
        hierarchy, cells = read_public_counts(options.tree, by=by, count="count")
        for epsilon in options.tree_epsilons.split(","):
            share = str(Fraction(epsilon) / 4)
            rows.append(
                Table(name=f"North Carolina, ε = {epsilon} in all", hierarchy=hierarchy,
                      cells=cells, epsilon=dict.fromkeys(("total", *by), share), pool="race",
                      repetitions=options.tree_repetitions)
            )  # fmt: skip
    results = {}
    for table in [row for row in rows if row.repetitions]:
        results[table.name] = run(table)
        print(
            table.name,
            {k: round(v["squared"], 1) for k, v in results[table.name].items()},
            flush=True,
        )
    page = as_page(results, {table.name: table.repetitions for table in rows})
    if options.out:
        options.out.write_text(page + "\n")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
