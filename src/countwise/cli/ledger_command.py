"""countwise ledger: look at a ledger of privacy loss, check it, set budgets."""

import json as json_format
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table
from countwise.cli.serve_command import needs_server
from countwise.errors import InputError, LedgerError
from countwise.ledger.prices import MICRO, PICO, Terms
from countwise.noise.numbers import exact

if TYPE_CHECKING:
    from countwise.ledger.ledger import Balance, Book, Entry, Ledger

CHARGED = ("reserved", "spent", "returned", "tabulated")

app = typer.Typer(
    no_args_is_help=True,
    help="The ledger of privacy loss that countwise serve, and release and verify --ledger share.",
)
Url = Annotated[
    str, typer.Argument(metavar="LEDGER", help="sqlite:///file or postgresql://user@host/name.")
]


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


@app.command(epilog="Example: countwise ledger upgrade sqlite:///ledger.db")
def upgrade(url: Url) -> None:
    """Bring a ledger of an earlier version up to date; no entry changes."""
    with ledger_at(url, make=True) as ledger, ledger.reading() as book:
        from countwise.ledger.chain import check as replay

        found = replay(book.all())
    out.print(f"Up to date: {found.length:,} entries; head {found.length}:{found.head}")


@app.command(epilog="Example: countwise ledger check sqlite:///ledger.db --receipt receipt.json")
def check(
    url: Url,
    receipt: Annotated[
        list[Path] | None,
        typer.Option(help="A receipt whose entry must be in the ledger; may be repeated."),
    ] = None,
    head: Annotated[
        str | None, typer.Option(help="SEQ:HASH of an entry noted earlier, as printed by check.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Verify the chain of hashes, every step of every charge, and every cap."""
    noted, hashes = _entries_of(receipt or [])
    if head is not None:
        seq, _, value = head.partition(":")
        if not seq.isdigit():
            raise InputError(f"head must read SEQ:HASH, got {head!r}.")
        noted[int(seq)] = value
    with ledger_at(url) as ledger, ledger.reading() as book:
        from countwise.ledger.chain import check as replay

        found = replay(book.all(), noted=noted, hashes=hashes)
    if json:
        print_json(
            {
                "whole": not found.flaws,
                "entries": found.length,
                "head": f"{found.length}:{found.head}",
                "flaws": [asdict(each) for each in found.flaws],
                "states": found.states,
            }
        )
    else:
        for flaw in found.flaws:
            out.print(f"Entry {flaw.seq}: {flaw.what}.", markup=False)
        out.print(f"{found.length:,} entries; head {found.length}:{found.head}", soft_wrap=True)
    if found.flaws:
        raise LedgerError(f"the ledger is not whole: {len(found.flaws)} flaws.")
    if not json:
        out.print("The ledger is whole.")


@app.command(epilog="Example: countwise ledger show sqlite:///ledger.db --dataset census")
def show(
    url: Url,
    user: Annotated[str, typer.Option(help="Only of this user.")] = "",
    dataset: Annotated[str, typer.Option(help="Only of this data set.")] = "",
    project: Annotated[str, typer.Option(help="Only of this project.")] = "",
    last: Annotated[int, typer.Option(min=1, help="At most so many entries.")] = 50,
    json: options.Json = False,
) -> None:
    """Print the last entries, and what each account has left."""
    wanted = {"user": user, "dataset": dataset, "project": project}
    with ledger_at(url) as ledger, ledger.reading() as book:
        chosen = [
            each
            for each in book.all()
            if all(not name or getattr(each, scope) == name for scope, name in wanted.items())
        ]
        accounts = sorted({account for each in chosen for account in each.accounts.items()})
        balances = [book.balance(scope, name) for scope, name in accounts]
        unrecorded = {name: book.unrecorded(name) for scope, name in accounts if scope == "dataset"}
    if json:
        facts = [_facts(each, unrecorded) for each in balances]
        print_json({"entries": [asdict(each) for each in chosen[-last:]], "accounts": facts})
        return
    print_table(
        ("entry", "when", "what", "costs", "accounts", "for"), list(map(_row, chosen[-last:]))
    )
    out.print()
    for each in balances:
        out.print(each.in_words(), soft_wrap=True)
        if each.scope == "dataset" and unrecorded[each.name]:
            out.print(f"  {_unrecorded(unrecorded[each.name])}", soft_wrap=True)


def _row(entry: "Entry") -> tuple[str, ...]:
    amount = entry.amount
    returned = entry.kind == "returned"
    if returned:
        amount = replace(amount, epsilon=-amount.epsilon, rho=-amount.rho)
    costs = "" if entry.kind not in ("cap", *CHARGED) else amount.in_words()
    return (
        str(entry.seq),
        entry.at[:19].replace("T", " "),
        entry.kind,
        f"-{costs}" if returned else costs,
        ", ".join(f"{scope} {name}" for scope, name in entry.accounts.items()),
        entry.note,
    )


def _facts(balance: "Balance", unrecorded: Mapping[str, int]) -> dict[str, Any]:
    """A balance for programs: millionths of ε, millionths of millionths of ρ, and the words."""
    terms = None if balance.terms is None else json_format.loads(balance.terms.to_text())
    return asdict(balance) | {
        "terms": terms,
        "unit": balance.unit,
        "left": balance.left,
        "rho_left": balance.rho_left,
        "unrecorded": unrecorded.get(balance.name, 0) if balance.scope == "dataset" else 0,
        "words": balance.in_words(),
    }


def _unrecorded(amount: int) -> str:
    from countwise.ledger.prices import in_epsilon

    return (
        f"ε = {in_epsilon(amount)} of it was charged for releases before the ledger recorded "
        "between which neighbours. Where those were others, more was lost: lower the cap by that."
    )


@app.command(epilog="Example: countwise ledger grant sqlite:///l.db --dataset census --epsilon 5")
def grant(
    url: Url,
    epsilon: Annotated[
        str | None, typer.Option(help="How much more ε may be spent: 5, 0.5, 1/3.")
    ] = None,
    rho: Annotated[
        str | None, typer.Option(help="How much more ρ (zCDP, Gaussian noise) may be spent.")
    ] = None,
    user: Annotated[str, typer.Option(help="The user it is for.")] = "",
    dataset: Annotated[str, typer.Option(help="The data set it is for.")] = "",
    project: Annotated[str, typer.Option(help="The project it is for.")] = "",
    neighbours: Annotated[
        str | None,
        typer.Option(
            help="Between which neighbours the loss of a data set is counted, once and for all: "
            "add-remove (default), replace-one, any-change."
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(min=1, help="The most rows of one person in the data set (default 1)."),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(help="With ρ: the δ at which the whole is told in ε (default 0.000001)."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Give an account more to spend; makes the ledger where there is none.

    A data set counts in the units of its grants: ε, ρ, or both with a cap for each.
    """
    named = {"user": user, "dataset": dataset, "project": project}
    chosen = [(scope, name) for scope, name in named.items() if name]
    if len(chosen) != 1:
        raise InputError("name one of --user, --dataset and --project.")
    scope, name = chosen[0]
    said = (neighbours, rows, delta)
    if scope != "dataset" and any(each is not None for each in said):
        raise InputError("--neighbours, --rows and --delta are of a data set.")
    if epsilon is None and rho is None and (scope != "dataset" or said == (None, None, None)):
        raise InputError("nothing is granted. To fix, add --epsilon 1, or --rho 0.1.")
    more, more_rho = _whole(epsilon, "epsilon"), _whole(rho, "rho")
    fraction = None if delta is None else exact(delta, what="delta")
    with ledger_at(url, make=True) as ledger, ledger.writing() as book:
        terms = None
        if scope == "dataset":
            terms = _terms(book, name, bool(more), bool(more_rho), neighbours, rows, fraction)
        how: Any = scope
        book.grant(how, name, more, rho=more_rho, terms=terms, note="granted on the command line")
        balance = book.balance(how, name)
        before = book.unrecorded(name) if scope == "dataset" else 0
    if json:
        print_json(_facts(balance, {name: before}))
        return
    out.print(balance.in_words(), soft_wrap=True)
    if before:
        out.print(_unrecorded(before), soft_wrap=True)


def _whole(text: str | None, what: str) -> int:
    """A number in the ledger's whole parts, rounded down: never more is granted than was said."""
    if text is None:
        return 0
    return int(exact(text, what=what) * (MICRO if what == "epsilon" else PICO))


def _terms(
    book: "Book",
    dataset: str,
    epsilon: bool,
    rho: bool,
    neighbours: str | None,
    rows: int | None,
    delta: Fraction | None,
) -> Terms | None:
    """How a data set is counted from now on; None where that stays open, as it was before."""
    before = book.balance("dataset", dataset)
    said = {"neighbours": neighbours, "rows": rows, "delta": delta}
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


def _entries_of(receipts: list[Path]) -> tuple[dict[int, str], set[str]]:
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
        found: dict[str, Any] = json_format.loads(path.read_text(encoding="utf-8"))["ledger"]
        known = found["hash"] if "entry" in found else found["charged"]
        int(found.get("entry", 0)), str(known)
        return found
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not a receipt.") from None
