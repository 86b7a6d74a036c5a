"""A release in pieces: measured, adjusted and written a subtree at a time, and resumed if stopped.

The folder it writes is that of any release. Memory holds the top of the tree and a few pieces.
"""

import json
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from countwise.adjust.adjustments import ADJUSTMENTS
from countwise.errors import CountwiseError, InputError, PlanError
from countwise.ledger.prices import Charge
from countwise.noise import entropy
from countwise.pages.imprint import Imprint, today
from countwise.progress import Report, unheard
from countwise.release.budget import Budget
from countwise.release.certificate import certificate, exact_nodes
from countwise.release.checkpoints import Staging, identity_of, opened
from countwise.release.count_ranges import METHODS, Ranges
from countwise.release.count_sources import CountSource
from countwise.release.document import Release
from countwise.release.execution import Runner, StageRunner, in_threads
from countwise.release.feasible import refuse_undrawable
from countwise.release.folder import discard, put_in_place, refuse_existing
from countwise.release.noise_margins import noise_in_words
from countwise.release.payment import FREE, Payment, paid
from countwise.release.piece_tasks import TOP, TaskContext, adjusted_name
from countwise.release.plan import Plan
from countwise.release.publication import MOST_CSV, checksum
from countwise.release.table_files import COUNTS, check_written, write_files, write_parts
from countwise.tables.file_faults import reason
from countwise.tables.hierarchy import Shape

MOST_WHOLE = 30_000_000
"""Cells up to which a method that looks at all of them is used in memory."""


def goes_by_pieces(plan: Plan) -> bool:
    """Whether neither noise nor adjustment has to look at the whole table at once."""
    given = plan.exact or plan.zeros
    return not given and not plan.joint and bool(ADJUSTMENTS[plan.adjust].in_pieces)


def method_by_pieces(plan: Plan) -> tuple[str, str]:
    """The adjustment of a plan for a table that is released in pieces, and why if it was chosen.

    What looks at the whole table at once is refused.
    """
    if plan.joint:
        raise PlanError(
            "mechanism joint draws the noise of the whole tree at once, and this table is released "
            "in pieces. To fix, use mechanism geometric."
        )
    if plan.exact or plan.zeros:
        raise PlanError(
            "exact counts and cells that can only be zero are known by looking at the whole table, "
            "and this one is released in pieces. To fix, leave exact and zeros out."
        )
    method = ADJUSTMENTS[plan.adjust].in_pieces
    if not method:
        same = ", ".join(name for name, each in ADJUSTMENTS.items() if each.in_pieces == name)
        raise PlanError(
            f"adjust {plan.adjust} looks at all cells at once, and this table is released in "
            f"pieces. To fix, choose one of {same}."
        )
    if method != plan.adjust:
        return method, "the table is released in pieces, and bayes looks at all cells"
    return method, ""


@dataclass(frozen=True, kw_only=True)
class Streamed:
    """What a streamed release says about itself when it is complete."""

    manifest: dict[str, Any]
    plan: Plan
    budget: Budget
    method: str
    reason: str
    resumed: bool
    noise_within: list[str]
    charge: Charge | None = None


def release_by_pieces(
    source: CountSource,
    plan: Plan,
    folder: Path,
    *,
    overwrite: bool = False,
    fresh: bool = False,
    csv: bool | None = None,
    runner: Runner = in_threads,
    data_set: bool = False,
    payment: Payment = FREE,
    report: Report = unheard,
) -> Streamed:
    """Make a release folder, or finish one that an earlier run began.

    With `data_set` the tables are folders of Parquet files, written where the pieces are. The
    payment is made, under a name that the run keeps when it is stopped, before any count is read.
    """
    refuse_existing(folder, overwrite=overwrite)
    method, reason = method_by_pieces(plan)
    pieces = (source.cut.depth, source.cut.bounds.tolist())
    identity = identity_of(json.dumps(plan.to_dict()), source.identity, method, pieces)
    with (
        opened(
            folder,
            identity=identity,
            purpose=payment.purpose,
            settings=_settings(plan),
            fresh=fresh,
        ) as staging,
        _recoverable(folder, source, staging) as begun,
        paid(staging, payment),
    ):
        work = _work(source, plan, method, staging)
        if payment.purpose and source.check is not None and not staging.drawn:
            source.check(StageRunner(runner=runner, stage="checking", report=report))
        _measure(source, work, StageRunner(runner=runner, stage="measuring", report=report))
        work = _with_sizes(work)
        _adjust(work, StageRunner(runner=runner, stage="making counts add up", report=report))
        out = staging.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        if data_set:
            files = write_parts(
                work, out, StageRunner(runner=runner, stage="writing", report=report)
            )
        else:
            files = write_files(work, out, report)
        check_written(work, out, files)
        names = [name for each in files.values() for name in each]
        if csv or (csv is None and sum(work.sizes()) <= MOST_CSV):
            report("writing counts.csv", 0, 1)
            pl.scan_parquet([out / name for name in files[COUNTS]]).sink_csv(out / "counts.csv")
            names.append("counts.csv")
        manifest = _manifest(work, reason)
        manifest["checksums"] = {name: checksum(out / name) for name in names}
        _describe(work, reason, manifest, out)
        put_in_place(out, folder, staging.folder)
        discard(staging.folder)
    return Streamed(
        manifest=manifest,
        plan=plan,
        budget=work.budget,
        method=method,
        reason=reason,
        resumed=begun,
        noise_within=noise_in_words(work.budget, work.cut.top),
    )


@contextmanager
def _recoverable(folder: Path, source: CountSource, staging: Staging) -> Iterator[bool]:
    """Whether an earlier run left noisy counts to go on from.

    A full disk is told with how to go on.
    """
    begun = staging.drawn
    if begun and not staging.has(TOP) and not source.lasting:
        raise InputError(
            f"the run that makes {folder} was stopped while it measured records of a database, "
            "which may have changed since. To fix, throw its noisy counts away with --fresh."
        )
    try:
        yield begun
    except (OSError, pl.exceptions.PolarsError, pa.ArrowException) as problem:
        why = reason(problem) if isinstance(problem, OSError) else type(problem).__name__
        raise CountwiseError(
            f"{folder} could not be written: {why}. What was measured is kept beside it; make "
            "room and run the same command again to go on."
        ) from None


def _settings(plan: Plan) -> Callable[[], dict[str, Any]]:
    """What a run decides at random at its beginning."""
    return lambda: {
        "tie_key": entropy.word() if plan.ties == "random" else None,
        "adjust_key": [entropy.word() for _ in range(4)],
        "person_key": secrets.token_hex(16),
        "charge": secrets.token_hex(16),
    }


def _work(source: CountSource, plan: Plan, method: str, staging: Staging) -> TaskContext:
    """The sizes below the cut are not known yet.

    All that matters of them is whether they are 1, unless the loss is divided by them.
    """
    cut, settings = source.cut, staging.settings()
    sizes = (*cut.top.sizes, *(cut.total,) * (len(cut.by) - cut.depth))
    if plan.split == "relative" or (plan.split == "auto" and ADJUSTMENTS[method].fits):
        sizes = source.sizes()
    shape = Shape(by=cut.by, sizes=sizes)
    plan = plan.settled(shape)
    budget = plan.budget(shape)
    refuse_undrawable(plan, budget)
    return TaskContext(
        plan=plan,
        budget=budget,
        method=method,
        cut=cut,
        staging=staging,
        tie_key=settings["tie_key"],
        adjust_key=tuple(settings["adjust_key"]),
        seal=secrets.token_bytes(32),
    )


def _with_sizes(work: TaskContext) -> TaskContext:
    """The same with the size of every level, which changes no noise."""
    shape = Shape(by=work.cut.by, sizes=work.sizes())
    budget = work.plan.budget(shape)
    if budget.laws != work.budget.laws:
        raise CountwiseError("the noise depends on the sizes of levels that were not known.")
    return replace(work, budget=budget)


def _measure(source: CountSource, work: TaskContext, each: StageRunner) -> None:
    """Noise for every count, once. Afterwards the true counts are not needed any more.

    Nor is the key of the bounded rows, also where an earlier run was stopped before it forgot it.
    """
    if not work.staging.has(TOP):
        key = work.staging.settings()["person_key"]
        sealed = source.measure(work, each, key, work.staging.drawing)
        work.measure_top(sealed)
    work.staging.forget("person_key")


def _adjust(work: TaskContext, each: StageRunner) -> None:
    work.adjust_top()
    if not all(work.staging.has(adjusted_name(i)) for i in range(len(work.cut))):
        each(work.adjust, len(work.cut))


def _manifest(work: TaskContext, reason: str) -> dict[str, Any]:
    """As of any release; the tree of the one that stands for it is the top."""
    top = Release(
        plan=work.plan,
        budget=work.budget,
        measurements=work.top_measurements(),
        counts=(),
        tie_key=work.tie_key,
        method=work.method,
        reason=reason,
        ranges=Ranges(exact=False),
        made=today(),
    )
    return top.manifest() | {"by": list(work.cut.by)}


def _describe(work: TaskContext, reason: str, manifest: dict[str, Any], out: Path) -> None:
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    (out / "release.json").write_text(text, encoding="utf-8")
    page = certificate(
        work.plan,
        work.budget,
        size=sum(work.sizes()),
        exact=exact_nodes(work.budget, work.cut.top),
        noise=noise_in_words(work.budget, work.cut.top),
        moved=work.moved(),
        method=work.method,
        reason=reason,
        ranges=METHODS[False],
        imprint=Imprint(
            title=work.plan.title,
            producer=work.plan.producer,
            contact=work.plan.contact,
            date=str(manifest["made"]),
        ),
        version=version("countwise"),
        format=str(Release.FORMAT),
    )
    (out / "certificate.html").write_text(page, encoding="utf-8")
