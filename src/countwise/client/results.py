"""What a server says, as typed data."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from countwise.client.http_calls import RefusedError
from countwise.errors import AnswerError
from countwise.verification.answer import Answer
from countwise.verification.exchange import BudgetState, Column, Dataset, Power, QuestionPlan
from countwise.verification.receipt import check_receipt

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """The question asked of synthetic data: shares of the verdicts, and the last answer."""

    repetitions: int
    verdicts: Mapping[str, float]
    answer: Answer


@dataclass(frozen=True, kw_only=True)
class Job:
    """A submission: queued, running, answered, failed or cancelled."""

    id: str
    status: str
    cost: str
    created: float
    released_at: float | None


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """An answer with its charge, signed by the office that gave it."""

    fields: Mapping[str, Any]

    def check(self, public_key: str | Collection[str] | None = None) -> Answer:
        """The answer, if signature and posterior are right; offline, and refused otherwise.

        Without the office's public key a receipt only proves to be whole.
        """
        return check_receipt(self.fields, trusted=public_key)

    def save(self, path: str | Path) -> None:
        """Keep it in a file, which `countwise receipt check` reads."""
        Path(path).write_text(json.dumps(self.fields, indent=1) + "\n", encoding="utf-8")


def read_receipt(path: str | Path) -> Receipt:
    """A receipt in a file; `check` says whether it is a good one."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise AnswerError(f"{path}: there is no such file.") from None
    except ValueError:
        raise AnswerError(f"{path}: not a receipt in JSON.") from None
    return Receipt(fields=found)


@dataclass(frozen=True, kw_only=True)
class Answered:
    """A job with its answer, computed here from the receipt's noisy counts."""

    job: Job
    answer: Answer
    receipt: Receipt


def read(kind: type[Result], data: Any, **known: Any) -> Result:
    """A result from the server's JSON; fields that only a later server has are passed over."""
    try:
        wanted = [field.name for field in fields(kind) if field.name not in known]  # type: ignore[arg-type]
        return kind(**{name: data[name] for name in wanted}, **known)
    except (KeyError, TypeError):
        raise RefusedError(
            f"the server's answer is not a {kind.__name__} as this client knows it.",
            status=200,
            code="unknown",
        ) from None


def read_dataset(data: Any) -> Dataset:
    """A data set from the server's JSON."""
    columns = (read(Column, each, levels=tuple(each["levels"])) for each in data["columns"])
    return read(Dataset, data, columns=tuple(columns), budget=read(BudgetState, data["budget"]))


def read_plan(data: Any) -> QuestionPlan:
    """A plan from the server's JSON."""
    return read(
        QuestionPlan,
        data,
        budgets=tuple(read(BudgetState, each) for each in data["budgets"]),
        outcomes=tuple(data["outcomes"]),
        power=tuple(read(Power, each) for each in data["power"]),
    )
