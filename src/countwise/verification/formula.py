"""Models as text: `response ~ terms where filter`, read to terms of factors.

At the level of terms `+` adds a term, `a:b` is an interaction, `a*b` is `a + b + a:b`, `1`
and `0` (or `- 1`) switch the intercept. An operator with a constant is arithmetic on one number:
`x/10`, `2*x`, `x^2`, `(x - 50)/10`; so is everything inside log() and sqrt(). `C(f)` takes the
levels of the schema, `C(f, "b")` makes b the reference, `poly(x, 2)` stands for x and x^2.
"""

from dataclasses import dataclass
from itertools import product

from countwise.errors import RequestError
from countwise.verification.arithmetic import bounds, columns_of, constant, written
from countwise.verification.filters import Filter, parse_filter
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

WHAT = "model"
LARGEST_TERMS, LARGEST_DEGREE = 100, 5  # beyond them no model is read by a person


@dataclass(frozen=True, kw_only=True)
class NumberFactor:
    """Arithmetic on columns, and its powers up to a degree; one design column a power."""

    node: Node
    degree: int = 1

    @property
    def name(self) -> str:
        """As the model writes it."""
        text = written(self.node)
        return text if self.degree == 1 else f"poly({text}, {self.degree})"


@dataclass(frozen=True, kw_only=True)
class CategoryFactor:
    """A column's levels as indicators; `reference` is the place of the level left out."""

    column: str
    reference: int

    @property
    def name(self) -> str:
        """As the model writes it, the reference aside."""
        return f"C({written(Name(self.column))})"


Factor = NumberFactor | CategoryFactor
Term = tuple[Factor, ...]


@dataclass(frozen=True, kw_only=True)
class Model:
    """A response, the terms by rising degree, whether there is an intercept, and a filter."""

    text: str
    response: Node
    terms: tuple[Term, ...]
    intercept: bool
    where: Filter | None

    @property
    def columns(self) -> frozenset[str]:
        """Every column a row must have to take part."""
        used = columns_of(self.response)
        for factor in (factor for term in self.terms for factor in term):
            match factor:
                case NumberFactor(node=node):
                    used |= columns_of(node)
                case CategoryFactor(column=column):
                    used |= {column}
        return used | (self.where.columns if self.where else frozenset())


def parse_model(text: str, schema: Schema) -> Model:
    """The model a text means under a schema, or a refusal that depends on the two alone."""
    if not text.strip():
        raise RequestError(
            'the model is empty. To fix, write one such as "hours ~ education_years + C(sex)".'
        )
    parser = Parser(text, what=WHAT)
    response = parser.sum()
    parser.expect("~")
    right = parser.sum()
    where = parse_filter(parser, schema) if parser.accept("where") else None
    parser.end()
    bounds(response, schema, what=WHAT)
    if not columns_of(response):
        raise RequestError(f"{WHAT}: the response must be a column or arithmetic on one.")
    terms, intercept = _terms(right, schema)
    if not terms and not intercept:
        raise RequestError(f"{WHAT}: there is nothing to fit. To fix, add a term or 1.")
    for term in terms:
        if any(factor.name == written(response) for factor in term):
            raise RequestError(f"{WHAT}: the response can not be one of the terms too.")
    return Model(
        text=text.strip(), response=response, terms=terms, intercept=intercept, where=where
    )


def _terms(node: Node, schema: Schema) -> tuple[tuple[Term, ...], bool]:
    """The distinct terms by rising degree, and whether there is an intercept."""
    found: dict[frozenset[str], Term] = {}
    intercept = True
    for sign, part in _summands(node):
        if part in (Number(0.0), Number(1.0)):
            intercept = (part == Number(1.0)) is (sign == "+")
            continue
        if sign == "-":
            raise RequestError(
                f"{WHAT}: {written(part)} can not be taken away; only - 1 can. To fix, leave "
                "the term out, or write arithmetic between parentheses with a constant."
            )
        for term in _crossed(part, schema):
            found.setdefault(frozenset(factor.name for factor in term), term)
    if len(found) > LARGEST_TERMS:
        raise RequestError(f"{WHAT}: more than {LARGEST_TERMS} terms.")
    return tuple(sorted(found.values(), key=len)), intercept


def _summands(node: Node) -> list[tuple[str, Node]]:
    """The parts of a sum with their signs, in order."""
    signed: list[tuple[str, Node]] = []
    while isinstance(node, Binary) and node.operator in "+-":
        signed.append((node.operator, node.right))
        node = node.left
    signed.append(("-", node.inner) if isinstance(node, Negative) else ("+", node))
    return signed[::-1]


def _crossed(node: Node, schema: Schema) -> list[Term]:
    """The terms an expression stands for."""
    match node:
        case Group(inner) if not _shifted(inner):
            return [term for _, part in _plus_only(inner) for term in _crossed(part, schema)]
        case Binary(":", left, right):
            return _products(_crossed(left, schema), _crossed(right, schema))
        case Binary("*", left, right) if constant(left) is None and constant(right) is None:
            first, second = _crossed(left, schema), _crossed(right, schema)
            return [*first, *second, *_products(first, second)]
        case Number(value):
            raise RequestError(f"{WHAT}: {value:g} alone is no term; only 0 and 1 are.")
        case Text() | Index() | Negative():
            raise RequestError(f"{WHAT}: {written(node)} is no term of a model.")
        case _:
            return [(_factor(node, schema),)]


def _plus_only(inner: Node) -> list[tuple[str, Node]]:
    parts = _summands(inner)
    if any(sign == "-" for sign, _ in parts):
        raise RequestError(f"{WHAT}: ({written(inner)}) takes a term away, which has no meaning.")
    return parts


def _shifted(node: Node) -> bool:
    """Whether a group is arithmetic: a sum with a constant in it, or arithmetic already."""
    parts = [part for _, part in _summands(node)]
    if len(parts) > 1:
        return any(constant(part) is not None for part in parts)
    return isinstance(node, Binary) and node.operator in "/^"


def _products(first: list[Term], second: list[Term]) -> list[Term]:
    found = []
    for left, right in product(first, second):
        names = {factor.name for factor in left}
        found.append((*left, *(factor for factor in right if factor.name not in names)))
        if len(found) > LARGEST_TERMS:
            raise RequestError(f"{WHAT}: more than {LARGEST_TERMS} terms.")
    return found


def _factor(node: Node, schema: Schema) -> Factor:
    match node:
        case Call("C", arguments, named):
            return _category(arguments, schema, plain=not named)
        case Name(value) if not schema.column(value, what=WHAT).numeric:
            return CategoryFactor(column=value, reference=0)
        case Call("poly", (inner, Number(degree)), ()):
            if degree != int(degree) or not 2 <= degree <= LARGEST_DEGREE:
                raise RequestError(f"{WHAT}: the degree of poly is 2 to {LARGEST_DEGREE}.")
            factor = NumberFactor(node=inner, degree=int(degree))
            bounds(Binary("^", Group(inner), Number(degree)), schema, what=WHAT)
        case Call("poly"):
            raise RequestError(f"{WHAT}: poly takes a number and a degree, as in poly(x, 2).")
        case _:
            _refuse_ambiguous(node)
            factor = NumberFactor(node=node)
            bounds(node, schema, what=WHAT)
    if not columns_of(factor.node):
        raise RequestError(f"{WHAT}: {factor.name} has no column in it.")
    return factor


def _refuse_ambiguous(node: Node) -> None:
    """`a*b/10` could be a crossing or a product, `(a + b)^2` too: parentheses must say."""
    if not isinstance(node, Binary) or node.operator not in "*/^":
        return
    left = node.left.inner if node.operator == "^" and isinstance(node.left, Group) else node.left
    crossing = isinstance(left, Binary) and (
        left.operator == "*" if node.operator != "^" else left.operator in "+-*"
    )
    if crossing and isinstance(left, Binary):
        both = constant(left.left) is None and constant(left.right) is None
        if both:
            raise RequestError(
                f"{WHAT}: {written(node)} could be terms or arithmetic. To fix, write the terms "
                "out, or put arithmetic in parentheses and combine it with a constant by * or /."
            )


def _category(arguments: tuple[Node, ...], schema: Schema, *, plain: bool) -> CategoryFactor:
    match arguments:
        case (Name(value),) if plain:
            column, reference = schema.column(value, what=WHAT), 0
        case (Name(value), Text(label)) if plain:
            column = schema.column(value, what=WHAT)
            reference = schema.level(column, label, what=WHAT)
        case _:
            raise RequestError(
                f'{WHAT}: C takes a column and perhaps its reference level, as in C(sex, "Male").'
            )
    if len(column.levels) < 2:
        raise RequestError(f"{WHAT}: column {value!r} has one level only.")
    return CategoryFactor(column=value, reference=reference)
