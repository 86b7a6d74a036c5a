"""What is believed about the true counts before the release is seen.

A prior is a product over cells times a function of the grand total, which is what the kernel
can couple: p(N_1, …, N_S) ∝ Π_s c_s(N_s) · t(ΣN). Logarithms are up to a constant.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import gammaln

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.errors import InputError


class Prior(Protocol):
    """log c_s and log t, and where they end."""

    @property
    def lower(self) -> int | None:
        """0; None where a count may be any whole number."""
        ...

    @property
    def upper(self) -> int | None:
        """The largest count a cell can have, if there is one."""
        ...

    @property
    def upper_total(self) -> int | None:
        """The largest grand total that the function of it allows, if there is one."""
        ...

    def log_cells(self, cells: IntArray, x: IntArray) -> FloatArray:
        """log c_s(x) for each cell s and count x ≥ 0."""
        ...

    def log_total(self, t: IntArray, cells: int) -> FloatArray:
        """log t(ΣN) when there are so many cells."""
        ...

    @property
    def nested(self) -> bool:
        """Whether every parent's count has a factor of its own."""
        ...

    def log_parents(self, children: IntArray, x: IntArray) -> FloatArray:
        """log of that factor, for what parents share among so many children."""
        ...

    def words(self) -> str:
        """The prior in words, for the output."""
        ...


class Independent:
    """Cells that know nothing of each other: the function of the total is 1."""

    lower: int | None = 0
    upper: int | None = None
    upper_total: int | None = None

    nested: bool = False

    def log_total(self, t: IntArray, cells: int) -> FloatArray:  # noqa: ARG002
        """Zero."""
        return np.zeros(len(t))

    def log_parents(self, children: IntArray, x: IntArray) -> FloatArray:  # noqa: ARG002
        """Zero."""
        return np.zeros(len(x))


@dataclass(frozen=True)
class NoPrior(Independent):
    """No prior: every count may be any whole number, negative ones too, all equally likely.

    With it the law of a count given the noisy ones covers what it says whatever the truth is: the
    noise shifts with the counts, and this is the flat prior on a group of shifts. The count that is
    asked about is then cut to what it can be, 0 or more.
    """

    lower: int | None = None

    def log_cells(self, cells: IntArray, x: IntArray) -> FloatArray:  # noqa: ARG002
        """Zero."""
        return np.zeros(len(x))

    def words(self) -> str:
        """What is assumed."""
        return "none (every other count any whole number, the one asked about 0 or more)"


@dataclass(frozen=True)
class Uniform(Independent):
    """Every count from 0 to `upper` is as likely as any other; without end when there is none."""

    upper: int | None = None

    def __post_init__(self) -> None:
        if self.upper is not None and self.upper < 0:
            raise InputError(f"a uniform prior needs an upper end of 0 or more, got {self.upper}.")

    def log_cells(self, cells: IntArray, x: IntArray) -> FloatArray:  # noqa: ARG002
        """Zero up to the end."""
        inside = np.zeros(len(x))
        return inside if self.upper is None else np.where(x <= self.upper, inside, -np.inf)

    def words(self) -> str:
        """The range."""
        return f"uniform on 0..{'U' if self.upper is None else self.upper}"


@dataclass(frozen=True)
class Poisson(Independent):
    """Poisson counts; one mean, or one a cell."""

    mean: float | Sequence[float]

    def __post_init__(self) -> None:
        if np.min(self.mean) <= 0 or not np.all(np.isfinite(self.mean)):
            raise InputError(f"a Poisson prior needs a positive mean, got {self.mean}.")

    def log_cells(self, cells: IntArray, x: IntArray) -> FloatArray:
        """x·log(mean) - log x! - mean."""
        mean = of_cells(self.mean, cells, what="means of the Poisson prior")
        return np.asarray(x * np.log(mean) - gammaln(x + 1.0) - mean)

    def words(self) -> str:
        """The law and its mean."""
        return f"Poisson with mean {shown(self.mean)}"


@dataclass(frozen=True)
class NegativeBinomial(Independent):
    """Counts with this mean and variance mean + mean²/size; one of each, or one a cell."""

    mean: float | Sequence[float]
    size: float | Sequence[float]

    def __post_init__(self) -> None:
        if min(np.min(self.mean), np.min(self.size)) <= 0:
            raise InputError("a negative binomial prior needs a positive mean and a positive size.")

    def log_cells(self, cells: IntArray, x: IntArray) -> FloatArray:
        """log Γ(x+r) - log Γ(r) - log x! + r·log(r/(r+μ)) + x·log(μ/(r+μ))."""
        mean = of_cells(self.mean, cells, what="means of the negative binomial prior")
        size = of_cells(self.size, cells, what="sizes of the negative binomial prior")
        start = gammaln(x + size) - gammaln(size) - gammaln(x + 1.0)
        rest = size * np.log(size / (size + mean)) + x * np.log(mean / (size + mean))
        return np.asarray(start + rest)

    def words(self) -> str:
        """The law and its parameters."""
        return f"negative binomial with mean {shown(self.mean)} and size {shown(self.size)}"


@dataclass(frozen=True)
class Pmf(Independent):
    """Probabilities of 0, 1, 2, …: one list for all cells, or one a cell."""

    chances: Sequence[float] | Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        for row in self._rows() or [[]]:
            if not len(row) or min(row) < 0 or not 0 < sum(row) < np.inf:
                raise InputError("a prior's probabilities must be 0 or more, and some positive.")

    @property
    def upper(self) -> int | None:  # type: ignore[override]
        """The last count with a probability."""
        return max(len(row) for row in self._rows()) - 1

    def _rows(self) -> list[Sequence[float]]:
        flat = len(self.chances) > 0 and np.ndim(self.chances[0]) == 0
        return [self.chances] if flat else list(self.chances)  # type: ignore[list-item,arg-type]

    def log_cells(self, cells: IntArray, x: IntArray) -> FloatArray:
        """The logarithm of the table."""
        rows = self._rows()
        table = np.zeros((len(rows), max(len(row) for row in rows)))
        for i, row in enumerate(rows):
            table[i, : len(row)] = np.asarray(row, np.float64) / np.sum(row)
        which = np.zeros(len(cells), np.int64) if len(rows) == 1 else cells
        if len(rows) > 1 and len(cells) and cells.max() >= len(rows):
            raise InputError(f"the prior has {len(rows)} lists of probabilities, too few.")
        inside = x < table.shape[1]
        with np.errstate(divide="ignore"):
            logs = np.log(table[which, np.where(inside, x, 0)])
        return np.where(inside, logs, -np.inf)

    def words(self) -> str:
        """That it was given."""
        return "given probabilities"


@dataclass(frozen=True)
class Compositions:
    """A prior on the grand total, and every way to divide it among the cells as likely."""

    total: Prior = Uniform()
    lower: int | None = 0
    upper: int | None = None

    @property
    def upper_total(self) -> int | None:
        """Where the total's own prior ends."""
        return self.total.upper

    def log_cells(self, cells: IntArray, x: IntArray) -> FloatArray:  # noqa: ARG002
        """Zero."""
        return np.zeros(len(x))

    nested: bool = False

    def log_total(self, t: IntArray, cells: int) -> FloatArray:
        """The total's own prior over the number of compositions, C(t+S-1, S-1)."""
        own = self.total.log_cells(np.zeros(len(t), np.int64), t)
        return np.asarray(own - log_ways(t, np.array(cells)))

    def log_parents(self, children: IntArray, x: IntArray) -> FloatArray:  # noqa: ARG002
        """Zero."""
        return np.zeros(len(x))

    def words(self) -> str:
        """The total's prior, and how it is divided."""
        return f"total {self.total.words()}, divided uniformly"


@dataclass(frozen=True)
class NestedCompositions(Compositions):
    """A prior on the grand total, and from the root down every parent's count divided evenly.

    All ways to divide a parent's count among its children are as likely: at every parent the law
    that its children imply for their sum is divided out, so that nothing is said about its size.
    """

    nested: bool = True

    def log_total(self, t: IntArray, cells: int) -> FloatArray:  # noqa: ARG002
        """The total's own prior."""
        return self.total.log_cells(np.zeros(len(t), np.int64), t)

    def log_parents(self, children: IntArray, x: IntArray) -> FloatArray:
        """Minus the logarithm of the number of compositions."""
        return -log_ways(x, children)

    def words(self) -> str:
        """The total's prior, and how it is divided."""
        return f"every count divided evenly among its children (the total {self.total.words()})"


@dataclass(frozen=True)
class Shares:
    """A prior on the grand total, divided as a multinomial with the given shares of the cells."""

    shares: Sequence[float]
    total: Prior = Uniform()
    lower: int | None = 0
    upper: int | None = None

    @property
    def upper_total(self) -> int | None:
        """Where the total's own prior ends."""
        return self.total.upper

    def __post_init__(self) -> None:
        if np.min(self.shares) <= 0:
            raise InputError("the shares of a multinomial prior must be positive.")

    def log_cells(self, cells: IntArray, x: IntArray) -> FloatArray:
        """x·log θ - log x!."""
        theta = of_cells(self.shares, cells, what="shares of the prior")
        return np.asarray(x * np.log(theta / np.sum(self.shares)) - gammaln(x + 1.0))

    nested: bool = False

    def log_parents(self, children: IntArray, x: IntArray) -> FloatArray:  # noqa: ARG002
        """Zero."""
        return np.zeros(len(x))

    def log_total(self, t: IntArray, cells: int) -> FloatArray:
        """The total's own prior times t!."""
        if len(self.shares) != cells:
            raise InputError(f"the prior needs {cells} shares, one a cell, got {len(self.shares)}.")
        own = self.total.log_cells(np.zeros(len(t), np.int64), t)
        return np.asarray(own + gammaln(t + 1.0))

    def words(self) -> str:
        """The total's prior, and how it is divided."""
        return f"total {self.total.words()}, divided by given shares"


@dataclass(frozen=True, kw_only=True, eq=False)
class ExceptKnown:
    """A prior of which cells are excepted whose counts are known."""

    prior: Prior
    known: BoolArray
    upper: int | None = None

    @property
    def lower(self) -> int | None:
        """That of the prior."""
        return self.prior.lower

    @property
    def upper_total(self) -> int | None:
        """That of the prior."""
        return self.prior.upper_total

    def log_cells(self, cells: IntArray, x: IntArray) -> FloatArray:
        """Zero for cells that are known."""
        return np.where(self.known[cells], 0.0, self.prior.log_cells(cells, x))

    def log_total(self, t: IntArray, cells: int) -> FloatArray:
        """That of the prior, which is conditioned on what is known."""
        return self.prior.log_total(t, cells)

    @property
    def nested(self) -> bool:
        """That of the prior."""
        return self.prior.nested

    def log_parents(self, children: IntArray, x: IntArray) -> FloatArray:
        """That of the prior."""
        return self.prior.log_parents(children, x)

    def words(self) -> str:
        """Those of the prior."""
        return self.prior.words()


def log_ways(t: IntArray, parts: IntArray) -> FloatArray:
    """log C(t+S-1, S-1): in how many ways a count is divided among S parts, for S ≥ 1."""
    s = np.maximum(parts, 1).astype(np.float64)
    return np.asarray(gammaln(t + s) - gammaln(t + 1.0) - gammaln(s))


def of_cells(value: float | Sequence[float], cells: IntArray, *, what: str) -> FloatArray:
    """A number of all cells, or the number of each."""
    numbers = np.asarray(value, np.float64)
    if numbers.ndim == 0:
        return numbers
    if len(cells) and cells.max() >= len(numbers):
        raise InputError(f"the {what} must be one number, or one a cell; got {len(numbers)}.")
    return np.asarray(numbers[cells])


def shown(value: float | Sequence[float]) -> str:
    """A number, or that there are several."""
    return f"{value:g}" if isinstance(value, int | float) else "of each cell"


TO_AN_END: dict[str, Callable[[Uniform], Prior]] = {
    "uniform": lambda uniform: uniform,
    "compositions": Compositions,
    "nested": NestedCompositions,
}


def read_prior(text: str) -> Prior:
    """A prior as written on the command line: uniform:100, poisson:3, compositions, …"""
    kind, _, rest = text.strip().partition(":")
    try:
        numbers = [float(part) for part in rest.split(",") if part]
        if kind == "none" and not rest:
            return NoPrior()
        if kind in TO_AN_END:
            return TO_AN_END[kind](Uniform(int(rest) if rest else None))
        if kind == "poisson":
            return Poisson(numbers[0] if len(numbers) == 1 else numbers)
        if kind == "negative-binomial":
            if len(numbers) != 2:
                raise InputError(
                    f"prior {text!r}: a negative binomial prior has two numbers, mean and size, as "
                    "in negative-binomial:3,0.5."
                )
            return NegativeBinomial(*numbers)
        if kind in ("pmf", "shares"):
            return Pmf(numbers) if kind == "pmf" else Shares(numbers)
    except (ValueError, IndexError):
        pass
    raise InputError(
        f"prior {text!r} is not one of none, nested, nested:1000, uniform, uniform:1000, "
        "poisson:3, negative-binomial:3,0.5 (mean, size), pmf:0.5,0.3,0.2, compositions, "
        "compositions:1000, shares:0.4,0.6."
    )
