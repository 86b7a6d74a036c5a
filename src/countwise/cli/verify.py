"""countwise verify: does a finding hold in confidential data, without showing the data?"""

import json as json_format
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from typer.core import TyperGroup

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table, progress
from countwise.errors import AnswerError, InputError
from countwise.examples.workers import write_example
from countwise.privacy.epsilon import one_of, written
from countwise.release.folder import refuse_existing, whole
from countwise.reports.verification import answer_page
from countwise.verification.answer import LEVEL, Answer, answer, disagreements, recompute
from countwise.verification.mechanisms import MECHANISMS
from countwise.verification.planner import ABOUT, Power, Rehearsal, Setting, power, rehearse
from countwise.verification.receipt import check_receipt
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
from countwise.verification.verify import STAGES
from countwise.verification.verify import verify as noisy_counts

DATA = "data"
EXAMPLE = (
    'Example: countwise verify data.csv --schema schema.toml --model "hours ~ education_years + '
    'age + C(sex)" --claim "education_years > 1.0" --epsilon 1 --partitions 50'
)
CLAIMS = (
    "What is claimed: x > 1 | 0.5 < x < 2 | x in \\[0, 1] | x within 0.2 of 1.4 | "
    '2*x - C(f)\\[b] > 0 | predict(x = 1, f = "b") > 3 | significant(x > 0, 0.05) | '
    "trend(x over year) > 0 | x cut at 0, 1 | several joined by and."
)
MODELS = (
    "What is fitted: y ~ x + C(f) + a:b + a*b + log(x) + sqrt(x) + poly(x, 2) + x/10, and "
    'perhaps: where age >= 25 and sex = "Female".'
)


class DataFirst(TyperGroup):
    """A group whose first argument may be data instead of one of its commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Anything but a command or a plea for help is about data."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [DATA, *args]
        return list(super().parse_args(ctx, args))


app = typer.Typer(
    cls=DataFirst,
    no_args_is_help=True,
    help="Ask whether a finding holds in confidential data. The answer is a verdict with a "
    "stated privacy loss. countwise verify DATA … is short for countwise verify data DATA …",
    epilog=EXAMPLE,
)

Schema = Annotated[Path, typer.Option("--schema", help="Public schema of the data, TOML.")]
Model = Annotated[str, typer.Option("--model", help=MODELS)]
Claim = Annotated[str, typer.Option("--claim", help=CLAIMS)]
Family = Annotated[str, typer.Option(help="ols, logistic or poisson.")]
Mechanism = Annotated[str, typer.Option(help="lattice, laplace or binary.")]
Alpha = Annotated[
    str, typer.Option(help="Prior: Dirichlet parameters, one for all or one for each outcome.")
]
Table = Annotated[str | None, typer.Option(help="Table, where the data is a DuckDB database.")]
Page = Annotated[Path | None, typer.Option("--page", help="Write a page with the plot here.")]


@app.command(DATA, epilog=EXAMPLE)
def data(
    schema: Schema,
    model: Model,
    claim: Claim,
    epsilon: Annotated[str, typer.Option(help="Privacy loss of the answer: 1, 0.5, 1/3.")],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="DATA", help="Confidential rows: CSV, Parquet or DuckDB."),
    ] = None,
    partitions: Annotated[int, typer.Option(help="M, the number of partitions.")] = 50,
    family: Family = "ols",
    mechanism: Mechanism = "lattice",
    alpha: Alpha = "1",
    table: Table = None,
    rehearsal: Annotated[
        Path | None,
        typer.Option("--rehearse", help="Synthetic rows to use instead of data; spends nothing."),
    ] = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="Write the answer here as JSON.")
    ] = None,
    page: Page = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Fit the model in M partitions, count where the claim holds, and answer with noise."""
    if (file is None) is (rehearsal is None):
        raise InputError("give the data, or synthetic data with --rehearse, and not both.")
    for each in (out_file, page):
        if each is not None:
            refuse_existing(each, overwrite=overwrite)
    request = make_request(
        read_schema(schema),
        model=model,
        claim=claim,
        epsilon=epsilon,
        partitions=partitions,
        family=family,
        mechanism=mechanism,
        alpha=_numbers(alpha, what="alpha"),
    )
    with progress(len(STAGES) + 1) as tell:
        tell("reading")
        records = read_records(
            str(file or rehearsal), request.schema, columns=request.columns, table=table
        )
        noisy = noisy_counts(records, request, tell=tell)
    _give(answer(noisy, request, rehearsal=file is None), out_file, page, overwrite, json)


@app.command("recompute", epilog="Example: countwise verify recompute answer.json")
def recompute_(
    file: Annotated[
        Path, typer.Argument(metavar="ANSWER", help="An answer, or a signed receipt, in JSON.")
    ],
    page: Page = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Compute the posterior of an answer again, from its published fields alone."""
    try:
        stated = json_format.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise AnswerError(f"{file}: there is no such file.") from None
    except (ValueError, RecursionError):
        raise AnswerError(f"{file}: not an answer in JSON.") from None
    if isinstance(stated, dict) and "receipt" in stated:
        _give(check_receipt(stated), None, page, overwrite, json)
        return
    again = recompute(stated)
    different = disagreements(stated, again)
    if different:
        raise AnswerError(
            f"{file}: {', '.join(different)} can not come from its noisy counts. The answer was "
            "changed, or made with other rules."
        )
    _give(again, None, page, overwrite, json)


@app.command(epilog="Example: countwise verify plan --epsilon 0.5,1 --partitions 25,50,100")
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
    errors: Annotated[
        float, typer.Option(help="Share of partitions that will not be fitted.")
    ] = 0.0,
    repetitions: Annotated[int, typer.Option(min=100, max=1_000_000)] = 4000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulation.")] = 0,
    rehearsal: Annotated[
        Path | None,
        typer.Option("--rehearse", help="Synthetic rows; needs --schema, --model and --claim."),
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="Public schema of the data.")] = None,
    model: Annotated[str | None, typer.Option(help=MODELS)] = None,
    claim: Annotated[str | None, typer.Option(help=CLAIMS)] = None,
    family: Family = "ols",
    table: Table = None,
    rehearsals: Annotated[int, typer.Option(min=1, max=10_000)] = 100,
    json: options.Json = False,
) -> None:
    """Show how likely a verdict is at each setting. Reads no confidential data, spends nothing."""
    one_of(mechanism, MECHANISMS, what="mechanism")
    one_of(about, ABOUT, what="about")
    if not 0 <= errors < 1:
        raise InputError(f"errors is a share from 0 up to 1, got {errors:g}.")
    known = read_schema(schema) if schema is not None else None
    prior = checked_alpha(_numbers(alpha, what="alpha"), 2 if mechanism == "binary" else 3)
    settings = [
        Setting(partitions=m, epsilon=e, mechanism=mechanism, alpha=prior, errors=errors)
        for e in map(checked_epsilon, options.names(epsilon))
        for m in map(int, _numbers(partitions, what="partitions"))
    ]
    for each in settings:
        check_partitions(each.partitions, known.persons if known else None)
    hopeful = [each for each in settings if each.hopeful]
    if not hopeful:
        refuse_hopeless(
            partitions=settings[-1].partitions, epsilon=settings[-1].epsilon, alpha=prior
        )
    requests = _requests(hopeful, rehearsal, schema, model, claim, family, alpha)
    distances = _numbers(distance, what="distance")
    rng = np.random.default_rng(seed)
    with progress(len(hopeful) * len(distances) + rehearsals * len(requests)) as tell:
        powers: list[Power] = []
        for each in hopeful:
            for d in distances:
                tell(f"M = {each.partitions}, ε = {written(each.epsilon)}")
                found = power(each, distance=d, repetitions=repetitions, rng=rng, about=about)
                powers.append(found)
        rehearsed = []
        for request in requests:
            records = read_records(
                str(rehearsal), request.schema, columns=request.columns, table=table
            )
            rehearsed.append(rehearse(records, request, repetitions=rehearsals, tell=tell))
    never = [each for each in settings if each not in hopeful]
    if json:
        print_json(
            {
                "rules": RULES,
                "mechanism": mechanism,
                "about": about,
                "power": [_power(each) for each in powers],
                "never": [_setting(each) for each in never],
                "rehearsals": [_rehearsal(*pair) for pair in zip(hopeful, rehearsed, strict=False)],
            }
        )
    else:
        _print_plan(powers, never, list(zip(hopeful, rehearsed, strict=False)))


@app.command(epilog="Example: countwise verify example --out verify-example")
def example(
    folder: Annotated[Path, typer.Option("--out", help="Folder to write.")],
    json: options.Json = False,
) -> None:
    """Write a small made-up data set, its schema and its synthetic twin, to try things on."""
    with whole(folder, overwrite=False) as partial:
        names = write_example(partial)
    if json:
        print_json({name: str(folder / name) for name in names})
        return
    out.print(f"Written to {folder}: {', '.join(names)}. Try:\n")
    out.print(
        f"countwise verify {folder}/workers.csv --schema {folder}/workers.toml "
        '--model "hours ~ education_years + age + C(sex)" --claim "education_years > 0.5" '
        "--epsilon 1",
        markup=False,
        soft_wrap=True,
    )


def _requests(
    settings: list[Setting],
    rehearsal: Path | None,
    schema: Path | None,
    model: str | None,
    claim: str | None,
    family: str,
    alpha: str,
) -> list[Request]:
    if rehearsal is None:
        return []
    if schema is None or model is None or claim is None:
        raise InputError("a rehearsal needs --schema, --model and --claim too.")
    known = read_schema(schema)
    return [
        make_request(
            known,
            model=model,
            claim=claim,
            epsilon=each.epsilon,
            partitions=each.partitions,
            family=family,
            mechanism=each.mechanism,
            alpha=_numbers(alpha, what="alpha"),
        )
        for each in settings
    ]


def _give(
    given: Answer, out_file: Path | None, page: Path | None, overwrite: bool, json: bool
) -> None:
    """Write and print an answer."""
    fields = given.to_dict()
    if out_file is not None:
        with whole(out_file, overwrite=overwrite) as partial:
            text = json_format.dumps(fields, indent=2, ensure_ascii=False)
            partial.write_text(text + "\n", encoding="utf-8")
    if page is not None:
        with whole(page, overwrite=overwrite) as partial:
            partial.write_text(answer_page(given), encoding="utf-8")
    if json:
        print_json(fields)
        return
    if "claim" in given.asked:
        out.print(f"Claim: {given.asked['claim']}", markup=False, soft_wrap=True)
        out.print(f"Model: {given.asked['model']}\n", markup=False, soft_wrap=True)
    for sentence in given.sentences():
        out.print(sentence, markup=False)
    out.print()
    print_table(
        ("outcome", "noisy partitions", "share", f"{LEVEL:.0%} interval"),
        [
            (name, f"{noisy:g}", *_share(given, j))
            for j, (name, noisy) in enumerate(zip(given.outcomes, given.noisy, strict=True))
        ],
    )
    out.print(f"\n{given.privacy}", markup=False)
    out.print(f"\n{given.meaning}", markup=False)
    out.print(f"\n{RULES}", markup=False)
    for each in (out_file, page):
        if each is not None:
            out.print(f"Written: {each}", markup=False)


def _share(given: Answer, j: int) -> tuple[str, str]:
    found = given.shares[j][1] if j in given.fitted else given.posterior.share([j]).summary(LEVEL)
    return f"{found.median:.3f}", f"{found.lower:.3f} to {found.upper:.3f}"


def _print_plan(
    powers: list[Power], never: list[Setting], rehearsed: list[tuple[Setting, Rehearsal]]
) -> None:
    print_table(
        ("ε", "M", "distance", "r", "supported", "contradicted", "not decided"),
        [
            (
                written(each.setting.epsilon),
                str(each.setting.partitions),
                f"{each.distance:g}",
                f"{each.r:.3f}",
                f"{each.supported:.3f}",
                f"{each.contradicted:.3f}",
                f"{each.undecided:.3f}",
            )
            for each in powers
        ],
    )
    worst = max(each.simulation_error for each in powers)
    out.print(f"\nChances by simulation, standard error at most {worst:.3f}. Nothing was spent.")
    for each in never:
        out.print(f"ε = {written(each.epsilon)}, M = {each.partitions}: no verdict possible.")
    for setting, found in rehearsed:
        chances = ", ".join(f"{name} {share:.0%}" for name, share in found.verdicts.items())
        out.print(
            f"Rehearsed {found.repetitions} times on synthetic data at "
            f"ε = {written(setting.epsilon)}, M = {setting.partitions}: {chances}."
        )
    out.print(f"\n{RULES}")


def _setting(each: Setting) -> dict[str, Any]:
    return {"epsilon": written(each.epsilon), "partitions": each.partitions}


def _power(each: Power) -> dict[str, Any]:
    return _setting(each.setting) | {
        "distance": each.distance,
        "r": each.r,
        "supported": each.supported,
        "contradicted": each.contradicted,
        "not_decided": each.undecided,
        "simulation_error": each.simulation_error,
    }


def _rehearsal(setting: Setting, found: Rehearsal) -> dict[str, Any]:
    return _setting(setting) | {
        "repetitions": found.repetitions,
        "verdicts": found.verdicts,
        "last": found.last.to_dict(),
    }


def _numbers(text: str, *, what: str) -> list[float]:
    try:
        found = [float(part) for part in options.names(text)]
    except ValueError:
        found = []
    if not found or not all(np.isfinite(found)):
        raise InputError(f"{what} must be a number or several with commas, got {text!r}.")
    return found
