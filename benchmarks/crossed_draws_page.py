"""The figures of `crossed_draws.py` as a page."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

FEW = 100  # counts: a smaller row says nothing
MANY = 1_000  # counts of a row that is held to its promise
PROMISE, LEAST = 95.0, 93.0
UNITS = {"epsilon": "ε", "rho": "ρ"}

HEAD = """# Ranges of tables that cross

Made by `python benchmarks/crossed_draws.py --page …` from the figures of its runs, which take
`--only` for one table at one loss; nothing on this page is typed in. It is of
{provenance}.

What is not here was not run. Releases are few, and the counts of one release share its noise, so
that rows vary more than their numbers suggest. Each entry has how many of 100 ranges of 95% hold
the truth, and their mean width; ✗ is where fewer than 93 do in a row of 1,000 counts or more.

- *no prior*: [the ranges of every release](inference.md#sums-and-tables-that-cross).
- *learned*: [joint draws](crossed.md#joint-draws) under the prior `learned`, 400 of them.
- *least squares*: the normal about the generalised least-squares estimate, its ends rounded inward,
  which is how the census publishes ranges beside its noisy measurements.
- *reruns*: approximate Monte Carlo (Ashmead et al. 2025): the released cells are taken as the truth
  and released again 25 times; the released count ± 2.06 times the root mean squared difference,
  rounded inward. Reruns are made by the adjustment `auto`.
"""


def as_page(found: Sequence[dict[str, Any]], methods: Sequence[str], sizes: Any) -> str:
    """All tables, losses and speeds."""
    named = list(dict.fromkeys(each["provenance"] for each in found))
    parts = [HEAD.format(provenance=";\n".join(named))]
    parts += [_speeds(each["speeds"]) for each in found if "speeds" in each]
    together: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for each in found:
        if "rows" in each:
            together[each["table"], each["unit"], each["loss"]].append(each)
    for (table, unit, loss), runs in together.items():
        releases = sum(each["releases"] for each in runs)
        rows = [row for each in runs for row in each["rows"]]
        parts.append(f"## {table}, {UNITS[unit]} = {loss}\n")
        parts.append(f"{releases} release{'s' if releases > 1 else ''}.\n")
        parts.append("\n".join(_table(rows, methods, dict(sizes))) + "\n")
    return "\n".join(parts)


def _table(
    rows: Sequence[dict[str, Any]], methods: Sequence[str], sizes: dict[int, int]
) -> Iterator[str]:
    sums: dict[tuple[str, int, str], list[float]] = {}
    for row in rows:
        added = (row["counts"], row["holds"], row["width"])
        for margin in (row["margin"], "all tables"):
            before = sums.setdefault((margin, row["size"], row["method"]), [0.0, 0.0, 0.0])
            for i, each in enumerate(added):
                before[i] += each
    yield f"| table | true count | counts | {' | '.join(methods)} |"
    yield f"|---|---|{'---|' * (len(methods) + 1)}"
    margins = ["all tables", *dict.fromkeys(row["margin"] for row in rows)]
    for margin in margins:
        for low, high in sizes.items():
            cells = [sums.get((margin, low, method)) for method in methods]
            first = cells[0]
            if first is None or first[0] < FEW:
                continue
            entries = " | ".join(_entry(each) for each in cells if each is not None)
            yield f"| {margin} | {_size(low, high)} | {first[0]:,.0f} | {entries} |"


def _entry(sums: list[float]) -> str:
    counts, holds, width = sums
    share = 100.0 * holds / counts
    mark = " ✗" if share < LEAST and counts >= MANY else ""
    return f"{share:.1f}{mark} ({width / counts:.1f})"


def _size(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"{low}+" if high > 10**9 else f"{low}–{high}"


def _speeds(found: dict[str, Any]) -> str:
    ratio = found["sampler"] / found["metropolis"]
    return (
        "## Speed\n\n"
        f"Effective draws of the middling cell of North Carolina (ρ = ½) a second of processor "
        f"time, expectations fixed: {found['sampler']:.1f} by the sampler, "
        f"{found['metropolis']:.2f} by plain Metropolis, which moves one cell by one: a factor of "
        f"{ratio:.1f}. Ranges of {found['nodes']:,} counts of five tables took "
        f"{found['seconds']:.1f} seconds of wall time.\n"
    )
