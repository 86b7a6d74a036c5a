"""A confidential table, or records of people, become a release."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack, overload
from uuid import uuid4

from countwise.errors import InputError, PlanError, TableError
from countwise.front_door.charging import charged, dataset_of, payment
from countwise.front_door.tabulate_function import (
    count_records,
    crossed_domain,
    plan_tabulation,
)
from countwise.front_door.words import (
    PathLike,
    ReleaseAndFileWords,
    ReleaseWords,
    how_read,
    is_plain,
    make_layout,
    make_plan,
    make_reading,
    spelled_out,
    with_zeros_of,
)
from countwise.progress import Tell, remarks, silent
from countwise.release import run
from countwise.release.count_sources import CountSource, record_source, table_source
from countwise.release.crossed_release import CrossedRelease
from countwise.release.document import Release
from countwise.release.execution import in_threads
from countwise.release.feasible import refuse_infeasible
from countwise.release.folder import refuse_existing
from countwise.release.payment import Payment, in_memory
from countwise.release.piecewise_release import (
    MOST_WHOLE,
    Streamed,
    goes_by_pieces,
    release_by_pieces,
)
from countwise.release.plan import Plan
from countwise.release.plan_loss import loss_of
from countwise.release.spark import OnSpark, spark_record_source
from countwise.tables.confidential import Confidential
from countwise.tables.crossed_cells import CrossedDomain
from countwise.tables.cut import PIECE
from countwise.tables.engines import DEFAULT
from countwise.tables.files import Rows, column_names, load
from countwise.tables.frames import as_table
from countwise.tables.layouts import Layout
from countwise.tables.reading import NO_DOMAIN, read_counts
from countwise.tables.spark_session import is_spark, session
from countwise.tables.tabulate import Tabulation, counted_rows
from countwise.tables.workload import Workload

AnyTable = Confidential | Confidential[Workload]
AnyRelease = Release | CrossedRelease


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseInput:
    """Where the true counts come from: a table of cells, or records; what is said of both."""

    table: object | None
    records: str | None
    count: str
    domain: Path | None
    cells_are_public: bool
    sum_duplicates: bool
    engine: str
    piece: int
    words: Any
    layout: Layout | None = None

    @property
    def file(self) -> Path | None:
        """The file of the table, if it is in one."""
        return Path(self.table) if isinstance(self.table, (str, Path)) else None

    @property
    def no_totals(self) -> bool:
        """Whether labels such as Total are cells like the others."""
        return bool(self.words.get("no_totals"))

    def counting(self, plan: Plan) -> tuple[Tabulation, CrossedDomain | None]:
        """How records are counted into the cells of a plan, whose domain is read here."""
        how: Any = {"no_totals": self.no_totals, "reading": make_reading(self.words)}
        if not plan.across:
            return plan_tabulation(plan, self.domain, **how), None
        crossing = crossed_domain(self.domain, plan.variables, no_totals=self.no_totals)
        refuse_infeasible(plan, crossing.workload)
        return plan_tabulation(plan, self.domain, crossing=crossing, **how), crossing

    def read(self, plan: Plan) -> AnyTable:
        """The true counts of a table of cells."""
        return read_counts(
            self.table,
            by=plan.by,
            across=plan.across or None,
            count=self.count,
            domain=self.domain,
            cells_are_public=self.cells_are_public,
            loader=self.layout,
            sum_duplicates=self.sum_duplicates,
        )


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
) -> AnyRelease | Streamed: ...
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
) -> AnyRelease | Streamed:
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
        _refuse_said_again(given)
    else:
        _refuse_both(given, chosen)
    if given.file is not None:
        chosen = _with_rows(chosen, given.file, said=plan is not None or words.get("rows"))
    dataset = dataset_of(given.file, ledger, dataset)
    bounded = given.file is not None and counted_rows(given.file) is not None
    paid = payment(ledger, loss_of(chosen, bounded=bounded), dataset=dataset)
    if table is not None and not isinstance(table, Confidential):
        given = _readable(given, chosen)
    source = None if isinstance(table, Confidential) else _large(given, chosen)
    made: AnyRelease | Streamed
    if source is not None:
        made = _by_pieces(
            source, chosen, folder, given.engine, paid,
            overwrite=overwrite, fresh=fresh, csv=csv, tell=tell,
        )  # fmt: skip
    else:
        made = _whole(
            given, chosen, folder, paid, overwrite=overwrite, fresh=fresh, csv=csv, tell=tell
        )
    charge = charged(ledger, dataset, paid)
    return made if charge is None else replace(made, charge=charge)


def _whole(
    given: ReleaseInput,
    plan: Plan,
    folder: Path | None,
    paid: Payment,
    *,
    overwrite: bool,
    fresh: bool,
    csv: bool | None,
    tell: Tell,
) -> AnyRelease:
    """A release of a table that memory holds."""
    counting = None if given.table is not None else given.counting(plan)
    if folder is None:
        paid.pay(uuid4().hex)
        table = _true_counts(given, plan, counting, tell)
        made: AnyRelease = run.release(table, plan, tell=tell)
        return made
    with in_memory(folder, paid, fresh=fresh) as opened:
        table = _true_counts(given, plan, counting, tell)
        plan = plan.settled(table.space)
        refuse_infeasible(plan, table.space)
        opened.drawing()
        made = run.release(table, plan, tell=tell)
        made.save(folder, overwrite=overwrite, csv=csv, tell=tell, within=opened.folder)
    return made


def _true_counts(
    given: ReleaseInput,
    plan: Plan,
    counting: tuple[Tabulation, CrossedDomain | None] | None,
    tell: Tell,
) -> Any:
    if isinstance(given.table, Confidential):
        return given.table
    if counting is None:
        tell("reading")
        return given.read(plan)
    tell("counting records")
    return count_records(str(given.records), *counting, engine=given.engine)


def _by_pieces(
    source: CountSource,
    plan: Plan,
    folder: Path | None,
    engine: str,
    paid: Payment,
    *,
    overwrite: bool,
    fresh: bool,
    csv: bool | None,
    tell: Tell,
) -> Streamed:
    """A release in pieces, on Spark where that is the engine."""
    if folder is None:
        raise PlanError(
            f"a table of {source.cut.total:,} cells is released in pieces, into a folder. To fix, "
            "name it: out=…"
        )
    on_spark = is_spark(engine)
    runner = OnSpark(session=session(engine)) if on_spark else in_threads
    return release_by_pieces(
        source,
        plan,
        folder,
        overwrite=overwrite,
        fresh=fresh,
        csv=csv,
        runner=runner,
        data_set=on_spark,
        payment=paid,
        report=tell,
    )


def _large(given: ReleaseInput, plan: Plan) -> CountSource | None:
    """The input of a release in pieces; None where the table is small, or needs to be whole.

    A method that looks at all cells at once is used in memory while the table fits there.
    """
    if plan.across:
        if is_spark(given.engine) and given.records is None:
            raise InputError(
                "Spark counts records of tables that cross, and does not release a table of cells, "
                "which is held whole. To fix, leave --engine out, or give the records."
            )
        return None
    source = None
    if given.file is not None and is_plain(given.words) and not given.sum_duplicates:
        source = table_source(
            given.file,
            by=plan.by,
            count=given.count,
            domain=given.domain,
            most=given.piece,
            no_totals=given.no_totals,
        )
    elif given.table is None:
        tabulation, _ = given.counting(plan)
        assert given.domain is not None
        of = spark_record_source if is_spark(given.engine) else record_source
        source = of(
            str(given.records),
            tabulation,
            domain=given.domain,
            engine=given.engine,
            most=given.piece,
        )
    if source is None or (source.cut.total <= MOST_WHOLE and not goes_by_pieces(plan)):
        return None
    return source


def _refuse_said_again(given: ReleaseInput) -> None:
    """A table that was read already is not read again, by other words."""
    said = {
        "records": given.records is not None,
        "domain": given.domain is not None,
        "cells_are_public": given.cells_are_public,
        "sum_duplicates": given.sum_duplicates,
        "layout": not is_plain(given.words) or given.no_totals,
    }
    if any(said.values()):
        names = ", ".join(name for name, there in said.items() if there)
        raise PlanError(f"the table was read already. To fix, leave out {names}.")


def _refuse_both(given: ReleaseInput, plan: Plan) -> None:
    """A release starts from a table or from records, and each has options of its own."""
    if (given.table is None) == (given.records is None):
        raise PlanError("give either a table of cells or --records, and not both.")
    if given.table is not None and plan.person:
        raise PlanError(
            "--person bounds the rows of records, and a table of cells has none. To fix, give the "
            "records with --records, or leave --person out."
        )
    if given.records is not None and given.cells_are_public:
        raise PlanError("the cells of records come from --domain; leave --cells-are-public out.")


def _with_rows(plan: Plan, table: Path, *, said: object) -> Plan:
    """The plan with the rows a person that the table was counted with, where it says so."""
    counted = counted_rows(table)
    if counted is None or counted <= plan.rows:
        return plan
    if not said:
        return replace(plan, rows=counted)
    raise PlanError(
        f"{table} was counted with up to {counted} rows a person, and the plan promises protection "
        f"for {plan.rows}. To fix, use --rows {counted}."
    )


def _readable(given: ReleaseInput, plan: Plan) -> ReleaseInput:
    """The input with its layout, after what can be seen to be wrong without reading a row."""
    if given.domain is None and not given.cells_are_public:
        raise TableError(NO_DOMAIN)
    layout = make_layout(given.words, domain=given.domain, by=plan.columns)
    table, nothing = as_table(given.table), Rows(first=0, count=0)
    if isinstance(table, Path):
        if layout.kind == "long" and layout.domain is None:  # else levels may come from codes
            load(table, plan.columns, [given.count], rows=nothing, reading=layout.reading)
        else:
            column_names(table, layout.reading)
        how = how_read(table, layout, plan.columns)
        if how:
            remarks.info("%s: read with %s.", table, how)
    if given.domain is not None and given.domain.suffix.lower() != ".toml":
        load(given.domain, plan.columns, [], rows=nothing)
    return replace(given, layout=layout)
