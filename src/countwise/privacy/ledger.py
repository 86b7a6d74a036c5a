"""The ledger of privacy loss: append-only entries in whole millionths of ε, chained by hashes.

A charge is *reserved* before any confidential row is read; all its caps (of the user, the data
set and the project) are checked and the entry is written in one transaction. It is *computed* in
the transaction that stores its noisy result, and *released* when the result may be seen. A charge
whose result was lost, or thrown away, is *burnt*: what it cost stays spent. Only a charge under
which no row was ever read may be *returned*. A cap is an entry too; an account without one has
nothing to spend.

    reserved ─▶ computed ─▶ released
        │           └─────▶ burnt
        ├─────────────────▶ burnt
        └─────────────────▶ returned
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Literal, get_args

import sqlalchemy as sa

from countwise.errors import BudgetError, InputError
from countwise.privacy.epsilon import Number, exact, written
from countwise.privacy.storage import reading, writing  # says so where SQLAlchemy is missing

Scope = Literal["user", "dataset", "project"]
Kind = Literal["cap", "reserved", "computed", "released", "burnt", "returned"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
KINDS: tuple[Kind, ...] = get_args(Kind)
AFTER: dict[Kind, tuple[Kind, ...]] = {
    "computed": ("reserved",),
    "released": ("computed",),
    "burnt": ("reserved", "computed"),
    "returned": ("reserved",),
}
MICRO = 1_000_000
LONGEST = 200
START = hashlib.sha256(b"countwise ledger 1").hexdigest()

metadata = sa.MetaData()
entries = sa.Table(
    "ledger_entries",
    metadata,
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("at", sa.String(40), nullable=False),
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("charge", sa.String(64), nullable=False),
    sa.Column("user", sa.String(LONGEST), nullable=False),
    sa.Column("dataset", sa.String(LONGEST), nullable=False),
    sa.Column("project", sa.String(LONGEST), nullable=False),
    sa.Column("micro", sa.BigInteger, nullable=False),
    sa.Column("note", sa.Text, nullable=False),
    sa.Column("previous", sa.String(64), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.Index("ledger_by_charge", "charge", "kind"),
    *(sa.Index(f"ledger_by_{scope}", scope, "kind") for scope in SCOPES),
)
HASHED = tuple(column.name for column in entries.columns if column.name != "hash")
REFUSE = {
    "sqlite": [
        f"CREATE TRIGGER ledger_no_{verb.lower()} BEFORE {verb} ON ledger_entries "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for verb in ("UPDATE", "DELETE")
    ],
    "postgresql": [
        "CREATE FUNCTION ledger_refuse() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
        "CREATE TRIGGER ledger_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse()",
    ],
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the ledger. A cap names one account and the cap; a charge, all its accounts."""

    seq: int
    at: str
    kind: Kind
    charge: str
    user: str
    dataset: str
    project: str
    micro: int
    note: str
    previous: str
    hash: str

    @property
    def accounts(self) -> dict[Scope, str]:
        """The accounts it is about."""
        named: dict[Scope, str] = {
            "user": self.user, "dataset": self.dataset, "project": self.project
        }  # fmt: skip
        return {scope: name for scope, name in named.items() if name}


@dataclass(frozen=True, kw_only=True)
class Balance:
    """What an account may spend, and what it spent, in millionths of ε."""

    scope: Scope
    name: str
    cap: int
    spent: int

    @property
    def left(self) -> int:
        """What may still be spent."""
        return max(self.cap - self.spent, 0)


def micro(epsilon: Number) -> int:
    """ε in whole millionths, rounded up: never less is charged than is lost."""
    return -(-exact(epsilon) * MICRO // 1)


def in_epsilon(amount: int) -> str:
    """Millionths of ε as people write ε."""
    return "0" if amount == 0 else written(Fraction(amount, MICRO))


def entry_hash(fields: Mapping[str, Any]) -> str:
    """The hash of an entry, which covers the hash before it."""
    line = json.dumps([fields[name] for name in HASHED], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(line.encode()).hexdigest()


class Book:
    """The ledger within one transaction; `connection` is there for what must be stored with it."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection

    def set_cap(self, scope: Scope, name: str, amount: int, *, note: str = "") -> Entry:
        """What an account may spend in all, from now on."""
        if isinstance(amount, bool) or not isinstance(amount, int) or not 0 <= amount <= 10**12:
            raise InputError(f"a cap is from 0 to 10^12 millionths of ε, got {amount!r}.")
        return self._append("cap", {_checked(scope): name}, micro=amount, note=note)

    def grant(self, scope: Scope, name: str, amount: int, *, note: str = "") -> Entry:
        """Raise (or, with a negative amount, lower) what an account may spend."""
        return self.set_cap(scope, name, self.balance(scope, name).cap + amount, note=note)

    def reserve(
        self, charge: str, amount: int, accounts: Mapping[Scope, str], *, note: str = ""
    ) -> Entry:
        """Charge every account, or none: all caps must allow it. Comes before reading data."""
        if isinstance(amount, bool) or not isinstance(amount, int) or amount < 1:
            raise InputError(f"a charge is at least one millionth of ε, got {amount!r}.")
        if not accounts.get("dataset"):
            raise InputError("a charge must name the data set it is about.")
        if not charge or self.entry(charge, "reserved") is not None:
            raise InputError("a charge needs a name of its own.")
        for scope, name in accounts.items():
            balance = self.balance(_checked(scope), name)
            if amount > balance.left:
                raise BudgetError(
                    f"the budget of {scope} {name!r} has ε = {in_epsilon(balance.left)} left and "
                    f"this asks for {in_epsilon(amount)}. To fix, ask for less, or ask the "
                    "steward for more."
                )
        return self._append("reserved", accounts, charge=charge, micro=amount, note=note)

    def advance(self, charge: str, kind: Kind, *, note: str = "") -> Entry:
        """The next state of a charge; a step that is not in the drawing above is refused."""
        reserved = self.entry(charge, "reserved")
        state = self.state(charge)
        if reserved is None or state not in AFTER.get(kind, ()):
            raise InputError(f"a charge that is {state or 'unknown'} can not become {kind}.")
        back = -reserved.micro if kind == "returned" else 0
        return self._append(kind, reserved.accounts, charge=charge, micro=back, note=note)

    def state(self, charge: str) -> Kind | None:
        """The last state of a charge."""
        query = sa.select(entries.c.kind).where(entries.c.charge == charge)
        return self.connection.scalar(query.order_by(entries.c.seq.desc()).limit(1))

    def entry(self, charge: str, kind: Kind) -> Entry | None:
        """The entry that brought a charge to a state."""
        found = sa.select(entries).where(entries.c.charge == charge, entries.c.kind == kind)
        row = self.connection.execute(found).mappings().first()
        return None if row is None else Entry(**row)

    def balance(self, scope: Scope, name: str) -> Balance:
        """The cap and the spending of an account."""
        account = entries.c[_checked(scope)] == name
        cap = sa.select(entries.c.micro).where(account, entries.c.kind == "cap")
        spent = sa.select(sa.func.coalesce(sa.func.sum(entries.c.micro), 0)).where(
            account, entries.c.kind.in_(("reserved", "returned"))
        )
        limit = self.connection.scalar(cap.order_by(entries.c.seq.desc()).limit(1))
        return Balance(
            scope=scope, name=name, cap=limit or 0, spent=int(self.connection.scalar(spent) or 0)
        )

    def all(self, *, after: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """Entries in their order."""
        query = sa.select(entries).where(entries.c.seq > after).order_by(entries.c.seq)
        for row in self.connection.execute(query.limit(limit)).mappings():
            yield Entry(**row)

    def _append(
        self, kind: Kind, accounts: Mapping[Scope, str], *, charge: str = "", micro: int, note: str
    ) -> Entry:
        for scope, name in accounts.items():
            if not name or len(name) > LONGEST or not name.isprintable():
                raise InputError(f"the name of a {scope} has 1 to {LONGEST} printable characters.")
        last = self.connection.execute(
            sa.select(entries.c.seq, entries.c.hash).order_by(entries.c.seq.desc()).limit(1)
        ).first()
        fields: dict[str, Any] = {
            "seq": last.seq + 1 if last else 1,
            "at": datetime.now(UTC).isoformat(timespec="microseconds"),
            "kind": kind,
            "charge": charge,
            **{scope: accounts.get(scope, "") for scope in SCOPES},
            "micro": micro,
            "note": note,
            "previous": last.hash if last else START,
        }
        entry = Entry(**fields, hash=entry_hash(fields))
        self.connection.execute(sa.insert(entries).values(**vars(entry)))
        return entry


class Ledger:
    """A ledger in a database."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine

    @contextmanager
    def writing(self) -> Iterator[Book]:
        """The book, with no other writer beside; all that is written is stored, or none."""
        with writing(self.engine) as connection:
            yield Book(connection)

    @contextmanager
    def reading(self) -> Iterator[Book]:
        """The book, to look at."""
        with reading(self.engine) as connection:
            yield Book(connection)


def _checked(scope: Scope) -> Scope:
    if scope not in SCOPES:
        raise InputError(f"an account is one of {', '.join(SCOPES)}; got {scope!r}.")
    return scope


@sa.event.listens_for(entries, "after_create")
def _refuse_changes(_: sa.Table, connection: sa.Connection, **__: Any) -> None:
    """The database itself refuses to change or remove an entry."""
    for statement in REFUSE[connection.dialect.name]:
        connection.exec_driver_sql(statement)
