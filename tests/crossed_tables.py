"""Small crossed tables, noise for them, and the two real ones."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import polars as pl

from conftest import SHARED_DATA
from countwise.arrays import FloatArray, IntArray
from countwise.margins.measurement import Measurement
from countwise.noise.laws import DiscreteGaussian, Exact, Geometric, IntegerLaw
from countwise.tables.variable import Variable, make_variable
from countwise.tables.workload import Margin, Workload
from needs import needs


def flat(name: str, size: int) -> Variable:
    """A variable of one level."""
    return make_variable(name, pl.DataFrame({name: [f"{name}{i:04}" for i in range(size)]}))[0]


def tree(name: str, families: Sequence[int]) -> Variable:
    """A variable of two levels, its parents with so many children each."""
    pairs = [
        (f"p{i:03}", f"c{i:03}-{j:03}") for i, size in enumerate(families) for j in range(size)
    ]
    frame = pl.DataFrame(pairs, schema=[f"{name}_high", f"{name}_low"], orient="row")
    return make_variable(name, frame)[0]


def every_margin(variables: Sequence[Variable]) -> tuple[Margin, ...]:
    """All combinations of levels."""
    return tuple(
        Margin(levels) for levels in product(*(range(len(each.levels) + 1) for each in variables))
    )


def gaussian(variance: float) -> DiscreteGaussian:
    """Noise of about this variance."""
    return DiscreteGaussian(scale=Fraction(variance**0.5).limit_denominator(10_000))


def geometric(epsilon: float) -> Geometric:
    """Noise of this loss."""
    return Geometric(scale=Fraction(1 / epsilon).limit_denominator(10_000))


def measured(
    workload: Workload,
    cells: IntArray,
    laws: Mapping[Margin, IntegerLaw],
    rng: np.random.Generator,
) -> list[Measurement]:
    """Noisy counts of these margins."""
    found = []
    for margin, law in laws.items():
        true = workload.sums(cells, margin)
        noise = law.quantile(rng.uniform(1e-15, 1 - 1e-15, true.shape)) if law.scale else 0 * true
        exact = np.full(true.shape, True) if isinstance(law, Exact) else None
        found.append(Measurement(margin=margin, law=law, noisy=true + noise, exact=exact))
    return found


def matrix(workload: Workload, margin: Margin) -> FloatArray:
    """A row for each count of a margin with a 1 at each of its cells, from labels alone."""
    size = workload.size(margin)
    of_nodes = pl.DataFrame([column for _, column in workload.labels(margin)])
    of_cells = pl.DataFrame([column for _, column in workload.labels(workload.finest)])
    found = np.zeros((size, workload.cells))
    for i, node in enumerate(of_nodes.cast(pl.String).rows()):
        for j, cell in enumerate(of_cells.cast(pl.String).rows()):
            found[i, j] = all(a is None or a == b for a, b in zip(node, cell, strict=True))
    return found


def north_carolina_crossed() -> tuple[Workload, IntArray]:
    """Tracts by race and Hispanic origin, 37,408 cells, and their twelve margins."""
    path = SHARED_DATA / "nc_tracts_race_hispanic_2020.csv"
    needs(path.is_file(), "the tracts by race and Hispanic origin in ../shared/data")
    rows = pl.read_csv(path, schema_overrides={"tract": pl.String, "county": pl.String})
    rows = rows.sort("county", "tract", "race", "hispanic")
    by = (("county", "tract"), ("race",), ("hispanic",))
    variables = tuple(make_variable(name[-1], rows.select(name).unique())[0] for name in by)
    workload = Workload(variables=variables, margins=every_margin(variables))
    return workload, rows["count"].to_numpy().astype(np.int64).reshape(workload.shape)


def income_crossed() -> tuple[Workload, IntArray]:
    """Persons by occupation, education, sex, race and age: cells, and margins of at most two."""
    path = SHARED_DATA / "census_income_1994.csv"
    needs(path.is_file(), "the census extract in ../shared/data")
    names = ("occupation", "education", "sex", "race", "band")
    people = pl.read_csv(path).with_columns(
        band=(pl.col("age") - 15).floordiv(10).clip(0, 6).cast(pl.String)
    )
    variables = tuple(make_variable(name, people.select(name).unique())[0] for name in names)
    margins = [
        Margin(tuple(int(i in chosen) for i in range(len(names))))
        for order in range(3)
        for chosen in combinations(range(len(names)), order)
    ]
    cells = np.zeros([each.leaves for each in variables], np.int64)
    places = [
        people[name].cast(pl.Enum(each.tree.labels[0])).to_physical().to_numpy()
        for name, each in zip(names, variables, strict=True)
    ]
    np.add.at(cells, tuple(places), 1)
    finest = Margin((1,) * len(names))
    return Workload(variables=variables, margins=(*margins, finest)), cells
