"""countwise verify plan: how likely a verdict is, before anything is spent."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from countwise.choices import one_of
from countwise.cli import options
from countwise.cli.console import out, print_json, print_table, progress
from countwise.cli.verify_options import (
    CLAIMS,
    MODELS,
    Alpha,
    Border,
    Family,
    Mechanism,
    Skewness,
    Table,
    numbers,
    whole_numbers,
)
from countwise.errors import InputError
from countwise.noise.numbers import written
from countwise.verification.border import SYMMETRIC, stated_border
from countwise.verification.outcome_noise import MECHANISMS
from countwise.verification.planner import (
    ABOUT,
    RepeatedVerdicts,
    Setting,
    SimulatedPower,
    power,
    rehearse,
    synthetic_power,
)
from countwise.verification.question import Question
from countwise.verification.records import read_records
from countwise.verification.request import (
    Request,
    check_partitions,
    checked_alpha,
    checked_epsilon,
    make_request,
)
from countwise.verification.rules import RULES, refuse_hopeless
from countwise.verification.schema import read_schema
from countwise.verification.wording import border_words, lean_words

EXAMPLE = "Example: countwise verify plan --epsilon 0.5,1 --partitions 25,50,100"


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """What synthetic rows say: the chances of the verdicts, and some whole rehearsals.

    `lean` is the least share of partitions in which a claim at its threshold holds, or fails.
    """

    power: SimulatedPower
    lean: float | None
    rehearsal: RepeatedVerdicts


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
    repetitions: Annotated[int, typer.Option(min=100, max=1_000_000)] = 4000,
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
    ] = 100,
    json: options.Json = False,
) -> None:
    """Show how likely a verdict is at each setting. Reads no confidential data, spends nothing."""
    one_of(mechanism, MECHANISMS, what="mechanism")
    one_of(about, ABOUT, what="about")
    if not 0 <= errors < 1:
        raise InputError(f"errors is a share from 0 up to 1, got {errors:g}.")
    known = read_schema(schema) if schema is not None else None
    prior = checked_alpha(numbers(alpha, what="alpha"), 2 if mechanism == "binary" else 3)
    persons = known.persons if known else None
    if border is None and skewness is None and known is not None:
        skewness = known.skewness
    borders = {
        m: stated_border(border, skewness, persons=persons, partitions=m)
        for m in whole_numbers(partitions, what="partitions")
    }
    settings = [
        Setting(
            partitions=m,
            epsilon=e,
            mechanism=mechanism,
            alpha=prior,
            errors=errors,
            border=SYMMETRIC if b is None else b,
        )
        for e in map(checked_epsilon, options.names(epsilon))
        for m, b in borders.items()
    ]
    for m in borders:
        check_partitions(m, persons)
    hopeful = [each for each in settings if each.hopeful]
    if not hopeful:
        refuse_hopeless(
            partitions=settings[-1].partitions, epsilon=settings[-1].epsilon, alpha=prior
        )
    requests = _requests(hopeful, rehearsal, schema, model, claim, family, alpha, borders)
    distances = numbers(distance, what="distance")
    rng = np.random.default_rng(seed)
    with progress(len(hopeful) * len(distances) + 2 * rehearsals * len(requests)) as tell:
        powers: list[SimulatedPower] = []
        for setting in hopeful:
            for d in distances:
                tell(f"M = {setting.partitions}, ε = {written(setting.epsilon)}")
                found = power(setting, distance=d, repetitions=repetitions, rng=rng, about=about)
                powers.append(found)
        synthetic: list[Synthetic] = []
        if rehearsal is not None:
            first = requests[0]
            records = read_records(
                rehearsal, first.schema, columns=first.columns, table=table, synthetic=True
            )
            for each in requests:
                chances, lean = synthetic_power(
                    records, each, repetitions=rehearsals, rng=rng, tell=tell
                )
                asked = replace(each, border=chances.setting.border)
                whole = rehearse(records, asked, repetitions=rehearsals, tell=tell)
                synthetic.append(Synthetic(power=chances, lean=lean, rehearsal=whole))
    never = [each for each in settings if each not in hopeful]
    if json:
        print_json(
            {
                "rules": RULES,
                "mechanism": mechanism,
                "about": about,
                "power": [_chances(each) | {"distance": each.distance} for each in powers],
                "never": [_setting(each) for each in never],
                "borders": [{"partitions": m, "border": b} for m, b in borders.items()],
                "rehearsals": [_synthetic(each) for each in synthetic],
            }
        )
    else:
        _print_plan(powers, never, synthetic)
        for line in border_words(borders, skewness=skewness, persons=persons):
            out.print(f"\n{line}", markup=False)
        out.print(f"\n{RULES}")


def _requests(
    settings: list[Setting],
    rehearsal: str | None,
    schema: Path | None,
    model: str | None,
    claim: str | None,
    family: str,
    alpha: str,
    borders: Mapping[int, float | None],
) -> list[Request]:
    if rehearsal is None:
        return []
    if schema is None or model is None or claim is None:
        raise InputError("a rehearsal needs --schema, --model and --claim too.")
    known = read_schema(schema)
    return [
        make_request(
            known,
            Question(
                model=model,
                claim=claim,
                epsilon=setting.epsilon,
                partitions=setting.partitions,
                family=family,
                mechanism=setting.mechanism,
                alpha=numbers(alpha, what="alpha"),
            ),
            border=borders[setting.partitions],
        )
        for setting in settings
    ]


def _print_plan(
    powers: list[SimulatedPower], never: list[Setting], synthetic: list[Synthetic]
) -> None:
    print_table(
        ("ε", "M", "distance", "r", "supported", "contradicted", "not decided"),
        [_row(each, f"{each.distance:g}") for each in powers],
    )
    worst = max(each.simulation_error for each in powers)
    out.print(
        f"\nChances by simulation, standard error at most {worst:.3f}. A distance is in standard "
        "errors of the whole data. Nothing was spent."
    )
    for each in never:
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


def _setting(each: Setting) -> dict[str, Any]:
    return {"epsilon": written(each.epsilon), "partitions": each.partitions}


def _chances(each: SimulatedPower) -> dict[str, Any]:
    return _setting(each.setting) | {
        "r": each.r,
        "supported": each.supported,
        "contradicted": each.contradicted,
        "not_decided": each.undecided,
        "simulation_error": each.simulation_error,
    }


def _synthetic(each: Synthetic) -> dict[str, Any]:
    return _chances(each.power) | {
        "errors": each.power.setting.errors,
        "lean": each.lean,
        "border": each.power.setting.border,
        "repetitions": each.rehearsal.repetitions,
        "verdicts": each.rehearsal.verdicts,
        "last": each.rehearsal.last.to_dict(),
    }
