"""countwise receipt: check a signed receipt offline."""

import json as json_format
from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json
from countwise.errors import AnswerError
from countwise.verification.receipt import check_receipt

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
    try:
        receipt = json_format.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise AnswerError(f"{file}: there is no such file.") from None
    except (ValueError, RecursionError):
        raise AnswerError(f"{file}: not a receipt in JSON.") from None
    again = check_receipt(receipt, trusted=key)
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
