"""Filters: `age >= 25 and sex = "Female"`, read to a tree, checked against the schema, applied.

    filter   = all { or all }
    all      = test { and test }
    test     = not test | ( filter ) | column compare value | column in ( value, … )
    compare  = = | == | != | < | <= | > | >=

A row with a missing value in any column of the filter is left out, whatever the filter says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor, inf, nextafter

import numpy as np

from countwise.arrays import BoolArray, FloatArray, frozen
from countwise.errors import RequestError
from countwise.verification.grammar import MAX_DEPTH, Parser
from countwise.verification.schema import Schema, SchemaColumn

COMPARISONS = ("=", "==", "!=", "<=", ">=", "<", ">")
OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MEANING = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
LARGEST_BOXES = 4096
MOST_MEETINGS = 4 * LARGEST_BOXES
"""Pairs of boxes that are compared at most, in all of a filter."""


@dataclass(frozen=True, kw_only=True)
class Test:
    """A column compared with a value; of a category, the value is the place of a level."""

    column: str
    comparison: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Junction:
    """Tests of which all must hold, or any."""

    every: bool
    parts: tuple["Test | Junction", ...]


@dataclass(frozen=True, kw_only=True)
class Filter:
    """The rows a model is about."""

    tree: Test | Junction
    columns: frozenset[str]

    def keeps(self, columns: Mapping[str, FloatArray]) -> BoolArray:
        """Whether each row is kept; rows with missing values in its columns are not."""
        complete = ~np.isnan(np.stack([columns[name] for name in sorted(self.columns)]))
        return frozen(np.asarray(_holds(self.tree, columns) & complete.all(axis=0)))


def parse_filter(parser: Parser, schema: Schema) -> Filter:
    """The filter that follows `where`; one that no row of the schema can pass is refused."""
    tree = _any(parser, schema)
    boxes = _boxes(tree, schema, Allowance(left=MOST_MEETINGS))
    if boxes is not None and not boxes:
        raise RequestError("filter: no row within the bounds and levels of the schema can pass it.")
    return Filter(tree=tree, columns=_columns(tree))


def _any(parser: Parser, schema: Schema) -> Test | Junction:
    parts = [_all(parser, schema)]
    while parser.accept("or"):
        parts.append(_all(parser, schema))
    return parts[0] if len(parts) == 1 else Junction(every=False, parts=tuple(parts))


def _all(parser: Parser, schema: Schema) -> Test | Junction:
    parts = [_test(parser, schema)]
    while parser.accept("and"):
        parts.append(_test(parser, schema))
    return parts[0] if len(parts) == 1 else Junction(every=True, parts=tuple(parts))


def _test(parser: Parser, schema: Schema) -> Test | Junction:
    parser.depth += 1
    if parser.depth > MAX_DEPTH:
        raise RequestError(f"the filter is nested deeper than {MAX_DEPTH} levels.")
    found = _one_test(parser, schema)
    parser.depth -= 1
    return found


def _one_test(parser: Parser, schema: Schema) -> Test | Junction:
    if parser.accept("not"):
        return _negated(_test(parser, schema))
    if parser.accept("("):
        inner = _any(parser, schema)
        parser.expect(")")
        return inner
    if parser.token.kind not in ("name", "quoted"):
        raise parser.refusal("a column")
    column = schema.column(parser.take().text, what="filter")
    if parser.accept("in"):
        parser.expect("(")
        values = [_value(parser, column, "=", schema)]
        while parser.accept(","):
            values.append(_value(parser, column, "=", schema))
        parser.expect(")")
        tests = tuple(Test(column=column.name, comparison="=", value=each) for each in values)
        return Junction(every=False, parts=tests)
    comparison = parser.expect(*COMPARISONS)
    comparison = "=" if comparison == "==" else comparison
    value = _value(parser, column, comparison, schema)
    return Test(column=column.name, comparison=comparison, value=value)


def _value(parser: Parser, column: SchemaColumn, comparison: str, schema: Schema) -> float:
    if column.numeric:
        if parser.token.kind == "text":
            raise RequestError(f"filter: column {column.name!r} is a number, not a label.")
        return parser.signed()
    if comparison not in ("=", "!="):
        raise RequestError(
            f"filter: column {column.name!r} is a category; compare it with =, != or in."
        )
    if parser.token.kind != "text":
        raise parser.refusal(f"a level of {column.name!r} in quotation marks")
    return float(schema.level(column, parser.take().text[1:-1], what="filter"))


def _negated(tree: Test | Junction) -> Test | Junction:
    if isinstance(tree, Test):
        return Test(column=tree.column, comparison=OPPOSITE[tree.comparison], value=tree.value)
    return Junction(every=not tree.every, parts=tuple(map(_negated, tree.parts)))


def _columns(tree: Test | Junction) -> frozenset[str]:
    if isinstance(tree, Test):
        return frozenset([tree.column])
    return frozenset().union(*map(_columns, tree.parts))


def _holds(tree: Test | Junction, columns: Mapping[str, FloatArray]) -> BoolArray:
    if isinstance(tree, Junction):
        parts = [_holds(part, columns) for part in tree.parts]
        merge = np.logical_and if tree.every else np.logical_or
        return np.asarray(merge.reduce(parts))
    return np.asarray(MEANING[tree.comparison](columns[tree.column], tree.value))


# A box gives columns the closed ranges they are confined to; a filter is a union of boxes.
Box = Mapping[str, tuple[float, float]]


@dataclass(kw_only=True)
class Allowance:
    """How many pairs may still be compared."""

    left: int


def _boxes(tree: Test | Junction, schema: Schema, allowance: Allowance) -> list[Box] | None:
    """The non-empty boxes of a filter; None when there are too many to look at."""
    if isinstance(tree, Test):
        column = schema.columns[tree.column]
        ranges = [_within(column, low, high) for low, high in _ranges(tree)]
        return [{column.name: each} for each in ranges if each is not None]
    found: list[Box] = [{}] if tree.every else []
    for part in tree.parts:
        boxes = _boxes(part, schema, allowance)
        if boxes is None:
            return None
        allowance.left -= len(found) * len(boxes) if tree.every else len(boxes)
        if allowance.left < 0:
            return None
        found = _meet(found, boxes, schema) if tree.every else [*found, *boxes]
        if len(found) > LARGEST_BOXES:
            return None
    return found


def _meet(first: list[Box], second: list[Box], schema: Schema) -> list[Box]:
    met: list[Box] = []
    for a in first:
        for b in second:
            both = dict(a)
            for name, (low, high) in b.items():
                old_low, old_high = both.get(name, (-inf, inf))
                both[name] = max(low, old_low), min(high, old_high)
            if all(_within(schema.columns[name], *each) for name, each in both.items()):
                met.append(both)
    return met


def _ranges(test: Test) -> list[tuple[float, float]]:
    value = test.value
    below, above = (-inf, nextafter(value, -inf)), (nextafter(value, inf), inf)
    return {
        "=": [(value, value)],
        "!=": [below, above],
        "<": [below],
        "<=": [(-inf, value)],
        ">": [above],
        ">=": [(value, inf)],
    }[test.comparison]


def _within(column: SchemaColumn, low: float, high: float) -> tuple[float, float] | None:
    """The part of a range inside the schema, None if there is none."""
    least, most = (0.0, len(column.labels) - 1.0) if column.labels else (column.low, column.high)
    low, high = max(low, least), min(high, most)
    if low > high:
        return None
    if column.kind != "number":
        low, high = float(ceil(low)), float(floor(high))
    return (low, high) if low <= high else None
