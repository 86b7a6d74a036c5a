"""Where the pieces of a confidential table come from, one at a time."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np

from countwise.arrays import IntArray
from countwise.tables.confidential import Confidential
from countwise.tables.cut import Cut
from countwise.tables.domain import Domain
from countwise.tables.files import Rows, load
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.order import as_published
from countwise.tables.reading import placed, unique_cells
from countwise.tables.rowchecks import refuse_bad_labels, refuse_bad_rows, whole_numbers
from countwise.tables.table_file import TableFile
from countwise.tables.tabulate import Tabulation, count_records


class Pieces(Protocol):
    """A confidential table on a public tree that is cut.

    The tree of a piece has all levels: above the cut those nodes that the piece is below.
    """

    @property
    def cut(self) -> Cut:
        """Where the tree is cut."""
        ...

    def check(self) -> None:
        """Refuse, before any piece is used, what can be seen to be wrong without holding it."""
        ...

    def piece(self, i: int) -> Confidential:
        """The true counts of one piece."""
        ...


def _published(source: TableFile) -> TableFile:
    """With labels in the order of their text, as the tree was cut."""
    return replace(source, frame=as_published(source.frame))


@dataclass(frozen=True, kw_only=True, eq=False)
class TablePieces:
    """A file of cells that are public, with their counts. Holds no count itself."""

    path: Path
    count: str
    cut: Cut
    no_totals: bool = False

    def check(self) -> None:
        """Refuse a row without labels or a count, and counts that add up to too much."""
        refuse_bad_rows(self.path, self.cut.by, self.count, no_totals=self.no_totals)

    def piece(self, i: int) -> Confidential:
        """The rows of a piece."""
        source = load(self.path, self.cut.by, [self.count], rows=self.cut.rows(i))
        refuse_bad_labels(source, self.cut.by)
        counts = whole_numbers(source, self.count, least=0)
        hierarchy, order = unique_cells(_published(source), self.cut.by)
        return Confidential(hierarchy, counts[order])


@dataclass(frozen=True, kw_only=True, eq=False)
class DomainPieces:
    """A file of counts, and the public cells in a domain: a product, or a file of its own.

    Holds no count itself. Cells without a row are zeros.
    """

    path: Path
    count: str
    domain: Path
    product: Domain | None
    cut: Cut
    no_totals: bool = False

    def check(self) -> None:
        """Refuse a row without labels or a count, and counts that add up to too much."""
        refuse_bad_rows(self.path, self.cut.by, self.count, no_totals=self.no_totals)

    def piece(self, i: int) -> Confidential:
        """The cells of a piece, and the rows of the table that lie within it."""
        hierarchy, by = self._cells(i), self.cut.by
        rows = Rows(first=0, count=None, condition=self.cut.within(i))
        source = load(self.path, by, [self.count], rows=rows)
        refuse_bad_labels(source, by)
        counts = whole_numbers(source, self.count, least=0)
        return Confidential(hierarchy, placed(source, counts, hierarchy, domain=self.domain))

    def _cells(self, i: int) -> Hierarchy:
        if self.product is not None:
            return self.product.below(self.cut.paths[self.cut.nodes(i)])[0]
        source = load(self.domain, self.cut.by, [], rows=self.cut.rows(i))
        refuse_bad_labels(source, self.cut.by)
        return unique_cells(_published(source), self.cut.by)[0]


class RecordPieces:
    """Records counted into the cells of a product; of each piece the cells that are not empty.

    The counts are held in memory, about 16 bytes for each cell with someone in it.
    """

    def __init__(
        self, records: str | Path, tabulation: Tabulation, cut: Cut, *, engine: str, key: str
    ) -> None:
        self.cut, self.domain = cut, tabulation.domain
        numbers: list[IntArray] = []
        rows: list[IntArray] = []

        def add(some: IntArray, counted: IntArray) -> None:
            numbers.append(some)
            rows.append(counted)

        count_records(records, tabulation, engine=engine, key=key, add=add)
        self._numbers, self._rows, self._bounds = sorted_by_piece(
            cut,
            tabulation.domain,
            np.concatenate([np.empty(0, np.int64), *numbers]),
            np.concatenate([np.empty(0, np.int64), *rows]),
        )

    def check(self) -> None:
        """Records were checked when they were counted."""

    def piece(self, i: int) -> Confidential:
        """The cells of a piece with their counts."""
        here = slice(int(self._bounds[i]), int(self._bounds[i + 1]))
        return record_piece(self.cut, self.domain, i, self._numbers[here], self._rows[here])

    def __reduce__(self) -> NoReturn:
        raise TypeError("confidential counts can not be pickled")

    __getstate__ = __reduce__


def sorted_by_piece(
    cut: Cut, domain: Domain, numbers: IntArray, rows: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Cells and their counts in the order of the pieces, and where each piece begins."""
    pieces = piece_numbers(cut, domain, numbers)
    order = np.argsort(pieces, kind="stable")
    bounds = np.searchsorted(pieces[order], np.arange(len(cut) + 1))
    return numbers[order], rows[order], bounds


def piece_numbers(cut: Cut, domain: Domain, numbers: IntArray) -> IntArray:
    """The piece that each cell of a product is in."""
    nodes = domain.owners(cut.paths, numbers)
    return np.asarray(np.searchsorted(cut.bounds, nodes, side="right") - 1)


def record_piece(
    cut: Cut, domain: Domain, i: int, numbers: IntArray, rows: IntArray
) -> Confidential:
    """The cells of a piece, those with the given numbers in the product holding so many rows."""
    hierarchy, own = domain.below(cut.paths[cut.nodes(i)])
    order = np.argsort(own)
    cells = np.zeros(len(own), dtype=np.int64)
    np.add.at(cells, order[np.searchsorted(own, numbers, sorter=order)], rows)
    return Confidential(hierarchy, cells)
