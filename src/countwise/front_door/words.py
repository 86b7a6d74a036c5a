"""The words of plans and of files that several commands and functions take, each said once."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import wraps
from pathlib import Path
from typing import Any, TypedDict, TypeVar, cast, get_args, get_type_hints

from countwise.errors import PlanError
from countwise.noise.numbers import Number
from countwise.release.aims import without_loss
from countwise.release.plan import DEFAULTS, IMPRINT, Plan, from_dict, read_plan
from countwise.release.wanted import Wanted, read_wanted
from countwise.tables.dialect import PLAIN, Reading, find_dialect
from countwise.tables.domainfile import read_domain_file, read_zeros
from countwise.tables.files import is_text
from countwise.tables.layouts import Layout
from countwise.tables.notation import read_variables
from countwise.toml_files import read_toml

PathLike = str | Path
PLAN_WORDS = ("by", "epsilon", "rho", *DEFAULTS, *IMPRINT)
Function = TypeVar("Function", bound=Callable[..., Any])


class PlanWords(TypedDict, total=False):
    """What a plan says; a list may be text with commas, and numbers by level `total=1,county=2`."""

    by: str | Sequence[str] | None
    epsilon: Number | Mapping[str, Number] | None
    rho: Number | Mapping[str, Number] | None
    split: str | Mapping[str, Number] | None
    neighbours: str | None
    rows: int | None
    mechanism: str | None
    pool: str | None
    total: str | None
    ties: str | None
    exact: str | Sequence[Any] | None
    zeros: str | Sequence[Any] | None


class TreeWords(PlanWords, total=False):
    """What the plan of a release of one tree says besides: who draws, and what adjusts."""

    noise: str | None
    adjust: str | None


class ReleaseWords(TreeWords, total=False):
    """What the plan of any release says: which tables cross, and whose the rows are."""

    across: str | Mapping[str, Sequence[str]] | None
    tables: str | Sequence[Any] | None
    title: str | None
    producer: str | None
    contact: str | None
    person: str | None
    outside: str | None


class FileWords(TypedDict, total=False):
    """How a table of counts is laid out, and its file written."""

    layout: str
    total_code: str | Mapping[str, str] | None
    no_totals: bool
    separator: str | None
    encoding: str | None
    thousands: str | None
    skip: int
    sheet: str | None


class ReleaseAndFileWords(ReleaseWords, FileWords, total=False):
    """All of both."""


def spelled_out(function: Function) -> Function:
    """A function whose `**words` are listed one by one in its signature, and others refused."""
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.name != "words"]
    known = get_type_hints(get_args(get_type_hints(function)["words"])[0])
    words = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in known.items()
    ]
    spelled = signature.replace(parameters=[*own, *words])

    @wraps(function)
    def checked(*arguments: Any, **given: Any) -> Any:
        spelled.bind(*arguments, **given)
        return function(*arguments, **given)

    vars(checked)["__signature__"] = spelled
    return cast(Function, checked)


def names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Names in a list, which may be a text with commas."""
    if given is None:
        return ()
    if not isinstance(given, str):
        return tuple(given)
    return tuple(part.strip() for part in given.split(",") if part.strip())


def by_level(given: Any, *, what: str) -> Any:
    """A single word or number, or a value for each level, which may be a text `level=value`."""
    if not isinstance(given, str) or "=" not in given:
        return given
    values: dict[str, str] = {}
    for part in names(given):
        level, _, value = part.partition("=")
        if not level or not value:
            raise PlanError(f"{what} {part!r} must read level=value, as in total=1,county=0.5.")
        if level in values:
            raise PlanError(f"{what} names the level {level!r} twice.")
        values[level] = value
    return values


def make_plan(
    plan: Plan | PathLike | None, words: Mapping[str, Any], *, unit: str | None = None
) -> Plan:
    """A plan, or that of a file, with words laid over it; words of other things are passed over.

    With a `unit` the loss is still to be found.
    """
    given = {name: words[name] for name in PLAN_WORDS if words.get(name) is not None}
    if "by" in given:
        given["by"] = names(given["by"])
    if words.get("across") is not None:
        given["variables"] = {
            name: {"levels": levels} for name, levels in read_variables(words["across"]).items()
        }
    if words.get("tables") is not None:
        given["tables"] = words["tables"]
    if isinstance(plan, Plan) and not given and unit is None:
        return plan
    for name in {"epsilon", "rho", "split"} & set(given):
        given[name] = by_level(given[name], what=name)
    base = _base(plan, unit=unit)
    if unit:
        data = base | given
        if not data.get("variables"):
            data.pop("tables", None)  # those of a tree are its levels: see targets_of_tree
        return without_loss(data, unit)
    _refuse_targets(given.get("tables", ()))
    if "epsilon" in given or "rho" in given:
        base.pop("epsilon", None)
        base.pop("rho", None)
    data = base | given
    if "epsilon" not in data and "rho" not in data:
        raise PlanError("no epsilon given. To fix, add --epsilon 1 (the privacy loss in all).")
    return from_dict(data)


def targets_of_tree(plan: Plan | PathLike | None, tables: Any) -> tuple[Wanted, ...]:
    """The levels of a tree that have targets, as words or a plan file state them."""
    if tables is not None:
        return read_wanted(tables)
    return read_wanted(_base(plan, unit="rho").get("tables", ()))


def _base(plan: Plan | PathLike | None, *, unit: str | None) -> dict[str, Any]:
    """The words of a plan, or of a file that, where a unit is asked for, may lack its loss."""
    if plan is None:
        return {}
    if isinstance(plan, Plan):
        return plan.to_dict()
    if unit:
        return read_toml(Path(plan), what="plan", error=PlanError)
    return read_plan(plan).to_dict()


def _refuse_targets(tables: str | Sequence[Any]) -> None:
    """Targets are met by the loss they need, not by one that is given."""
    if any(each.within is not None for each in read_wanted(tables)):
        raise PlanError(
            "--tables has targets (±), and they are what a loss is found for. To fix, find it with "
            "countwise plan … --unit rho (or epsilon) --out plan.toml, without --rho and "
            "--epsilon, and release with --plan plan.toml; or leave the targets out."
        )


def with_zeros_of(domain: Path | None, plan: Plan) -> Plan:
    """The plan with the cells that its domain file says can only be zero."""
    found = () if domain is None else read_zeros(domain, by=plan.columns)
    return replace(plan, zeros=(*plan.zeros, *found)) if found else plan


def make_reading(words: Mapping[str, Any]) -> Reading:
    """What is said of a file; words of other things are passed over."""
    known = {each.name: words.get(each.name) for each in fields(Reading)}
    return Reading(**{name: each for name, each in known.items() if each is not None})


def make_layout(
    words: Mapping[str, Any], *, domain: Path | None = None, by: tuple[str, ...] = ()
) -> Layout:
    """How a table of counts is laid out; words of other things are passed over."""
    no_totals = bool(words.get("no_totals"))
    totals = by_level(words.get("total_code"), what="total code") or {}
    declared = None
    if domain is not None and domain.suffix.lower() == ".toml":
        declared = read_domain_file(domain, by=by, no_totals=no_totals)
    return Layout(
        kind=words.get("layout") or "long",
        totals={"*": totals} if isinstance(totals, str) else totals,
        domain=declared,
        no_totals=no_totals,
        reading=make_reading(words),
    )


def is_plain(words: Mapping[str, Any]) -> bool:
    """Whether a file is as a program writes it: one row a cell, and nothing to be said of it."""
    said = (words.get("layout") or "long", words.get("total_code"))
    return said == ("long", None) and make_reading(words) == PLAIN


def how_read(table: Path, layout: Layout, by: Sequence[str]) -> str:
    """What was found out of how a text file is written; empty where it is as in most."""
    if not is_text(table):
        return ""
    return find_dialect(table, layout.reading, by).in_words


def as_list(given: str | Number | Sequence[Number]) -> str:
    """A list of numbers as a person writes it, with commas."""
    if isinstance(given, Number):
        return str(given)
    return ",".join(map(str, given))
