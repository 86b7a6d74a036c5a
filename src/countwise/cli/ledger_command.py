"""countwise ledger: look at a ledger of privacy loss, check it, set budgets."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table
from countwise.errors import LedgerError
from countwise.front_door import ledger_functions
from countwise.front_door.ledger_functions import LAST

if TYPE_CHECKING:
    from countwise.ledger.ledger import Entry

CHARGED = ("reserved", "spent", "returned", "tabulated")

app = typer.Typer(
    no_args_is_help=True,
    help="The ledger of privacy loss that countwise serve, and release and verify --ledger share.",
)
Url = Annotated[
    str, typer.Argument(metavar="LEDGER", help="sqlite:///file or postgresql://user@host/name.")
]


@app.command(epilog="Example: countwise ledger upgrade sqlite:///ledger.db")
def upgrade(url: Url) -> None:
    """Bring a ledger of an earlier version up to date; no entry changes."""
    found = ledger_functions.ledger_upgrade(url)
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
    found = ledger_functions.ledger_check(url, receipt=receipt or (), head=head)
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
    last: Annotated[int, typer.Option(min=1, help="At most so many entries.")] = LAST,
    json: options.Json = False,
) -> None:
    """Print the last entries, and what each account has left."""
    view = ledger_functions.ledger_show(url, user=user, dataset=dataset, project=project, last=last)
    if json:
        print_json(view.to_dict())
        return
    print_table(
        ("entry", "when", "what", "costs", "accounts", "for"), list(map(_row, view.entries))
    )
    out.print()
    for each in view.accounts:
        first, *more = each.sentences()
        out.print(first, soft_wrap=True)
        for sentence in more:
            out.print(f"  {sentence}", soft_wrap=True)


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
    most: Annotated[
        str | None,
        typer.Option(help="The most ε at δ that all its caps together may come to, once said."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Give an account more to spend; makes the ledger where there is none.

    A data set counts in the units of its grants: ε, ρ, or both with a cap for each.
    """
    account = ledger_functions.ledger_grant(
        url,
        epsilon=epsilon,
        rho=rho,
        user=user,
        dataset=dataset,
        project=project,
        neighbours=neighbours,
        rows=rows,
        delta=delta,
        most=most,
    )
    if json:
        print_json(account.to_dict())
        return
    for sentence in account.sentences():
        out.print(sentence, soft_wrap=True)
