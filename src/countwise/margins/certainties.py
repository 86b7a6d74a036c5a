"""What the counts without noise settle: cells where nobody can be, and sums that must be met."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from countwise.arrays import BoolArray, IntArray
from countwise.errors import InputError
from countwise.margins.measurement import Measurement
from countwise.tables.workload import Margin, Workload


@dataclass(frozen=True, kw_only=True, eq=False)
class Certainties:
    """Which cells may hold people, and of each margin which nodes are exact and their counts."""

    free: BoolArray
    sums: Mapping[Margin, tuple[BoolArray, IntArray]]

    def empty(self, workload: Workload, margin: Margin) -> BoolArray:
        """The nodes of a margin where nobody can be."""
        return np.asarray(workload.sums(self.free.astype(np.int64), margin) == 0)


def certainties(workload: Workload, measurements: Sequence[Measurement]) -> Certainties:
    """From all measurements: what they hold exactly must go together."""
    free = np.ones(workload.shape, np.bool_)
    sums: dict[Margin, tuple[BoolArray, IntArray]] = {}
    for each in measurements:
        if each.exact is None or not each.exact.any():
            continue
        name = workload.name(each.margin)
        if (each.noisy[each.exact] < 0).any():
            raise InputError(f"an exact count of table {name} is negative.")
        certain, counts = each.exact, np.where(each.exact, each.noisy, 0)
        if each.margin in sums:
            before, known = sums[each.margin]
            if (known != counts)[before & certain].any():
                raise InputError(f"two exact counts of one node of table {name} differ.")
            certain, counts = before | certain, np.where(before, known, counts)
        sums[each.margin] = certain, counts
        nobody = (each.exact & (each.noisy == 0)).astype(np.int64)
        free &= workload.spread(nobody, each.margin) == 0
    found = Certainties(free=free, sums=sums)
    for margin, (certain, counts) in sums.items():
        if (certain & (counts > 0) & found.empty(workload, margin)).any():
            raise InputError(
                f"table {workload.name(margin)} has an exact count above 0 "
                "where other exact counts leave room for nobody."
            )
    return found
