"""The way of every release: opened, paid for, measured, adjusted, written, and then named.

A table that memory holds is measured and adjusted at once, and its noise goes with the process. A
larger tree goes a piece at a time; what its pieces have completed is kept beside the output, so
that a stopped run goes on. Threads or Spark do the work on pieces.
"""

import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pyarrow as pa

from countwise.adjust.adjustments import ADJUSTMENTS
from countwise.errors import CountwiseError, InputError, PlanError
from countwise.pages.imprint import today
from countwise.progress import Tell, silent
from countwise.release.budget import Budget
from countwise.release.checkpoints import Staging, identity_of, opened
from countwise.release.count_ranges import Ranges
from countwise.release.count_sources import CountSource, HeldSource
from countwise.release.execution import Runner, StageRunner, in_threads
from countwise.release.feasible import refuse_infeasible, refuse_undrawable
from countwise.release.folder import NEW, completed, discard, refuse_existing
from countwise.release.payment import FREE, Payment, paid
from countwise.release.piece_tasks import TOP, TaskContext, adjusted_name
from countwise.release.piecewise_release import PiecewiseRelease
from countwise.release.plan import Plan
from countwise.release.publication import Publication
from countwise.release.run import chosen_at_random, release
from countwise.tables.file_faults import reason
from countwise.tables.hierarchy import Shape

MOST_WHOLE = 30_000_000
"""Cells up to which a method that looks at all of them is used in memory."""


def publish(
    source: CountSource | HeldSource,
    plan: Plan,
    out: Path,
    *,
    payment: Payment = FREE,
    runner: Runner = in_threads,
    overwrite: bool = False,
    fresh: bool = False,
    csv: bool | None = None,
    data_set: bool = False,
    tell: Tell = silent,
) -> Publication:
    """Make a release folder, or finish one that an earlier run began.

    The payment is made, under a name that the run keeps when it is stopped, before any count is
    read. With `data_set` the tables of pieces are folders of Parquet files, written where these
    are; `fresh` throws away what a stopped run has kept.
    """
    refuse_existing(out, overwrite=overwrite)
    run = (
        HeldRun(source=source, plan=plan)
        if isinstance(source, HeldSource)
        else PieceRun(source=source, plan=plan, runner=runner, data_set=data_set)
    )
    with (
        opened(
            out,
            identity=run.identity,
            purpose=payment.purpose,
            settings=lambda: _settings(plan),
            fresh=fresh,
            lasting=run.lasting,
        ) as staging,
        run.going_on(out, staging) as resumed,
        paid(staging, payment),
    ):
        made = run.make(staging, charged=bool(payment.purpose), tell=tell)
        shutil.rmtree(staging.folder / NEW, ignore_errors=True)
        with completed(staging.folder, out) as folder:
            checksums = made.write(folder, csv=csv, tell=tell)
        discard(staging.folder)
    return replace(made, checksums=checksums, resumed=resumed)


def _settings(plan: Plan) -> dict[str, Any]:
    """What a run decides at random at its beginning."""
    keys = {"person_key": secrets.token_hex(16), "charge": secrets.token_hex(16)}
    return chosen_at_random(plan) | keys


@dataclass(frozen=True, kw_only=True)
class HeldRun:
    """A table that memory holds: its noise goes with the process."""

    source: HeldSource
    plan: Plan
    identity: ClassVar[str] = "in memory"
    lasting: ClassVar[bool] = False

    def going_on(self, out: Path, staging: Staging) -> AbstractContextManager[bool]:
        """Nothing was left."""
        del out, staging
        return nullcontext(False)

    def make(self, staging: Staging, *, charged: bool, tell: Tell) -> Publication:
        """The table is read, and what can be refused is, before noise is drawn."""
        del charged
        tell(self.source.stage)
        table = self.source.read()
        plan = self.plan.settled(table.space)
        refuse_infeasible(plan, table.space)
        staging.drawing()
        return release(table, plan, tell=tell)


@dataclass(frozen=True, kw_only=True)
class PieceRun:
    """A tree a piece at a time: what its pieces have completed is kept."""

    source: CountSource
    plan: Plan
    runner: Runner
    data_set: bool
    lasting: ClassVar[bool] = True

    @cached_property
    def method(self) -> tuple[str, str]:
        """The adjustment, and why if it was chosen; what needs all cells is refused."""
        return method_by_pieces(self.plan)

    @property
    def identity(self) -> str:
        """The plan, the input, the adjustment and the pieces."""
        pieces = (self.source.cut.depth, self.source.cut.bounds.tolist())
        plan = json.dumps(self.plan.to_dict())
        return identity_of(plan, self.source.identity, self.method[0], pieces)

    @contextmanager
    def going_on(self, out: Path, staging: Staging) -> Iterator[bool]:
        """Whether an earlier run left noisy counts; a full disk is told with how to go on."""
        begun = staging.drawn
        if begun and not staging.has(TOP) and not self.source.lasting:
            raise InputError(
                f"the run that makes {out} was stopped while it measured records of a database, "
                "which may have changed since. To fix, throw its noisy counts away with --fresh."
            )
        try:
            yield begun
        except (OSError, pl.exceptions.PolarsError, pa.ArrowException) as problem:
            why = reason(problem) if isinstance(problem, OSError) else type(problem).__name__
            raise CountwiseError(
                f"{out} could not be written: {why}. What was measured is kept beside it; make "
                "room and run the same command again to go on."
            ) from None

    def make(self, staging: Staging, *, charged: bool, tell: Tell) -> Publication:
        """Every piece is measured and adjusted; a run that goes on does what was left."""
        stage = partial(StageRunner, runner=self.runner, report=tell)
        work = self._work(staging)
        if charged and self.source.check is not None and not staging.drawn:
            self.source.check(stage(stage="checking"))
        self._measure(work, staging, stage(stage="measuring"))
        work = _with_sizes(work)
        work.adjust_top()
        if not all(staging.has(adjusted_name(i)) for i in range(len(work.cut))):
            stage(stage="making counts add up")(work.adjust, len(work.cut))
        return PiecewiseRelease(
            plan=work.plan,
            budget=work.budget,
            method=self.method[0],
            reason=self.method[1],
            ranges=Ranges(exact=False),
            made=today(),
            work=work,
            runner=stage(stage="writing") if self.data_set else None,
        )

    def _work(self, staging: Staging) -> TaskContext:
        """The sizes below the cut are not known yet.

        All that matters of them is whether they are 1, unless the loss is divided by them.
        """
        source, (method, _), settings = self.source, self.method, staging.settings()
        cut, plan = source.cut, self.plan
        sizes = (*cut.top.sizes, *(cut.total,) * (len(cut.by) - cut.depth))
        if plan.split == "relative" or (plan.split == "auto" and ADJUSTMENTS[method].fits):
            sizes = source.sizes()
        shape = Shape(by=cut.by, sizes=sizes)
        plan = plan.settled(shape)
        budget = plan.budget(shape)
        refuse_undrawable(plan, budget)
        _same_noise(staging, budget)
        return TaskContext(
            plan=plan,
            budget=budget,
            method=method,
            cut=cut,
            store=staging,
            tie_key=settings["tie_key"],
            adjust_key=tuple(settings["adjust_key"]),
            seal=secrets.token_bytes(32),
        )

    def _measure(self, work: TaskContext, staging: Staging, each: StageRunner) -> None:
        """Noise for every count, once. Afterwards the true counts are not needed any more.

        Nor is the key of the bounded rows, also where an earlier run was stopped before it forgot
        it.
        """
        if not staging.has(TOP):
            key = staging.settings()["person_key"]
            sealed = self.source.measure(work, each, key, staging.drawing)
            work.measure_top(work.gathered(sealed))
        staging.forget("person_key")


def _same_noise(staging: Staging, budget: Budget) -> None:
    """A run that goes on draws by the laws that it began with.

    What a plan leaves open is settled anew at every start, and another version or machine may
    settle it in another way; the noise of both would lose more than either says.
    """
    laws = [[each.level, each.law.name, str(each.law.scale)] for each in budget.levels]
    known = staging.settings().get("laws")
    if not staging.drawn:
        staging.remember("laws", laws)
    elif known != laws:
        raise InputError(
            "the run that was stopped drew noise by other laws than this version or machine would "
            "draw for the same plan. To fix, finish it where it was begun, or throw its noisy "
            "counts away with --fresh."
        )


def _with_sizes(work: TaskContext) -> TaskContext:
    """The same with the size of every level, which changes no noise."""
    shape = Shape(by=work.cut.by, sizes=work.sizes())
    budget = work.plan.budget(shape)
    if budget.laws != work.budget.laws:
        raise CountwiseError("the noise depends on the sizes of levels that were not known.")
    return replace(work, budget=budget)


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
