"""Sums of counts by their labels, and tables that cross, for `countwise infer`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from countwise.cli.console import err, out, print_json, print_table, progress
from countwise.cli.output_files import output_files, write_frame
from countwise.errors import InputError
from countwise.inference.crossed_posterior import (
    PRIOR,
    CrossedPosterior,
    SumPosterior,
    check_level,
    crossed_posterior,
)
from countwise.inference.statement_probabilities import Probability
from countwise.pages.charts import chance
from countwise.release.crossed_release import read_release
from countwise.release.manifest import is_tree, read_manifest

PRINTED = 20


def holds_crossed_tables(folder: Path) -> bool:
    """Whether the release in a folder is of tables that cross."""
    return not is_tree(read_manifest(folder))


def infer_crossed(
    folder: Path,
    file: Path | None,
    given: Sequence[str],
    sums: Sequence[str],
    statements: Sequence[str],
    level: float,
    overwrite: bool,
    json: bool,
) -> None:
    """Ranges of every count of tables that cross, of sums of them, and statements about them."""
    if given:
        raise InputError(
            f"tables that cross are inferred without a prior, count by count, and "
            f"{', '.join(given)} {'asks' if len(given) == 1 else 'ask'} for more. To fix, use "
            "--sum, --statement, --level, --out and --json alone."
        )
    check_level(level)
    outputs = output_files({"--out": file}, overwrite=overwrite)
    with progress(4) as tell:
        tell("reading")
        posterior = crossed_posterior(read_release(folder))
        tell("answering")
        summed = [posterior.sum(each) for each in sums]
        judged = {said: posterior.probability(said) for said in statements}
        tell("finding ranges")
        table = posterior.table(probability=level)
        if file is not None:
            tell("writing the table")
            write_frame(table, file, overwrite=overwrite)
    if json:
        print_json(_plain(posterior, summed, judged, level))
        return
    print_sums(summed, level)
    for said, probability in judged.items():
        out.print(f"P({said}) = {chance(float(probability))}")
    if judged:
        out.print("Statements rest on no prior: on the normal law of least squares.\n")
    _print_counts(posterior, level)
    for path in outputs:
        err.print(f"Written: {path}")


def plain_sums(summed: Sequence[SumPosterior], level: float) -> list[dict[str, Any]]:
    """Sums as plain data."""
    found = []
    for each in summed:
        low, high = each.interval(level)
        record = {"sum": each.name, "mean": each.mean, "sd": each.sd, "lower": low, "upper": high}
        found.append(record | {"prior": each.prior, "named_twice": list(each.twice)})
    return found


def print_sums(summed: Sequence[SumPosterior], level: float) -> None:
    """A line a sum: estimate, standard error, range."""
    if not summed:
        return
    rows = []
    for each in summed:
        low, high = each.interval(level)
        rows.append((each.name, f"{each.mean:,.2f}", f"{each.sd:,.2f}", f"{low:,} to {high:,}"))
    print_table(("sum", "estimate", "error", f"{100 * level:g}% range"), rows)
    for each in summed:
        if each.twice:
            names = ", ".join(each.twice)
            out.print(f"{each.name}: {names} named more than once, counted once.")
        if each.prior != PRIOR:
            out.print(f"{each.name} rests on a prior: {each.prior}.")
    out.print()


def _print_counts(posterior: CrossedPosterior, level: float) -> None:
    rows = list[tuple[str, ...]]()
    for record in posterior.records(probability=level):
        if len(rows) == PRINTED:
            break
        rows.append(
            (
                str(record["path"]),
                f"{record['released']:,}",
                f"{record['mean']:,.2f}",
                f"{record['sd']:,.2f}",
                f"{record['lower']:,} to {record['upper']:,}",
            )
        )
    print_table(("count", "released", "estimate", "error", f"{100 * level:g}% range"), rows)
    size = sum(each.size for each in posterior.released)
    if size > len(rows):
        out.print(f"… and {size - len(rows):,} more; see --out.")
    out.print(f"\nFrom {posterior.route}. Prior: {posterior.prior}.")


def _plain(
    posterior: CrossedPosterior,
    summed: Sequence[SumPosterior],
    judged: dict[str, Probability],
    level: float,
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "route": posterior.route,
        "prior": posterior.prior,
        "interval": {"kind": "highest", "probability": level},
        "nodes": list(posterior.records(probability=level)),
    }
    if summed:
        result["sums"] = plain_sums(summed, level)
    if judged:
        result["statements"] = [
            {"statement": said, "probability": float(p), "law": "normal", "prior": p.prior}
            for said, p in judged.items()
        ]
    return result
