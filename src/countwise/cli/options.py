"""Options that several commands share, and the plan they add up to."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from countwise.adjust.adjustments import ADJUSTMENTS
from countwise.errors import InputError, PlanError
from countwise.release.aims import without_loss
from countwise.release.plan import DEFAULTS, IMPRINT, Plan, from_dict, read_plan
from countwise.release.wanted import Wanted, read_wanted
from countwise.tables.dialect import PLAIN, Reading, find_dialect
from countwise.tables.domainfile import read_domain_file, read_zeros
from countwise.tables.files import is_text
from countwise.tables.layouts import Layout
from countwise.tables.notation import read_variables
from countwise.toml_files import read_toml

By = Annotated[
    str | None, typer.Option(help="Level columns from outer to inner, such as region,county,race.")
]
Across = Annotated[
    str | None,
    typer.Option(
        help="Variables that cross that of --by: a column (sex), or a name with its levels from "
        "coarse to fine (age: band > year), with commas between them."
    ),
]
Tables = Annotated[
    str | None,
    typer.Option(
        help="Tables to publish of variables that cross: county*age (with its totals), tract:race "
        "(without). Default: every level of --by with up to two others, and the cells. In plan "
        "--unit with targets: county*age: ±20; tract: ±50 (or +-20)."
    ),
]
Epsilon = Annotated[
    str | None,
    typer.Option(
        help="Privacy loss in all (2, 0.5, 1/3), or of each level: total=1,region=0.5,county=0.5."
    ),
]
Rho = Annotated[
    str | None,
    typer.Option(help="Privacy loss of Gaussian noise (zCDP), in all or of each level."),
]
Split = Annotated[
    str | None,
    typer.Option(
        help="How a loss in all is divided: auto (default: for the most accurate counts at every "
        "level), even, relative (equal relative error), or weights: total=1,region=2,county=2."
    ),
]
Neighbours = Annotated[
    str | None,
    typer.Option(help="Who is hidden: add-remove (default) or replace-one."),
]
Rows = Annotated[int | None, typer.Option(help="The most rows one person can have (default 1).")]
Mechanism = Annotated[
    str | None,
    typer.Option(
        help="Noise: auto (default: joint where that is drawn quickly, else geometric; gaussian "
        "for --rho), geometric, laplace, joint (adds up by itself), or gaussian."
    ),
]
Noise = Annotated[str | None, typer.Option(help="Who draws the noise: exact (default) or opendp.")]
Adjust = Annotated[
    str | None, typer.Option(help=f"Adjustment: {', '.join(ADJUSTMENTS)} (default auto).")
]
Pool = Annotated[
    str | None, typer.Option(help="Level whose labels share what bayes learns, such as race.")
]
Total = Annotated[
    str | None,
    typer.Option(
        help="Grand total of mode and draw-1 from its own noisy count (independent) or also the "
        "sum of the noisy parts (summed)."
    ),
]
Ties = Annotated[str | None, typer.Option(help="Who wins a tie: random (published order) or last.")]
Person = Annotated[
    str | None,
    typer.Option(help="Column of the records that says whose a row is; keeps --rows."),
]
Outside = Annotated[
    str | None,
    typer.Option(
        help="Records that are in no cell of the domain: refuse (default), or count them into its "
        "declared other levels (other)."
    ),
]
Exact = Annotated[
    list[str] | None,
    typer.Option(
        help="Counts that are public and released without noise: a level (total, county), labels "
        "(county=Wake,race=Asian), or a CSV of nodes. Repeat."
    ),
]
Zeros = Annotated[
    list[str] | None,
    typer.Option(
        help="Counts that can only be zero: labels (sex=male,pregnant=yes), or a CSV of nodes. "
        "Repeat."
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        help="Who counts the records, as a URL: duckdb://, duckdb://file.duckdb, "
        "postgres://user@host/database, spark, spark://host:7077. Spark also does the other work "
        "of large tables.",
        envvar="COUNTWISE_ENGINE",
        show_envvar=True,
    ),
]
LayoutName = Annotated[
    str,
    typer.Option(
        "--layout",
        help="Layout of the table: long (one row a cell), wide (one column a category of the last "
        "level) or sdmx (SDMX-CSV).",
    ),
]
TotalCode = Annotated[
    str | None,
    typer.Option(
        help="Label of total rows, which are checked and left out: Total, or county=All,race=_T."
    ),
]
NoTotals = Annotated[
    bool,
    typer.Option(
        "--no-totals", help="Labels such as Total or All are cells like the others, not totals."
    ),
]
SumDuplicates = Annotated[
    bool, typer.Option("--sum-duplicates", help="Add up rows of the table that are one cell.")
]
Separator = Annotated[
    str | None,
    typer.Option(help="What separates columns of a text file (default: as its header shows)."),
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Encoding of a text file, such as latin-1 (default: UTF-8 or UTF-16)."),
]
Thousands = Annotated[
    str | None,
    typer.Option(help="What stands between thousands of counts: comma, point, space, apostrophe."),
]
Skip = Annotated[int, typer.Option(min=0, help="Lines above the header, such as titles.")]
Sheet = Annotated[str | None, typer.Option(help="Sheet of a workbook: its name or number.")]
Title = Annotated[str | None, typer.Option(help="Name of the table, for every page.")]
Producer = Annotated[str | None, typer.Option(help="Who publishes it, for every page.")]
Contact = Annotated[str | None, typer.Option(help="Whom to ask, for every page.")]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", help="A plan file; flags given beside it win.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output if it exists.")]

PLAN_WORDS = ("by", "epsilon", "rho", *DEFAULTS, *IMPRINT)


def names(text: str | None) -> tuple[str, ...]:
    """A comma-separated list of names."""
    return tuple(part.strip() for part in text.split(",") if part.strip()) if text else ()


def by_level(text: str | None, *, what: str) -> str | Mapping[str, str] | None:
    """A single word or number, or a value for each level."""
    if text is None or "=" not in text:
        return text
    values: dict[str, str] = {}
    for part in names(text):
        level, _, value = part.partition("=")
        if not level or not value:
            raise PlanError(f"{what} {part!r} must read level=value, as in total=1,county=0.5.")
        if level in values:
            raise PlanError(f"{what} names the level {level!r} twice.")
        values[level] = value
    return values


def make_reading(flags: Mapping[str, Any]) -> Reading:
    """What is said of a file, from a command's flags; those of other things are passed over."""
    return Reading(**{each.name: flags[each.name] for each in fields(Reading)})


def make_layout(
    layout: str,
    total_code: str | None,
    *,
    domain: Path | None,
    by: tuple[str, ...],
    no_totals: bool = False,
    reading: Reading = PLAIN,
) -> Layout:
    """How a table of counts is laid out, from options."""
    totals = by_level(total_code, what="total code") or {}
    declared = None
    if domain is not None and domain.suffix.lower() == ".toml":
        declared = read_domain_file(domain, by=by, no_totals=no_totals)
    return Layout(
        kind=layout,
        totals={"*": totals} if isinstance(totals, str) else totals,
        domain=declared,
        no_totals=no_totals,
        reading=reading,
    )


def how_read(table: Path, layout: Layout, by: Sequence[str]) -> str:
    """What was found out of how a text file is written; empty where it is as in most."""
    if not is_text(table):
        return ""
    return find_dialect(table, layout.reading, by).in_words


def with_zeros_of(domain: Path | None, plan: Plan) -> Plan:
    """The plan with the cells that its domain file says can only be zero."""
    found = () if domain is None else read_zeros(domain, by=plan.columns)
    return replace(plan, zeros=(*plan.zeros, *found)) if found else plan


def make_plan(plan_file: Path | None, flags: Mapping[str, Any]) -> Plan:
    """The plan of a file with a command's flags, as the user wrote them, laid over it.

    Flags that no plan has are passed over, so a command can hand over all it was given. With a
    `unit` among them the loss is still to be found.
    """
    unit = flags.get("unit")
    base: dict[str, Any] = {}
    if plan_file:
        base = _words_of(plan_file) if unit else read_plan(plan_file).to_dict()
    given = {name: flags[name] for name in PLAN_WORDS if flags.get(name) is not None}
    if "by" in given:
        given["by"] = names(given["by"])
    if flags.get("across") is not None:
        given["variables"] = {
            name: {"levels": levels} for name, levels in read_variables(flags["across"]).items()
        }
    if flags.get("tables") is not None:
        given["tables"] = flags["tables"]
    for name in {"epsilon", "rho", "split"} & set(given):
        given[name] = by_level(given[name], what=name)
    if unit:
        words = base | given
        if not words.get("variables"):
            words.pop("tables", None)  # those of a tree are its levels: see targets_of_tree
        return without_loss(words, unit)
    _refuse_targets(given.get("tables", ()))
    if "epsilon" in given or "rho" in given:
        base.pop("epsilon", None)
        base.pop("rho", None)
    data = base | given
    if "epsilon" not in data and "rho" not in data:
        raise PlanError("no epsilon given. To fix, add --epsilon 1 (the privacy loss in all).")
    return from_dict(data)


def targets_of_tree(plan_file: Path | None, tables: str | None) -> tuple[Wanted, ...]:
    """The levels of a tree that have targets, as the command line or a plan file states them."""
    if tables is not None:
        return read_wanted(tables)
    return read_wanted(_words_of(plan_file).get("tables", ()) if plan_file else ())


def _words_of(plan_file: Path) -> dict[str, Any]:
    """What a file says of a plan that may still lack its loss."""
    return read_toml(plan_file, what="plan", error=PlanError)


def _refuse_targets(tables: str | Sequence[Any]) -> None:
    """Targets are met by the loss they need, not by one that is given."""
    if any(each.within is not None for each in read_wanted(tables)):
        raise PlanError(
            "--tables has targets (±), and they are what a loss is found for. To fix, find it with "
            "countwise plan … --unit rho (or epsilon) --out plan.toml, without --rho and "
            "--epsilon, and release with --plan plan.toml; or leave the targets out."
        )


def whole_numbers(text: str, *, what: str) -> list[int]:
    """Whole numbers in a list such as 250,357."""
    try:
        return [int(part) for part in names(text)]
    except ValueError:
        raise InputError(f"{what} must be whole numbers such as 250,357, got {text!r}.") from None
