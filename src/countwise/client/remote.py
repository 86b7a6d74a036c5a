"""The client: one method a thing that can be asked of a server."""

import time
from collections.abc import Collection
from urllib.parse import quote
from uuid import uuid4

from countwise.client.http_calls import FIRST_PAUSE, LONGEST_PAUSE, Calls
from countwise.client.results import (
    Answered,
    Job,
    Receipt,
    Rehearsal,
    read,
    read_dataset,
    read_plan,
)
from countwise.errors import CountwiseError
from countwise.verification.answer import recompute
from countwise.verification.exchange import BudgetState, Dataset, QuestionPlan
from countwise.verification.question import Question


class NoAnswerError(CountwiseError):
    """A job that failed, was cancelled, or is not answered in the time given."""


class Client:
    """A server, called with an API key. `patience` is how many seconds a call is tried again."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        patience: float = 60.0,
        public_key: str | Collection[str] | None = None,
        allow_http: bool = False,
    ) -> None:
        self._calls = Calls(url, key, timeout=timeout, patience=patience, allow_http=allow_http)
        self._public_key = public_key

    def __repr__(self) -> str:
        return f"Client({self._calls.address!r}; .datasets(), .plan(question), .submit(question))"

    def datasets(self) -> tuple[Dataset, ...]:
        """The data sets open to the key's user."""
        return tuple(map(read_dataset, self._calls.get("/datasets")))

    def synthetic(self, dataset: str) -> bytes:
        """The file of a data set's synthetic twin."""
        return self._calls.get_file(f"/datasets/{quote(dataset, safe='')}/synthetic")

    def budget(self) -> tuple[BudgetState, ...]:
        """The user's own budget, and those of the projects and data sets in reach."""
        return tuple(read(BudgetState, each) for each in self._calls.get("/budget"))

    def plan(self, question: Question) -> QuestionPlan:
        """What asking would cost and could tell; spends nothing."""
        return read_plan(self._calls.post("/plan", question.to_dict()))

    def rehearse(self, question: Question, *, repetitions: int = 1) -> Rehearsal:
        """The same question, asked of the synthetic data; spends nothing."""
        asked = question.to_dict() | {"repetitions": repetitions}
        found = self._calls.post("/rehearse", asked)
        return read(Rehearsal, found, answer=recompute(found["answer"]))

    def submit(self, question: Question, *, key: str | None = None) -> Job:
        """Charge and queue a question; with a `key` of your own, once over a crash of yours too."""
        key = key or uuid4().hex
        return read(Job, self._calls.post("/jobs", question.to_dict(), key=key))

    def job(self, job: Job | str) -> Job:
        """A job as it is now."""
        return read(Job, self._calls.get(_path(job)))

    def cancel(self, job: Job | str) -> Job:
        """Give a job up; the charge comes back only if no work on it began."""
        return read(Job, self._calls.post(_path(job) + "/cancel"))

    def wait(self, job: Job | str, *, timeout: float = 3600.0) -> Answered:
        """Wait for a job's answer; its receipt is checked, against `public_key` if one is known."""
        end, pause = time.monotonic() + timeout, FIRST_PAUSE
        while (now := self.job(job)).status in ("queued", "running"):
            if time.monotonic() + pause > end:
                raise NoAnswerError(f"no answer within {timeout:g} seconds; job {now.id} goes on.")
            time.sleep(pause)
            pause = min(1.5 * pause, LONGEST_PAUSE)
        if now.status != "answered":
            raise NoAnswerError(f"job {now.id} is {now.status}; there is no answer to it.")
        receipt = self.receipt(now)
        return Answered(job=now, answer=receipt.check(self._public_key), receipt=receipt)

    def receipt(self, job: Job | str) -> Receipt:
        """The signed receipt of an answered job."""
        return Receipt(fields=self._calls.get(_path(job) + "/receipt"))

    def server_key(self) -> str:
        """The public key this server says it signs with; to trust it, compare it by another way."""
        return str(self._calls.get("/key")["key"])

    def server_keys(self) -> tuple[str, ...]:
        """All public keys this server says it ever signed with, the newest last."""
        return tuple(str(each["key"]) for each in self._calls.get("/key")["keys"])


def _path(job: Job | str) -> str:
    return "/jobs/" + quote(job if isinstance(job, str) else job.id, safe="")
