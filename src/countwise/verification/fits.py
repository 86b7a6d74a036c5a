"""Regressions in all partitions at once, and what can be read off them.

A partition whose fit is singular, separated, unsettled after 25 steps or too small is not
fitted. Every number of a partition is a function of that partition's rows alone.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.errors import RequestError
from countwise.kernels.least_squares import least_squares
from countwise.kernels.normal_equations import OK
from countwise.kernels.regression_likelihood import LOGISTIC, POISSON, likelihood
from countwise.kernels.row_blocks import group_rows
from countwise.threads import run_parts
from countwise.verification.robust_errors import FittedRows
from countwise.verification.schema import SchemaColumn

Family = Literal["ols", "logistic", "poisson"]
Errors = Literal["usual", "robust", "clustered"]
FAMILIES: tuple[Family, ...] = get_args(Family)
OPEN_GROUPS = 128  # groups up to which least squares takes rows as they lie in memory
LEAST_SHARED_WORK = 500_000  # numbers in the design from which several threads pay


@dataclass(frozen=True, kw_only=True, eq=False)
class Fits:
    """Coefficients and the factored information of each group, columns measured from its origin.

    With an intercept a group's columns are fitted as x - origin (`kernels.normal_equations` says
    why), so the estimates e are the coefficients but for the intercept: e_0 - Σ e_j·origin_j.
    """

    family: Family
    estimates: FloatArray
    origins: FloatArray
    factors: FloatArray
    scales: FloatArray
    dispersion: FloatArray
    rows: IntArray
    fitted: BoolArray
    data: FittedRows | None = None
    """Where a claim needs robust standard errors, what was fitted."""

    @property
    def coefficients(self) -> FloatArray:
        """The coefficients of the design's columns, one row a group."""
        k = self.estimates.shape[1]
        return np.stack([self.combination(each) for each in np.eye(k)], axis=1)

    def combination(self, contrast: FloatArray) -> FloatArray:
        """The contrast of the coefficients in every group, added up column by column."""
        total = np.zeros(len(self.fitted))
        with np.errstate(invalid="ignore", over="ignore"):
            for j, column in enumerate(self.estimates.T):
                weight = self._weight(contrast, j)
                total = total + np.where(weight, weight * column, 0.0)
        return total

    def _weight(self, contrast: FloatArray, j: int) -> FloatArray:
        """The weight of the estimate j in a contrast of the coefficients, group by group."""
        outer = np.multiply.outer
        origin = self.origins[:, j]
        return np.asarray(outer(contrast[j], np.ones_like(origin)) - outer(contrast[0], origin))

    def standard_error(self, contrast: FloatArray) -> FloatArray:
        """The standard error of the contrast: s·√(c'(X'X)⁻¹c), s = 1 for logistic and Poisson.

        With X'X = D⁻¹LL'D⁻¹ (D the scales) it is s·|L⁻¹Dc|, by forward substitution. The columns
        of a matrix are as many contrasts, each with a row of standard errors.
        """
        k = len(contrast)
        solved = np.zeros((*contrast.shape, len(self.fitted)))
        squares = np.zeros(solved.shape[1:])
        with np.errstate(all="ignore"):
            for i in range(k):
                total = self._weight(contrast, i) * self.scales[:, i]
                for j in range(i):
                    total = total - self.factors[:, i, j] * solved[j]
                solved[i] = total / self.factors[:, i, i]
                squares = squares + solved[i] * solved[i]
            return np.asarray(np.sqrt(squares * self.dispersion))

    def solved(self, contrast: FloatArray) -> FloatArray:
        """(X'X)⁻¹c of a contrast of the coefficients, on the columns from each group's origin."""
        k = len(contrast)
        found = np.zeros((len(self.fitted), k))
        for i in range(k):
            total = self._weight(contrast, i) * self.scales[:, i]
            for j in range(i):
                total = total - self.factors[:, i, j] * found[:, j]
            found[:, i] = total / self.factors[:, i, i]
        for i in reversed(range(k)):
            total = found[:, i]
            for j in range(i + 1, k):
                total = total - self.factors[:, j, i] * found[:, j]
            found[:, i] = total / self.factors[:, i, i]
        return found * self.scales

    def error(self, contrast: FloatArray, kind: Errors) -> FloatArray:
        """The standard error of a contrast, of the kind that a claim asks for."""
        if kind == "usual":
            return self.standard_error(contrast)
        assert self.data is not None
        return self.data.standard_error(self, contrast, clustered=kind == "clustered")

    def response(self, linear: FloatArray) -> FloatArray:
        """The predicted mean at values of the linear predictor."""
        with np.errstate(over="ignore"):
            if self.family == "logistic":
                return np.asarray(1.0 / (1.0 + np.exp(-linear)))
            return np.exp(linear) if self.family == "poisson" else linear

    @property
    def freedom(self) -> FloatArray:
        """Residual degrees of freedom; infinite where the normal law is used."""
        if self.family != "ols":
            return np.full(len(self.fitted), np.inf)
        return np.asarray(np.maximum(self.rows - self.estimates.shape[1], 1), dtype=np.float64)


def fit(
    x: FloatArray,
    y: FloatArray,
    groups: IntArray,
    *,
    count: int,
    family: Family,
    intercept: bool,
    persons: IntArray | None = None,
) -> Fits:
    """Regressions of y on x in groups 0..count-1; rows of group -1 take no part.

    With the `persons` that rows are of, there are robust standard errors too.
    """
    order, starts = group_rows(groups, count)
    k = x.shape[1]
    origins, estimates, scales = np.zeros((3, count, k))
    factors = np.zeros((count, k, k))
    dispersion = np.zeros(count)
    status = np.zeros(count, dtype=np.int64)
    results = origins, estimates, factors, scales, dispersion, status

    gathered = count > OPEN_GROUPS

    def work(first: int, last: int) -> None:
        if family == "ols":
            least_squares(x, y, groups, order, starts, first, last, gathered, intercept, *results)
        else:
            kind = LOGISTIC if family == "logistic" else POISSON
            likelihood(x, y, order, starts, first, last, kind, intercept, *results)

    run_parts(work, count, alone=x.size <= LEAST_SHARED_WORK)
    return Fits(
        family=family,
        estimates=estimates,
        origins=origins,
        factors=factors,
        scales=scales,
        dispersion=dispersion,
        rows=np.diff(starts),
        fitted=status == OK,
        data=None if persons is None else FittedRows(x=x, y=y, groups=groups, persons=persons),
    )


def check_response(column: SchemaColumn | None, low: float, *, family: Family) -> None:
    """Whether a family can have this response, by the schema."""
    if family == "logistic" and (column is None or column.kind != "binary"):
        raise RequestError(
            "model: a logistic response must be a column of type binary (0 and 1) in the schema."
        )
    if family == "poisson" and low < 0:
        raise RequestError(
            f"model: a Poisson response must not be negative, and the schema allows {low:g}."
        )
