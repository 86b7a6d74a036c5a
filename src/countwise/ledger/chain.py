"""Whether a ledger is whole: every hash, every step of a charge, and every cap, replayed."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from countwise.errors import BudgetError, InputError
from countwise.ledger.ledger import (
    AFTER,
    CHARGES,
    KINDS,
    SCOPES,
    START,
    Entry,
    Kind,
    Scope,
    entry_hash,
)
from countwise.ledger.prices import Amount, Terms, price, read_loss, read_terms

Account = tuple[Scope, str]


@dataclass(frozen=True, kw_only=True)
class Flaw:
    """What is wrong, and at which entry."""

    seq: int
    what: str


@dataclass(frozen=True, kw_only=True)
class LedgerCheck:
    """The flaws of a ledger, its last entry, and what was spent by every account (ε, and ρ)."""

    flaws: tuple[Flaw, ...]
    length: int
    head: str
    spent: dict[Account, int]
    rho_spent: dict[Account, int]
    states: dict[Kind, int]


def check(
    entries: Iterable[Entry],
    *,
    noted: dict[int, str] | None = None,
    hashes: Collection[str] = (),
) -> LedgerCheck:
    """Replay a ledger with its prices and caps.

    `noted` are hashes of entries known from elsewhere by their place, such as heads, and `hashes`
    those that are known without, such as those of receipts.
    The chain finds an entry changed, removed or put in between. A ledger cut off at its end, or
    written anew from some entry on, is found where a later hash was noted elsewhere.
    """
    missing, unseen = dict(noted or {}), set(hashes)
    flaws: list[Flaw] = []
    head, length = START, 0
    states: dict[str, Entry] = {}
    reserved: dict[str, Entry] = {}
    caps: dict[Account, Amount] = defaultdict(Amount)
    spent: dict[Account, Amount] = defaultdict(Amount)
    terms: dict[str, Terms] = {}
    for entry in entries:
        length += 1

        def flaw(what: str, seq: int = entry.seq) -> None:
            flaws.append(Flaw(seq=seq, what=what))

        if entry.seq != length:
            flaw(f"entry {length} is missing")
            length = entry.seq
        if entry.previous != head:
            flaw("does not follow from the entry before it")
        if entry_hash(vars(entry)) != entry.hash:
            flaw("was changed: its hash is not that of its fields")
        if missing.pop(entry.seq, entry.hash) != entry.hash:
            flaw("is not the entry whose hash was noted")
        head = entry.hash
        unseen.discard(head)
        accounts = list(entry.accounts.items())
        if entry.kind == "cap":
            if len(accounts) != 1:
                flaw("a cap must name one account")
            caps.update(dict.fromkeys(accounts, entry.amount))
            _fix(entry, terms, spent, flaw)
            continue
        _step(entry, states, reserved, flaw)
        _priced(entry, terms, flaw)
        for account in accounts:
            spent[account] = total = _sum(spent[account], entry.amount)
            if entry.kind in CHARGES and (
                total.epsilon > caps[account].epsilon or total.rho > caps[account].rho
            ):
                flaw(f"{account[0]} {account[1]!r} spent more than its cap")
    flaws += [Flaw(seq=seq, what="was noted, and is not there") for seq in missing]
    flaws += [Flaw(seq=length, what=f"no entry has the noted hash {each}") for each in unseen]
    counts: dict[Kind, int] = dict.fromkeys(KINDS, 0)
    for entry in states.values():
        counts[entry.kind] += 1
    order = sorted(spent, key=lambda account: (SCOPES.index(account[0]), account[1]))
    return LedgerCheck(
        flaws=tuple(flaws),
        length=length,
        head=head,
        spent={account: spent[account].epsilon for account in order},
        rho_spent={account: spent[account].rho for account in order},
        states=counts,
    )


def _sum(one: Amount, other: Amount) -> Amount:
    return Amount(epsilon=one.epsilon + other.epsilon, rho=one.rho + other.rho)


def _fix(
    entry: Entry,
    terms: dict[str, Terms],
    spent: dict[Account, Amount],
    flaw: Callable[[str], None],
) -> None:
    """How a data set is counted does not change once something was charged."""
    try:
        now = read_terms(entry.terms) if entry.terms else None
    except (ValueError, TypeError, KeyError, InputError):
        flaw("has terms that can not be read")
        return
    before = terms.get(entry.dataset)
    if before is not None and now != before and spent["dataset", entry.dataset] != Amount():
        flaw(f"changes how data set {entry.dataset!r} is counted after it was charged")
    if now is not None:
        terms[entry.dataset] = now


def _priced(entry: Entry, terms: dict[str, Terms], flaw: Callable[[str], None]) -> None:
    """A charge that says what it is for has the price of that."""
    if not entry.terms or entry.kind == "tabulated":
        return
    try:
        loss = read_loss(entry.terms)
        expected = price(loss, terms.get(entry.dataset), dataset=entry.dataset).amount
    except (ValueError, TypeError, KeyError, InputError):
        flaw("says what it is for in a way that can not be read")
    except BudgetError:
        flaw("charges what has no price in its data set")
    else:
        if entry.amount != expected:
            flaw("is not the price of what it says")


def _step(
    entry: Entry,
    states: dict[str, Entry],
    reserved: dict[str, Entry],
    flaw: Callable[[str], None],
) -> None:
    """One step of a charge: in the right order, at the right price, on the same accounts."""
    before = states.get(entry.charge)
    states[entry.charge] = entry
    amount = entry.amount
    if entry.kind in (*CHARGES, "tabulated"):
        if before is not None:
            flaw("a charge begins once")
        if min(amount.epsilon, amount.rho) < 0 or (
            (amount == Amount()) is not (entry.kind == "tabulated")
        ):
            flaw("a charge has a positive price, and cells that are counted have none")
        if entry.kind == "reserved":
            reserved[entry.charge] = entry
        return
    first = reserved.get(entry.charge)
    if before is None or first is None or before.kind not in AFTER.get(entry.kind, ()):
        flaw(f"a charge can not become {entry.kind} here")
        return
    back = Amount(epsilon=-first.micro, rho=-first.rho)
    if (
        amount != (back if entry.kind == "returned" else Amount())
        or entry.accounts != first.accounts
    ):
        flaw("does not have the price and accounts of its charge")
