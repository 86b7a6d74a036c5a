"""What may be sent to the API: names, ids and bodies, each with its bounds; and its refusals."""

from typing import Annotated, Any, Literal

from fastapi import Header
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from countwise.verification.question import Question

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
MaybeName = Annotated[str, StringConstraints(pattern=r"^([a-z0-9][a-z0-9._-]{0,63})?$")]
Text = Annotated[str, StringConstraints(max_length=4000, pattern=r"^[^\x00]*$")]
Word = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00-\x1f]*$")]
Secret = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")]
Id = Annotated[str, InPath(pattern=r"^[0-9a-f]{32}$")]
PathName = Annotated[str, InPath(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Scope = Annotated[Literal["user", "dataset", "project"], InPath()]
Number = Annotated[str, StringConstraints(max_length=100, pattern=r"^[^\x00-\x1f]*$")]
Epsilon = Annotated[Number | int | float, Field(description="Exact: text such as 0.5 or 1/3.")]

IdempotencyKey = Annotated[
    str, Header(min_length=1, max_length=100, pattern=r"^[\x21-\x7e]+$", alias="Idempotency-Key")
]


class Sent(BaseModel):
    """A body: nothing in it is passed over in silence."""

    model_config = ConfigDict(extra="forbid")


class QuestionBody(Sent):
    """A `Question` as JSON, with the bounds of what is read at all."""

    dataset: Name
    model: Text
    claim: Text
    epsilon: Epsilon
    partitions: Annotated[int, Field(ge=2, le=10_000)] = Question.partitions
    family: Word = Question.family
    mechanism: Word = Question.mechanism
    alpha: Annotated[tuple[float, ...], Field(min_length=1, max_length=64)] = Question.alpha
    project: MaybeName = Question.project

    def question(self) -> Question:
        """The same, as the service takes it."""
        return Question(**self.model_dump(exclude={"repetitions"}))


class RehearseBody(QuestionBody):
    """What to rehearse, and how often."""

    repetitions: Annotated[int, Field(ge=1, le=20)] = 1


class SignInBody(Sent):
    """A name and a password."""

    name: Secret
    password: Secret


class PasswordBody(Sent):
    """The old password and another."""

    old: Secret
    new: Secret


class SessionView(BaseModel):
    """Who is signed in; `csrf` goes into the header X-CSRF-Token of every change.

    With a `new_password` due, nothing else is answered until it is changed.
    """

    name: str
    role: str
    scopes: list[str]
    csrf: str
    new_password: bool


class KeyBody(Sent):
    """A key to be made."""

    label: Word
    scopes: Annotated[list[Word], Field(max_length=10)]
    days: float | None = None


class UserBody(Sent):
    """A user to be added."""

    name: Name
    role: Literal["analyst", "steward", "auditor"]
    password: Secret


class Problem(BaseModel):
    """What a refusal looks like."""

    code: str
    message: str


class ProblemView(BaseModel):
    """A refusal; its message depends on the request and public facts only."""

    error: Problem


class AuditQuery(Sent):
    """Which part of the audit log."""

    by: Word = ""
    event: Word = ""
    subject: Word = ""
    since: float | None = None
    until: float | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] = 200


class EntryQuery(Sent):
    """Which entries of the ledger."""

    user: Word = ""
    dataset: Word = ""
    project: Word = ""
    kind: Word = ""
    after: Annotated[int, Field(ge=0, le=2**62)] = 0
    limit: Annotated[int, Field(ge=1, le=10_000)] = 200


REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"model": ProblemView, "description": what}
    for code, what in {
        400: "Not JSON, or not HTTP as it should be",
        401: "Not signed in",
        402: "The budget does not allow it",
        403: "Not allowed",
        404: "Not there, or not for the caller to know",
        409: "Not in this state",
        413: "Too much was sent",
        415: "Not JSON",
        422: "What was sent can not be used",
        429: "Too many requests",
        503: "The database is busy, full or out of reach; nothing was changed",
    }.items()
}
