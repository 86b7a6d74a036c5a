"""Records of people become a confidential table of cells, in memory or in a file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from countwise.errors import TableError
from countwise.front_door.charging import bind, refuse_half
from countwise.front_door.words import PathLike, make_reading, names
from countwise.ledger.prices import ANY, Loss
from countwise.progress import Tell, silent
from countwise.release.folder import refuse_existing, whole
from countwise.release.plan import Plan
from countwise.tables import tabulate as counting
from countwise.tables.confidential import Confidential
from countwise.tables.crossed_cells import CrossedDomain, read_crossed_domain, variables_of
from countwise.tables.dialect import PLAIN, Reading
from countwise.tables.domainfile import read_domain_file
from countwise.tables.engines import DEFAULT
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.layouts import Layout
from countwise.tables.notation import Names
from countwise.tables.reading import Across
from countwise.tables.tabulate import Tabulation, write_confidential_cells
from countwise.tables.workload import Workload

NO_DOMAIN = (
    "records need a public list of cells: which cells there are must not depend on who is in "
    "them. To fix, declare the levels in a file and give it with --domain domain.toml."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ConfidentialFile:
    """A file of true counts that was written: its public cells, and what a release of it needs.

    `rows` bounds those of a person, where that was enforced, and `dataset` names the data set of a
    ledger that the release must charge.
    """

    file: Path
    space: Hierarchy | Workload
    rows: int | None
    dataset: str | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        levels = [{"level": level, "nodes": nodes} for level, nodes in self.space.describe()]
        facts = {"file": str(self.file), "confidential": True, "levels": levels, "rows": self.rows}
        return facts | ({} if self.dataset is None else {"dataset": self.dataset})


@overload
def tabulate(
    records: object,
    *,
    by: Any,
    across: Across | None = None,
    domain: PathLike | None = None,
    person: str | None = None,
    rows: int | None = None,
    outside: str | None = None,
    no_totals: bool = False,
    separator: str | None = None,
    encoding: str | None = None,
    skip: int = 0,
    sheet: str | None = None,
    engine: str = DEFAULT,
    tell: Tell = silent,
) -> Confidential | Confidential[Workload]: ...
@overload
def tabulate(
    records: object,
    out: PathLike,
    *,
    by: Any,
    across: Across | None = None,
    domain: PathLike | None = None,
    person: str | None = None,
    rows: int | None = None,
    outside: str | None = None,
    no_totals: bool = False,
    separator: str | None = None,
    encoding: str | None = None,
    skip: int = 0,
    sheet: str | None = None,
    engine: str = DEFAULT,
    ledger: str | None = None,
    dataset: str | None = None,
    overwrite: bool = False,
    tell: Tell = silent,
) -> ConfidentialFile: ...
def tabulate(
    records: object,
    out: PathLike | None = None,
    *,
    by: Any,
    across: Across | None = None,
    domain: PathLike | None = None,
    person: str | None = None,
    rows: int | None = None,
    outside: str | None = None,
    no_totals: bool = False,
    separator: str | None = None,
    encoding: str | None = None,
    skip: int = 0,
    sheet: str | None = None,
    engine: str = DEFAULT,
    ledger: str | None = None,
    dataset: str | None = None,
    overwrite: bool = False,
    tell: Tell = silent,
) -> Confidential | Confidential[Workload] | ConfidentialFile:
    """Count records into the cells of a public `domain`. The result is confidential: no noise.

    Without `out` the counts stay in memory, for `release`. With it they are written to a file that
    only this user can read, and a `ledger` notes that its `dataset` was counted; nothing is spent.
    """
    if rows is not None and person is None:
        raise TableError("--rows needs --person, the column that says whose a row is.")
    refuse_half(ledger, dataset)
    file = None if out is None else Path(out)
    if file is not None:
        _check_file(file, dataset, overwrite=overwrite)
    elif dataset is not None:
        raise TableError("a ledger notes cells that are kept in a file. To fix, name one: out=….")
    tell("reading the domain")
    reading = make_reading(
        {"separator": separator, "encoding": encoding, "skip": skip, "sheet": sheet}
    )
    crossing = None
    if across:
        crossing = crossed_domain(domain, variables_of(names(by), across), no_totals=no_totals)
    tabulation = make_tabulation(
        domain,
        names(by),
        person=person,
        rows=rows or 1,
        outside=outside or "refuse",
        no_totals=no_totals,
        reading=reading,
        crossing=crossing,
    )
    tell("counting records")
    if file is None:
        return count_records(records, tabulation, crossing, engine=engine)
    with whole(file, overwrite=overwrite) as partial:
        bound = bind(ledger, _loss(tabulation), dataset=dataset)
        space = write_confidential_cells(
            partial, records, tabulation, crossing=crossing, engine=engine, dataset=bound
        )
        tell("writing cells")
    kept = tabulation.rows if tabulation.person is not None else None
    return ConfidentialFile(file=file, space=space, rows=kept, dataset=bound)


def _check_file(file: Path, dataset: str | None, *, overwrite: bool) -> None:
    refuse_existing(file, overwrite=overwrite)
    if file.suffix.lower() not in (".parquet", ".csv"):
        raise TableError(f"{file}: the output must end in .parquet or .csv.")
    if dataset is not None and file.suffix.lower() != ".parquet":
        raise TableError(
            f"{file}: a CSV file can not carry --dataset. To fix, name a .parquet file."
        )


def _loss(tabulation: Tabulation) -> Loss:
    """What a ledger is told of cells that are counted: whose rows, and no loss."""
    return Loss(
        what="tabulation",
        neighbours=ANY,
        rows=tabulation.rows,
        bounded=tabulation.person is not None,
    )


def count_records(
    records: object, tabulation: Tabulation, crossing: CrossedDomain | None, *, engine: str
) -> Confidential | Confidential[Workload]:
    """Records counted in memory, into the cells of a tree or of variables that cross."""
    if crossing is None:
        return counting.tabulate(records, tabulation, engine=engine)
    return counting.tabulate_across(records, tabulation, crossing, engine=engine)


def crossed_domain(
    domain: PathLike | None, variables: Names, *, no_totals: bool = False
) -> CrossedDomain:
    """The cells that records are counted into, of variables that cross."""
    if domain is None:
        raise TableError(NO_DOMAIN)
    return read_crossed_domain(Path(domain), variables, layout=Layout(no_totals=no_totals))


def make_tabulation(
    domain: PathLike | None,
    by: tuple[str, ...],
    *,
    person: str | None,
    rows: int,
    outside: str,
    no_totals: bool = False,
    reading: Reading = PLAIN,
    crossing: CrossedDomain | None = None,
) -> Tabulation:
    """How records are counted: into cells of a tree, or of variables that cross."""
    if domain is None:
        raise TableError(NO_DOMAIN)
    cells = (
        read_domain_file(Path(domain), by=by, no_totals=no_totals)
        if crossing is None
        else crossing.domain
    )
    return Tabulation(
        domain=cells, person=person or None, rows=rows, outside=outside, reading=reading
    )


def plan_tabulation(
    plan: Plan,
    domain: PathLike | None,
    *,
    crossing: CrossedDomain | None = None,
    no_totals: bool = False,
    reading: Reading = PLAIN,
) -> Tabulation:
    """How the records of a plan are counted."""
    return make_tabulation(
        domain,
        plan.by,
        person=plan.person,
        rows=plan.rows,
        outside=plan.outside,
        no_totals=no_totals,
        reading=reading,
        crossing=crossing,
    )
