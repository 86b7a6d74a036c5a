"""The privacy boundary of verification: rows go in, noisy counts come out, and nothing else.

Partition labels, fits, outcomes and true counts live and end inside `verify`. The key of the
partitions is drawn here and forgotten here. Of rows that were read as synthetic, and of no others,
`synthetic_partitions` shows the outcomes too, for the planner.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray, frozen
from countwise.errors import CountwiseError
from countwise.progress import Tell, silent
from countwise.verification.arithmetic import values
from countwise.verification.claims import FitsOf, sides
from countwise.verification.fits import Fits, fit
from countwise.verification.outcome_noise import measure
from countwise.verification.partitions import LARGEST, assign, fresh_key, numbered, persons, within
from countwise.verification.quantities import Periods
from countwise.verification.records import Records
from countwise.verification.request import Request

STAGES = ("assigning persons to partitions", "fitting the partitions", "drawing noise")


def verify(records: Records, request: Request, *, tell: Tell = silent) -> FloatArray:
    """The noisy count of partitions with each outcome, at the request's ε."""
    try:
        outcomes = _outcomes(records, request, key=fresh_key(), tell=tell)
        tell(STAGES[2])
        counts = np.bincount(outcomes, minlength=len(request.claim.outcomes))
        noisy = measure(counts, mechanism=request.mechanism, epsilon=request.epsilon)
    except Exception:
        # Whatever the fault, its message could hold data.
        raise CountwiseError("the data could not be processed; nothing was released.") from None
    return frozen(noisy)


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticPartitions:
    """What partitions of synthetic rows are like: their outcomes, and on which side they lie.

    `sides` are the partitions above and below the value of all synthetic rows, and all that were
    fitted, for each part of the claim; None where all rows together can not be fitted.
    """

    outcomes: IntArray
    sides: IntArray | None


def synthetic_partitions(records: Records, request: Request) -> SyntheticPartitions:
    """Partitions of synthetic rows, as large as those of the data will be.

    Where the schema says how many persons the data have, there are as many partitions as that
    takes; else M.
    """
    if not records.synthetic:
        raise CountwiseError("outcomes of partitions are shown of synthetic rows only.")
    columns, data, offsets = records.reveal()
    partitions = request.partitions
    if request.schema.persons is not None:
        share = persons(data, offsets) / request.schema.persons
        partitions = min(max(round(partitions * share), 2), LARGEST)
    groups = assign(data, offsets, partitions=partitions, key=fresh_key())
    who = numbered(data, offsets) if request.claim.robust else None
    whole = _fits(columns, np.minimum(groups, 0), request, partitions=1, who=who)
    groups = within(groups, partitions=partitions, most=request.most_rows)
    parts = _fits(columns, groups, request, partitions=partitions, who=who)
    return SyntheticPartitions(
        outcomes=request.claim.judge(parts, partitions, scale=request.partitions),
        sides=sides(request.claim, parts, whole, partitions),
    )


def _outcomes(records: Records, request: Request, *, key: bytes, tell: Tell = silent) -> IntArray:
    """The outcome of every partition, each a function of its own persons' rows alone."""
    tell(STAGES[0])
    columns, data, offsets = records.reveal()
    partitions = request.partitions
    groups = assign(data, offsets, partitions=partitions, key=key)
    groups = within(groups, partitions=partitions, most=request.most_rows)
    tell(STAGES[1])
    who = numbered(data, offsets) if request.claim.robust else None
    fits = _fits(columns, groups, request, partitions=partitions, who=who)
    return request.claim.judge(fits, partitions, scale=partitions)


def _fits(
    columns: Mapping[str, FloatArray],
    groups: IntArray,
    request: Request,
    *,
    partitions: int,
    who: IntArray | None = None,
) -> FitsOf:
    """The fits of the model in groups of rows, by period where a claim has periods.

    `who` are the persons of rows, for claims with robust standard errors.
    """
    kept = np.flatnonzero(_complete(columns, groups, request))
    rows = {name: columns[name][kept] for name in request.columns}
    response = np.ascontiguousarray(values(request.model.response, rows))
    matrix = request.design.matrix(rows, len(kept))
    known: dict[Periods | None, Fits] = {}

    def fits(periods: Periods | None) -> Fits:
        if periods not in known:
            known[periods] = fit(
                matrix,
                response,
                _cells(groups[kept], rows, periods),
                count=partitions * (periods.count if periods else 1),
                family=request.family,
                intercept=request.design.intercept,
                persons=None if who is None else who[kept],
            )
        return known[periods]

    return fits


def _complete(columns: Mapping[str, FloatArray], groups: IntArray, request: Request) -> BoolArray:
    """Rows of a known person that pass the filter and miss none of the model's values."""
    kept = groups >= 0
    where = request.model.where
    if where is not None:
        kept = kept & where.keeps(columns)
    periods = {period.column for period in request.claim.periods}
    for name in request.columns - periods:
        kept = kept & ~np.isnan(columns[name])
    return kept


def _cells(groups: IntArray, rows: Mapping[str, FloatArray], periods: Periods | None) -> IntArray:
    """The group of each row: its partition, or its partition and period; -1 outside them."""
    if periods is None:
        return groups
    place = rows[periods.column] - periods.first
    inside = (place >= 0) & (place < periods.count)
    cells = groups * periods.count + np.where(inside, place, 0).astype(np.int64)
    return np.where(inside, cells, -1)
