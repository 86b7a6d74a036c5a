"""countwise audit: checks a user can run on their own machine."""

from typing import Annotated

import typer

from countwise.choices import one_of
from countwise.cli import audit_release, options
from countwise.cli.console import out, print_json, print_table, progress
from countwise.noise.audit import SCALES, audit
from countwise.noise.laws import DiscreteGaussian, Geometric, RoundedLaplace
from countwise.noise.numbers import written
from countwise.release.measure import SAMPLERS

EXAMPLE = "Example: countwise audit noise --draws 1000000"

app = typer.Typer(no_args_is_help=True, help="Checks to run on your own machine.")

app.command("release", epilog=audit_release.EXAMPLE)(audit_release.release)

KINDS = {kind.name: kind for kind in (Geometric, RoundedLaplace, DiscreteGaussian)}


@app.command("noise", epilog=EXAMPLE)
def noise(
    law: Annotated[str, typer.Option(help=f"all, {', '.join(KINDS)}.")] = "all",
    sampler: Annotated[str, typer.Option("--noise", help="exact or opendp.")] = "exact",
    draws: Annotated[int, typer.Option(min=100_000, help="Draws at each scale.")] = 200_000,
    json: options.Json = False,
) -> None:
    """Test that the noise drawn here has the law it should have, scale by scale."""
    one_of(law, ("all", *KINDS), what="law")
    one_of(sampler, SAMPLERS, what="noise")
    kinds = tuple(KINDS.values()) if law == "all" else (KINDS[law],)
    verdicts = []
    with progress(len(kinds) * len(SCALES)) as tell:
        for verdict in audit(kinds, sampler=SAMPLERS[sampler], draws=draws):
            verdicts.append(verdict)
            tell(f"{verdict.law.name} at scale {verdict.law.scale}")
    passed = all(verdict.passed for verdict in verdicts)
    if json:
        print_json(
            [
                {
                    "law": each.law.name,
                    "scale": written(each.law.scale),
                    "p_true": each.p_true,
                    "p_wrong": list(each.p_wrong),
                    "passed": each.passed,
                }
                for each in verdicts
            ]
        )
    else:
        print_table(
            ("law", "scale", "fits, p", "fits 0.9×, p", "fits 1.1×, p", "verdict"),
            [
                (
                    each.law.name,
                    written(each.law.scale),
                    f"{each.p_true:.3f}",
                    *(f"{p:.0e}" for p in each.p_wrong),
                    "pass" if each.passed else "FAIL",
                )
                for each in verdicts
            ],
        )
        out.print(
            "\nThe noise is what it should be."
            if passed
            else "\nThe noise is NOT what it should be: do not release from this machine."
        )
    if not passed:
        raise typer.Exit(1)
