"""How likely a verdict is, before anything is spent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from countwise.choices import one_of
from countwise.errors import InputError
from countwise.front_door.verify.verify_functions import numbers, whole_list
from countwise.front_door.words import PathLike, as_list, names
from countwise.noise.numbers import Number, written
from countwise.progress import Tell, counted, silent
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
from countwise.verification.schema import Schema, read_schema

REPETITIONS = 4000
"""Simulated answers: chances of verdicts are then known to one point of 100."""
REHEARSALS = 100
"""How often synthetic rows are partitioned: each takes as long as an answer."""


@dataclass(frozen=True, kw_only=True)
class SyntheticOutlook:
    """What synthetic rows say: the chances of the verdicts, and some whole rehearsals.

    `lean` is the least share of partitions in which a claim at its threshold holds, or fails.
    """

    power: SimulatedPower
    lean: float | None
    rehearsal: RepeatedVerdicts

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return _chances(self.power) | {
            "errors": self.power.setting.errors,
            "lean": self.lean,
            "border": self.power.setting.border,
            "repetitions": self.rehearsal.repetitions,
            "verdicts": self.rehearsal.verdicts,
            "last": self.rehearsal.last.to_dict(),
        }


@dataclass(frozen=True, kw_only=True)
class VerdictOutlook:
    """The chances of the verdicts at every setting, and the settings at which there is none.

    `borders` are what verdicts rely on, by the number of partitions; they come from a `skewness`
    and the number of `persons`, where those were stated.
    """

    mechanism: str
    about: str
    powers: Sequence[SimulatedPower]
    never: Sequence[Setting]
    borders: Mapping[int, float | None]
    synthetic: Sequence[SyntheticOutlook]
    skewness: float | None
    persons: int | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "rules": RULES,
            "mechanism": self.mechanism,
            "about": self.about,
            "power": [_chances(each) | {"distance": each.distance} for each in self.powers],
            "never": [_setting(each) for each in self.never],
            "borders": [{"partitions": m, "border": b} for m, b in self.borders.items()],
            "rehearsals": [each.to_dict() for each in self.synthetic],
        }


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


def verify_plan(
    *,
    epsilon: str | Number | Sequence[Number] = "0.5,1,2",
    partitions: str | int | Sequence[int] = "25,50,100",
    distance: str | float | Sequence[float] = "2,4,8",
    about: str = "estimate",
    mechanism: str = "lattice",
    alpha: str | float | Sequence[float] = 1,
    border: float | None = None,
    skewness: float | None = None,
    errors: float = 0.0,
    repetitions: int = REPETITIONS,
    seed: int = 0,
    rehearse: PathLike | None = None,
    schema: PathLike | None = None,
    model: str | None = None,
    claim: str | None = None,
    family: str = "ols",
    table: str | None = None,
    rehearsals: int = REHEARSALS,
    tell: Tell = silent,
) -> VerdictOutlook:
    """How likely a verdict is at each setting. Reads no confidential data, spends nothing.

    A `distance` is that of an `estimate`, or of a `coefficient`, from the threshold of a claim, in
    standard errors of the whole data. Synthetic rows to `rehearse` on show the chances if the data
    are like them; that takes a `schema`, a `model` and a `claim`.
    """
    one_of(mechanism, MECHANISMS, what="mechanism")
    one_of(about, ABOUT, what="about")
    if not 0 <= errors < 1:
        raise InputError(f"errors is a share from 0 up to 1, got {errors:g}.")
    known = read_schema(Path(schema)) if schema is not None else None
    prior = checked_alpha(numbers(alpha, what="alpha"), 2 if mechanism == "binary" else 3)
    persons = known.persons if known else None
    if border is None and skewness is None and known is not None:
        skewness = known.skewness
    borders = {
        m: stated_border(border, skewness, persons=persons, partitions=m)
        for m in whole_list(partitions, what="partitions")
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
        for e in map(checked_epsilon, names(as_list(epsilon)))
        for m, b in borders.items()
    ]
    for m in borders:
        check_partitions(m, persons)
    hopeful = [each for each in settings if each.hopeful]
    if not hopeful:
        refuse_hopeless(
            partitions=settings[-1].partitions, epsilon=settings[-1].epsilon, alpha=prior
        )
    requests: list[Request] = []
    if rehearse is not None:
        if known is None or model is None or claim is None:
            raise InputError("a rehearsal needs --schema, --model and --claim too.")
        question = Question(
            model=model,
            claim=claim,
            epsilon=1,
            family=family,
            mechanism=mechanism,
            alpha=numbers(alpha, what="alpha"),
        )
        requests = [_request(known, question, each, borders) for each in hopeful]
    distances, rng = numbers(distance, what="distance"), np.random.default_rng(seed)
    tell = counted(tell, len(hopeful) * len(distances) + 2 * rehearsals * len(requests))
    powers: list[SimulatedPower] = []
    for setting in hopeful:
        for d in distances:
            tell(f"M = {setting.partitions}, ε = {written(setting.epsilon)}")
            found = power(setting, distance=d, repetitions=repetitions, rng=rng, about=about)
            powers.append(found)
    return VerdictOutlook(
        mechanism=mechanism,
        about=about,
        powers=powers,
        never=[each for each in settings if each not in hopeful],
        borders=borders,
        synthetic=_rehearsed(requests, rehearse, table, rehearsals, rng, tell),
        skewness=skewness,
        persons=persons,
    )


def _request(
    schema: Schema, question: Question, setting: Setting, borders: Mapping[int, float | None]
) -> Request:
    """The question at a setting, and the border that goes with it."""
    asked = replace(question, epsilon=setting.epsilon, partitions=setting.partitions)
    return make_request(schema, asked, border=borders[setting.partitions])


def _rehearsed(
    requests: Sequence[Request],
    rows: PathLike | None,
    table: str | None,
    rehearsals: int,
    rng: np.random.Generator,
    tell: Tell,
) -> list[SyntheticOutlook]:
    """Every request on synthetic rows: its chances, and the whole of it from start to end."""
    if not requests:
        return []
    first = requests[0]
    records = read_records(
        str(rows), first.schema, columns=first.columns, table=table, synthetic=True
    )
    found = []
    for each in requests:
        chances, lean = synthetic_power(records, each, repetitions=rehearsals, rng=rng, tell=tell)
        asked = replace(each, border=chances.setting.border)
        whole = rehearse(records, asked, repetitions=rehearsals, tell=tell)
        found.append(SyntheticOutlook(power=chances, lean=lean, rehearsal=whole))
    return found
