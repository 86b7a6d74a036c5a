"""Where the true counts of a release come from: a table or records, held whole or in pieces."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from glob import glob
from pathlib import Path
from urllib.parse import urlsplit

from countwise.release.checkpoints import identity_of_file
from countwise.release.execution import StageRunner
from countwise.release.piece_tasks import TaskContext
from countwise.tables.confidential import Confidential
from countwise.tables.cut import PIECE, Cut, cut_domain, cut_file
from countwise.tables.domain import Domain
from countwise.tables.domainfile import read_domain_file
from countwise.tables.piece_sources import DomainPieces, Pieces, RecordPieces, TablePieces
from countwise.tables.tabulate import Tabulation
from countwise.tables.workload import Workload

Measure = Callable[[TaskContext, StageRunner, str, Callable[[], None]], list[bytes]]


@dataclass(frozen=True, kw_only=True)
class HeldSource:
    """A table that memory holds, and the stage that reading it is."""

    read: Callable[[], Confidential | Confidential[Workload]]
    stage: str = "reading"


@dataclass(frozen=True, kw_only=True)
class CountSource:
    """Where the true counts of pieces come from: made when some have still to be measured.

    `identity` says which input it is; `lasting` whether the same input can be read again. `measure`
    calls what it is given last before it draws noise. `check` reads all and draws none, so that
    what must be refused is; where there is none, `measure` finds it before it draws, if it can.
    """

    identity: str
    cut: Cut
    sizes: Callable[[], tuple[int, ...]]
    measure: Measure
    check: Callable[[StageRunner], None] | None = None
    lasting: bool = True


def from_pieces(make: Callable[[str], Pieces]) -> Measure:
    """Measuring one piece after another.

    `make` opens the pieces; its argument is the key by which rows of a person are chosen.

    What is wrong with any row of the input is refused before noise is drawn for the first piece.
    """

    def measured(
        work: TaskContext, each: StageRunner, key: str, drawing: Callable[[], None]
    ) -> list[bytes]:
        pieces = make(key)
        pieces.check()
        drawing()
        return each(_Measure(work, pieces), len(work.cut))

    return measured


@dataclass(frozen=True)
class _Measure:
    work: TaskContext
    pieces: Pieces

    def __call__(self, i: int) -> bytes:
        return self.work.measure(self.pieces.piece(i), i)


@dataclass(frozen=True)
class _Check:
    pieces: Pieces

    def __call__(self, i: int) -> bytes:
        self.pieces.piece(i)
        return b""


def table_source(
    table: Path,
    *,
    by: tuple[str, ...],
    count: str,
    domain: Path | None,
    most: int = PIECE,
    no_totals: bool = False,
) -> CountSource | None:
    """A table of cells, one row each, in pieces; None where it is small enough for memory.

    Without a domain its rows are the public cells.
    """
    product, table = None, table.absolute()
    domain = None if domain is None else domain.absolute()
    if domain is None:
        cut = cut_file(table, by=by, most=most)
    elif domain.suffix.lower() == ".toml":
        product = read_domain_file(domain, by=by, no_totals=no_totals)
        cut = (
            None
            if any(each.inner is not None for each in product.factors)
            else cut_domain(product, most=most)
        )
    else:
        cut = cut_file(domain, by=by, most=most)
    if cut is None:
        return None
    identity = " ".join(identity_of_file(path) for path in (table, domain) if path is not None)
    pieces: Pieces = TablePieces(path=table, count=count, cut=cut, no_totals=no_totals)
    if domain is not None:
        pieces = DomainPieces(
            path=table, count=count, domain=domain, product=product, cut=cut, no_totals=no_totals
        )
    sizes = partial(_sizes, pieces) if product is None else partial(_product_sizes, product)
    return CountSource(
        identity=f"{identity} {count}",
        cut=cut,
        sizes=sizes,
        measure=from_pieces(lambda _: pieces),
        check=lambda each: _checked(pieces, each),
    )


def _checked(pieces: Pieces, each: StageRunner) -> None:
    each(_Check(pieces), len(pieces.cut))


def record_source(
    records: str, tabulation: Tabulation, *, domain: Path, engine: str, most: int = PIECE
) -> CountSource | None:
    """Records that are counted into the cells of a product; None where memory can hold these."""
    cut = cut_domain(tabulation.domain, most=most)
    if cut is None:
        return None

    def make(key: str) -> Pieces:
        return RecordPieces(records, tabulation, cut, engine=engine, key=key)

    return records_in_pieces(records, tabulation, cut, from_pieces(make), domain, engine)


def records_in_pieces(
    records: str,
    tabulation: Tabulation,
    cut: Cut,
    measure: Measure,
    domain: Path,
    engine: str,
) -> CountSource:
    """The source of records, however they are counted. Only files are sure to be the same again."""
    files = sorted(glob(records)) or ([records] if Path(records).is_file() else [])
    address = urlsplit(engine)
    where = f"{address.scheme}://{address.hostname or ''}{address.path} {records}"
    return CountSource(
        identity=" ".join(
            [where, *(identity_of_file(each) for each in [*map(Path, files), domain])]
        ),
        cut=cut,
        sizes=partial(_product_sizes, tabulation.domain),
        measure=measure,
        lasting=bool(files),
    )


def _sizes(pieces: Pieces) -> tuple[int, ...]:
    """Nodes of each level, by reading all pieces once."""
    cut = pieces.cut
    found = [pieces.piece(i).hierarchy.sizes for i in range(len(cut))]
    inner = (sum(each[level] for each in found) for level in range(cut.depth + 1, len(cut.by) + 1))
    return (*cut.top.sizes, *inner)


def _product_sizes(domain: Domain) -> tuple[int, ...]:
    return (1, *(len(domain.nodes(level)) for level in range(1, len(domain.by))), domain.size)
