"""Where the true counts of a release come from, and what is said of them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from countwise.errors import InputError, PlanError, TableError
from countwise.front_door.tabulate_function import (
    count_records,
    crossed_domain,
    plan_tabulation,
)
from countwise.front_door.words import how_read, is_plain, make_layout, make_reading
from countwise.progress import remarks
from countwise.release.count_sources import (
    CountSource,
    HeldSource,
    record_source,
    table_source,
)
from countwise.release.feasible import refuse_infeasible, refuse_more_rows
from countwise.release.pipeline import MOST_WHOLE, goes_by_pieces
from countwise.release.plan import Plan
from countwise.release.spark import spark_record_source
from countwise.tables.confidential import Confidential
from countwise.tables.crossed_cells import CrossedDomain
from countwise.tables.files import Rows, column_names, files_of, load
from countwise.tables.frames import as_table
from countwise.tables.layouts import Layout
from countwise.tables.provenance import Provenance, provenance_of
from countwise.tables.reading import NO_DOMAIN, read_counts
from countwise.tables.spark_session import is_spark
from countwise.tables.tabulate import Tabulation
from countwise.tables.workload import Workload

AnyTable = Confidential | Confidential[Workload]


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
    def provenance(self) -> Provenance:
        """How the cells of the table were counted, as far as it says."""
        if isinstance(self.table, Confidential):
            return self.table.provenance
        return provenance_of(() if self.file is None else files_of(self.file))

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

    def source(self, plan: Plan) -> CountSource | HeldSource:
        """The true counts: in pieces where there are many, and otherwise in memory."""
        if isinstance(self.table, Confidential):
            known = self.table
            return HeldSource(read=lambda: known)
        pieces = large_source(self, plan)
        if pieces is not None:
            return pieces
        if self.table is not None:
            return HeldSource(read=lambda: self.read(plan))
        tabulation, crossing = self.counting(plan)
        return HeldSource(
            read=lambda: count_records(str(self.records), tabulation, crossing, engine=self.engine),
            stage="counting records",
        )


def large_source(given: ReleaseInput, plan: Plan) -> CountSource | None:
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


def refuse_said_again(given: ReleaseInput, plan: Plan) -> None:
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
    if plan.person and given.provenance.rows is None:
        raise PlanError(
            f"person={plan.person!r} says that the rows of each person were bounded, and this "
            "table was counted without. To fix, leave person out, or count the records with it."
        )


def refuse_both(given: ReleaseInput, plan: Plan) -> None:
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


def with_rows(plan: Plan, counted: Provenance, *, said: object) -> Plan:
    """The plan with the rows a person that the table was counted with, where it says so."""
    if counted.rows is None or counted.rows <= plan.rows:
        return plan
    if not said:
        return replace(plan, rows=counted.rows)
    refuse_more_rows(plan, counted)
    return plan


def readable(given: ReleaseInput, plan: Plan) -> ReleaseInput:
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
