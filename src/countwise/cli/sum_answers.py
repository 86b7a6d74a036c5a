"""Sums of counts by their labels, and tables that cross, for `countwise infer`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from countwise.cli.console import err, out, print_json, print_table, progress, stages
from countwise.cli.draw_files import DRAWS, continued, write_draws_to
from countwise.cli.output_files import output_files, write_frame
from countwise.errors import InputError
from countwise.inference.crossed_posterior import (
    PRIOR,
    CrossedPosterior,
    SumPosterior,
    check_level,
    crossed_posterior,
)
from countwise.inference.drawn_posterior import drawn_posterior
from countwise.inference.lattice_chains import run_name
from countwise.inference.statement_probabilities import Probability
from countwise.pages.charts import chance
from countwise.progress import Report
from countwise.release.crossed_release import CrossedRelease, read_release
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
    *,
    prior: str,
    draws: tuple[int, Path | None],
    seed: int | None,
) -> None:
    """Ranges of every count of tables that cross, of sums of them, and statements about them."""
    if given:
        raise InputError(
            f"tables that cross are inferred count by count, and "
            f"{', '.join(given)} {'asks' if len(given) == 1 else 'ask'} for more. To fix, use "
            "--sum, --statement, --level, --out, --prior, --draws-out and --json alone."
        )
    check_level(level)
    outputs = output_files({"--out": file}, {"--draws-out": (draws[1], DRAWS)}, overwrite=overwrite)
    release = read_release(folder)
    rng = np.random.default_rng(seed)
    with stages() as report:
        posterior = crossed_posterior(release)
        if prior != "none" and isinstance(release, CrossedRelease):
            posterior = drawn_posterior(release, prior, rng=rng, report=report)
        if draws[1] is not None:
            _write_draws(posterior, draws[0], draws[1], seed, rng, overwrite, report)
    with progress(3) as tell:
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
    print_sums(summed, level, posterior.prior)
    for said, probability in judged.items():
        error = "" if probability.exact else f" ± {probability.error:.2g} (from draws)"
        out.print(f"P({said}) = {chance(float(probability))}{error}")
    if judged and prior == "none":
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


def print_sums(summed: Sequence[SumPosterior], level: float, known: str = PRIOR) -> None:
    """A line a sum: estimate, standard error, range; `known` is a prior that is said elsewhere."""
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
        if each.prior not in (PRIOR, known):
            out.print(f"{each.name} rests on a prior: {each.prior}.")
    out.print()


def _plain_statement(said: str, found: Probability) -> dict[str, Any]:
    plain = {"statement": said, "probability": float(found), "prior": found.prior}
    return plain | ({"law": "normal"} if found.exact else {"law": "draws", "error": found.error})


def _write_draws(
    posterior: CrossedPosterior,
    count: int,
    file: Path,
    seed: int | None,
    rng: np.random.Generator,
    overwrite: bool,
    report: Report,
) -> None:
    """Joint draws to a file; what a run that was stopped has drawn is gone on with."""
    name = run_name(posterior.measurements, count, seed)
    with continued(file, name, overwrite=overwrite) as (unfinished, partial):
        made = posterior.draws(count, rng=rng, folder=unfinished, report=report)
        write_draws_to(partial, made, made.prior)
    err.print(f"{made.route[0].upper()}{made.route[1:]}. Prior: {made.prior}.")
    err.print(made.diagnostics)


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
    if posterior.diagnostics:
        out.print(posterior.diagnostics)


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
    if posterior.diagnostics:
        result["diagnostics"] = posterior.diagnostics
    if summed:
        result["sums"] = plain_sums(summed, level)
    if judged:
        result["statements"] = [_plain_statement(said, p) for said, p in judged.items()]
    return result
