"""The form of a claim: what its fields hold, what is asked by them, what is wrong with them."""

import re
import secrets
from dataclasses import dataclass, field, replace
from math import isfinite

from starlette.datastructures import FormData

from countwise.errors import CountwiseError, InputError
from countwise.server.pages.shell import word
from countwise.server.refusals import NotThere, TooMany
from countwise.verification.question import Question

FAMILIES = {
    "ols": "Linear regression",
    "logistic": "Logistic regression (response 0 or 1)",
    "poisson": "Poisson regression (response a count)",
}
MECHANISMS = {
    "lattice": "Whole counts that add up (lattice)",
    "binary": "Errors counted as failures, least noise (binary)",
    "laplace": "Real-valued counts (Laplace)",
}
ABOUT = re.compile(
    r"(?:the )?(model|filter|column|claim|epsilon|partitions|family|mechanism|alpha)\b"
)
PLACES = {"filter": "model", "column": "model"}


@dataclass(frozen=True, kw_only=True)
class ClaimForm:
    """Fields as they were written, messages by field, and the key that makes sending twice safe."""

    values: dict[str, str]
    key: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def begun(self) -> bool:
        """Whether there is a claim to look at."""
        return bool(self.values["model"] and self.values["claim"])

    def question(self) -> Question:
        """What is asked; numbers that are none are refused."""
        given = self.values
        try:
            partitions = int(given["partitions"])
        except ValueError:
            raise InputError("partitions must be a whole number, such as 50.") from None
        try:
            alpha = tuple(float(each) for each in given["alpha"].split(",")[:64])
        except ValueError:
            alpha = ()
        if not alpha or not all(map(isfinite, alpha)):
            raise InputError("alpha must be a number, or several with commas, such as 1.")
        return Question(**given | {"partitions": partitions, "alpha": alpha})  # type: ignore[arg-type]

    def wrong(self, problem: CountwiseError) -> "ClaimForm":
        """The same with a message, beside the field it is about or above all of them."""
        text = str(problem)
        return replace(self, errors={_field(problem, text): text[:1].upper() + text[1:]})

    def with_new_key(self) -> "ClaimForm":
        """The same as a new question."""
        return ClaimForm(values=self.values, errors=self.errors)


def read_form(form: FormData) -> ClaimForm:
    """The form that was sent."""
    values = {name: word(form, name) for name in EMPTY}
    key = word(form, "key", longest=100)
    return ClaimForm(values=values, key=key) if key else ClaimForm(values=values)


def form_of(question: Question) -> ClaimForm:
    """A new form filled in as an earlier question was."""
    values = {name: str(each) for name, each in vars(question).items()}
    return ClaimForm(values=values | {"alpha": ", ".join(f"{each:g}" for each in question.alpha)})


EMPTY = form_of(Question(model="", claim="", epsilon="1")).values


def _field(problem: CountwiseError, text: str) -> str:
    if isinstance(problem, TooMany):
        return "form"
    if isinstance(problem, NotThere):
        return "project" if "project" in text else "dataset"
    if text.startswith("with "):
        return "epsilon"  # no verdict is possible with so many partitions at this ε
    found = ABOUT.match(text)
    return PLACES.get(found[1], found[1]) if found else "form"
