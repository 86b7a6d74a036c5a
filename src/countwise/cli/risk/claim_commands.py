"""countwise risk search and certify: is one estimator never worse than another?"""

from dataclasses import asdict
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table, progress
from countwise.cli.options import Seed
from countwise.front_door import risk_functions
from countwise.front_door.risk_functions import ERROR_PROBABILITY, PAIRED
from countwise.noise.numbers import written
from countwise.risk.claim_proof import BOXES, TOLERANCE, Verdict, proven
from countwise.risk.closed import CLOSED
from countwise.risk.estimator_claims import EstimatorClaim
from countwise.risk.search import Finding, GridSearch

SEARCH_EXAMPLE = "Example: countwise risk search --worse noisefirst --than identity --counts 0:100"
CERTIFY_EXAMPLE = 'Example: countwise risk certify "resized <= identity"'

Noise = Annotated[str, typer.Option(help="laplace (real-valued) or geometric.")]


def search(
    worse: Annotated[str, typer.Option(help=f"One of {', '.join(CLOSED)}.")],
    than: Annotated[str, typer.Option(help="The estimator it is compared with.")],
    bins: Annotated[int, typer.Option(help="Bins; two are exact, more are simulated.")] = 2,
    counts: Annotated[str, typer.Option(help="Counts to try: 0:100 or 0,1,5,20.")] = "0:100",
    epsilons: Annotated[str, typer.Option(help="Privacy losses to try.")] = "0.1:3.0:0.1",
    noise: Noise = "laplace",
    error_probability: Annotated[
        float, typer.Option(help="Of a simulated counterexample being none.")
    ] = ERROR_PROBABILITY,
    seed: Seed = 0,
    json: options.Json = False,
) -> None:
    """Look for histograms on which one estimator is worse than another."""
    with progress() as tell:
        found = risk_functions.risk_search(
            worse,
            than,
            bins=bins,
            counts=counts,
            epsilons=epsilons,
            noise=noise,
            error_probability=error_probability,
            seed=seed,
            tell=tell,
        )
    if isinstance(found, GridSearch):
        if json:
            print_json(_grid_data(found))
        else:
            _print_grid(found)
    elif json:
        print_json(_finding_data(found))
    else:
        _print_finding(found, worse, than)


def _grid_data(grid: GridSearch) -> dict[str, Any]:
    data: dict[str, Any] = plain(asdict(grid))
    return data | {"top": [plain(asdict(s)) | {"ratio": s.ratio} for s in grid.top]}


def _print_grid(grid: GridSearch) -> None:
    share = grid.counterexamples / grid.points
    out.print(
        f"{grid.worse} is worse than {grid.than} at {grid.counterexamples:,} of {grid.points:,} "
        f"points ({share:.1%})."
    )
    if grid.proof is None:
        return
    out.print("\nThe worst point of each ε, the worst first:")
    print_table(
        ("histogram", "ε", grid.worse, grid.than, "ratio"),
        [
            (
                ", ".join(map(str, spot.histogram)),
                written(spot.epsilon),
                f"{spot.worse:.8g}",
                f"{spot.than:.8g}",
                f"{spot.ratio:.4f}",
            )
            for spot in grid.top[:10]
        ],
    )
    out.print(
        f"\nProven in ball arithmetic: the gap at the first is above {grid.proof.gap_above:g}"
    )


def _finding_data(found: Finding | None) -> dict[str, Any]:
    return {"found": found is not None} | ({} if found is None else plain(asdict(found)))


def _print_finding(found: Finding | None, worse: str, than: str) -> None:
    if found is None:
        out.print(f"No histogram found on which {worse} tests as worse than {than}.")
        return
    out.print(
        f"{worse} is worse than {than} on {', '.join(map(str, found.histogram))} at ε = "
        f"{written(found.epsilon)}: by {found.gap:.4g} ± {found.standard_error:.2g} "
        f"({found.draws:,} pairs of draws; probability of error at most "
        f"{found.error_probability:g})."
    )


def certify_claim(
    claim: Annotated[
        str | None, typer.Argument(help='A claim such as "resized <= identity"; all if left out.')
    ] = None,
    bins: Annotated[int, typer.Option(help="Bins; proofs are for two.")] = 2,
    histogram: Annotated[
        str | None, typer.Option(help="Two whole counts to try as a counterexample first.")
    ] = None,
    epsilon: Annotated[str, typer.Option(help="Privacy loss at that histogram.")] = "1",
    tolerance: Annotated[
        float, typer.Option(help="What a bound by boxes may leave, in units of 1/ε².")
    ] = TOLERANCE,
    boxes: Annotated[int, typer.Option(min=1, help="Boxes to try before giving up.")] = BOXES,
    json: options.Json = False,
) -> None:
    """Prove or refute that one estimator is never worse than another: for all histograms of two
    bins and all ε, under Laplace noise."""
    with progress() as tell:
        verdicts = risk_functions.risk_certify(
            claim,
            bins=bins,
            histogram=histogram,
            epsilon=epsilon,
            tolerance=tolerance,
            boxes=boxes,
            tell=tell,
        )
    if json:
        data = [_verdict_data(verdict) for verdict in verdicts]
        print_json(data if claim is None else data[0])
    elif claim is None:
        _print_matrix(verdicts)
    else:
        _print_verdict(verdicts[0])


def _verdict_data(verdict: Verdict) -> dict[str, Any]:
    shown: dict[str, Any] = plain(asdict(verdict)) | {"claim": str(verdict.claim)}
    shown["left"] = shown["left"][:20]
    return shown | {"boxes_left": len(verdict.left), "epsilon": "all", "bins": 2}


def _print_matrix(verdicts: list[Verdict]) -> None:
    answers = {(v.claim.left, v.claim.right): f"{v.answer}" for v in verdicts}
    print_table(
        ("never worse than →", *PAIRED),
        [(a, *(answers.get((a, b), "–") for b in PAIRED)) for a in PAIRED],
    )
    out.print("")
    for verdict in verdicts:
        _print_verdict(verdict)
    point = proven(EstimatorClaim(left="resized", right="clipped"), (0, 16), Fraction(1, 10))
    if point is not None:
        out.print(
            "\nOpen in Kerrigan 2019, section 3.5: at H = (0, 16), ε = 0.1 resized is worse than "
            f"clipped, by more than {point.gap_above:.6f}: proven above zero. That resized is "
            "never worse than identity: see above."
        )


def _print_verdict(verdict: Verdict) -> None:
    out.print(f"{verdict.claim}: {verdict.answer}", style="bold")
    point = verdict.counterexample
    if point is not None:
        a, b = point.histogram
        out.print(
            f"  At H = ({a}, {b}), ε = {written(point.epsilon)} the risks lie in "
            f"[{point.left[0]:.12g}, {point.left[1]:.12g}] and "
            f"[{point.right[0]:.12g}, {point.right[1]:.12g}].",
            markup=False,
        )
    elif verdict.proof == "signs":
        out.print(
            "  With a, b the counts times ε, the risks differ by\n"
            f"  {verdict.formula}\n  which has no positive term, so the claim holds exactly.",
            markup=False,
        )
    elif verdict.proof == "boxes":
        out.print(
            f"  {verdict.boxes:,} boxes; the gap is at most {verdict.worst:.3g}/ε² everywhere; "
            f"tolerance {verdict.tolerance:g}/ε²."
        )
        for box in verdict.left[:5]:
            (low, high), (near, far) = box
            out.print(
                f"  left: a from {low:g} to {high:g}, b-a from {near:g} to {far:g}", markup=False
            )


def plain(value: Any) -> Any:
    """Results as JSON holds them: rationals as exact text, no infinities."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, Fraction):
        return written(value)
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
