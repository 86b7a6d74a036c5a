"""Whether a ledger is whole: every hash, every step of a charge, and every cap, replayed."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from countwise.privacy.ledger import AFTER, KINDS, SCOPES, START, Entry, Kind, Scope, entry_hash

Account = tuple[Scope, str]


@dataclass(frozen=True, kw_only=True)
class Flaw:
    """What is wrong, and at which entry."""

    seq: int
    what: str


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The flaws of a ledger, its last entry, and what was spent by every account."""

    flaws: tuple[Flaw, ...]
    length: int
    head: str
    spent: dict[Account, int]
    states: dict[Kind, int]


def check(entries: Iterable[Entry], *, noted: dict[int, str] | None = None) -> Finding:
    """Replay a ledger; `noted` are hashes of entries known from elsewhere, such as receipts.

    The chain finds an entry changed, removed or put in between. A ledger cut off at its end, or
    written anew from some entry on, is found where a later hash was noted elsewhere.
    """
    missing = dict(noted or {})
    flaws: list[Flaw] = []
    head, length = START, 0
    states: dict[str, Entry] = {}
    reserved: dict[str, Entry] = {}
    caps: dict[Account, int] = defaultdict(int)
    spent: dict[Account, int] = defaultdict(int)
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
        accounts = list(entry.accounts.items())
        if entry.kind == "cap":
            if len(accounts) != 1:
                flaw("a cap must name one account")
            caps.update(dict.fromkeys(accounts, entry.micro))
            continue
        _step(entry, states, reserved, flaw)
        for account in accounts:
            spent[account] += entry.micro
            if entry.kind == "reserved" and spent[account] > caps[account]:
                flaw(f"{account[0]} {account[1]!r} spent more than its cap")
    flaws += [Flaw(seq=seq, what="was noted, and is not there") for seq in missing]
    counts: dict[Kind, int] = dict.fromkeys(KINDS, 0)
    for entry in states.values():
        counts[entry.kind] += 1
    order = sorted(spent, key=lambda account: (SCOPES.index(account[0]), account[1]))
    return Finding(
        flaws=tuple(flaws),
        length=length,
        head=head,
        spent={account: spent[account] for account in order},
        states=counts,
    )


def _step(
    entry: Entry,
    states: dict[str, Entry],
    reserved: dict[str, Entry],
    flaw: Callable[[str], None],
) -> None:
    """One step of a charge: in the right order, at the right price, on the same accounts."""
    before = states.get(entry.charge)
    states[entry.charge] = entry
    if entry.kind == "reserved":
        if before is not None or entry.micro < 1:
            flaw("a charge is reserved once, at a positive price")
        reserved[entry.charge] = entry
        return
    first = reserved.get(entry.charge)
    if before is None or first is None or before.kind not in AFTER.get(entry.kind, ()):
        flaw(f"a charge can not become {entry.kind} here")
        return
    price = -first.micro if entry.kind == "returned" else 0
    if entry.micro != price or entry.accounts != first.accounts:
        flaw("does not have the price and accounts of its charge")
