"""countwise verify recompute, and how any answer is printed and written."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table
from countwise.cli.verify.verify_options import Border, Page
from countwise.front_door.verify import verify_functions
from countwise.verification.answer import Answer
from countwise.verification.rules import RULES
from countwise.verification.wording import LEVEL

EXAMPLE = "Example: countwise verify recompute answer.json"


def recompute_answer(
    file: Annotated[
        Path, typer.Argument(metavar="ANSWER", help="An answer, or a signed receipt, in JSON.")
    ],
    border: Border = None,
    page: Page = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Compute the posterior of an answer again, from its published fields alone.

    With --border the same noisy counts are read with that border.
    """
    again = verify_functions.verify_recompute(file, border=border, page=page, overwrite=overwrite)
    print_answer(again, None, page, json=json)


def print_answer(given: Answer, out_file: Path | None, page: Path | None, *, json: bool) -> None:
    """An answer, and the files it was written to."""
    if json:
        print_json(given.to_dict())
        return
    if "claim" in given.asked:
        out.print(f"Claim: {given.asked['claim']}", markup=False, soft_wrap=True)
        out.print(f"Model: {given.asked['model']}\n", markup=False, soft_wrap=True)
    for sentence in given.sentences():
        out.print(sentence, markup=False)
    out.print()
    print_table(
        ("outcome", "noisy partitions", "median share", f"{LEVEL:.0%} interval"),
        [
            (name, f"{noisy:g}", *_share(given, j))
            for j, (name, noisy) in enumerate(zip(given.outcomes, given.noisy, strict=True))
        ],
    )
    out.print(f"\n{given.privacy}", markup=False)
    out.print(f"\n{given.meaning}", markup=False)
    out.print(f"\n{RULES}", markup=False)
    for each in (out_file, page):
        if each is not None:
            out.print(f"Written: {each}", markup=False)


def _share(given: Answer, j: int) -> tuple[str, str]:
    found = given.shares[j][1] if j in given.fitted else given.posterior.share([j]).summary(LEVEL)
    return f"{found.median:.3f}", f"{found.lower:.3f} to {found.upper:.3f}"
