"""The answer to a request: noisy counts, the posterior they imply, a verdict, and words.

Everything here is computed from published fields, so anyone can compute it again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri

from countwise.arrays import FloatArray, frozen
from countwise.errors import AnswerError
from countwise.privacy.epsilon import exact, one_of, written
from countwise.verification import mechanisms
from countwise.verification.claims import ERROR, FAILS, HOLDS
from countwise.verification.posterior import BetaMixture, Posterior, Summary
from countwise.verification.request import Request, checked_alpha, checked_epsilon
from countwise.verification.rules import RULES, SUPPORTED, verdict

FORMAT = 1
LEVEL = 0.95
MEANING = (
    "r is the probability that {event} in a random partition with 1/M of the persons{errors}. It "
    "is not the probability that the claim is true, and not a share of persons: in a part of the "
    "data estimates scatter √M times as widely as in the whole, so a claim that is true by a "
    "small margin has an r only a little above 1/2."
)
TWO_ENDS = (
    " This claim is not about one threshold: where it leaves less room than a partition's "
    "estimate scatters, it fails in most partitions even if it is true of the whole data. So it "
    "can be supported, and never contradicted."
)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Noisy counts of outcomes with the public facts needed to read them."""

    noisy: FloatArray
    outcomes: tuple[str, ...]
    epsilon: Fraction
    partitions: int
    alpha: FloatArray
    mechanism: str
    asked: Mapping[str, Any]
    one_sided: bool = False
    rehearsal: bool = False

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior of the outcomes' proportions."""
        return Posterior(
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
        return verdict(self.r.above_half, self.error_rate, one_sided=self.one_sided)

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
        name = self.outcomes[self.leading]
        event = "the claim holds" if name == HOLDS else f"the value is {name}"
        fitted = len(self.fitted) < len(self.outcomes)
        errors = (
            ", among partitions that can be fitted"
            if fitted
            else " (one that can not be fitted counts as failing)"
        )
        text = MEANING.format(event=event, errors=errors)
        return text if self.one_sided else text + TWO_ENDS

    @property
    def privacy(self) -> str:
        """What was spent, in a sentence."""
        if self.rehearsal:
            return "A rehearsal on synthetic data: nothing was spent."
        return (
            f"ε = {written(self.epsilon)} was spent: adding, removing or changing one person's "
            f"rows changes the chance of any answer by a factor of at most "
            f"{np.exp(float(self.epsilon)):.4g}. Other answers from the same data add theirs."
        )

    def sentences(self) -> list[str]:
        """The answer in words."""
        r, name = self.r, self.outcomes[self.leading]
        what = "the claim holds" if name == HOLDS else f"the value is {name}"
        found = [
            f"The claim is {self.verdict}."
            if len(self.fitted) == 2 or self.verdict != SUPPORTED
            else f"Supported: in most partitions {what}.",
            f"Most likely {what} in {r.mode:.0%} of partitions; with {LEVEL:.0%} probability in "
            f"{r.lower:.0%} to {r.upper:.0%}. Pr(r > 1/2) = {_probability(r.above_half)}.",
        ]
        if self.error_rate is not None:
            found.append(f"About {self.error_rate:.0%} of partitions can not be fitted.")
        if self.one_sided:
            low, middle, high = (self.distance(each) for each in (r.lower, r.median, r.upper))
            found.append(
                f"On the scale of the whole data the estimate is about {middle:+.1f} standard "
                f"errors from the threshold, towards the claim ({low:+.1f} to {high:+.1f})."
            )
        return found


def answer(noisy: FloatArray, request: Request, *, rehearsal: bool = False) -> Answer:
    """The answer that noisy counts give to a request."""
    return Answer(
        noisy=noisy,
        outcomes=mechanisms.outcomes(request.claim.outcomes, mechanism=request.mechanism),
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
    )


def reading_of(request: Request) -> dict[str, Any]:
    """What a request's noisy counts mean; with them and what was asked, `recompute` answers."""
    return {
        "outcomes": list(mechanisms.outcomes(request.claim.outcomes, mechanism=request.mechanism)),
        "one_sided": request.claim.one_sided,
        "alpha": request.alpha.tolist(),
    }


def recompute(data: Any) -> Answer:
    """The answer that the published fields of another imply; its summaries are not read."""
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
    mechanism = one_of(str(data["mechanism"]), mechanisms.MECHANISMS, what="mechanism")
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
    )


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
        isinstance(each, int | float) and not isinstance(each, bool) and abs(each) < 1e15
        for each in values
    )


def _probability(value: float) -> str:
    if value > 0.9999:
        return "more than 0.9999"
    return "less than 0.0001" if value < 0.0001 else f"{value:.4f}"
