"""countwise ledger: look at a ledger of privacy loss, check it, set budgets."""

import json as json_format
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table
from countwise.cli.serve import needs_server
from countwise.errors import InputError, LedgerError

if TYPE_CHECKING:
    from countwise.privacy.ledger import Ledger

app = typer.Typer(
    no_args_is_help=True,
    help="The ledger of privacy loss that countwise serve and countwise release --ledger share.",
)
Url = Annotated[
    str, typer.Argument(metavar="LEDGER", help="sqlite:///file or postgresql://user@host/name.")
]


def open_ledger(url: str, *, make: bool = False) -> "Ledger":
    """The ledger at a URL; a new one only where that was asked for."""
    needs_server()
    import sqlalchemy as sa

    from countwise.privacy.ledger import Ledger
    from countwise.privacy.storage import open_engine
    from countwise.server.schema import is_current, upgrade

    parsed = url.removeprefix("sqlite:///")
    if not make and parsed != url and not Path(parsed).is_file():
        raise InputError(f"{parsed}: there is no such ledger.")
    engine = open_engine(url)
    if make:
        upgrade(engine)
    elif not is_current(engine) or not sa.inspect(engine).has_table("ledger_entries"):
        raise InputError("the database holds no ledger of this version of countwise.")
    return Ledger(engine)


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
    ledger = open_ledger(url)
    from countwise.privacy.chain import check as replay

    noted = dict(map(_receipt_entry, receipt or []))
    if head is not None:
        seq, _, value = head.partition(":")
        if not seq.isdigit():
            raise InputError(f"head must read SEQ:HASH, got {head!r}.")
        noted[int(seq)] = value
    with ledger.reading() as book:
        found = replay(book.all(), noted=noted)
    ledger.engine.dispose()
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
    ledger = open_ledger(url)
    from countwise.privacy.ledger import in_epsilon

    wanted = {"user": user, "dataset": dataset, "project": project}
    with ledger.reading() as book:
        chosen = [
            each
            for each in book.all()
            if all(not name or getattr(each, scope) == name for scope, name in wanted.items())
        ]
        accounts = sorted({account for each in chosen for account in each.accounts.items()})
        balances = [book.balance(scope, name) for scope, name in accounts]
    ledger.engine.dispose()
    if json:
        print_json(
            {
                "entries": [asdict(each) for each in chosen[-last:]],
                "accounts": [asdict(each) | {"left": each.left} for each in balances],
            }
        )
        return
    print_table(
        ("entry", "when", "what", "ε", "user", "data set", "project", "charge"),
        [
            (
                str(each.seq),
                each.at[:19],
                each.kind,
                f"{'-' if each.micro < 0 else ''}{in_epsilon(abs(each.micro))}",
                each.user,
                each.dataset,
                each.project,
                each.charge[:8],
            )
            for each in chosen[-last:]
        ],
    )
    out.print()
    print_table(
        ("account", "cap", "spent", "left"),
        [
            (f"{b.scope} {b.name}", in_epsilon(b.cap), in_epsilon(b.spent), in_epsilon(b.left))
            for b in balances
        ],
    )


@app.command(epilog="Example: countwise ledger grant sqlite:///l.db --dataset census --epsilon 5")
def grant(
    url: Url,
    epsilon: Annotated[str, typer.Option(help="How much more may be spent: 5, 0.5, 1/3.")],
    user: Annotated[str, typer.Option(help="The user it is for.")] = "",
    dataset: Annotated[str, typer.Option(help="The data set it is for.")] = "",
    project: Annotated[str, typer.Option(help="The project it is for.")] = "",
    json: options.Json = False,
) -> None:
    """Give an account more to spend; makes the ledger where there is none."""
    named = {"user": user, "dataset": dataset, "project": project}
    chosen = [(scope, name) for scope, name in named.items() if name]
    if len(chosen) != 1:
        raise InputError("name one of --user, --dataset and --project.")
    ledger = open_ledger(url, make=True)
    from countwise.privacy.epsilon import exact
    from countwise.privacy.ledger import MICRO, in_epsilon

    scope, name = chosen[0]
    with ledger.writing() as book:
        book.grant(scope, name, int(exact(epsilon) * MICRO), note="granted on the command line")  # type: ignore[arg-type]
        balance = book.balance(scope, name)  # type: ignore[arg-type]
    ledger.engine.dispose()
    if json:
        print_json(asdict(balance) | {"left": balance.left})
    else:
        out.print(f"{scope} {name} has ε = {in_epsilon(balance.left)} left.", markup=False)


def _receipt_entry(path: Path) -> tuple[int, str]:
    try:
        entry = json_format.loads(path.read_text(encoding="utf-8"))["ledger"]
        return int(entry["entry"]), str(entry["hash"])
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not a receipt.") from None
