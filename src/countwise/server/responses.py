"""What the server says beside what clients know (`verification.exchange`): fields of the API."""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from countwise.ledger.ledger import Balance, Book, Entry
from countwise.ledger.prices import in_epsilon, in_rho
from countwise.server.config import DatasetSettings
from countwise.server.jobs import BROKEN, BURNT, COMPUTED, QUEUED, RELEASED, RETURNED, RUNNING
from countwise.server.signing_keys import KeyPeriod
from countwise.verification.exchange import BudgetState, Column
from countwise.verification.exchange import Dataset as PublicDataset
from countwise.verification.question import Question, read_question

Status = Literal["queued", "running", "answered", "failed", "cancelled"]
STATUS: dict[str, Status] = {
    QUEUED: "queued",
    RUNNING: "running",
    COMPUTED: "running",  # that it is done already is nobody's business
    RELEASED: "answered",
    BURNT: "failed",
    BROKEN: "failed",
    RETURNED: "cancelled",
}


@dataclass(frozen=True, kw_only=True)
class RehearsalView:
    """The same claim asked of the synthetic data: shares of the verdicts, and the last answer."""

    repetitions: int
    verdicts: dict[str, float]
    answer: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class JobView:
    """A submission. `released_at` is known once work on it has begun, in seconds of the epoch."""

    id: str
    user: str
    ask: Question
    status: Status
    cost: str
    created: float
    released_at: float | None


@dataclass(frozen=True, kw_only=True)
class UserView:
    """An account, with what it may use; `elsewhere` if it signs in at an identity provider."""

    name: str
    role: str
    disabled: bool
    elsewhere: bool
    datasets: tuple[str, ...]
    projects: tuple[str, ...]
    budget: BudgetState


@dataclass(frozen=True, kw_only=True)
class ProposalView:
    """A cap that one steward proposed and another has to approve."""

    id: str
    scope: str
    name: str
    cap: str
    by: str
    created: float


@dataclass(frozen=True, kw_only=True)
class KeyView:
    """An API key without its secret."""

    id: str
    user: str
    label: str
    scopes: tuple[str, ...]
    created: float
    expires: float | None
    revoked: float | None


@dataclass(frozen=True, kw_only=True)
class KeysView:
    """The public key in use, and all there were with when they were, the newest last."""

    key: str
    keys: tuple[KeyPeriod, ...]


@dataclass(frozen=True, kw_only=True)
class NewKeyView:
    """A new API key; the secret is shown this once."""

    id: str
    key: str


@dataclass(frozen=True, kw_only=True)
class EntryView:
    """An entry of the ledger."""

    seq: int
    at: str
    kind: str
    charge: str
    user: str
    dataset: str
    project: str
    epsilon: str
    rho: str
    note: str
    hash: str


@dataclass(frozen=True, kw_only=True)
class EventView:
    """An event of the audit log."""

    id: int
    at: float
    actor: str
    event: str
    subject: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class HealthView:
    """Whether the server can work: its database, its disk, how many workers were seen of late."""

    status: Literal["ok", "degraded"]
    database: bool
    writable: bool
    room: bool
    workers: int


def job_view(row: Any) -> JobView:
    """A job as its owner may see it."""
    return JobView(
        id=row.id,
        user=row.user,
        ask=read_question(json.loads(row.asked)),
        status="cancelled" if row.cancelled else STATUS[row.state],
        cost=in_epsilon(row.micro),
        created=row.created,
        released_at=row.slot,
    )


def key_view(row: Any) -> KeyView:
    """A key without its secret."""
    return KeyView(
        id=row.id,
        user=row.user,
        label=row.label,
        scopes=tuple(row.scopes.split()),
        created=row.created,
        expires=row.expires,
        revoked=row.revoked,
    )


def balance_view(balance: Balance) -> BudgetState:
    """A budget in exact decimals: of ε, or of ρ where that is all it counts."""
    written, amounts = in_epsilon, (balance.cap, balance.spent, balance.left)
    if balance.unit == "rho":
        written, amounts = in_rho, (balance.rho_cap, balance.rho_spent, balance.rho_left)
    cap, spent, left = map(written, amounts)
    return BudgetState(
        scope=balance.scope,
        name=balance.name,
        cap=cap,
        spent=spent,
        left=left,
        unit="ρ" if balance.unit == "rho" else "ε",
        words=balance.in_words(),
    )


def dataset_view(book: Book, known: DatasetSettings) -> PublicDataset:
    """A data set's public schema and budget."""
    columns = known.schema.columns.values()
    return PublicDataset(
        name=known.name,
        version=known.version,
        title=known.schema.title,
        persons=known.schema.persons,
        columns=tuple(
            Column(
                name=column.name,
                type=column.kind,
                low=column.low if column.kind in ("number", "integer") else None,
                high=column.high if column.kind in ("number", "integer") else None,
                levels=column.labels,
            )
            for column in columns
        ),
        budget=balance_view(book.balance("dataset", known.name)),
    )


def entry_view(entry: Entry) -> EntryView:
    """An entry with its amounts of ε and ρ."""
    known = vars(entry)
    amounts = {"epsilon": _signed(entry.micro, in_epsilon), "rho": _signed(entry.rho, in_rho)}
    names = [field.name for field in dataclasses.fields(EntryView) if field.name not in amounts]
    return EntryView(**{name: known[name] for name in names} | amounts)


def _signed(amount: int, written: Callable[[int], str]) -> str:
    return ("-" if amount < 0 else "") + written(abs(amount))
