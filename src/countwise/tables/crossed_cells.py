"""Tables of several variables that cross: their public categories, and the cell of every row.

The cells are the product of the variables' categories. Which categories there are is public: from a
domain file, or from the rows of a table that are declared to be the public list.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path

import numpy as np
import polars as pl

from countwise.arrays import IntArray
from countwise.errors import TableError
from countwise.tables.domain import Domain, factor_of
from countwise.tables.domainfile import read_domain_file
from countwise.tables.hierarchy import build
from countwise.tables.layouts import Layout
from countwise.tables.notation import Names, check_names, read_variables
from countwise.tables.table_file import TableFile
from countwise.tables.variable import Variable
from countwise.tables.workload import Workload


def variables_of(by: Sequence[str], across: str | Mapping[str, Sequence[str]]) -> Names:
    """All variables by name: the first, called as its finest level, and those that cross it."""
    others = read_variables(across)
    first = {by[-1]: tuple(by)} if by else {}
    for name in first.keys() & others.keys():
        raise TableError(f"level {name!r} is in --by and in --across. To fix, name it once.")
    names = first | others
    check_names(names)
    return names


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossedDomain:
    """A public domain whose factors each belong to one of the variables that cross."""

    domain: Domain
    names: Names

    @cached_property
    def _parts(self) -> list[tuple[list[int], Domain]]:
        """For each variable its factors, and the domain that they make of it alone."""
        factors, parts = self.domain.factors, []
        for levels in self.names.values():
            axes = [i for i, each in enumerate(factors) if set(each.columns) & set(levels)]
            for i in axes:
                if not set(factors[i].columns) <= set(levels):
                    raise TableError(
                        f"the domain declares {', '.join(factors[i].columns)} together, and they "
                        "are levels of different variables. To fix, declare each variable apart."
                    )
            own = Domain(by=levels, factors=tuple(factors[i] for i in axes))
            parts.append((axes, own))
        return parts

    @cached_property
    def workload(self) -> Workload:
        """The variables and their cells, of which no table is chosen yet."""
        variables = []
        for name, (_, own) in zip(self.names, self._parts, strict=True):
            _refuse_upside_down(own, name)
            variables.append(Variable(name=name, tree=own.hierarchy))
        return Workload(variables=tuple(variables))

    def ordered(self, product: IntArray) -> IntArray:
        """Counts of the cells, in the order of the variables, from those of the domain's product.

        Axis by axis the factors of a variable come together, and their places in its order.
        """
        axes = [axis for own, _ in self._parts for axis in own]
        cells = product.reshape(self.domain.shape).transpose(axes)
        cells = cells.reshape([prod(part.shape) for _, part in self._parts])
        for axis, (_, part) in enumerate(self._parts):
            cells = np.take(cells, part.order, axis=axis)
        return np.ascontiguousarray(cells).reshape(-1)


def read_crossed_domain(
    path: str | Path, names: Names, *, count: str = "", layout: Layout | None = None
) -> CrossedDomain:
    """The crossing of a domain in TOML, or of a list of cells with a row each.

    A table of another `layout` is a list of its cells too; its counts are not looked at.
    """
    by, layout = tuple(level for levels in names.values() for level in levels), layout or Layout()
    if Path(path).suffix.lower() == ".toml":
        domain = read_domain_file(path, by=by, no_totals=layout.no_totals)
        return CrossedDomain(domain=domain, names=names)
    return listed_domain(layout.public(Path(path), by, count), names, public=True)


def listed_domain(source: TableFile, names: Names, *, public: bool = False) -> CrossedDomain:
    """The crossing of all categories that the rows of a table have, variable by variable.

    They come as a `public` list has them; the order of a confidential table leaves no trace.
    """
    factors = []
    for levels in names.values():
        cells = source.ordered(levels).unique(maintain_order=True)
        rows = cells.cast(pl.String)
        factors.append(factor_of(rows if public else rows[build(cells)[1]]))
    by = tuple(level for levels in names.values() for level in levels)
    return CrossedDomain(domain=Domain(by=by, factors=tuple(factors)), names=names)


def places_in(workload: Workload, rows: pl.DataFrame) -> pl.Series:
    """The cell of every row of labels; null where a variable has no such category."""
    found = pl.Series("cell", np.zeros(len(rows), dtype=np.int64))
    for variable in workload.variables:
        found = found * variable.leaves + variable.places(rows)
    return found


def _refuse_upside_down(own: Domain, name: str) -> None:
    """Levels from coarse to fine: the next one divides some category, or has labels of its own."""
    tree = own.hierarchy
    for depth in range(1, len(own.by)):
        above, below = tree.sizes[depth], tree.sizes[depth + 1]
        if above == below and len(tree.labels[depth]) < below:
            coarse, fine = own.by[depth], own.by[depth - 1]
            raise TableError(
                f"variable {name!r} is no tree from coarse to fine: every category of {fine!r} "
                f"lies in one of {coarse!r}, so {coarse!r} is the coarser. To fix, write {coarse} "
                f"> {fine}."
            )
