"""Whether counts changed between two releases by more than the noise of both.

The change of a count is the difference of its two estimates, whose noises are independent, so that
their variances add up. It is compared with the normal law of such a difference where nothing
changed. No prior is used, and estimates are not cut at 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import ndtr, ndtri

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.inference.crossed_posterior import check_level, crossed_posterior, tree_workload
from countwise.inference.routes import infer
from countwise.release.crossed_release import CrossedRelease
from countwise.release.document import Release
from countwise.tables.variable import Variable
from countwise.tables.workload import Margin, Workload

SHOWN = 3  # labels of a difference in a message


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimated:
    """Every published count of a release: released, estimated, and its standard error."""

    workload: Workload
    released: dict[Margin, IntArray]
    normals: dict[Margin, tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Changes:
    """The change of every count of every table that two releases publish.

    `table` has a row a count: `before` and `after` as released, the `change` of the estimates with
    its `sd` and range, `by_noise`, the probability that noise alone makes a change as large, and
    `more_than_noise`, whether that is under 1 - `probability`.
    """

    table: pl.DataFrame
    probability: float

    @property
    def found(self) -> int:
        """How many counts changed by more than noise."""
        return int(self.table["more_than_noise"].sum())

    @property
    def expected_by_noise(self) -> float:
        """How many would be found at most, on average, if nothing had changed."""
        return (1.0 - self.probability) * len(self.table)


def compare(
    earlier: Release | CrossedRelease,
    later: Release | CrossedRelease,
    *,
    probability: float = 0.95,
) -> Changes:
    """The changes from one release to another of the same domain."""
    check_level(probability)
    before, after = estimated(earlier), estimated(later)
    refuse_other_domain(before.workload, after.workload)
    margins = [each for each in before.workload.margins if each in after.released]
    if not margins:
        raise InputError(
            f"the releases have no table in common: the first has {_tables(before.workload)}, the "
            f"second {_tables(after.workload)}."
        )
    frames = [_changes(before, after, margin, probability) for margin in margins]
    return Changes(table=pl.concat(frames), probability=probability)


def estimated(release: Release | CrossedRelease) -> Estimated:
    """The estimates of a release: least squares, of joint noise the mean of each count's law."""
    if isinstance(release, CrossedRelease) or not release.plan.joint:
        posterior = crossed_posterior(release)
        workload = posterior.workload
        normals = {each: posterior.normals(each) for each in workload.margins}
    else:
        workload, tree = tree_workload(release.hierarchy), infer(release)
        laws = [tree.summaries(level) for level in range(len(release.hierarchy.sizes))]
        normals = {
            each: (law.mean, law.sd) for each, law in zip(workload.margins, laws, strict=True)
        }
    released = dict(zip(workload.margins, release.counts, strict=True))
    return Estimated(workload=workload, released=released, normals=normals)


def refuse_other_domain(one: Workload, other: Workload) -> None:
    """Refuse releases whose counts do not stand for the same people, saying what differs."""
    levels = [{each.name: each.levels for each in work.variables} for work in (one, other)]
    if list(levels[0].values()) != list(levels[1].values()):
        said = ["; ".join(" > ".join(each) for each in own.values()) for own in levels]
        raise InputError(
            "the releases are of different domains: the variables of the first are "
            f"{said[0]}, of the second {said[1]}. To fix, compare releases of the same cells."
        )
    for mine, yours in zip(one.variables, other.variables, strict=True):
        differences = list(_differences(mine, yours))
        if differences:
            raise InputError(
                f"the releases are of different domains: {'; '.join(differences)}. To fix, compare "
                "releases of the same cells."
            )


def _differences(one: Variable, other: Variable) -> Iterator[str]:
    """Categories that only one of two variables has."""
    paths = [_paths(each) for each in (one, other)]
    for words, mine, yours in (("first", *paths), ("second", *reversed(paths))):
        only = [each for each in mine if each not in yours]
        if only:
            more = f" and {len(only) - SHOWN:,} more" if len(only) > SHOWN else ""
            yield f"only the {words} has {one.levels[-1]} {', '.join(only[:SHOWN])}{more}"


def _paths(variable: Variable) -> dict[str, None]:
    frame = variable.tree.frame(len(variable.levels)).select(variable.levels).cast(pl.String)
    return dict.fromkeys("/".join(row) for row in frame.rows())


def _changes(before: Estimated, after: Estimated, margin: Margin, level: float) -> pl.DataFrame:
    (old, old_sd), (new, new_sd) = before.normals[margin], after.normals[margin]
    change, sd = new - old, np.hypot(old_sd, new_sd)
    away = np.abs(change)
    apart = np.divide(away, sd, out=np.where(away > 0.0, np.inf, 0.0), where=sd > 0.0)
    by_noise = 2.0 * ndtr(-apart)
    reach = ndtri(0.5 + level / 2.0) * sd
    return before.workload.frame(
        margin,
        before=before.released[margin],
        after=after.released[margin],
        change=change,
        sd=sd,
        lower=change - reach,
        upper=change + reach,
        by_noise=by_noise,
        more_than_noise=by_noise < 1.0 - level,
    )


def _tables(workload: Workload) -> str:
    return ", ".join(map(workload.name, workload.margins))
