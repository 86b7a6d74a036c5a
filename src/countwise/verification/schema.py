"""The public schema of a data set: all that a request may depend on before noise is drawn."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any, Literal, cast, get_args

from countwise.choices import only_keys
from countwise.errors import RequestError, SchemaError
from countwise.toml_files import read_toml

Kind = Literal["number", "integer", "binary", "category"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LARGEST_LEVELS = 200  # of a factor: each is a column of the model
LARGEST_BOUND = 1e12  # squares of such values are far from infinity


@dataclass(frozen=True, kw_only=True)
class SchemaColumn:
    """A column's public facts: bounds of a number, levels of a category in their order.

    A value outside the bounds or levels is a missing value. The first level is the reference.
    """

    name: str
    kind: Kind
    low: float = 0.0
    high: float = 1.0
    labels: tuple[str, ...] = ()

    @property
    def numeric(self) -> bool:
        """Whether arithmetic may be done with it."""
        return self.kind != "category"

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """The levels in their order; of a whole number, every number within the bounds."""
        if self.kind == "category":
            return self.labels
        if self.kind == "number":
            raise RequestError(
                f"column {self.name!r} is a number without levels. To fix, use it without C(), "
                "or declare it an integer or a category in the schema."
            )
        if self.high - self.low >= LARGEST_LEVELS:
            raise RequestError(
                f"column {self.name!r} has more than {LARGEST_LEVELS} whole numbers within its "
                "bounds; too many for levels."
            )
        return tuple(str(value) for value in range(int(self.low), int(self.high) + 1))


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Columns by name, how a person is known, and, if public, how many there are.

    `rows_a_person` is what a person has at most, or should have: nobody is refused for more.
    `skewness` is the largest that verdicts are to reckon with in what single persons add to an
    estimate.
    """

    columns: Mapping[str, SchemaColumn]
    person_id: str | None
    persons: int | None = None
    rows_a_person: int | None = None
    title: str = ""
    skewness: float | None = None

    def column(self, name: str, *, what: str) -> SchemaColumn:
        """The column of a name, or a refusal that knows the schema only."""
        if name in self.columns:
            return self.columns[name]
        near = get_close_matches(name, list(self.columns), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise RequestError(
            f"{what}: no column {name!r} in the schema; it has "
            f"{', '.join(map(repr, self.columns))}.{hint}"
        )

    def level(self, column: SchemaColumn, label: str, *, what: str) -> int:
        """The place of a level in its column, or a refusal that knows the schema only."""
        if label in column.levels:
            return column.levels.index(label)
        near = get_close_matches(label, list(column.levels), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise RequestError(
            f"{what}: column {column.name!r} has no level {label!r} in the schema; it has "
            f"{', '.join(map(repr, column.levels))}.{hint}"
        )


def read_schema(path: str | Path) -> Schema:
    """The schema in a TOML file."""
    path = Path(path)
    data = read_toml(path, what="schema", error=SchemaError)
    return schema_from_dict(data, where=str(path))


def schema_from_dict(data: Mapping[str, Any], *, where: str = "schema") -> Schema:
    """A schema from plain data; every unknown word is refused."""
    only_keys(data, ("title", "person", "columns"), where=where, error=SchemaError)
    columns = _table(data, "columns", where=where)
    if not columns:
        raise SchemaError(f"{where}: no columns. To fix, add a table such as [columns.age].")
    person = _table(data, "person", where=where)
    only_keys(
        person,
        ("id", "one_row_each", "count", "rows", "skewness"),
        where=f"{where}, [person]",
        error=SchemaError,
    )
    identity, each = person.get("id"), person.get("one_row_each", False)
    if (identity is None) is not (each is True):
        raise SchemaError(
            f'{where}, [person]: say how a person is known, either id = "column" or '
            "one_row_each = true (every row is another person)."
        )
    count = _number(person, "count", least=2, where=where)
    rows = _number(person, "rows", least=1, where=where)
    if each is True and rows not in (None, 1):
        raise SchemaError(f"{where}, [person]: with one_row_each rows can only be 1, got {rows}.")
    return Schema(
        columns={
            name: _column(name, facts, where=f"{where}, [columns.{name}]")
            for name, facts in columns.items()
        },
        person_id=None if identity is None else str(identity),
        persons=count,
        rows_a_person=1 if each is True else rows,
        title=str(data.get("title", "")),
        skewness=_skewness(person, count, where=where),
    )


def _skewness(person: Mapping[str, Any], count: int | None, *, where: str) -> float | None:
    found = person.get("skewness")
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1e6:
        raise SchemaError(f"{where}, [person]: skewness must be a number from 0 to 1e6.")
    if count is None:
        raise SchemaError(
            f"{where}, [person]: skewness needs count: what it does depends on the persons of a "
            "partition."
        )
    return float(found)


def _number(person: Mapping[str, Any], key: str, *, least: int, where: str) -> int | None:
    found = person.get(key)
    if found is None:
        return None
    if not isinstance(found, int) or isinstance(found, bool) or found < least:
        raise SchemaError(f"{where}, [person]: {key} must be a whole number of {least} or more.")
    return found


def _column(name: str, facts: Any, *, where: str) -> SchemaColumn:
    if not isinstance(facts, Mapping):
        raise SchemaError(f"{where}: must be a table with a type.")
    kind = facts.get("type")
    if kind not in KINDS:
        raise SchemaError(f"{where}: type must be one of {', '.join(KINDS)}; got {kind!r}.")
    if "`" in name or not name:
        raise SchemaError(f"{where}: a column name must not be empty or hold a backtick.")
    keys = {"number": ("low", "high"), "integer": ("low", "high"), "category": ("levels",)}
    wanted: tuple[str, ...] = keys.get(kind, ())
    only_keys(facts, ("type", *wanted), where=where, error=SchemaError)
    for key in wanted:
        if key not in facts:
            raise SchemaError(f"{where}: no {key}. A column of type {kind} needs it.")
    if kind == "category":
        return SchemaColumn(name=name, kind=kind, labels=_labels(facts["levels"], where=where))
    if kind == "binary":
        return SchemaColumn(name=name, kind="binary")
    low, high = (_bound(facts[key], key, whole=kind == "integer", where=where) for key in wanted)
    if not low < high:
        raise SchemaError(f"{where}: low must be below high, got {low:g} and {high:g}.")
    return SchemaColumn(name=name, kind=cast(Kind, kind), low=low, high=high)


def _labels(levels: Any, *, where: str) -> tuple[str, ...]:
    if not isinstance(levels, list) or not all(isinstance(level, str | int) for level in levels):
        raise SchemaError(f"{where}: levels must be a list of labels.")
    labels = tuple(str(level) for level in levels)
    if not 2 <= len(labels) <= LARGEST_LEVELS or len(set(labels)) < len(labels) or "" in labels:
        raise SchemaError(
            f"{where}: levels must be 2 to {LARGEST_LEVELS} different labels, none empty."
        )
    return labels


def _bound(value: Any, key: str, *, whole: bool, where: str) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not isfinite(value) or abs(value) > LARGEST_BOUND:
        raise SchemaError(f"{where}: {key} must be a number within ±{LARGEST_BOUND:g}.")
    if whole and value != int(value):
        raise SchemaError(f"{where}: {key} of an integer column must be whole, got {value}.")
    return float(value)


def _table(data: Mapping[str, Any], key: str, *, where: str) -> Mapping[str, Any]:
    table = data.get(key, {})
    if not isinstance(table, Mapping):
        raise SchemaError(f"{where}: {key} must be a table.")
    return table
