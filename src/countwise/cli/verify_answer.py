"""countwise verify recompute, and how any answer is printed and written."""

import json as json_format
from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table
from countwise.cli.verify_options import Border, Page
from countwise.errors import AnswerError
from countwise.release.folder import whole
from countwise.reports.verification_page import answer_page
from countwise.verification.answer import Answer, disagreements, recompute
from countwise.verification.receipt import check_receipt
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
    try:
        stated = json_format.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise AnswerError(f"{file}: there is no such file.") from None
    except (ValueError, RecursionError):
        raise AnswerError(f"{file}: not an answer in JSON.") from None
    if isinstance(stated, dict) and "receipt" in stated:
        give(_relying_on(check_receipt(stated), border), None, page, overwrite, json)
        return
    again = recompute(stated)
    different = disagreements(stated, again)
    if different:
        raise AnswerError(
            f"{file}: {', '.join(different)} can not come from its noisy counts. The answer was "
            "changed, or made with other rules."
        )
    give(_relying_on(again, border), None, page, overwrite, json)


def _relying_on(given: Answer, border: float | None) -> Answer:
    return given if border is None else given.relying_on(border)


def give(
    given: Answer, out_file: Path | None, page: Path | None, overwrite: bool, json: bool
) -> None:
    """Write and print an answer."""
    fields = given.to_dict()
    if out_file is not None:
        with whole(out_file, overwrite=overwrite) as partial:
            text = json_format.dumps(fields, indent=2, ensure_ascii=False)
            partial.write_text(text + "\n", encoding="utf-8")
    if page is not None:
        with whole(page, overwrite=overwrite) as partial:
            partial.write_text(answer_page(given), encoding="utf-8")
    if json:
        print_json(fields)
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
