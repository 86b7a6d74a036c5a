"""The design matrix of a model, from the terms and the public schema alone.

Levels, references and scales never come from data. A category in an interaction is coded in full
or without its reference so that the columns are as many as the terms span: each term's subsets of
categories that earlier terms spanned are left out, and what remains is put together again.
(The structural redundancy rule of Chambers and Hastie, Statistical Models in S, 1992, ch. 2, in
the corrected form that the patsy manual describes.)

Columns are fitted on a public scale, z = (x - middle) / half-width of their bounds, so that the
normal equations are well conditioned. The powers of `poly(x, d)` are fitted as powers of z: those
of a year around 2010 are one column to ten digits, those of z are not. `contrast` translates a
combination of the model's coefficients to one of the fitted columns'.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations, product
from math import comb, prod

import numpy as np

from countwise.arrays import FloatArray, frozen
from countwise.errors import RequestError
from countwise.kernels.design_columns import standardised
from countwise.verification.arithmetic import bounds, values, written
from countwise.verification.formula import CategoryFactor, Factor, Model, NumberFactor, Term
from countwise.verification.grammar import Name, Node
from countwise.verification.schema import Schema

INTERCEPT = "Intercept"
LARGEST_COLUMNS = 200  # of a model; a fit takes their square in time a row


@dataclass(frozen=True, kw_only=True)
class FactorPart:
    """A factor's share in a design column: an expression, or the indicator of a level.

    A power of `poly` is that of (expression - middle)/half; its name is that of the plain power.
    """

    name: str
    node: Node
    level: float | None = None
    power: int = 0
    middle: float = 0.0
    half: float = 1.0

    def at(self, columns: Mapping[str, FloatArray]) -> FloatArray:
        """Its value at every row."""
        found = values(self.node, columns)
        if self.level is not None:
            return np.asarray(found == self.level, dtype=np.float64)
        if not self.power:
            return found
        z = (found - self.middle) / self.half
        return np.asarray(reduce(np.multiply, [z] * self.power))

    def ends(self, schema: Schema) -> tuple[float, float]:
        """Its least and largest value under the schema."""
        if self.level is not None:
            return 0.0, 1.0
        low, high = bounds(self.node, schema, what="model")
        if not self.power:
            return low, high
        low, high = (((end - self.middle) / self.half) ** self.power for end in (low, high))
        return (0.0, max(low, high)) if self.power % 2 == 0 else (low, high)

    def plain(self) -> "list[tuple[str | None, float]]":
        """The powers of the expression that a power of z is a sum of, as names and factors."""
        base = self.name[: self.name.rindex("[")] if self.power else ""
        return [
            (
                f"{base}[{p}]" if p else None,
                comb(self.power, p) * (-self.middle) ** (self.power - p) / self.half**self.power,
            )
            for p in range(self.power + 1)
            if self.middle or p == self.power
        ]


@dataclass(frozen=True, kw_only=True)
class DesignColumn:
    """A product of pieces, none for the intercept, with the public scale it is fitted on."""

    pieces: tuple[FactorPart, ...]
    middle: float
    half: float

    @property
    def name(self) -> str:
        """The coefficient's name, as claims write it."""
        return ":".join(piece.name for piece in self.pieces) or INTERCEPT

    @property
    def key(self) -> frozenset[str]:
        """The name without its order: a:b and b:a are one coefficient."""
        return frozenset(piece.name for piece in self.pieces)

    def plain(self) -> list[tuple[frozenset[str], float]]:
        """The model's columns that this one is a sum of, as keys and factors; the scale's middle
        apart."""
        parts = [piece.plain() if piece.power else [(piece.name, 1.0)] for piece in self.pieces]
        return [
            (
                frozenset(name for name, _ in chosen if name is not None),
                prod(factor for _, factor in chosen) / self.half,
            )
            for chosen in product(*parts)
        ]


@dataclass(frozen=True, kw_only=True)
class DesignMatrix:
    """The columns of a model in order; the intercept, if there is one, is the first."""

    columns: tuple[DesignColumn, ...]
    intercept: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the coefficients."""
        return tuple(column.name for column in self.columns)

    def matrix(self, columns: Mapping[str, FloatArray], rows: int) -> FloatArray:
        """The design on its public scale, one row a row of data."""
        known: dict[str, FloatArray] = {}
        products = []
        for column in self.columns:
            for piece in column.pieces:
                if piece.name not in known:
                    known[piece.name] = np.asarray(piece.at(columns), dtype=np.float64)
            factors = [known[piece.name] for piece in column.pieces]
            products.append(reduce(np.multiply, factors) if factors else np.ones(rows))
        middles = np.array([column.middle for column in self.columns])
        halves = np.array([column.half for column in self.columns])
        return standardised(products, middles, halves)

    def contrast(self, weights: Mapping[int, float]) -> FloatArray:
        """Weights of the fitted coefficients for a weighted sum of the model's coefficients.

        A fitted column z is a sum Σ a_j·x_j of the model's columns, so its coefficient γ adds
        a_j·γ to that of x_j. With the scale z = (p - m)/h of a product p of pieces, the intercept's
        a is less by m/h.
        """
        out = np.zeros(len(self.columns))
        for j, column in enumerate(self.columns):
            out[j] = sum(
                factor * weights.get(self.place(key), 0.0) for key, factor in column.plain()
            )
            if column.pieces and self.intercept:
                out[j] -= column.middle / column.half * weights.get(0, 0.0)
        return frozen(out)

    def place(self, key: frozenset[str]) -> int:
        """Where the column of these pieces is."""
        return self._places[key]

    @cached_property
    def _places(self) -> dict[frozenset[str], int]:
        return {column.key: j for j, column in enumerate(self.columns)}


def design(model: Model, schema: Schema) -> DesignMatrix:
    """The design of a model; too many columns are refused."""
    products: list[tuple[FactorPart, ...]] = [()] if model.intercept else []
    spanned: dict[frozenset[str], set[frozenset[str]]] = {}
    if model.intercept:
        spanned[frozenset()] = {frozenset()}
    for term in model.terms:
        numbers = frozenset(f.name for f in term if isinstance(f, NumberFactor))
        for coding in _codings(term, spanned.setdefault(numbers, set())):
            parts = [_pieces(factor, coding, schema) for factor in term if _used(factor, coding)]
            products.extend(product(*parts))
            if len(products) > LARGEST_COLUMNS:
                raise RequestError(f"model: more than {LARGEST_COLUMNS} columns.")
    centred = _centred(products, schema)
    return DesignMatrix(
        columns=tuple(_scaled(pieces, model, schema) for pieces in centred),
        intercept=model.intercept,
    )


def _centred(
    products: list[tuple[FactorPart, ...]], schema: Schema
) -> list[tuple[FactorPart, ...]]:
    """The powers of `poly` about the middle of their bounds, where the model spans the same then.

    It does where every column with lower powers is there, down to the one without the expression
    (of `poly(x, 2):a` alone it is not: a). Elsewhere powers stay about zero, on a scale.
    """
    keys = {frozenset(piece.name for piece in pieces) for pieces in products}
    open_nodes = {
        piece.node
        for pieces in products
        for piece in pieces
        if piece.power
        if not {
            key for key, _ in DesignColumn(pieces=_about(pieces, schema), middle=0, half=1).plain()
        }
        <= keys
    }
    return [_about(pieces, schema, not_in=open_nodes) for pieces in products]


def _about(
    pieces: tuple[FactorPart, ...], schema: Schema, not_in: Set[Node] = frozenset()
) -> tuple[FactorPart, ...]:
    """Powers on the scale of their bounds, about the middle except of some expressions."""
    found = []
    for piece in pieces:
        if not piece.power:
            found.append(piece)
            continue
        low, high = bounds(piece.node, schema, what="model")
        middle = 0.0 if piece.node in not_in else (low + high) / 2
        half = max(abs(low - middle), abs(high - middle)) or 1.0
        found.append(replace(piece, middle=middle, half=half))
    return tuple(found)


# Which categories of a term take part, and whether in full (all levels) or without the reference.
Coding = Mapping[str, bool]


def _codings(term: Term, spanned: set[frozenset[str]]) -> list[Coding]:
    names = [factor.name for factor in term if isinstance(factor, CategoryFactor)]
    subsets = [frozenset(s) for size in range(len(names) + 1) for s in combinations(names, size)]
    left: list[dict[str, bool]] = [
        dict.fromkeys(sorted(subset), False) for subset in subsets if subset not in spanned
    ]
    spanned.update(subsets)
    while (pair := _absorbable(left)) is not None:
        small, large, name = pair
        left = [each for each in left if each is not small]
        large[name] = True
    return list(left)


def _absorbable(
    codings: list[dict[str, bool]],
) -> tuple[dict[str, bool], dict[str, bool], str] | None:
    """A coding that becomes part of a larger one when one category there is coded in full."""
    for small in codings:
        for large in codings:
            extra = large.keys() - small.keys()
            if len(extra) == 1 and len(large) == len(small) + 1:
                (name,) = extra
                if not large[name] and all(large[each] == small[each] for each in small):
                    return small, large, name
    return None


def _used(factor: Factor, coding: Coding) -> bool:
    return isinstance(factor, NumberFactor) or factor.name in coding


def _pieces(factor: Factor, coding: Coding, schema: Schema) -> list[FactorPart]:
    if isinstance(factor, NumberFactor):
        if factor.degree == 1:
            return [FactorPart(name=factor.name, node=factor.node)]
        return [
            FactorPart(name=f"{factor.name}[{power}]", node=factor.node, power=power)
            for power in range(1, factor.degree + 1)
        ]
    column = schema.columns[factor.column]
    first = 0.0 if column.labels else column.low
    return [
        FactorPart(name=f"{factor.name}[{level}]", node=Name(factor.column), level=first + place)
        for place, level in enumerate(column.levels)
        if coding[factor.name] or place != factor.reference
    ]


def _scaled(pieces: tuple[FactorPart, ...], model: Model, schema: Schema) -> DesignColumn:
    low, high = 1.0, 1.0
    for piece in pieces:
        corners = [a * b for a in (low, high) for b in piece.ends(schema)]
        low, high = min(corners), max(corners)
    if all(piece.level is not None for piece in pieces):
        return DesignColumn(pieces=pieces, middle=0.0, half=1.0)
    if not low < high or max(-low, high) > 1e100:
        name = ":".join(written(piece.node) for piece in pieces)
        raise RequestError(f"model: {name} is constant or too large under the schema.")
    if model.intercept:
        return DesignColumn(pieces=pieces, middle=(low + high) / 2, half=(high - low) / 2)
    return DesignColumn(pieces=pieces, middle=0.0, half=max(-low, high))
