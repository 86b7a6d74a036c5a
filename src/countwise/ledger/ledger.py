"""The ledger of privacy loss: append-only entries in whole numbers, chained by hashes.

For each data set it fixes the neighbours whose loss is counted, the rows of a person, and the unit
(`prices.Terms`); what is made from the data set is charged at its price in those. A charge comes
before any confidential row is read; all its caps (of the user, the data set and the project) are
checked and the entry is written in one transaction.

A server's charge is *reserved*, and *computed* and *released* in the transaction that stores its
noisy result and lets it be seen. A charge whose result was lost, or thrown away, is *burnt*:
what it cost stays spent. Only a charge that no worker ever took, so under which no row was read, is
*returned*. A charge of the command line is *spent* at once, and nothing is added to it later: its
entry is the same whatever the data, refused or not. That cells were *tabulated* costs nothing.
A cap is an entry too; an account without one has nothing to spend.

    reserved ─▶ computed ─▶ released           spent
        │           └─────▶ burnt              tabulated
        ├─────────────────▶ burnt
        └─────────────────▶ returned
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

import sqlalchemy as sa

from countwise.errors import BudgetError, InputError
from countwise.ledger.prices import (
    ANY,
    MICRO,
    PICO,
    Amount,
    Loss,
    Price,
    Terms,
    Unit,
    at_delta,
    in_epsilon,
    in_rho,
    price,
    read_loss,
    read_terms,
)
from countwise.ledger.storage import reading, writing  # says so where SQLAlchemy is missing

Scope = Literal["user", "dataset", "project"]
Kind = Literal["cap", "reserved", "computed", "released", "burnt", "returned", "spent", "tabulated"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
KINDS: tuple[Kind, ...] = get_args(Kind)
AFTER: dict[Kind, tuple[Kind, ...]] = {
    "computed": ("reserved",),
    "released": ("computed",),
    "burnt": ("reserved", "computed"),
    "returned": ("reserved",),
}
CHARGES: tuple[Kind, ...] = ("reserved", "spent")
MOST_EPSILON, MOST_RHO = 10**6, 10**6  # as the largest loss of a plan; in whole parts below 2^63
LONGEST = 200  # characters of a name in the database
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
    sa.Column("rho", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("terms", sa.Text, nullable=False, server_default=""),
    sa.Index("ledger_by_charge", "charge", "kind"),
    *(sa.Index(f"ledger_by_{scope}", scope, "kind") for scope in SCOPES),
)
HASHED = (
    "seq", "at", "kind", "charge", "user", "dataset", "project", "micro", "note", "previous"
)  # fmt: skip
ALSO_HASHED = ("rho", "terms")
REFUSE = {
    "sqlite": [
        f"CREATE TRIGGER ledger_no_{verb.lower()} BEFORE {verb} ON ledger_entries "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
        for verb in ("UPDATE", "DELETE")
    ]
    + [
        "CREATE TRIGGER ledger_no_replace BEFORE INSERT ON ledger_entries WHEN EXISTS "
        "(SELECT 1 FROM ledger_entries WHERE seq = NEW.seq) "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
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
    """One line of the ledger. A cap names one account and the cap; a charge, all its accounts.

    `micro` are millionths of ε, `rho` millionths of millionths of ρ. `terms` says, as JSON, how a
    data set is counted (a cap) or what was charged (a charge).
    """

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
    rho: int = 0
    terms: str = ""

    @property
    def accounts(self) -> dict[Scope, str]:
        """The accounts it is about."""
        named: dict[Scope, str] = {
            "user": self.user, "dataset": self.dataset, "project": self.project
        }  # fmt: skip
        return {scope: name for scope, name in named.items() if name}

    @property
    def amount(self) -> Amount:
        """What it adds to what was spent, or the cap."""
        return Amount(epsilon=self.micro, rho=self.rho)


@dataclass(frozen=True, kw_only=True)
class Balance:
    """What an account may spend, and what it spent, in millionths of ε; the same for ρ.

    `terms` are those of a data set, if they are fixed, and `given` the exact counts of what was
    released of it: the sum is a loss between tables that agree on them.
    """

    scope: Scope
    name: str
    cap: int
    spent: int
    rho_cap: int = 0
    rho_spent: int = 0
    terms: Terms | None = None
    given: tuple[str, ...] = ()

    @property
    def left(self) -> int:
        """What may still be spent."""
        return max(self.cap - self.spent, 0)

    @property
    def rho_left(self) -> int:
        """The same in ρ."""
        return max(self.rho_cap - self.rho_spent, 0)

    def affords(self, amount: Amount) -> bool:
        """Whether so much may still be spent."""
        return amount.epsilon <= self.left and amount.rho <= self.rho_left

    @property
    def unit(self) -> Unit:
        """The unit that is counted: that of the terms, else of the caps."""
        if self.terms is not None:
            return self.terms.unit
        if not self.rho_cap:
            return "epsilon"
        return "both" if self.cap else "rho"

    def in_words(self) -> str:
        """What was spent and what is left, and between whom that is counted."""
        whose = {"user": "user", "dataset": "data set", "project": "project"}[self.scope]
        parts = []
        if self.unit != "rho":
            sums = (in_epsilon(each) for each in (self.spent, self.cap, self.left))
            parts.append("ε = {} spent of {}, {} left".format(*sums))
        if self.unit != "epsilon":
            sums = (in_rho(each) for each in (self.rho_spent, self.rho_cap, self.rho_left))
            parts.append("ρ = {} spent of {}, {} left".format(*sums))
        words = [f"{whose} {self.name}: {'; '.join(parts)}."]
        if self.terms is not None:
            agree = f", and that agree on {'; '.join(self.given)}" if self.given else ""
            words.append(f"Counted between tables where {self.terms.in_words()}{agree}.")
            if self.terms.unit != "epsilon":
                spent, cap = (
                    at_delta(Amount(epsilon=epsilon, rho=rho), self.terms)
                    for epsilon, rho in ((self.spent, self.rho_spent), (self.cap, self.rho_cap))
                )
                words.append(
                    f"That is ε = {spent:.4g} spent, and never more than {cap:.4g}, "
                    f"at δ = {float(self.terms.delta):g}."
                )
        elif self.scope == "dataset":
            words.append("Whose change is counted is not fixed yet; it takes verifications only.")
        return " ".join(words)


def entry_hash(fields: Mapping[str, Any]) -> str:
    """The hash of an entry, which covers the hash before it.

    One without ρ and terms is hashed as entries were before there were any.
    """
    names = HASHED + (ALSO_HASHED if fields["rho"] or fields["terms"] else ())
    line = json.dumps([fields[name] for name in names], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(line.encode()).hexdigest()


class Book:
    """The ledger within one transaction; `connection` is there for what must be stored with it."""

    def __init__(self, connection: sa.Connection, *, grain: float = 0.0) -> None:
        self.connection, self.grain = connection, grain

    def set_cap(
        self,
        scope: Scope,
        name: str,
        amount: int,
        *,
        rho: int | None = None,
        terms: Terms | None = None,
        note: str = "",
    ) -> Entry:
        """What an account may spend in all, from now on; without ρ, that stays as it is.

        Terms fix how a data set is counted. Once something was charged they do not change.
        """
        before = self.balance(scope, name)
        amount = _cap(amount, MOST_EPSILON * MICRO, "ε")
        rho = before.rho_cap if rho is None else _cap(rho, MOST_RHO * PICO, "ρ")
        fixed = self._fixed(before, terms)
        if fixed is not None and ((fixed.unit == "rho" and amount) or
                                  (fixed.unit == "epsilon" and rho)):  # fmt: skip
            other = {"rho": "ρ alone", "epsilon": "ε alone"}[fixed.unit]
            raise InputError(
                f"data set {name!r} is counted in {other}. To fix, grant in that unit, or begin "
                "another data set."
            )
        text = "" if fixed is None else fixed.to_text()
        amounts = Amount(epsilon=amount, rho=rho)
        if fixed is not None:
            fixed.refuse_beyond(amounts, name)
        return self._append("cap", {scope: name}, amount=amounts, terms=text, note=note)

    def _fixed(self, before: Balance, terms: Terms | None) -> Terms | None:
        """The terms of a data set that has these, and may be given others."""
        if terms is None or terms == before.terms:
            return before.terms
        if before.scope != "dataset":
            raise InputError("only a data set has neighbours, rows and a unit to be counted in.")
        if before.terms is not None and (before.spent or before.rho_spent):
            raise InputError(
                f"data set {before.name!r} is counted in {_unit_in_words(before.terms)} between "
                f"tables where {before.terms.in_words()}, and something was charged to it. Sums of "
                "other losses would mean nothing. To fix, leave the options out that say otherwise."
            )
        if before.spent and terms.unit == "rho":
            raise InputError(
                f"data set {before.name!r} has ε = {in_epsilon(before.spent)} spent, so it can "
                "not be counted in ρ alone. To fix, grant --epsilon too."
            )
        return terms

    def grant(
        self,
        scope: Scope,
        name: str,
        amount: int = 0,
        *,
        rho: int = 0,
        terms: Terms | None = None,
        note: str = "",
    ) -> Entry:
        """Raise (or, with a negative amount, lower) what an account may spend."""
        before = self.balance(scope, name)
        return self.set_cap(
            scope, name, before.cap + amount, rho=before.rho_cap + rho, terms=terms, note=note
        )

    def price(self, dataset: str, loss: Loss) -> Price:
        """What a loss costs where this data set is counted; refused if it has no price there."""
        terms = self.terms(dataset)
        if terms is None and loss.neighbours != ANY and not self.knows("dataset", dataset):
            raise BudgetError(
                f"the ledger has no budget for data set {dataset!r}. To fix: countwise ledger "
                f"grant … --dataset {dataset} --epsilon 1"
            )
        return price(loss, terms, dataset=dataset)

    def charge(
        self,
        charge: str,
        loss: Loss,
        accounts: Mapping[Scope, str],
        *,
        kind: Kind = "reserved",
        note: str = "",
    ) -> Entry:
        """Charge what a computation costs to every account, or to none."""
        balances = self.balances(accounts)
        dataset = accounts.get("dataset", "")
        known = next((each for each in balances if each.scope == "dataset"), None)
        if known is None or known.terms is None:
            found = self.price(dataset, loss)
        else:
            found = price(loss, known.terms, dataset=dataset)
        words = [note] if note else []
        words.append(loss.in_words() + (f", times {found.factor}" if found.factor > 1 else ""))
        if found.given:
            words.append(f"given the exact counts {'; '.join(found.given)}")
        return self._charged(
            kind,
            charge,
            found.amount,
            accounts,
            terms=loss.to_text(),
            note=", ".join(words),
            balances=balances,
        )

    def reserve(
        self, charge: str, amount: int, accounts: Mapping[Scope, str], *, note: str = ""
    ) -> Entry:
        """Reserve so many millionths of ε, of whatever they are the price."""
        return self._charged("reserved", charge, amount, accounts, terms="", note=note)

    def tabulated(self, charge: str, loss: Loss, dataset: str) -> Entry:
        """Note that cells were counted from a data set: no noise was drawn and nothing is lost."""
        if not self.knows("dataset", dataset):
            raise InputError(
                f"the ledger knows no data set {dataset!r}. To fix: countwise ledger grant … "
                f"--dataset {dataset} --epsilon 1"
            )
        accounts: dict[Scope, str] = {"dataset": dataset}
        note = "cells counted; no noise was drawn, so nothing is spent"
        return self._append("tabulated", accounts, charge=charge, terms=loss.to_text(), note=note)

    def _charged(
        self,
        kind: Kind,
        charge: str,
        amount: Amount | int,
        accounts: Mapping[Scope, str],
        *,
        terms: str,
        note: str,
        balances: Sequence[Balance] | None = None,
    ) -> Entry:
        if isinstance(amount, bool) or not isinstance(amount, int | Amount):
            raise InputError(f"a charge is at least one millionth of ε, got {amount!r}.")
        if isinstance(amount, int):
            amount = Amount(epsilon=amount)
        if amount.epsilon < 0 or amount.rho < 0 or not (amount.epsilon or amount.rho):
            raise InputError(f"a charge is at least one millionth of ε, got {amount.epsilon!r}.")
        if not accounts.get("dataset"):
            raise InputError("a charge must name the data set it is about.")
        if not charge or self.state(charge) is not None:
            raise InputError("a charge needs a name of its own.")
        for balance in self.balances(accounts) if balances is None else balances:
            if not balance.affords(amount):
                raise BudgetError(_too_little(balance, amount))
        return self._append(kind, accounts, charge=charge, amount=amount, terms=terms, note=note)

    def advance(self, charge: str, kind: Kind, *, note: str = "") -> Entry:
        """The next state of a charge; a step that is not in the drawing above is refused."""
        reserved = self.entry(charge, "reserved")
        state = self.state(charge)
        if reserved is None or state not in AFTER.get(kind, ()):
            raise InputError(f"a charge that is {state or 'unknown'} can not become {kind}.")
        back = Amount()
        if kind == "returned":
            back = Amount(epsilon=-reserved.micro, rho=-reserved.rho)
        return self._append(kind, reserved.accounts, charge=charge, amount=back, note=note)

    def state(self, charge: str) -> Kind | None:
        """The last state of a charge."""
        query = sa.select(entries.c.kind).where(entries.c.charge == charge)
        return self.connection.scalar(query.order_by(entries.c.seq.desc()).limit(1))

    def entry(self, charge: str, kind: Kind) -> Entry | None:
        """The entry that brought a charge to a state."""
        found = sa.select(entries).where(entries.c.charge == charge, entries.c.kind == kind)
        row = self.connection.execute(found).mappings().first()
        return None if row is None else Entry(**row)

    def terms(self, dataset: str) -> Terms | None:
        """How a data set is counted; None while that is not fixed."""
        last = self._last_cap("dataset", dataset)
        return read_terms(last.terms) if last is not None and last.terms else None

    def balance(self, scope: Scope, name: str) -> Balance:
        """The caps and the spending of an account."""
        return self.balances({scope: name})[0]

    def balances(self, accounts: Mapping[Scope, str]) -> list[Balance]:
        """The caps and the spending of accounts, in one statement for all."""
        each = [_sums_and_cap(_checked(scope), name) for scope, name in accounts.items()]
        if not each:
            return []
        rows = self.connection.execute(sa.union_all(*each) if len(each) > 1 else each[0]).all()
        found = {(row.scope, row.name): row for row in rows}
        return [self._balance(scope, name, found[scope, name]) for scope, name in accounts.items()]

    def _balance(self, scope: Scope, name: str, row: Any) -> Balance:
        terms = read_terms(row.terms) if row.terms else None
        return Balance(
            scope=scope,
            name=name,
            cap=row.cap or 0,
            spent=int(row.spent),
            rho_cap=row.rho_cap or 0,
            rho_spent=int(row.rho_spent),
            terms=terms,
            given=self._given(name, terms) if terms else (),
        )

    def _given(self, dataset: str, terms: Terms) -> tuple[str, ...]:
        """The exact counts that were taken as known for the prices of a data set."""
        charged = sa.select(entries.c.terms).where(
            entries.c.dataset == dataset,
            entries.c.kind.in_(CHARGES),
            entries.c.terms.contains('"exact":["', autoescape=True),
        )
        losses = map(read_loss, self.connection.scalars(charged))
        found = {name for loss in losses for name in price(loss, terms, dataset=dataset).given}
        return tuple(sorted(found))

    def knows(self, scope: Scope, name: str) -> bool:
        """Whether an account ever had a cap."""
        return self._last_cap(_checked(scope), name) is not None

    def _last_cap(self, scope: Scope, name: str) -> Entry | None:
        caps = sa.select(entries).where(entries.c[scope] == name, entries.c.kind == "cap")
        last = caps.order_by(entries.c.seq.desc()).limit(1)
        row = self.connection.execute(last).mappings().first()
        return None if row is None else Entry(**row)

    def unrecorded(self, dataset: str) -> int:
        """Millionths of ε that releases cost before their neighbours were recorded."""
        before = sa.select(sa.func.coalesce(sa.func.sum(entries.c.micro), 0)).where(
            entries.c.dataset == dataset,
            entries.c.kind.in_(("reserved", "returned")),
            entries.c.charge.in_(
                sa.select(entries.c.charge).where(
                    entries.c.kind == "reserved", entries.c.note == "countwise release"
                )
            ),
        )
        return int(self.connection.scalar(before) or 0)

    def all(self, *, after: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """Entries in their order."""
        query = sa.select(entries).where(entries.c.seq > after).order_by(entries.c.seq)
        for row in self.connection.execute(query.limit(limit)).mappings():
            yield Entry(**row)

    def _append(
        self,
        kind: Kind,
        accounts: Mapping[Scope, str],
        *,
        charge: str = "",
        amount: Amount | None = None,
        terms: str = "",
        note: str,
    ) -> Entry:
        amount = amount or Amount()
        for scope, name in accounts.items():
            if not name or len(name) > LONGEST or not name.isprintable():
                raise InputError(f"the name of a {scope} has 1 to {LONGEST} printable characters.")
        last = self.connection.execute(
            sa.select(entries.c.seq, entries.c.hash).order_by(entries.c.seq.desc()).limit(1)
        ).first()
        fields: dict[str, Any] = {
            "seq": last.seq + 1 if last else 1,
            "at": self._now(),
            "kind": kind,
            "charge": charge,
            **{scope: accounts.get(scope, "") for scope in SCOPES},
            "micro": amount.epsilon,
            "note": note,
            "previous": last.hash if last else START,
            "rho": amount.rho,
            "terms": terms,
        }
        entry = Entry(**fields, hash=entry_hash(fields))
        self.connection.execute(sa.insert(entries).values(**vars(entry)))
        return entry

    def _now(self) -> str:
        """The time of an entry; where a grain is given, the begin of the slot of that length."""
        now = datetime.now(UTC)
        if self.grain:
            now = datetime.fromtimestamp(now.timestamp() // self.grain * self.grain, UTC)
        return now.isoformat(timespec="microseconds")


class Ledger:
    """A ledger in a database; the times of its entries are whole multiples of `grain` seconds."""

    def __init__(self, engine: sa.Engine, *, grain: float = 0.0) -> None:
        self.engine, self.grain = engine, grain

    @contextmanager
    def writing(self) -> Iterator[Book]:
        """The book, with no other writer beside; all that is written is stored, or none."""
        with writing(self.engine) as connection:
            yield Book(connection, grain=self.grain)

    @contextmanager
    def reading(self) -> Iterator[Book]:
        """The book, to look at."""
        with reading(self.engine) as connection:
            yield Book(connection, grain=self.grain)


def _sums_and_cap(scope: Scope, name: str) -> sa.Select[Any]:
    """What was charged to an account less what was returned, and its last cap, as one row."""
    account = entries.c[scope] == name
    charged = (
        sa.select(*(sa.func.coalesce(sa.func.sum(entries.c[unit]), 0).label(f"{unit}_spent")
                    for unit in ("micro", "rho")))
        .where(account, entries.c.kind.in_((*CHARGES, "returned")))
        .subquery()
    )  # fmt: skip
    cap = (
        sa.select(entries.c.micro, entries.c.rho, entries.c.terms)
        .where(account, entries.c.kind == "cap")
        .order_by(entries.c.seq.desc())
        .limit(1)
        .subquery()
    )
    return sa.select(
        sa.literal(scope).label("scope"),
        sa.literal(name).label("name"),
        charged.c.micro_spent.label("spent"),
        charged.c.rho_spent,
        cap.c.micro.label("cap"),
        cap.c.rho.label("rho_cap"),
        cap.c.terms,
    ).select_from(charged.outerjoin(cap, sa.true()))


def _checked(scope: Scope) -> Scope:
    if scope not in SCOPES:
        raise InputError(f"an account is one of {', '.join(SCOPES)}; got {scope!r}.")
    return scope


def _cap(amount: int, most: int, letter: str) -> int:
    if isinstance(amount, bool) or not isinstance(amount, int) or not 0 <= amount <= most:
        raise InputError(f"a cap is from 0 to 10^6 of {letter}, in whole parts; got {amount!r}.")
    return amount


def _too_little(balance: Balance, amount: Amount) -> str:
    letter, left, asked = "ε", in_epsilon(balance.left), in_epsilon(amount.epsilon)
    if amount.epsilon <= balance.left:
        letter, left, asked = "ρ", in_rho(balance.rho_left), in_rho(amount.rho)
    return (
        f"the budget of {balance.scope} {balance.name!r} has {letter} = {left} left and this asks "
        f"for {asked}. To fix, ask for less, or ask the steward for more."
    )


def _unit_in_words(terms: Terms) -> str:
    return {"epsilon": "ε", "rho": "ρ", "both": "ε and ρ"}[terms.unit]


@sa.event.listens_for(entries, "after_create")
def _refuse_changes(_: sa.Table, connection: sa.Connection, **__: Any) -> None:
    """The database itself refuses to change or remove an entry."""
    for statement in REFUSE[connection.dialect.name]:
        connection.exec_driver_sql(statement)
