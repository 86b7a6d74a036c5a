"""countwise receipt: check a signed receipt offline."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json
from countwise.front_door.verify.verify_functions import read_receipt, receipt_check

app = typer.Typer(no_args_is_help=True, help="Receipts of the verification server.")


@app.callback()
def receipts() -> None:
    """Receipts of the verification server."""


@app.command(epilog="Example: countwise receipt check receipt.json --key 3b6a27bc…")
def check(
    file: Annotated[Path, typer.Argument(metavar="RECEIPT", help="A receipt in JSON.")],
    key: Annotated[
        str | None,
        typer.Option(help="The office's public key, in hexadecimal; GET /api/v1/key shows it."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Check the signature and compute the posterior again. Needs no network and no server."""
    receipt = read_receipt(file)
    again = receipt_check(receipt, key=key)
    if json:
        print_json(
            {
                "whole": True,
                "trusted": key is not None,
                "key": receipt["key"],
                "dataset": receipt["dataset"],
                "charge": receipt["charge"],
                "ledger": receipt["ledger"],
                "verdict": again.verdict,
            }
        )
        return
    out.print("The signature fits, and the posterior follows from the noisy counts.")
    if key is None:
        out.print(f"Signed by {receipt['key']}: compare it with the office's key.", soft_wrap=True)
    for sentence in again.sentences():
        out.print(sentence, markup=False)
