"""Arithmetic on columns: its name, its public bounds, and its values.

Bounds are interval arithmetic over the schema, so that whether log(x) exists is known before
any data is read, and no value of an expression can be infinite.
"""

from collections.abc import Callable, Mapping
from math import inf, isfinite, log, sqrt

import numpy as np

from countwise.arrays import FloatArray
from countwise.errors import RequestError
from countwise.kernels.design_columns import natural_log
from countwise.verification.grammar import (
    Binary,
    Call,
    Group,
    Index,
    Name,
    Negative,
    Node,
    Number,
    Text,
)
from countwise.verification.schema import Schema

FUNCTIONS: dict[str, Callable[[FloatArray], FloatArray]] = {"log": natural_log, "sqrt": np.sqrt}
OPERATORS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
LARGEST_POWER, LARGEST_VALUE = 8, 1e60  # squares and products of such values are finite in doubles
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.")


def written(node: Node) -> str:
    """The one way to write an expression; equal expressions read the same."""
    match node:
        case Number(value):
            text = f"{value:g}" if float(f"{value:g}") == value else repr(value)
        case Text(value):
            text = f'"{value}"'
        case Name(value):
            text = value if set(value) <= PLAIN and not value[0].isdigit() else f"`{value}`"
        case Call(name, arguments, named):
            keys = [f"{key} = {written(each)}" for key, each in named]
            text = f"{name}({', '.join([*map(written, arguments), *keys])})"
        case Index(base, label):
            text = f"{written(base)}[{label}]"
        case Binary(operator, left, right):
            space = " " if operator in "+-" else ""
            text = f"{written(left)}{space}{operator}{space}{written(right)}"
        case Negative(inner):
            text = f"-{written(inner)}"
        case Group(inner):
            text = f"({written(inner)})"
    return text


def constant(node: Node) -> float | None:
    """The value of an expression of numbers alone, None when a column is in it."""
    match node:
        case Number(value):
            return value
        case Negative(inner):
            value_or_none = constant(inner)
            return None if value_or_none is None else -value_or_none
        case Group(inner):
            return constant(inner)
        case Binary(operator, left, right) if operator != ":":
            a, b = constant(left), constant(right)
            return None if a is None or b is None else _constant(operator, a, b)
        case _:
            return None


def columns_of(node: Node) -> frozenset[str]:
    """The names in an expression."""
    match node:
        case Name(value):
            return frozenset([value])
        case Call(_, arguments, named):
            inner = [*arguments, *(each for _, each in named)]
            return frozenset().union(*map(columns_of, inner))
        case Binary(_, left, right):
            return columns_of(left) | columns_of(right)
        case Negative(inner) | Group(inner) | Index(inner, _):
            return columns_of(inner)
        case _:
            return frozenset()


def bounds(node: Node, schema: Schema, *, what: str) -> tuple[float, float]:
    """The least and largest value an expression can have within the schema's bounds."""
    try:
        low, high = _bounds(node, schema, what)
    except OverflowError:
        low, high = -inf, inf
    if not (abs(low) <= LARGEST_VALUE and abs(high) <= LARGEST_VALUE):
        raise RequestError(f"{what}: {written(node)} can be larger than {LARGEST_VALUE:g}.")
    return low, high


def values(node: Node, columns: Mapping[str, FloatArray]) -> FloatArray:
    """The expression at every row; each value depends on its own row alone, to the last bit."""
    match node:
        case Number(value):
            found = np.asarray(value)
        case Name(value):
            found = columns[value]
        case Group(inner):
            found = values(inner, columns)
        case Negative(inner):
            found = -values(inner, columns)
        case Call(name, (inner,)):
            found = FUNCTIONS[name](values(inner, columns))
        case Binary("^", base, exponent):
            found = factor = values(base, columns)
            for _ in range(int(constant(exponent) or 1) - 1):
                found = found * factor
        case Binary(operator, left, right):
            found = OPERATORS[operator](values(left, columns), values(right, columns))
        case _:
            raise AssertionError(node)
    return np.asarray(found)


def _bounds(node: Node, schema: Schema, what: str) -> tuple[float, float]:
    match node:
        case Number(value):
            return value, value
        case Name(value):
            column = schema.column(value, what=what)
            if not column.numeric:
                raise RequestError(
                    f"{what}: {value!r} is a category, not a number. To fix, write C({value})."
                )
            return column.low, column.high
        case Group(inner):
            return _bounds(inner, schema, what)
        case Negative(inner):
            low, high = _bounds(inner, schema, what)
            return -high, -low
        case Call(name, arguments, named):
            return _call_bounds(name, arguments, named, schema, what)
        case Binary(operator, left, right):
            return _binary_bounds(operator, left, right, schema, what)
        case _:
            raise RequestError(f"{what}: {written(node)} is not a number.")


def _call_bounds(
    name: str,
    arguments: tuple[Node, ...],
    named: tuple[tuple[str, Node], ...],
    schema: Schema,
    what: str,
) -> tuple[float, float]:
    if name not in FUNCTIONS:
        raise RequestError(
            f"{what}: no function {name!r} of numbers; there are {', '.join(FUNCTIONS)} "
            "(and C and poly as terms of a model)."
        )
    if len(arguments) != 1 or named:
        raise RequestError(f"{what}: {name} takes one number, as in {name}(x).")
    low, high = _bounds(arguments[0], schema, what)
    inside = written(arguments[0])
    if name == "log":
        if low <= 0:
            raise RequestError(
                f"{what}: log({inside}) needs {inside} above 0, and the schema allows {low:g}. "
                f"To fix, write log({inside} + 1) or another shift."
            )
        return log(low), log(high)
    if low < 0:
        raise RequestError(
            f"{what}: sqrt({inside}) needs {inside} of 0 or more, and the schema allows {low:g}."
        )
    return sqrt(low), sqrt(high)


def _binary_bounds(
    operator: str, left: Node, right: Node, schema: Schema, what: str
) -> tuple[float, float]:
    low, high = _bounds(left, schema, what)
    if operator == "^":
        power = constant(right)
        if power is None or power != int(power) or not 1 <= power <= LARGEST_POWER:
            raise RequestError(
                f"{what}: the power of {written(left)} must be a whole number from 1 to "
                f"{LARGEST_POWER}."
            )
        ends = low**power, high**power
        return (0.0 if low < 0 < high and power % 2 == 0 else min(ends)), max(ends)
    if operator == "/":
        divisor = constant(right)
        if not divisor or not isfinite(divisor):
            raise RequestError(
                f"{what}: {written(left)} can be divided by a constant other than 0 only."
            )
        ends = low / divisor, high / divisor
        return min(ends), max(ends)
    if operator == ":":
        raise RequestError(f"{what}: an interaction can not stand inside arithmetic.")
    other_low, other_high = _bounds(right, schema, what)
    if operator == "+":
        return low + other_low, high + other_high
    if operator == "-":
        return low - other_high, high - other_low
    corners = [a * b for a in (low, high) for b in (other_low, other_high)]
    return min(corners), max(corners)


def _constant(operator: str, a: float, b: float) -> float:
    try:
        match operator:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "/":
                return a / b
        return float(a**b) if abs(b) <= LARGEST_POWER else inf
    except (ZeroDivisionError, OverflowError, TypeError):
        return inf
