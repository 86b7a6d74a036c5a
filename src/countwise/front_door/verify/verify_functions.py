"""Whether a finding holds in confidential data; answers and receipts computed again."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from countwise.errors import AnswerError, InputError
from countwise.examples.workers import write_example
from countwise.front_door.charging import charged, payment
from countwise.front_door.output_files import write_text
from countwise.front_door.words import PathLike, names
from countwise.noise.numbers import Number
from countwise.progress import Tell, counted, silent
from countwise.release.folder import refuse_existing, whole
from countwise.reports.verification_page import answer_page
from countwise.verification.answer import Answer, disagreements, recompute
from countwise.verification.answer import answer as answer_of
from countwise.verification.question import Question
from countwise.verification.receipt import check_receipt
from countwise.verification.records import check_columns, read_records
from countwise.verification.request import make_request
from countwise.verification.request_loss import loss_of
from countwise.verification.schema import read_schema
from countwise.verification.verify import STAGES
from countwise.verification.verify import verify as noisy_counts

PARTITIONS = 50
"""M unless another is asked for: ε = 1 then gives a verdict on findings that are clear."""


def verify(
    data: PathLike | None = None,
    *,
    schema: PathLike,
    model: str,
    claim: str,
    epsilon: Number,
    partitions: int = PARTITIONS,
    family: str = "ols",
    mechanism: str = "lattice",
    alpha: str | float | Sequence[float] = 1,
    border: float | None = None,
    skewness: float | None = None,
    table: str | None = None,
    rehearse: PathLike | None = None,
    out: PathLike | None = None,
    page: PathLike | None = None,
    ledger: str | None = None,
    dataset: str | None = None,
    overwrite: bool = False,
    tell: Tell = silent,
) -> Answer:
    """Fit the model in M partitions, count where the claim holds, and answer with noise.

    The `data` are a file, or a database with its `table`; synthetic rows to `rehearse` on spend
    nothing. With a `ledger` the loss is charged to the `dataset` before a row is read, and stays
    charged. The answer is written to `out` as JSON, and to a `page` with the plot.
    """
    if (data is None) is (rehearse is None):
        raise InputError("give the data, or synthetic data with --rehearse, and not both.")
    if rehearse is not None and (ledger or dataset):
        raise InputError("a rehearsal spends nothing. To fix, leave --ledger and --dataset out.")
    for each in (out, page):
        if each is not None:
            refuse_existing(Path(each), overwrite=overwrite)
    request = make_request(
        read_schema(Path(schema)),
        Question(
            model=model,
            claim=claim,
            epsilon=epsilon,
            partitions=partitions,
            family=family,
            mechanism=mechanism,
            alpha=numbers(alpha, what="alpha"),
        ),
        border=border,
        skewness=skewness,
    )
    if data is not None:
        check_columns(str(data), request.schema, columns=request.columns, table=table)
    loss = loss_of(request, dataset=dataset or "", version="")
    paid = payment(ledger, loss, dataset=dataset)
    paid.pay(uuid4().hex)
    tell = counted(tell, len(STAGES) + 1)
    tell("reading")
    records = read_records(
        str(data if rehearse is None else rehearse),
        request.schema,
        columns=request.columns,
        table=table,
        synthetic=rehearse is not None,
    )
    noisy = noisy_counts(records, request, tell=tell)
    found = answer_of(noisy, request, rehearsal=rehearse is not None)
    _save(found, out, page, overwrite=overwrite)
    charge = charged(ledger, dataset, paid)
    return found if charge is None else replace(found, charge=charge)


def numbers(given: str | float | Sequence[float], *, what: str) -> tuple[float, ...]:
    """One number, or several, which may be text with commas."""
    parts: Sequence[Any] = [given] if isinstance(given, (int, float)) else names(given)  # type: ignore[arg-type]
    try:
        found = tuple(float(part) for part in parts)
    except ValueError:
        found = ()
    if not found or not all(np.isfinite(found)):
        raise InputError(f"{what} must be a number or several with commas, got {given!r}.")
    return found


def whole_list(given: str | int | Sequence[int], *, what: str) -> list[int]:
    """One whole number, or several, which may be text with commas."""
    found = numbers(given, what=what)
    if any(each != int(each) for each in found):
        raise InputError(f"{what} must be a whole number or several with commas, got {given!r}.")
    return list(map(int, found))


def _save(found: Answer, out: PathLike | None, page: PathLike | None, *, overwrite: bool) -> None:
    if out is not None:
        text = json.dumps(found.to_dict(), indent=2, ensure_ascii=False) + "\n"
        write_text(text, Path(out), overwrite=overwrite)
    if page is not None:
        write_text(answer_page(found), Path(page), overwrite=overwrite)


def verify_recompute(
    answer: PathLike,
    *,
    border: float | None = None,
    page: PathLike | None = None,
    overwrite: bool = False,
) -> Answer:
    """Compute the posterior of an answer again, from its published fields alone.

    The file is an answer, or a signed receipt. With a `border` the same noisy counts are read with
    that.
    """
    file = Path(answer)
    stated = _read_json(file, "an answer")
    if isinstance(stated, dict) and "receipt" in stated:
        again = check_receipt(stated)
    else:
        again = recompute(stated)
        different = disagreements(stated, again)
        if different:
            raise AnswerError(
                f"{file}: {', '.join(different)} can not come from its noisy counts. The answer "
                "was changed, or made with other rules."
            )
    found = again if border is None else again.relying_on(border)
    _save(found, None, page, overwrite=overwrite)
    return found


def receipt_check(receipt: PathLike | dict[str, Any], *, key: str | None = None) -> Answer:
    """The answer of a receipt whose signature fits, with its posterior computed again.

    Needs no network and no server. Without the office's public `key` it only proves to be whole.
    """
    signed = receipt if isinstance(receipt, dict) else read_receipt(receipt)
    return check_receipt(signed, trusted=key)


def read_receipt(file: PathLike) -> Any:
    """What a receipt says."""
    return _read_json(Path(file), "a receipt")


def _read_json(file: Path, what: str) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise AnswerError(f"{file}: there is no such file.") from None
    except (ValueError, RecursionError):
        raise AnswerError(f"{file}: not {what} in JSON.") from None


def verify_example(out: PathLike) -> tuple[str, ...]:
    """Write a small made-up data set, its schema and its synthetic twin; the names of the files."""
    with whole(Path(out), overwrite=False) as partial:
        return write_example(partial)
