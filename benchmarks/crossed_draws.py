"""What joint draws and ranges of crossed tables hold, beside two federal methods, and their speed.

    python benchmarks/crossed_draws.py --releases 1 --out docs/crossed-ranges.md

Tables and plans are those of `crossed.py`; ranges of 95% by margin and true size, of four kinds:

- no prior: those of every release;
- learned: joint draws under the prior `learned`;
- least squares: the normal about the generalised least-squares estimate, rounded inward, as the
  census publishes with its noisy measurements;
- reruns: the released cells taken as the truth and released again 25 times; the released count
  plus and minus t times the root mean squared difference (approximate Monte Carlo, Ashmead et al.
  2025), by the adjustment of ours.

`--json` keeps the figures of a run, `--page one.json two.json` makes the page of several.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import polars as pl
from numba import njit
from scipy.stats import nbinom, norm
from scipy.stats import t as student

import countwise as cw
from countwise.arrays import FloatArray, IntArray
from countwise.inference.crossed_posterior import CrossedPosterior
from countwise.inference.diagnostics import effective_size
from countwise.inference.drawn_posterior import draw_ranges
from countwise.inference.lattice_chains import lattice_draws
from countwise.margins.cell_lattice import LatticeChain, begun, lattice
from countwise.margins.division import learned_division
from countwise.margins.leastsquares import Estimates
from countwise.margins.measurement import Measurement
from countwise.margins.ranges import fitted, margin_ranges
from countwise.margins.reconstruction import Reconstruction
from countwise.margins.whole import whole_cells
from countwise.noise.laws import DiscreteGaussian, IntegerLaw
from countwise.tables.variable import make_variable
from countwise.tables.workload import Margin, Workload
from crossed import TABLES as CROSSED
from crossed_draws_page import as_page
from provenance import in_words

LEVEL = 0.95
RERUNS = 25
DRAWS = 400
SIZES = ((0, 0), (1, 4), (5, 24), (25, 99), (100, 10**18))
SECONDS = 40.0  # of each sampler
LEFT_OUT = (("epsilon", "0.5"), ("epsilon", "2"))
METHODS = ("no prior", "learned", "least squares", "reruns")
Ends = tuple[IntArray, IntArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class Noisy:
    """A table, its true cells, and noisy margins of it."""

    name: str
    workload: Workload
    true: IntArray
    seen: tuple[Measurement, ...]

    @property
    def estimates(self) -> Estimates:
        return fitted(self.workload, self.seen)


def noised(
    workload: Workload, cells: IntArray, laws: dict[Margin, IntegerLaw], rng: np.random.Generator
) -> tuple[Measurement, ...]:
    """Made-up noise on public counts."""
    found = []
    for margin, law in laws.items():
        sums = workload.sums(cells, margin)
        noise = law.quantile(rng.uniform(1e-12, 1 - 1e-12, sums.shape))
        found.append(Measurement(margin=margin, law=law, noisy=sums + noise))
    return tuple(found)


def federal(one: Noisy, estimates: Estimates, margin: Margin) -> Ends:
    """The normal about least squares, its ends rounded inward, and not below 0."""
    reach = norm.ppf(0.5 + LEVEL / 2) * np.sqrt(np.maximum(estimates.variance(margin), 0.0))
    mean = estimates.margin(margin)
    shape = one.workload.shape_of(margin)
    low = np.broadcast_to(np.ceil(mean - reach), shape)
    high = np.broadcast_to(np.floor(mean + reach), shape)
    return np.maximum(low, 0).astype(np.int64), np.maximum(high, 0).astype(np.int64)


def rerun(one: Noisy, margins: list[Margin], rng: np.random.Generator) -> dict[Margin, Ends]:
    """Released cells as the truth of 25 more releases."""
    workload, laws = one.workload, {each.margin: each.law for each in one.seen}
    make = partial(whole_cells, workload, method="auto", rng=rng)
    released = make(one.seen).cells
    squares = {margin: np.zeros(workload.shape_of(margin)) for margin in margins}
    for _ in range(RERUNS):
        again = make(noised(workload, released, laws, rng)).cells
        for margin in margins:
            squares[margin] += workload.sums(again - released, margin).astype(float) ** 2
    found = {}
    for margin in margins:
        reach = student.ppf(0.5 + LEVEL / 2, RERUNS - 1) * np.sqrt(squares[margin] / RERUNS)
        counts = workload.sums(released, margin)
        low, high = np.ceil(counts - reach), np.floor(counts + reach)
        found[margin] = np.maximum(low, 0).astype(np.int64), high.astype(np.int64)
    return found


def judged(one: Noisy, margins: list[Margin], rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Coverage and width by margin, size and method, of one release."""
    started = perf_counter()
    draws = lattice_draws(one.workload, one.seen, DRAWS, rng=rng)
    rows = draws.cells.reshape(-1, *one.workload.shape)
    print(f"  draws {perf_counter() - started:.0f} s", flush=True)
    started = perf_counter()
    again = rerun(one, margins, rng)
    print(f"  reruns {perf_counter() - started:.0f} s", flush=True)
    estimates = one.estimates
    for margin in margins:
        true = one.workload.sums(one.true, margin)
        counts = np.stack([one.workload.sums(row.astype(np.int64), margin) for row in rows])
        ends: dict[str, Ends] = {
            "no prior": margin_ranges(one.workload, one.seen, margin, LEVEL, estimates=estimates),
            "learned": draw_ranges(counts, LEVEL),
            "least squares": federal(one, estimates, margin),
            "reruns": again[margin],
        }
        for low, high in SIZES:
            inside = (true >= low) & (true <= high)
            if not inside.any():
                continue
            for method, (first, last) in ends.items():
                holds = (first <= true) & (true <= last)
                yield {
                    "margin": one.workload.name(margin),
                    "size": low,
                    "method": method,
                    "counts": int(inside.sum()),
                    "holds": int(holds[inside].sum()),
                    "width": float((last - first)[inside].sum()),
                }


@njit(nogil=True)
def metropolis(
    cells: IntArray,
    deviations: IntArray,
    nodes: Any,
    squares: FloatArray,
    priors: FloatArray,
    sweeps: int,
    rng: np.random.Generator,
) -> None:
    """Plain Metropolis: every cell one up or down, taken by the ratio of the two tables."""
    most = priors.shape[1] - 1
    for _ in range(sweeps):
        for c in range(cells.size):
            by = 1 if rng.random() < 0.5 else -1
            x = cells[c] + by
            if x < 0 or x > most:
                continue
            change = priors[c, x] - priors[c, cells[c]]
            for j in range(nodes.shape[0]):
                change -= squares[j] * (2 * by * deviations[nodes[j, c]] + 1)
            if change >= 0.0 or rng.random() < np.exp(change):
                cells[c] = x
                for j in range(nodes.shape[0]):
                    deviations[nodes[j, c]] += by


def speed(one: Noisy, seconds: float, rng: np.random.Generator) -> dict[str, float]:
    """Effective draws of a middling cell a second of processor time, ours and by Metropolis.

    Both with the same expectations and the same prior of every cell, factors kept as they are.
    """
    division = learned_division(Reconstruction(workload=one.workload, measurements=one.seen), rng)
    within = lattice(one.workload, one.seen, division)
    start = whole_cells(one.workload, one.seen, method="least-squares", rng=rng).cells
    chain = begun(within, start, rng)
    chain.sweep(100)
    return {
        "sampler": _rate(chain, chain.move, seconds),
        "metropolis": _rate(chain, _plain(chain), seconds),
    }


def _plain(chain: LatticeChain) -> Any:
    one = chain.lattice
    x = np.arange(int(chain.cells.max()) + 200)
    diffuse = one.prior.diffuse / ((x + 1.0) * (x + 2.0))
    shapes, means = np.minimum(one.prior.shapes, 1e6)[:, None], chain.means[:, None]
    scattered = nbinom.pmf(x, shapes, shapes / (shapes + means))
    priors = np.log((1 - one.prior.diffuse) * scattered + diffuse)
    noise = one.noise
    return partial(_metropolis, chain, noise.nodes, noise.squares, priors)


def _metropolis(
    chain: LatticeChain, nodes: Any, squares: FloatArray, priors: FloatArray, sweeps: int
) -> None:
    metropolis(chain.cells, chain.deviations, nodes, squares, priors, sweeps, chain.rng)


def _rate(chain: LatticeChain, sweep: Any, seconds: float) -> float:
    sweep(1)
    kept: list[IntArray] = []
    started = process_time()
    while process_time() - started < seconds or len(kept) < 40:
        sweep(2)
        kept.append(chain.cells.copy())
    spent = process_time() - started
    drawn = np.stack(kept)[None].astype(float)
    moving = drawn.std(axis=(0, 1)) > 0
    return float(np.median(effective_size(drawn[:, :, moving]))) / spent


def timed(nodes: int, rng: np.random.Generator) -> dict[str, Any]:
    """How long ranges of about so many counts take."""

    def flat(label: str, size: int) -> Any:
        frame = pl.DataFrame({label: [f"{label}{i:05}" for i in range(size)]})
        return make_variable(label, frame)[0]

    sizes = (int(nodes / 115), 7, 14)
    variables = tuple(flat(label, size) for label, size in zip("abc", sizes, strict=True))
    margins = tuple(
        Margin(each) for each in [(0, 0, 0), (1, 0, 0), (0, 1, 1), (1, 1, 0), (1, 1, 1)]
    )
    workload = Workload(variables=variables, margins=margins)
    true = rng.poisson(2.0, workload.shape)
    seen = noised(
        workload, true, {each: DiscreteGaussian(scale=Fraction(5)) for each in margins}, rng
    )
    released = tuple(workload.sums(true, each) for each in margins)
    post = CrossedPosterior(workload=workload, measurements=seen, released=released)
    post.ranges(margins[-1])
    fresh = CrossedPosterior(workload=workload, measurements=seen, released=released)
    started = perf_counter()
    for margin in margins:
        fresh.ranges(margin)
    spent = perf_counter() - started
    return {"nodes": sum(map(workload.size, margins)), "seconds": spent}


def figures(repetitions: int, only: str, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Coverage of every table at every loss."""
    for table in CROSSED:
        if table.needs is not None and not table.needs.is_file():
            continue
        for unit, loss in table.losses:
            if (unit, loss) in LEFT_OUT or only not in f"{table.name}, {unit} {loss}":
                continue
            plan = table.plan(unit, loss)
            workload = plan.workload(table.truth.space)
            rows: list[dict[str, Any]] = []
            started = perf_counter()
            for _ in range(repetitions):
                release = cw.release(table.truth, plan)
                one = Noisy(
                    name=table.name,
                    workload=workload,
                    true=table.truth.reveal().reshape(workload.shape),
                    seen=release.measurements,
                )
                rows += judged(one, list(workload.margins), rng)
            print(f"{table.name}, {unit} {loss}: {perf_counter() - started:.0f} s", flush=True)
            yield {
                "table": table.name,
                "unit": unit,
                "loss": loss,
                "releases": repetitions,
                "rows": rows,
            }


def speeds(rng: np.random.Generator) -> dict[str, Any]:
    """Effective draws a second on North Carolina, and the time of a million ranges."""
    table = next(each for each in CROSSED if "Carolina" in each.name)
    plan = table.plan("rho", "1/2")
    release = cw.release(table.truth, plan)
    one = Noisy(
        name=table.name,
        workload=plan.workload(table.truth.space),
        true=table.truth.reveal(),
        seen=release.measurements,
    )
    return speed(one, SECONDS, rng) | timed(1_000_000, rng)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--releases", type=int, default=1)
    parser.add_argument("--only", default="", help="tables and losses with this text; or speed")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--page", type=Path, nargs="+", help="make the page of these figures only")
    parser.add_argument("--out", type=Path, help="write the page here")
    options = parser.parse_args()
    rng = np.random.default_rng()
    found = [row for path in options.page or () for row in json.loads(path.read_text())]
    if not options.page:
        made = {"provenance": in_words()}
        if options.only in ("", "speed"):
            found.append({"speeds": speeds(rng)} | made)
        if options.only != "speed":
            for row in figures(options.releases, options.only, rng):
                found.append(row | made)
                if options.json:
                    options.json.write_text(json.dumps(found) + "\n")
    if options.json:
        options.json.write_text(json.dumps(found) + "\n")
    if options.out:
        options.out.write_text(as_page(found, METHODS, SIZES))


if __name__ == "__main__":
    main()
