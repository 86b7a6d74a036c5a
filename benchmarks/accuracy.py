"""How far releases are from the truth at every level, method by method, and what ranges hold.

    python benchmarks/accuracy.py --workers 2 --json figures.json --out docs/accuracy.md

`--quick` runs a tenth of the releases, `--only` the rows whose name it is found in, `--minutes`
ends each row's releases and each row's ranges after so long. `--page one.json two.json` makes the
page of figures found before; the releases of a row that several files have are taken together.

Every method of a row is fed the same noisy counts, drawn anew in every run: figures differ within
their standard errors.
"""

import argparse
import json
import re
from concurrent.futures import ProcessPoolExecutor, as_completed
from fractions import Fraction
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from accuracy_page import as_page, lowest
from accuracy_tables import Row, Table, known_rows
from competitors import competitors
from countwise.adjust.tree_least_squares import LeastSquares
from countwise.release.measure import draw_noise
from countwise.release.plan import Plan
from countwise.tables.measurements import Measurements
from least_worst import equal_cells, least_worst
from pooling import pooled
from provenance import code
from range_coverage import judged
from untuned_tables import untuned_rows
from whole_tree import nonnegative_whole

OURS = {"default": "auto", "least squares": "least-squares"}
PLANNED = "all defaults"
TOTALS = 3000  # releases whose totals alone are compared


def plan(table: Table, adjust: str) -> Plan:
    """The plan of a table, at the loss of each level, with a noise of their own for all counts."""
    mechanism = "gaussian" if table.unit == "rho" else "geometric"
    losses: dict[str, Any] = {table.unit: table.loss}
    return Plan(**losses, mechanism=mechanism, adjust=adjust)


def planned(table: Table) -> Plan:
    """The same whole loss, and all else as it comes: the split, the noise and the adjustment."""
    whole: dict[str, Any] = {table.unit: sum(Fraction(each) for each in table.loss.values())}
    return Plan(**whole) if table.unit == "epsilon" else Plan(**whole, mechanism="gaussian")


def measure(table: Table, how: Plan) -> Measurements:
    """Noisy counts of every node."""
    budget = how.budget(table.hierarchy)
    noise = draw_noise(table.hierarchy, budget, noise="exact")
    true = table.hierarchy.sums(table.cells)
    noisy = tuple(t + z for t, z in zip(true, noise, strict=True))
    return Measurements(hierarchy=table.hierarchy, laws=budget.laws, noisy=noisy)


def errors(table: Table, *, repetitions: int, minutes: float, whole: bool) -> dict[str, Any]:
    """Mean squared error of every level, release by release, for every method."""
    true, rng = table.hierarchy.sums(table.cells), np.random.default_rng()
    squared: dict[str, list[list[float]]] = {}
    empty, kept = table.cells == 0, dict.fromkeys(OURS, 0.0)
    chosen: dict[str, int] = {}
    bias = {name: np.zeros(2) for name in OURS}
    started, done = monotonic(), 0
    while done < repetitions and monotonic() - started < 60 * minutes:
        noisy, key = measure(table, plan(table, "auto")), int(rng.integers(2**62))
        made = {name: method(noisy) for name, method in competitors(rng).items()}
        for name, adjust in OURS.items():
            found = plan(table, adjust).adjustment(tie_key=key, rng=rng).adjusted([noisy])
            made[name] = found.counts
            if name == "default":
                chosen[found.method] = chosen.get(found.method, 0) + 1
        if whole:
            method = planned(table).adjustment(tie_key=key, rng=rng)
            made[PLANNED] = method([measure(table, planned(table))])
        for name, counts in made.items():
            off = [each - t for each, t in zip(counts, true, strict=True)]
            squared.setdefault(name, []).append([float((each**2).mean()) for each in off])
            if name in OURS:
                smallest, largest = table.cells == table.cells.min(), table.cells.argmax()
                bias[name] += off[-1][smallest].mean(), off[-1][largest]
                kept[name] += float((counts[-1][empty] == 0).mean()) if empty.any() else 0.0
        done += 1
    return {
        "releases": done,
        "seconds": monotonic() - started,
        "levels": list(table.hierarchy.levels),
        "sizes": list(table.hierarchy.sizes),
        "empty": float(empty.mean()),
        "chosen": chosen,
        "squared": squared,
        "bias": {name: (each / done).tolist() for name, each in bias.items()},
        "empty_kept": {name: each / done for name, each in kept.items()},
    }


def equal_errors(table: Table, *, repetitions: int, minutes: float) -> dict[str, Any]:
    """Errors in tables of the same total in equal cells, and what no method has in all of them."""
    tables, found = equal_cells(table), {}
    each = {"repetitions": repetitions, "minutes": minutes / len(tables)}
    for number, one in tables.items():
        found[number] = errors(one, **each, whole=False) | {"code": [code()]}
    best = {number: lowest(one) for number, one in found.items()}
    law = plan(table, "auto").budget(table.hierarchy).laws[-1]
    return {
        "errors": {str(number): one for number, one in found.items()},
        "bound": least_worst(tables, law, best),
    }


def totals(table: Table, *, minutes: float) -> dict[str, Any]:
    """Squared errors of the total by least squares, as in the default, and by NNLS."""
    true, rng = table.hierarchy.sums(table.cells)[0], np.random.default_rng()
    squared: dict[str, list[float]] = {"default": [], "NNLS": []}
    started = monotonic()
    while len(squared["NNLS"]) < TOTALS and monotonic() - started < 60 * minutes:
        noisy = measure(table, plan(table, "least-squares"))
        made = LeastSquares(tie_key=int(rng.integers(2**62)))([noisy])
        for name, counts in (("default", made), ("NNLS", nonnegative_whole(noisy, rng=rng))):
            squared[name].append(float(((counts[0] - true) ** 2).mean()))
    return {"squared": squared, "code": [code()]}


def figures(name: str, share: float, minutes: float, parts: list[str]) -> dict[str, Any]:
    """All figures of a row."""
    row = next(each for each in rows() if each.name == name)
    table = row.make()
    found: dict[str, Any] = {"known": row.known, "lone": row.lone}
    if "errors" in parts:
        repetitions = max(round(share * table.repetitions), 4)
        whole = "planned" in parts
        found["errors"] = errors(table, repetitions=repetitions, minutes=minutes, whole=whole)
        found["errors"]["code"] = [code()]
    if "errors" in parts and row.lone:
        found["equal cells"] = equal_errors(table, repetitions=repetitions, minutes=minutes)
    if "totals" in parts:
        found["totals"] = totals(table, minutes=minutes)
    if "ranges" in parts:
        releases = max(round(share * table.judged), 2)
        found["ranges"] = judged(table, partial(plan, table), releases=releases, minutes=minutes)
    return found


def rows() -> list[Row]:
    """Every row: those known before, then those that nothing was tuned on."""
    return [*known_rows(), *untuned_rows()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the releases")
    parser.add_argument("--only", default="", help="rows whose name has this, a regular expression")
    parser.add_argument("--parts", nargs="+", default=["errors", "planned", "totals", "ranges"])
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures here, row by row")
    parser.add_argument("--page", type=Path, nargs="+", help="make the page of these figures only")
    parser.add_argument("--out", type=Path, help="write the page here")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for path in options.page or ():
        for name, row in json.loads(path.read_text()).items():
            results[name] = pooled(results[name], row) if name in results else row
    wanted = [] if options.page else [row for row in rows() if re.search(options.only, row.name)]
    for row in wanted:
        if row.needs is not None and not row.needs.is_file():
            print(f"{row.name}: left out, there is no {row.needs}", flush=True)
    share = 0.1 if options.quick else 1.0
    with ProcessPoolExecutor(options.workers) as pool:
        waiting = {
            pool.submit(figures, row.name, share, options.minutes, options.parts): row.name
            for row in wanted
            if row.needs is None or row.needs.is_file()
        }
        for done in as_completed(waiting):
            results[waiting[done]] = done.result()
            print(f"{waiting[done]}: done", flush=True)
            if options.json:
                options.json.write_text(json.dumps(results) + "\n")
    if options.out:
        order = [row.name for row in rows() if row.name in results]
        options.out.write_text(as_page({name: results[name] for name in order}))


if __name__ == "__main__":
    main()
