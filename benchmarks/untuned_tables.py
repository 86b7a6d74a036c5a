"""Tables of kinds that no adjustment was tuned on, each with its own fixed generator."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from accuracy_tables import DATA, Row, Table, counted, crossed, even, flat, tree
from countwise.tables.hierarchy import ROOT

INCOME = DATA / "census_income_1994.csv"
TRACTS = DATA / "nc_tracts_race_hispanic_2020.csv"
BANDS = ("0-24", "25-34", "35-44", "45-54", "55-64", "65-74", "75+")


def income(by: Sequence[str], loss: dict[str, str], **more: Any) -> Table:
    """Persons of the 1994 census income file; every combination of labels is a cell."""
    rows = pl.read_csv(INCOME, schema_overrides={"income_over_50k": pl.String})
    bands = np.searchsorted([24.5, 34.5, 44.5, 54.5, 64.5, 74.5], rows["age"].to_numpy())
    rows = rows.with_columns(band=pl.Series(np.array(BANDS)[bands]))
    labels = [sorted(rows[name].unique()) for name in by]
    found = {(*key,): count for *key, count in rows.group_by(by).len().rows()}
    paths = list(product(*labels))
    return tree(paths, [found.get(path, 0) for path in paths], loss, by=by, **more)


LONG = ("occupation", "education", "sex", "race", "band")
SHORT = ("band", "sex", "race", "occupation")
PAIR = ("education", "occupation", "income_over_50k")
PLACES = ("county", "tract", "race", "hispanic")


def real_rows() -> Iterator[Row]:
    """Real tables."""
    for name, by, loss, repetitions, judged in (
        ("census income, five variables, ε = 1 in all", LONG, even(LONG, "1"), 60, 60),
        ("census income, band first, ε = ½ in all", SHORT, even(SHORT, "1/2"), 400, 400),
        ("census income, education first, ε = 1 in all", PAIR, even(PAIR, "1"), 1000, 1000),
        (
            "census income, band first, most of ε = 1 on the cells",
            SHORT,
            {ROOT: "0.05", "band": "0.05", "sex": "0.1", "race": "0.2", "occupation": "0.6"},
            400,
            400,
        ),
    ):
        yield Row(
            name=name,
            make=lambda b=by, w=loss, r=repetitions, j=judged: income(
                b, w, repetitions=r, judged=j
            ),  # type: ignore[misc]
            needs=INCOME,
        )
    yield Row(
        name="North Carolina by race and Hispanic origin, ε = 1 in all",
        make=lambda: counted(TRACTS, PLACES, even(PLACES, "1"), repetitions=40, judged=30),
        needs=TRACTS,
    )


TREE = ("place", "part")
DEEP = ("region", "place", "part")


def half(by: Sequence[str], each: str = "0.5") -> dict[str, str]:
    """The same loss at every level."""
    return dict.fromkeys((ROOT, *by), each)


def hundred_counties() -> Table:
    """100 counties × 50 cells, 95% of them empty."""
    rng = np.random.default_rng(301)
    counts = np.where(rng.random((100, 50)) < 0.05, 1 + rng.geometric(0.02, (100, 50)), 0)
    return crossed(counts, by=TREE, loss=half(TREE), repetitions=400)


def thousand_flat() -> Table:
    """1,000 cells, 97% of them empty, the others of 1 to 400."""
    rng = np.random.default_rng(302)
    cells = np.concatenate([np.zeros(970), rng.geometric(0.012, 30)])
    return flat(cells, total="0.5", parts="0.5")


def pareto_tree() -> Table:
    """20 places × 25 parts with a tail of index 1.1."""
    rng = np.random.default_rng(303)
    counts = np.floor(2 * rng.pareto(1.1, (20, 25)))
    return crossed(np.minimum(counts, 10**6), by=TREE, loss=half(TREE, "0.3"))


def gaussian_pareto() -> Table:
    """The same at a loss in ρ, with Gaussian noise."""
    made = pareto_tree()
    return Table(hierarchy=made.hierarchy, cells=made.cells, loss=half(TREE, "0.05"), unit="rho")


def lognormal_tree() -> Table:
    """8 × 10 × 12 with log-normal sizes at every level."""
    rng = np.random.default_rng(304)
    size = rng.lognormal(1, 1, (8, 1, 1)) * rng.lognormal(0, 1, (8, 10, 1))
    return crossed(np.floor(size * rng.lognormal(1, 1.5, (8, 10, 12))), by=DEEP, loss=half(DEEP))


def few_large() -> Table:
    """300 cells of 0 to 3, and ten of 10,000 to a million."""
    rng = np.random.default_rng(305)
    cells = np.concatenate([rng.integers(0, 4, 300), np.geomspace(1e4, 1e6, 10)])
    return flat(np.floor(cells), total="0.4", parts="0.4")


def deaths() -> Table:
    """64 causes in 100 regions; two causes (3% of the labels) have one death in three regions."""
    rng = np.random.default_rng(306)
    people, causes = rng.lognormal(6, 1, (100, 1)), rng.dirichlet(np.full(62, 0.7))
    shares = np.concatenate([causes, [0, 0]])
    rate = people * shares + np.where(shares == 0, 1 / 3, 0)
    by = ("region", "cause")
    return crossed(rng.poisson(rate), by=by, loss=half(by, "0.4"), repetitions=400)


def unbalanced() -> Table:
    """120 places with 1 to 150 parts each."""
    rng = np.random.default_rng(307)
    sizes = np.minimum(rng.geometric(0.04, 120) + rng.integers(0, 2, 120) * 60, 150)
    paths = [(f"{i:03}", f"{j:03}") for i, size in enumerate(sizes) for j in range(size)]
    cells = rng.negative_binomial(0.5, 0.05, len(paths))
    return tree(paths, cells, half(TREE, "0.4"), by=TREE, repetitions=500)


def deep_thin() -> Table:
    """Eight levels of two children each, shares drawn anew at every node."""
    rng, by = np.random.default_rng(308), tuple("abcdefgh")
    counts = np.array([20_000])
    for _ in by:
        left = rng.binomial(counts, rng.beta(1.5, 1.5, len(counts)))
        counts = np.stack([left, counts - left], axis=1).ravel()
    return crossed(counts.reshape((2,) * 8), by=by, loss=half(by, "0.25"))


def wide_flat() -> Table:
    """5,000 cells of mean 4, negative binomial."""
    rng = np.random.default_rng(309)
    return flat(rng.negative_binomial(1, 0.2, 5000), total="0.5", parts="0.5", repetitions=400)


def equal(size: int) -> Callable[[], Table]:
    """50 places whose 20 parts are all alike."""
    return lambda: crossed(np.full((50, 20), size), by=TREE, loss=half(TREE))


def poisson_tree() -> Table:
    """40 places × 25 parts of mean 2."""
    rng = np.random.default_rng(310)
    return crossed(rng.poisson(2, (40, 25)), by=TREE, loss=half(TREE))


def opposed() -> Table:
    """300 places of 40, divided anyhow between two parts."""
    left = np.random.default_rng(311).integers(0, 41, 300)
    return crossed(np.stack([left, 40 - left], axis=1), by=TREE, loss=half(TREE, "0.3"))


def single_children() -> Table:
    """120 places, half of them with one part only, the others with four."""
    rng = np.random.default_rng(312)
    paths = [(f"{i:03}", str(j)) for i in range(120) for j in range(1 if i % 2 else 4)]
    cells = rng.negative_binomial(1, 0.05, len(paths))
    return tree(paths, cells, half(TREE, "0.4"), by=TREE)


def lone(size: int) -> Callable[[], Table]:
    """One cell among 200 empty ones."""
    return lambda: flat([0] * 200 + [size], total="0.5", parts="0.5")


def sparse_three_levels() -> Table:
    """30 × 20 × 6, 80% of the cells empty and whole places too."""
    rng = np.random.default_rng(313)
    alive = (rng.random((30, 20, 1)) < 0.5) & (rng.random((30, 20, 6)) < 0.4)
    counts = np.where(alive, 1 + rng.negative_binomial(0.8, 0.08, alive.shape), 0)
    return crossed(counts, by=DEEP, loss=even(DEEP, "1"), repetitions=400)


def small_table() -> Table:
    """Three places by four parts."""
    rng = np.random.default_rng(314)
    return crossed(rng.integers(0, 200, (3, 4)), by=TREE, loss=half(TREE))


def two_kinds() -> Table:
    """30 places by 12 labels, half of them common, half of them of 0 to 9."""
    rng = np.random.default_rng(315)
    rate = np.where(np.arange(12) % 2, 400.0, 3.0) * rng.lognormal(0, 0.7, (30, 1))
    return crossed(rng.poisson(rate), by=TREE, loss=half(TREE))


def misleading_labels() -> Table:
    """40 places by ten labels whose shares are reversed in half of the places."""
    rng = np.random.default_rng(316)
    shares = np.geomspace(1, 200, 10)
    rate = np.where(np.arange(40)[:, None] % 2, shares, shares[::-1])
    return crossed(rng.poisson(rate * 0.3), by=TREE, loss=half(TREE))


def isolated_places() -> Table:
    """60 places by 30 labels; everyone of a label lives in one place, and 20 live elsewhere."""
    rng = np.random.default_rng(317)
    counts = np.zeros((60, 30), dtype=np.int64)
    counts[rng.integers(0, 60, 30), np.arange(30)] = rng.geometric(0.01, 30)
    counts[rng.integers(0, 60, 20), rng.integers(0, 30, 20)] += 1
    return crossed(counts, by=TREE, loss=half(TREE))


def made_rows() -> Iterator[Row]:
    """Made tables."""
    for name, make in (
        ("100 counties × 50 cells, 95% empty, ε = ½ a level", hundred_counties),
        ("1,000 flat cells, 97% empty, ε = ½", thousand_flat),
        ("Pareto tree, ε = 0.3 a level", pareto_tree),
        ("Pareto tree, Gaussian noise, ρ = 0.05 a level", gaussian_pareto),
        ("log-normal tree of three levels, ε = ½ a level", lognormal_tree),
        ("ten giants among 300 of 0 to 3, ε = 0.4", few_large),
        ("deaths by region and cause, two causes rare, ε = 0.4 a level", deaths),
        ("places of 1 to 150 parts, ε = 0.4 a level", unbalanced),
        ("eight levels of two children, ε = ¼ a level", deep_thin),
        ("5,000 flat cells of mean 4, ε = ½", wide_flat),
        ("all cells 30, ε = ½ a level", equal(30)),
        ("all cells 1, ε = ½ a level", equal(1)),
        ("Poisson(2) tree, ε = ½ a level", poisson_tree),
        ("300 places of 40 in two parts, ε = 0.3 a level", opposed),
        ("half of the places with a single part, ε = 0.4 a level", single_children),
        ("one cell of 8 among 200 empty, ε = ½", lone(8)),
        ("one cell of 12 among 200 empty, ε = ½", lone(12)),
        ("one cell of 20 among 200 empty, ε = ½", lone(20)),
        ("30 × 20 × 6, 80% empty, ε = 1 in all", sparse_three_levels),
        ("twelve cells, ε = ½ a level", small_table),
        ("common and rare labels, ε = ½ a level", two_kinds),
        ("labels that mislead, ε = ½ a level", misleading_labels),
        ("labels at home in one place, 97% empty, ε = ½ a level", isolated_places),
    ):
        yield Row(name=name, make=make, lone=name.startswith("one cell"))


def untuned_rows() -> list[Row]:
    """All of them."""
    return [*real_rows(), *made_rows()]
