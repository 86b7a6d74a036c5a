"""A confidential table, or records of people, become a release."""

from dataclasses import replace
from pathlib import Path
from typing import Unpack, overload
from uuid import uuid4

from countwise.errors import PlanError
from countwise.front_door.charging import charged, dataset_of, payment
from countwise.front_door.release_input import (
    ReleaseInput,
    readable,
    refuse_both,
    refuse_said_again,
    with_rows,
)
from countwise.front_door.words import (
    PathLike,
    ReleaseAndFileWords,
    ReleaseWords,
    make_plan,
    spelled_out,
    with_zeros_of,
)
from countwise.progress import Tell, silent
from countwise.release import run
from countwise.release.count_sources import CountSource, HeldSource
from countwise.release.crossed_release import CrossedRelease
from countwise.release.document import Release
from countwise.release.execution import in_threads
from countwise.release.folder import refuse_existing
from countwise.release.payment import Payment
from countwise.release.pipeline import publish
from countwise.release.plan import Plan
from countwise.release.plan_loss import loss_of
from countwise.release.publication import Publication
from countwise.release.spark import OnSpark
from countwise.tables.confidential import Confidential
from countwise.tables.cut import PIECE
from countwise.tables.engines import DEFAULT
from countwise.tables.spark_session import is_spark, session
from countwise.tables.workload import Workload


@overload
def release(
    table: Confidential,
    plan: Plan | PathLike | None = None,
    *,
    tell: Tell = silent,
    **words: Unpack[ReleaseWords],
) -> Release: ...
@overload
def release(
    table: Confidential[Workload],
    plan: Plan | PathLike | None = None,
    *,
    tell: Tell = silent,
    **words: Unpack[ReleaseWords],
) -> CrossedRelease: ...
@overload
def release(
    table: object | None = None,
    plan: Plan | PathLike | None = None,
    *,
    out: PathLike | None = None,
    records: PathLike | None = None,
    count: str = "count",
    domain: PathLike | None = None,
    cells_are_public: bool = False,
    sum_duplicates: bool = False,
    engine: str = DEFAULT,
    csv: bool | None = None,
    piece: int = PIECE,
    fresh: bool = False,
    ledger: str | None = None,
    dataset: str | None = None,
    overwrite: bool = False,
    tell: Tell = silent,
    **words: Unpack[ReleaseAndFileWords],
) -> Publication: ...
@spelled_out
def release(
    table: object | None = None,
    plan: Plan | PathLike | None = None,
    *,
    out: PathLike | None = None,
    records: PathLike | None = None,
    count: str = "count",
    domain: PathLike | None = None,
    cells_are_public: bool = False,
    sum_duplicates: bool = False,
    engine: str = DEFAULT,
    csv: bool | None = None,
    piece: int = PIECE,
    fresh: bool = False,
    ledger: str | None = None,
    dataset: str | None = None,
    overwrite: bool = False,
    tell: Tell = silent,
    **words: Unpack[ReleaseAndFileWords],
) -> Publication:
    """Counts that protect people, are whole, non-negative, and add up at every level.

    The `table` is one that `read_counts` or `tabulate` made, or a file or data frame that the
    former reads; or `records` are counted into the cells of a `domain`. The `plan` is a `Plan` or
    its file, and words such as `epsilon=1` are laid over it. With `out` the release folder is
    written; a table that is too large for memory needs it, goes a piece at a time, and a stopped
    run goes on where it was. With a `ledger` the loss is charged to the `dataset` before a row is
    read, and stays charged whatever comes of the run.
    """
    folder = None if out is None else Path(out)
    if folder is not None:
        refuse_existing(folder, overwrite=overwrite)
    given = ReleaseInput(
        table=table,
        records=None if records is None else str(records),
        count=count,
        domain=None if domain is None else Path(domain),
        cells_are_public=cells_are_public,
        sum_duplicates=sum_duplicates,
        engine=engine,
        piece=piece,
        words=words,
    )
    chosen = with_zeros_of(given.domain, make_plan(plan, words))
    if isinstance(table, Confidential):
        refuse_said_again(given, chosen)
    else:
        refuse_both(given, chosen)
    counted = given.provenance
    chosen = with_rows(chosen, counted, said=plan is not None or words.get("rows"))
    dataset = dataset_of(counted.dataset, ledger, dataset)
    loss = loss_of(chosen, bounded=counted.rows is not None)
    paid = payment(ledger, loss, dataset=dataset)
    if table is not None and not isinstance(table, Confidential):
        given = readable(given, chosen)
    source = given.source(chosen)
    if folder is None:
        made = _in_memory(source, chosen, paid, tell)
    else:
        on_spark = is_spark(engine) and isinstance(source, CountSource)
        made = publish(
            source,
            chosen,
            folder,
            payment=paid,
            runner=OnSpark(session=session(engine)) if on_spark else in_threads,
            overwrite=overwrite,
            fresh=fresh,
            csv=csv,
            data_set=on_spark,
            tell=tell,
        )
    charge = charged(ledger, dataset, paid)
    return made if charge is None else replace(made, charge=charge)


def _in_memory(
    source: CountSource | HeldSource, plan: Plan, paid: Payment, tell: Tell
) -> Publication:
    """A release that is not written; it is paid for before a row is read."""
    if isinstance(source, CountSource):
        raise PlanError(
            f"a table of {source.cut.total:,} cells is released in pieces, into a folder. To fix, "
            "name it: out=…"
        )
    paid.pay(uuid4().hex)
    tell(source.stage)
    made: Publication = run.release(source.read(), plan, tell=tell)
    return made
