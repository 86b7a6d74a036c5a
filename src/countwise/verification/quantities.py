"""Quantities of a fitted model that claims compare with numbers."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isfinite

import numpy as np

from countwise.arrays import BoolArray, FloatArray, frozen
from countwise.errors import RequestError
from countwise.verification.arithmetic import columns_of, constant, written
from countwise.verification.design import INTERCEPT, DesignMatrix
from countwise.verification.fits import Fits
from countwise.verification.formula import Model
from countwise.verification.grammar import (
    Binary,
    Call,
    Group,
    Index,
    Name,
    Negative,
    Node,
    Number,
    Parser,
    Text,
)
from countwise.verification.schema import Schema

WHAT = "claim"
LARGEST_PERIODS = 60  # of a trend: five years of months


@dataclass(frozen=True, kw_only=True)
class Periods:
    """Consecutive values of a period column; the model is fitted in each of them."""

    column: str
    first: float
    count: int

    @property
    def slopes(self) -> FloatArray:
        """Weights of the periods' values in the slope of their least-squares line."""
        centred = np.arange(self.count) - (self.count - 1) / 2
        return np.asarray(centred / (centred**2).sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class Quantity:
    """constant + contrast·coefficients, or the mean predicted there, or the trend of either."""

    contrast: FloatArray = field(repr=False)
    constant: float = 0.0
    prediction: bool = False
    periods: Periods | None = None
    reversed: bool = False

    @property
    def special(self) -> bool:
        """A prediction or trend: compared with numbers, not added to others."""
        return self.prediction or self.periods is not None

    @property
    def is_constant(self) -> bool:
        """Whether no coefficient is in it."""
        return not self.special and not self.contrast.any()

    def without_constant(self) -> "Quantity":
        """The same with the constant taken away."""
        return replace(self, constant=0.0)

    def minus_itself(self) -> "Quantity":
        """A special quantity read in its own direction again."""
        return replace(self, reversed=False)

    def minus(self, other: "Quantity") -> "Quantity":
        """The difference of two quantities; a special one can only lose a number."""
        gap = self.constant - other.constant
        if self.special and other.is_constant:
            return replace(self, constant=gap)
        if other.special and self.is_constant:
            return replace(other, constant=gap, reversed=True)
        if self.special or other.special:
            raise RequestError(f"{WHAT}: a prediction or trend is compared with a number only.")
        return Quantity(contrast=frozen(self.contrast - other.contrast), constant=gap)

    def values(
        self, fits: Callable[[Periods | None], Fits], partitions: int
    ) -> tuple[FloatArray, BoolArray]:
        """Its value in every partition, and where it could be fitted."""
        found = fits(self.periods)
        values = found.combination(self.contrast)
        if self.prediction:
            values = found.response(values)
        fitted = found.fitted & ~np.isnan(values)
        if self.periods is None:
            return values, fitted
        total = np.zeros(partitions)
        with np.errstate(invalid="ignore"):
            for t, weight in enumerate(self.periods.slopes):
                total = total + weight * values[t :: self.periods.count]
        every = np.asarray(fitted.reshape(partitions, self.periods.count).all(axis=1))
        return total, every & ~np.isnan(total)


@dataclass(frozen=True, kw_only=True)
class Quantities:
    """Reads the quantities of one model."""

    model: Model
    design: DesignMatrix
    schema: Schema

    def parse(self, parser: Parser) -> Quantity:
        """The quantity in front of a parser."""
        following = parser.tokens[min(parser.next + 1, len(parser.tokens) - 1)]
        if parser.token.text == "trend" and following.text == "(":
            return self._trend(parser)
        node = parser.sum()
        if isinstance(node, Call) and node.name == "predict":
            return Quantity(contrast=self._prediction(node), prediction=True)
        weights: dict[int, float] = {}
        offset = self._add(node, 1.0, weights)
        if not isfinite(offset) or not all(map(isfinite, weights.values())):
            raise RequestError(f"{WHAT}: {written(node)} is not finite.")
        return Quantity(contrast=self.design.contrast(weights), constant=offset)

    def _trend(self, parser: Parser) -> Quantity:
        parser.take()
        parser.expect("(")
        inner = self.parse(parser)
        parser.expect("over")
        if parser.token.kind not in ("name", "quoted"):
            raise parser.refusal("a period column")
        column = self.schema.column(parser.take().text, what=WHAT)
        first, last = 0, len(column.levels) - 1
        if parser.accept("from"):
            first = self.schema.level(column, parser.label(), what=WHAT)
            parser.expect("to")
            last = self.schema.level(column, parser.label(), what=WHAT)
        parser.expect(")")
        if inner.is_constant or inner.periods:
            raise RequestError(f"{WHAT}: a trend is of a coefficient or prediction.")
        if not 1 <= last - first < LARGEST_PERIODS:
            raise RequestError(f"{WHAT}: a trend needs 2 to {LARGEST_PERIODS} rising periods.")
        if column.name in self._model_columns():
            raise RequestError(
                f"{WHAT}: column {column.name!r} is in the model and does not vary within a "
                "period. To fix, leave it out of the model."
            )
        start = first if column.labels else column.low + first
        periods = Periods(column=column.name, first=float(start), count=last - first + 1)
        return replace(inner, periods=periods)

    def _model_columns(self) -> set[str]:
        nodes = [piece.node for column in self.design.columns for piece in column.pieces]
        return set().union(*map(columns_of, nodes))

    def _prediction(self, call: Call) -> FloatArray:
        """The design row, on its public scale, at the given values of all columns."""
        given = dict(call.named)
        needed = self._model_columns()
        if call.arguments or len(given) < len(call.named) or set(given) != needed:
            wanted = ", ".join(f"{name} = …" for name in sorted(needed))
            raise RequestError(
                f"{WHAT}: predict needs each column of the model once: predict({wanted})."
            )
        values = {name: np.array([self._value(name, node)]) for name, node in given.items()}
        return frozen(self.design.matrix(values, 1)[0])

    def _value(self, name: str, node: Node) -> float:
        column = self.schema.columns[name]
        if not column.numeric:
            if not isinstance(node, Text):
                raise RequestError(f"{WHAT}: {name!r} is a category; give a level in quotes.")
            return float(self.schema.level(column, node.value, what=WHAT))
        value = constant(node)
        if value is None or not column.low <= value <= column.high:
            raise RequestError(
                f"{WHAT}: {name!r} must be a number from {column.low:g} to {column.high:g}."
            )
        return value

    def _add(self, node: Node, times: float, weights: dict[int, float]) -> float:
        """Add a node's coefficients to the weights; returns its constant."""
        place = self._place(node)
        if place is not None:
            weights[place] = weights.get(place, 0.0) + times
            return 0.0
        if isinstance(node, Number):
            return times * node.value
        parts = _parts(node)
        if not parts:
            raise RequestError(
                f"{WHAT}: no coefficient {written(node)!r} in the model; it has "
                f"{', '.join(self.design.names)}."
            )
        return sum(self._add(part, times * factor, weights) for part, factor in parts)

    def _place(self, node: Node) -> int | None:
        """Where a node is the name of a coefficient."""
        if node == Name(INTERCEPT) and INTERCEPT not in self.schema.columns:
            return 0 if self.design.intercept else None
        key = frozenset(self._pieces(node))
        for place, column in enumerate(self.design.columns):
            if column.key == key and key:
                return place
        return None

    def _pieces(self, node: Node) -> list[str]:
        match node:
            case Binary(":", left, right):
                return self._pieces(left) + self._pieces(right)
            case Index(Call("C", (Name(column), *_)) | Name(column), label):
                return [f"C({written(Name(column))})[{label}]"]
            case _:
                return [written(node)]


def _parts(node: Node) -> list[tuple[Node, float]]:
    """The parts of a linear combination with their factors; none where it can not be split."""
    match node:
        case Group(inner):
            return [(inner, 1.0)]
        case Negative(inner):
            return [(inner, -1.0)]
        case Binary("+" | "-" as sign, left, right):
            return [(left, 1.0), (right, 1.0 if sign == "+" else -1.0)]
        case Binary("*", left, right) if (factor := constant(left)) is not None:
            return [(right, factor)]
        case Binary("*" | "/" as sign, left, right) if factor := constant(right):
            return [(left, factor if sign == "*" else 1 / factor)]
    return []
