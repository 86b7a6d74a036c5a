"""Domain files (`domain.toml`): the public levels, bins, hierarchies and lists of cells."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from countwise.choices import only_keys
from countwise.errors import TableError
from countwise.tables.binning import make_bins
from countwise.tables.domain import Domain, Factor, factor_of
from countwise.tables.files import load, without_blank
from countwise.tables.hierarchy import check_level_names, listed
from countwise.tables.hrc import INDENT, read_hrc
from countwise.tables.labels import refuse_totals_of_domain
from countwise.tables.pattern import Pattern, read_pattern
from countwise.tables.rowchecks import refuse_alike, refuse_bad_labels
from countwise.toml_files import read_toml

COLUMN_KEYS = ("levels", "edges", "labels", "column", "missing", "other")
NESTED_KEYS = ("columns", "file", "tree", "hierarchy", "code", "indent", "missing", "other")
SOURCES = ("file", "tree", "hierarchy")


def read_domain_file(path: str | Path, *, by: Sequence[str], no_totals: bool = False) -> Domain:
    """The domain of the level columns `by`.

    A TOML file declares factors; any other file is one factor, a list of cells with a row each.
    Labels that name a total are refused unless there are `no_totals`, as the file can say too.
    """
    path, by = Path(path), listed(by)
    check_level_names(by)
    if path.suffix.lower() != ".toml":
        source = without_blank(load(path, by, []))
        refuse_bad_labels(source, by)
        _refuse_twins(source.frame, where=str(path))
        domain = Domain(by=by, factors=(factor_of(source.frame),))
    else:
        data = _read_toml(path)
        no_totals = no_totals or _is_true(data.get("no_totals", False), where=str(path))
        domain = _Declaration(path=path, data=data, by=by).domain()
    _refuse_bad_names(domain, path, no_totals=no_totals)
    return domain


def _refuse_bad_names(domain: Domain, path: Path, *, no_totals: bool) -> None:
    for factor in domain.factors:
        labels = {name: factor.cells[name].unique() for name in factor.columns}
        refuse_alike(path, labels, shown=True)
        if not no_totals:
            refuse_totals_of_domain(labels, where=str(path))


def _is_true(value: object, *, where: str) -> bool:
    if not isinstance(value, bool):
        raise TableError(f"{where}: no_totals must be true or false.")
    return value


def read_zeros(path: str | Path, *, by: Sequence[str]) -> tuple[Pattern, ...]:
    """The cells that a domain in TOML says can only be zero: `zeros = ["sex=male,pregnant=yes"]`.

    Patterns of columns that the table does not have say nothing about it.
    """
    if Path(path).suffix.lower() != ".toml":
        return ()
    data = _read_toml(Path(path))
    declared = _list(data.get("zeros", []), where=f"{path}, zeros")
    patterns = (read_pattern(each) for each in declared)
    return tuple(each for each in patterns if all(level in by for level, _ in each.labels))


def _read_toml(path: Path) -> dict[str, Any]:
    return read_toml(path, what="domain", error=TableError)


@dataclass(frozen=True, kw_only=True)
class _Declaration:
    """The content of a domain file, and the level columns wanted of it."""

    path: Path
    data: Mapping[str, Any]
    by: tuple[str, ...]

    def domain(self) -> Domain:
        where = str(self.path)
        known = ("columns", "nested", "missing", "other", "zeros", "no_totals")
        only_keys(self.data, known, where=where, error=TableError)
        factors = [*self._columns(), *self._nested()]
        declared = [name for factor in factors for name in factor.columns]
        for name in self.by:
            if declared.count(name) != 1:
                how = "twice" if name in declared else "nowhere"
                raise TableError(
                    f"{where}: level column {name!r} is declared {how}. To fix, declare it once, "
                    f"in [columns.{name}] or in the columns of one [nested.…]."
                )
        read = [key for factor in factors for key in factor.keys]
        twice = next((key for key in read if read.count(key) > 1), None)
        if twice is not None:
            raise TableError(
                f"{where}: column {twice!r} of the records is read for two levels. To fix, declare "
                "levels of one column in one [nested.…], from coarse to fine."
            )
        return Domain(by=self.by, factors=tuple(factors))

    def _columns(self) -> Iterable[Factor]:
        for name, entry in _tables(self.data, "columns", where=str(self.path)):
            if name not in self.by:
                continue
            where = f"{self.path}, [columns.{name}]"
            only_keys(entry, COLUMN_KEYS, where=where, error=TableError)
            if ("levels" in entry) == ("edges" in entry):
                raise TableError(f"{where}: needs either levels = […] or edges = […].")
            special = self._special(entry, where)
            if "levels" in entry:
                if "column" in entry:
                    raise TableError(
                        f"{where}: column names whose numbers edges cut, and there are levels. To "
                        "fix, leave it out."
                    )
                labels = pl.DataFrame({name: _labels(entry["levels"], where=where)})
                yield factor_of(labels, **special)
                continue
            given = _labels(entry["labels"], where=where) if "labels" in entry else None
            bins = make_bins(_list(entry["edges"], where=where), given, where=where)
            numbers = str(entry.get("column", name))
            codes = pl.DataFrame({numbers: [str(code) for code in range(len(bins.labels))]})
            yield factor_of(pl.DataFrame({name: bins.labels}), codes=codes, bins=bins, **special)

    def _nested(self) -> Iterable[Factor]:
        for name, entry in _tables(self.data, "nested", where=str(self.path)):
            where = f"{self.path}, [nested.{name}]"
            only_keys(entry, NESTED_KEYS, where=where, error=TableError)
            columns = tuple(_labels(entry.get("columns", []), where=where))
            used = tuple(column for column in columns if column in self.by)
            given = [source for source in SOURCES if source in entry]
            if not columns or len(given) != 1:
                raise TableError(
                    f"{where}: needs columns = […] and one of file, tree and hierarchy."
                )
            if used:
                yield self._nested_factor(entry, columns, used, where)

    def _nested_factor(
        self, entry: Mapping[str, Any], columns: tuple[str, ...], used: tuple[str, ...], where: str
    ) -> Factor:
        """Columns of a nested list that the table does not use are left out of its cells."""
        special = self._special(entry, where)
        if "hierarchy" in entry:
            return self._hierarchy(entry, columns, used, where, special)
        if "file" in entry:
            source = without_blank(load(self.path.parent / str(entry["file"]), used, []))
            refuse_bad_labels(source, used)
            cells = source.frame
        else:
            rows = list(_leaves(entry["tree"], len(columns), where=where))
            schema = dict.fromkeys(columns, pl.String)
            cells = pl.DataFrame(rows, schema=schema, orient="row").select(used)
        if used == columns:
            _refuse_twins(cells, where=where)
        return factor_of(cells, **special)

    def _hierarchy(
        self,
        entry: Mapping[str, Any],
        columns: tuple[str, ...],
        used: tuple[str, ...],
        where: str,
        special: dict[str, Any],
    ) -> Factor:
        tree = read_hrc(
            self.path.parent / str(entry["hierarchy"]), indent=str(entry.get("indent", INDENT))
        )
        if tree.depth != len(columns):
            raise TableError(
                f"{where}: the hierarchy is {tree.depth} codes deep and columns names "
                f"{len(columns)}. To fix, name one column for each depth, outer to inner."
            )
        if used != columns[: len(used)]:
            raise TableError(f"{where}: --by can leave out the innermost columns only.")
        if "code" not in entry:
            return factor_of(tree.cells(columns, code="code").select(used), **special)
        code = str(entry["code"])
        if code in self.by:
            raise TableError(f"{where}: code {code!r} is also a level column of --by.")
        cells = tree.cells(columns, code=code)
        inner = tree.inner(columns, code=code) if used == columns else None
        return factor_of(cells.select(used), codes=cells.select(code), inner=inner, **special)

    def _special(self, entry: Mapping[str, Any], where: str) -> dict[str, Any]:
        """The labels for missing and other: a factor's own, or those of the whole file."""
        found = {}
        for key in ("missing", "other"):
            label = entry.get(key, self.data.get(key))
            if label is not None and (not isinstance(label, str) or not label):
                raise TableError(f'{where}: {key} must be a label, such as {key} = "unknown".')
            found[key] = label
        return found


def _tables(
    data: Mapping[str, Any], kind: str, *, where: str
) -> Iterable[tuple[str, Mapping[str, Any]]]:
    tables = data.get(kind, {})
    if not isinstance(tables, dict) or not all(isinstance(each, dict) for each in tables.values()):
        raise TableError(f"{where}: write [{kind}.name] above the keys of each of its {kind}.")
    return tables.items()


def _list(value: object, *, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise TableError(f"{where}: expected a list in square brackets.")
    return value


def _labels(value: object, *, where: str) -> list[str]:
    """Labels of a list: texts or whole numbers, none empty, none twice."""
    labels = _list(value, where=where)
    if not all(isinstance(label, str | int) and not isinstance(label, bool) for label in labels):
        raise TableError(f"{where}: labels must be texts in quotes or whole numbers.")
    texts = [str(label) for label in labels]
    if "" in texts:
        raise TableError(f"{where}: a label is empty. To fix, declare missing = … instead.")
    if not texts or len(set(texts)) < len(texts):
        raise TableError(f"{where}: a list needs one label or more, and each of them once.")
    return texts


def _leaves(tree: object, depth: int, *, where: str) -> Iterable[tuple[str, ...]]:
    """Paths of a tree written as tables of tables, with lists of labels at the last depth."""
    if depth == 1:
        yield from ((label,) for label in _labels(tree, where=where))
        return
    if not isinstance(tree, dict):
        raise TableError(
            f"{where}: the tree must be as deep as its columns: a table for each but the last, "
            "and a list for the last."
        )
    for label, below in tree.items():
        yield from ((label, *rest) for rest in _leaves(below, depth - 1, where=where))


def _refuse_twins(cells: pl.DataFrame, *, where: str) -> None:
    twins = cells.is_duplicated()
    if twins.any():
        cell = "/".join(cells.row(int(twins.arg_max() or 0)))
        raise TableError(f"{where}: cell {cell!r} is listed twice. Every cell must be listed once.")
