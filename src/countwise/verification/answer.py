"""The answer to a request: noisy counts, the posterior they imply, a verdict, and words.

Everything here is computed from published fields, so anyone can compute it again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from math import sqrt
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtri

from countwise.arrays import FloatArray, frozen
from countwise.choices import one_of
from countwise.errors import AnswerError
from countwise.ledger.prices import Charge
from countwise.noise.numbers import exact, written
from countwise.pages.notebook import Framed, Picture
from countwise.verification import outcome_noise, wording
from countwise.verification.border import SYMMETRIC, checked_border, skewness_of
from countwise.verification.claims import ERROR, FAILS, HOLDS
from countwise.verification.proportion_posterior import BetaMixture, ProportionPosterior, Summary
from countwise.verification.request import Request, checked_alpha, checked_epsilon
from countwise.verification.rules import MOSTLY_FAILS, MOSTLY_HOLDS, RULES, SURE, verdict
from countwise.verification.share_chart import share_chart
from countwise.verification.wording import LEVEL

FORMAT = 2  # 1 had no border, and read every r about one half


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Answer(Framed):
    """Noisy counts of outcomes with the public facts needed to read them.

    `border` is what a verdict about the whole data relies on, `persons` how many are in the data,
    where these are public.
    """

    noisy: FloatArray
    outcomes: tuple[str, ...]
    epsilon: Fraction
    partitions: int
    alpha: FloatArray
    mechanism: str
    asked: Mapping[str, Any]
    one_sided: bool = False
    rehearsal: bool = False
    border: float | None = None
    persons: int | None = None
    charge: Charge | None = None
    """What a ledger was charged for it, where that was done with it."""

    def __repr__(self) -> str:
        asked = self.asked.get("claim", "")
        return f"Answer({asked!r}: {self.verdict}; ε = {written(self.epsilon)}; see .sentences())"

    def to_polars(self) -> pl.DataFrame:
        """One row an outcome: noisy count, and the median and interval of its share."""
        rows = [
            (name, float(noisy), found.median, found.lower, found.upper)
            for name, noisy, found in zip(self.outcomes, self.noisy, self.summaries, strict=True)
        ]
        names = ["outcome", "noisy", "median", "lower", "upper"]
        return pl.DataFrame(rows, schema=names, orient="row")

    def plot(self) -> Picture:
        """The density of r, the share of partitions where the claim holds, with its interval."""
        law, summary = self.shares[self.leading]
        title = f"Share of partitions: {self.outcomes[self.leading]}"
        return Picture(share_chart(law, summary, title=title), title=title, height=430)

    @property
    def summaries(self) -> list[Summary]:
        """Of each outcome's share: among those that are not errors, of errors among all."""
        whole = self.posterior.share
        return [
            self.shares[j][1] if j in self.fitted else whole([j]).summary(LEVEL)
            for j in range(len(self.outcomes))
        ]

    @cached_property
    def posterior(self) -> ProportionPosterior:
        """The posterior of the outcomes' proportions."""
        return ProportionPosterior(
            noisy=self.noisy, partitions=self.partitions, epsilon=self.epsilon, alpha=self.alpha
        )

    @property
    def fitted(self) -> range:
        """The outcomes that are not errors."""
        errors = self.outcomes[-1] == ERROR
        return range(len(self.outcomes) - errors)

    @cached_property
    def shares(self) -> tuple[tuple[BetaMixture, Summary], ...]:
        """Each outcome's share among those that are not errors."""
        laws = (self.posterior.share([j], self.fitted) for j in self.fitted)
        return tuple((law, law.summary(LEVEL)) for law in laws)

    @property
    def leading(self) -> int:
        """The outcome r is about: `holds`, or of several ranges the likeliest majority."""
        if len(self.fitted) == 2:
            return 0
        return int(np.argmax([summary.median for _, summary in self.shares]))

    @property
    def r(self) -> Summary:
        """The summary of r."""
        return self.shares[self.leading][1]

    @cached_property
    def error_rate(self) -> float | None:
        """The posterior median of the share of partitions that can not be fitted."""
        if len(self.fitted) == len(self.outcomes):
            return None
        return self.posterior.share([len(self.outcomes) - 1]).summary(LEVEL).median

    @property
    def verdict(self) -> str:
        """By the rules, from the posterior alone."""
        law = self.shares[self.leading][0]
        return verdict(law.above, self.error_rate, one_sided=self.one_sided, border=self.border)

    @cached_property
    def needed_border(self) -> float | None:
        """The largest border at which r is sure to be beyond it, for an r on one side of 1/2."""
        law = self.shares[self.leading][0]
        if self.verdict == MOSTLY_HOLDS:
            return 1 - law.quantile(1 - SURE)
        return law.quantile(SURE) if self.verdict == MOSTLY_FAILS else None

    @property
    def needed_skewness(self) -> float | None:
        """The skewness of what a person adds up to which there would be a verdict on the whole."""
        if self.needed_border is None or self.persons is None:
            return None
        return skewness_of(self.needed_border, persons=self.persons, partitions=self.partitions)

    def relying_on(self, border: float) -> "Answer":
        """The same noisy counts, read with another border."""
        return replace(self, border=checked_border(border))

    def distance(self, share: float) -> float:
        """A share as a distance from the threshold in standard errors of the whole data."""
        return sqrt(self.partitions) * float(ndtri(share))

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data; the names do not change their meaning."""
        r = self.r
        whole = self.mechanism != "laplace"
        data: dict[str, Any] = {
            "format": FORMAT,
            **self.asked,
            "outcomes": list(self.outcomes),
            "noisy": [int(each) if whole else float(each) for each in self.noisy],
            "epsilon": written(self.epsilon),
            "partitions": self.partitions,
            "alpha": [float(each) for each in self.alpha],
            "mechanism": self.mechanism,
            "r": {"mode": r.mode, "median": r.median, "lower": r.lower, "upper": r.upper},
            "r_of": self.outcomes[self.leading],
            "interval": LEVEL,
            "pr_above_half": r.above_half,
            "error_rate": self.error_rate,
            "verdict": self.verdict,
            "one_sided": self.one_sided,
            "border": self.border,
            "persons": self.persons,
            "distance_in_standard_errors": self._distances(),
            "rules": RULES,
            "meaning": self.meaning,
            "privacy": self.privacy,
            "rehearsal": self.rehearsal,
            "version": version("countwise"),
        }
        if len(self.fitted) > 2:
            data["shares"] = [
                {"outcome": self.outcomes[j], **vars(summary)}
                for j, (_, summary) in zip(self.fitted, self.shares, strict=True)
            ]
        return data

    def _distances(self) -> dict[str, float] | None:
        if not self.one_sided:
            return None
        r = self.r
        return {
            name: self.distance(value)
            for name, value in (("median", r.median), ("lower", r.lower), ("upper", r.upper))
        }

    @property
    def meaning(self) -> str:
        """What r is, and is not."""
        return wording.meaning(self)

    @property
    def privacy(self) -> str:
        """What was spent, in a sentence."""
        return wording.privacy(self)

    def sentences(self) -> list[str]:
        """The answer in words."""
        return wording.sentences(self)


def answer(noisy: FloatArray, request: Request, *, rehearsal: bool = False) -> Answer:
    """The answer that noisy counts give to a request."""
    return Answer(
        noisy=noisy,
        outcomes=outcome_noise.outcomes(request.claim.outcomes, mechanism=request.mechanism),
        epsilon=request.epsilon,
        partitions=request.partitions,
        alpha=request.alpha,
        mechanism=request.mechanism,
        asked={
            "model": request.model.text,
            "family": request.family,
            "claim": request.claim.text,
        },
        one_sided=request.claim.one_sided,
        rehearsal=rehearsal,
        border=request.border,
        persons=request.schema.persons,
    )


def reading_of(request: Request) -> dict[str, Any]:
    """What a request's noisy counts mean; with them and what was asked, `recompute` answers."""
    return {
        "outcomes": list(
            outcome_noise.outcomes(request.claim.outcomes, mechanism=request.mechanism)
        ),
        "one_sided": request.claim.one_sided,
        "alpha": request.alpha.tolist(),
        "border": request.border,
        "persons": request.schema.persons,
    }


def recompute(data: Any) -> Answer:
    """The answer that the published fields of another imply; its summaries are not read.

    An answer of format 1 took every estimate as symmetric, and is read so.
    """
    if not isinstance(data, Mapping):
        raise AnswerError("an answer must be a JSON object.")
    for key in ("noisy", "epsilon", "partitions", "alpha", "mechanism"):
        if key not in data:
            raise AnswerError(f"the answer has no field {key!r}.")
    noisy, partitions = data["noisy"], data["partitions"]
    if not _numbers(noisy) or not _numbers(data["alpha"]) or not 2 <= len(noisy) <= 64:
        raise AnswerError("noisy and alpha must be lists of numbers, one for each outcome.")
    if not isinstance(partitions, int) or not 2 <= partitions <= 10_000:
        raise AnswerError("partitions must be a whole number from 2 to 10,000.")
    mechanism = one_of(
        str(data["mechanism"]), outcome_noise.MECHANISMS, what="mechanism", error=AnswerError
    )
    names = data.get("outcomes") or [HOLDS, FAILS, ERROR][: len(noisy)]
    if not isinstance(names, list) or len(names) != len(noisy):
        raise AnswerError("outcomes must name each of the noisy counts.")
    return Answer(
        noisy=frozen(np.array(noisy, dtype=np.float64)),
        outcomes=tuple(map(str, names)),
        epsilon=checked_epsilon(exact(data["epsilon"])),
        partitions=partitions,
        alpha=checked_alpha(data["alpha"], len(noisy)),
        mechanism=mechanism,
        asked={key: str(data[key]) for key in ("model", "family", "claim") if key in data},
        one_sided=bool(data.get("one_sided", len(noisy) <= 3)),
        rehearsal=bool(data.get("rehearsal", False)),
        border=_stated_border(data),
        persons=_stated_persons(data),
    )


def _stated_persons(data: Mapping[str, Any]) -> int | None:
    found = data.get("persons")
    if found is None:
        return None
    if not isinstance(found, int) or isinstance(found, bool) or found < 2:
        raise AnswerError("persons must be a whole number of 2 or more, or null.")
    return found


def _stated_border(data: Mapping[str, Any]) -> float | None:
    if data.get("format") == 1:
        return SYMMETRIC
    found = data.get("border")
    if found is None:
        return None
    if not _numbers([found]):
        raise AnswerError("border must be a number, or null.")
    return checked_border(float(found))


def disagreements(data: Mapping[str, Any], again: Answer) -> list[str]:
    """The fields of an answer that differ from what its noisy counts imply."""
    fresh = again.to_dict()
    found = []
    for key in ("r", "pr_above_half", "error_rate", "verdict"):
        if key in data and not _same(data[key], fresh[key]):
            found.append(key)
    return found


def _same(stated: Any, computed: Any) -> bool:
    if isinstance(computed, dict):
        return isinstance(stated, Mapping) and all(
            _same(stated.get(key), value) for key, value in computed.items()
        )
    if isinstance(computed, float):
        number = isinstance(stated, int | float) and not isinstance(stated, bool)
        return number and abs(stated - computed) <= 1e-6
    return bool(stated == computed)


def _numbers(values: Any) -> bool:
    return isinstance(values, list) and all(
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
        for value in values
    )
