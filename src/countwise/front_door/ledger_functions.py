"""The ledger of privacy loss from Python: look at it, check it, set budgets."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from countwise.errors import InputError
from countwise.front_door.server_functions import needs_server
from countwise.ledger.prices import MICRO, PICO, Terms, in_epsilon
from countwise.noise.numbers import Number, exact

if TYPE_CHECKING:
    from countwise.ledger.chain import LedgerCheck
    from countwise.ledger.ledger import Balance, Book, Entry, Ledger

LAST = 50
"""Entries that are shown unless more are asked for: a screen or two."""


@contextmanager
def ledger_at(url: str, *, make: bool = False) -> Iterator["Ledger"]:
    """The ledger at a URL; a new one only where that was asked for."""
    needs_server()
    import sqlalchemy as sa

    from countwise.ledger.ledger import Ledger
    from countwise.ledger.storage import open_engine, told
    from countwise.server.database_versions import is_current
    from countwise.server.database_versions import upgrade as bring_up_to_date

    parsed = url.removeprefix("sqlite:///")
    if not make and parsed != url and not Path(parsed).is_file():
        raise InputError(f"{parsed}: there is no such ledger.")
    engine = open_engine(url)
    try:
        with told(engine):
            if make:
                bring_up_to_date(engine)
            elif not is_current(engine) or not sa.inspect(engine).has_table("ledger_entries"):
                raise InputError(_of_another_version(engine, url))
        yield Ledger(engine)
    finally:
        engine.dispose()


def _of_another_version(engine: Any, url: str) -> str:
    import sqlalchemy as sa

    if sa.inspect(engine).has_table("ledger_entries"):
        return (
            "the ledger was made by an earlier version of countwise. To fix, bring it up to date "
            f"(nothing in it changes): countwise ledger upgrade {url}"
        )
    return "the database holds no ledger of countwise."


@dataclass(frozen=True, kw_only=True)
class AccountBalance:
    """What an account has left, and what of it was charged before relations were recorded."""

    balance: "Balance"
    unrecorded: int

    def to_dict(self) -> dict[str, Any]:
        """For programs: millionths of ε, millionths of millionths of ρ, and the words."""
        balance = self.balance
        terms = None if balance.terms is None else json.loads(balance.terms.to_text())
        return asdict(balance) | {
            "terms": terms,
            "unit": balance.unit,
            "left": balance.left,
            "rho_left": balance.rho_left,
            "unrecorded": self.unrecorded,
            "words": balance.in_words(),
        }

    def sentences(self) -> list[str]:
        """For people."""
        if not self.unrecorded:
            return [self.balance.in_words()]
        return [
            self.balance.in_words(),
            f"ε = {in_epsilon(self.unrecorded)} of it was charged for releases before the ledger "
            "recorded between which neighbours. Where those were others, more was lost: lower the "
            "cap by that.",
        ]


def _account(book: "Book", scope: Any, name: str) -> AccountBalance:
    unrecorded = book.unrecorded(name) if scope == "dataset" else 0
    return AccountBalance(balance=book.balance(scope, name), unrecorded=unrecorded)


def ledger_upgrade(ledger: str) -> "LedgerCheck":
    """Bring a ledger of an earlier version up to date; no entry changes."""
    with ledger_at(ledger, make=True) as opened, opened.reading() as book:
        from countwise.ledger.chain import check

        return check(book.all())


def ledger_check(
    ledger: str, *, receipt: Sequence[str | Path] = (), head: str | None = None
) -> "LedgerCheck":
    """Verify the chain of hashes, every step of every charge, and every cap.

    The entries of receipts, and the `head` that was noted earlier, must be in it. What is wrong is
    in the `flaws` of the result.
    """
    noted, hashes = _entries_of([Path(each) for each in receipt])
    if head is not None:
        seq, _, value = head.partition(":")
        if not seq.isdigit():
            raise InputError(f"head must read SEQ:HASH, got {head!r}.")
        noted[int(seq)] = value
    with ledger_at(ledger) as opened, opened.reading() as book:
        from countwise.ledger.chain import check

        return check(book.all(), noted=noted, hashes=hashes)


@dataclass(frozen=True, kw_only=True)
class LedgerView:
    """The last entries of a ledger, and what each account in it has left."""

    entries: "list[Entry]"
    accounts: list[AccountBalance]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "entries": [asdict(each) for each in self.entries],
            "accounts": [each.to_dict() for each in self.accounts],
        }


def ledger_show(
    ledger: str, *, user: str = "", dataset: str = "", project: str = "", last: int = LAST
) -> LedgerView:
    """The last entries, of one user, data set or project if named, and what each account has."""
    wanted = {"user": user, "dataset": dataset, "project": project}
    with ledger_at(ledger) as opened, opened.reading() as book:
        chosen = [
            each
            for each in book.all()
            if all(not name or getattr(each, scope) == name for scope, name in wanted.items())
        ]
        accounts = sorted({account for each in chosen for account in each.accounts.items()})
        balances = [_account(book, *each) for each in accounts]
    return LedgerView(entries=chosen[-last:], accounts=balances)


def ledger_grant(
    ledger: str,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    user: str = "",
    dataset: str = "",
    project: str = "",
    neighbours: str | None = None,
    rows: int | None = None,
    delta: Number | None = None,
    most: Number | None = None,
) -> AccountBalance:
    """Give an account more to spend; makes the ledger where there is none.

    A data set counts in the units of its grants: ε, ρ, or both with a cap for each; between which
    `neighbours`, with how many `rows` of a person, at which `delta` ρ is told in ε, and which ε
    there is the `most` that all caps together may come to, is said once. Never more is granted than
    was said: the ledger's whole parts are rounded down.
    """
    named = {"user": user, "dataset": dataset, "project": project}
    chosen = [(scope, name) for scope, name in named.items() if name]
    if len(chosen) != 1:
        raise InputError("name one of --user, --dataset and --project.")
    scope, name = chosen[0]
    said = (neighbours, rows, delta, most)
    if scope != "dataset" and any(each is not None for each in said):
        raise InputError("--neighbours, --rows, --delta and --most are of a data set.")
    if epsilon is None and rho is None and (scope != "dataset" or said == (None,) * 4):
        raise InputError("nothing is granted. To fix, add --epsilon 1, or --rho 0.1.")
    more, more_rho = _whole(epsilon, "epsilon"), _whole(rho, "rho")
    at: dict[str, Fraction] = {
        word: exact(number, what=word)
        for word, number in (("delta", delta), ("most", most))
        if number is not None
    }
    with ledger_at(ledger, make=True) as opened, opened.writing() as book:
        terms = None
        if scope == "dataset":
            terms = _terms(book, name, bool(more), bool(more_rho), neighbours, rows, at)
        how: Any = scope
        book.grant(how, name, more, rho=more_rho, terms=terms, note="granted on the command line")
        return _account(book, how, name)


def _whole(given: Number | None, what: str) -> int:
    """A number in the ledger's whole parts, rounded down."""
    if given is None:
        return 0
    return int(exact(given, what=what) * (MICRO if what == "epsilon" else PICO))


def _terms(
    book: "Book",
    dataset: str,
    epsilon: bool,
    rho: bool,
    neighbours: str | None,
    rows: int | None,
    at: Mapping[str, Fraction],
) -> Terms | None:
    """How a data set is counted from now on; None where that stays open, as it was before."""
    before = book.balance("dataset", dataset)
    said = {"neighbours": neighbours, "rows": rows, **at}
    given: dict[str, Any] = {word: each for word, each in said.items() if each is not None}
    known = before.terms is not None or book.knows("dataset", dataset)
    if before.terms is None and known and neighbours is None:
        if given or rho:
            raise InputError(
                f"the ledger does not say yet whose change it counts for data set {dataset!r}. To "
                "fix, add --neighbours add-remove (or replace-one, any-change)."
            )
        return None
    base = before.terms or Terms()
    units = {"epsilon": epsilon, "rho": rho}
    if before.terms is not None:
        units = {unit: more or base.unit in (unit, "both") for unit, more in units.items()}
    elif known:
        units["epsilon"] = True
    chosen = [unit for unit, wanted in units.items() if wanted] or ["epsilon"]
    unit: Any = chosen[0] if len(chosen) == 1 else "both"
    return replace(base, unit=unit, **given)


def _entries_of(receipts: Sequence[Path]) -> tuple[dict[int, str], set[str]]:
    """The hashes of entries that receipts have: by place in those of format 1, and without."""
    noted, hashes = dict[int, str](), set[str]()
    for entry in map(_receipt_entries, receipts):
        if "entry" in entry:
            noted[int(entry["entry"])] = str(entry["hash"])
        else:
            hashes |= {str(entry[name]) for name in ("charged", "released") if entry[name]}
    return noted, hashes


def _receipt_entries(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["ledger"]
        known = found["hash"] if "entry" in found else found["charged"]
        int(found.get("entry", 0)), str(known)
        return found
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not a receipt.") from None
