"""countwise verify plan: how likely a verdict is, before anything is spent."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table, progress
from countwise.cli.verify.verify_options import (
    CLAIMS,
    MODELS,
    Alpha,
    Border,
    Family,
    Mechanism,
    Skewness,
    Table,
)
from countwise.front_door.verify import verify_plan_function
from countwise.front_door.verify.verify_plan_function import REHEARSALS, REPETITIONS, VerdictOutlook
from countwise.noise.numbers import written
from countwise.verification.planner import SimulatedPower
from countwise.verification.rules import RULES
from countwise.verification.wording import border_words, lean_words

EXAMPLE = "Example: countwise verify plan --epsilon 0.5,1 --partitions 25,50,100"


def plan(
    epsilon: Annotated[str, typer.Option(help="Privacy losses to compare: 0.5,1,2.")] = "0.5,1,2",
    partitions: Annotated[str, typer.Option(help="Numbers of partitions: 25,50.")] = "25,50,100",
    distance: Annotated[
        str,
        typer.Option(help="Distances from the threshold, in standard errors of the whole data."),
    ] = "2,4,8",
    about: Annotated[
        str,
        typer.Option(
            help="What is that far away: the estimate in the data as they are, or the "
            "coefficient behind data still to be drawn."
        ),
    ] = "estimate",
    mechanism: Mechanism = "lattice",
    alpha: Alpha = "1",
    border: Border = None,
    skewness: Skewness = None,
    errors: Annotated[
        float, typer.Option(help="Share of partitions that will not be fitted.")
    ] = 0.0,
    repetitions: Annotated[int, typer.Option(min=100, max=1_000_000)] = REPETITIONS,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation.")] = 0,
    rehearsal: Annotated[
        str | None,
        typer.Option(
            "--rehearse",
            help="Synthetic rows, to take the chances from instead of a distance; needs "
            "--schema, --model and --claim.",
        ),
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="Public schema of the data.")] = None,
    model: Annotated[str | None, typer.Option(help=MODELS)] = None,
    claim: Annotated[str | None, typer.Option(help=CLAIMS)] = None,
    family: Family = "ols",
    table: Table = None,
    rehearsals: Annotated[
        int, typer.Option(min=1, max=10_000, help="How often the synthetic rows are partitioned.")
    ] = REHEARSALS,
    json: options.Json = False,
) -> None:
    """Show how likely a verdict is at each setting. Reads no confidential data, spends nothing."""
    with progress() as tell:
        outlook = verify_plan_function.verify_plan(
            epsilon=epsilon,
            partitions=partitions,
            distance=distance,
            about=about,
            mechanism=mechanism,
            alpha=alpha,
            border=border,
            skewness=skewness,
            errors=errors,
            repetitions=repetitions,
            seed=seed,
            rehearse=rehearsal,
            schema=schema,
            model=model,
            claim=claim,
            family=family,
            table=table,
            rehearsals=rehearsals,
            tell=tell,
        )
    if json:
        print_json(outlook.to_dict())
        return
    _print_plan(outlook)
    found = border_words(outlook.borders, skewness=outlook.skewness, persons=outlook.persons)
    for line in found:
        out.print(f"\n{line}", markup=False)
    out.print(f"\n{RULES}")


def _print_plan(outlook: VerdictOutlook) -> None:
    powers, synthetic = outlook.powers, outlook.synthetic
    print_table(
        ("ε", "M", "distance", "r", "supported", "contradicted", "not decided"),
        [_row(each, f"{each.distance:g}") for each in powers],
    )
    worst = max(each.simulation_error for each in powers)
    out.print(
        f"\nChances by simulation, standard error at most {worst:.3f}. A distance is in standard "
        "errors of the whole data. Nothing was spent."
    )
    for each in outlook.never:
        out.print(f"ε = {written(each.epsilon)}, M = {each.partitions}: no verdict possible.")
    if synthetic:
        out.print("\nIf the data are like the synthetic rows:\n")
        print_table(
            ("ε", "M", "errors", "r", "supported", "contradicted", "not decided"),
            [_row(each.power, f"{each.power.setting.errors:.0%}") for each in synthetic],
        )
        worst = max(each.power.simulation_error for each in synthetic)
        out.print(f"\nPartitioned anew each time; standard error at most {worst:.3f}.")
    for found in synthetic:
        setting, rehearsal = found.power.setting, found.rehearsal
        chances = ", ".join(f"{name} {share:.0%}" for name, share in rehearsal.verdicts.items())
        out.print(
            f"Rehearsed {rehearsal.repetitions} times from start to end at "
            f"ε = {written(setting.epsilon)}, M = {setting.partitions}: {chances}."
        )
        out.print(lean_words(found.lean, setting), markup=False)


def _row(each: SimulatedPower, third: str) -> tuple[str, ...]:
    return (
        written(each.setting.epsilon),
        str(each.setting.partitions),
        third,
        f"{each.r:.3f}",
        f"{each.supported:.3f}",
        f"{each.contradicted:.3f}",
        f"{each.undecided:.3f}",
    )
