"""Privacy: exact probabilities over neighbours, frozen-noise neighbours, and the noise's law."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import binom, chi2

from countwise.errors import CountwiseError
from countwise.noise.laws import Geometric, Laplace
from countwise.verification import verify as boundary
from countwise.verification.outcome_noise import measure, simulate, visible, zero_sum
from countwise.verification.partitions import most_rows
from countwise.verification.question import Question
from countwise.verification.request import make_request
from verification.samples import SCHEMA, records, rows

REACH = 60


def lattice_pmf(kinds, epsilon):
    """P(z) of the lattice noise as drawn: independent geometric, given that it adds up to 0."""
    law = Geometric(scale=Fraction(2) / epsilon)
    single = law.pmf(np.arange(-REACH, REACH + 1))
    pmf = {}
    for free in product(range(-8, 9), repeat=kinds - 1):
        vector = (*free, -sum(free))
        pmf[vector] = float(np.prod([single[z + REACH] for z in vector]))
    total = single
    for _ in range(kinds - 1):
        total = np.convolve(total, single)
    norm = total[len(total) // 2]
    return {vector: value / norm for vector, value in pmf.items()}


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(2)])
@pytest.mark.parametrize(("kinds", "size"), [(2, 6), (3, 5), (4, 3)])
def test_lattice_ratios_over_all_neighbours(kinds, size, epsilon):
    """Every answer, every true count of M partitions, every move of one partition."""
    pmf = lattice_pmf(kinds, epsilon)
    worst = 0.0
    counts = [c for c in product(range(size + 1), repeat=kinds) if sum(c) == size]
    answers = [c for c in product(range(-2, size + 3), repeat=kinds) if sum(c) == size]
    for true in counts:
        for i, j in permutations(range(kinds), 2):
            near = list(true)
            near[i], near[j] = near[i] - 1, near[j] + 1
            if near[i] < 0:
                continue
            for answer in answers:
                one = pmf[tuple(a - t for a, t in zip(answer, true, strict=True))]
                two = pmf[tuple(a - t for a, t in zip(answer, near, strict=True))]
                worst = max(worst, abs(np.log(one / two)))
    assert worst == pytest.approx(float(epsilon), abs=1e-9)  # never above, and tight


def test_laplace_ratio_is_tight():
    law = Laplace(scale=Fraction(2))  # epsilon 1
    grid = np.linspace(-9, 9, 721)
    worst = 0.0
    for x, y in product(grid[::40], grid[::40]):
        ratio = law.logpdf(x) + law.logpdf(y) - law.logpdf(x - 1) - law.logpdf(y + 1)
        worst = max(worst, abs(float(ratio)))
    assert worst == pytest.approx(1, abs=1e-12)


def test_binary_moves_by_one():
    for true in product(range(5), repeat=3):
        for i, j in permutations(range(3), 2):
            near = np.array(true)
            near[i] -= 1
            near[j] += 1
            one = visible(np.array(true), mechanism="binary")
            two = visible(near, mechanism="binary")
            assert abs(one[0] - two[0]) <= 1
            assert one.sum() == two.sum()


def fits_law(draws, pmf):
    values, counts = np.unique(draws, return_counts=True)
    expected = np.array([pmf(v) for v in values]) * len(draws)
    keep = expected >= 25
    rest = len(draws) - expected[keep].sum()
    observed = np.append(counts[keep], len(draws) - counts[keep].sum())
    wanted = np.append(expected[keep], rest)
    statistic = ((observed - wanted) ** 2 / wanted).sum()
    return chi2.sf(statistic, keep.sum())


def marginal(kinds, epsilon):
    law = Geometric(scale=Fraction(2) / epsilon)
    single = law.pmf(np.arange(-300, 301))
    others = np.ones(1)
    for _ in range(kinds - 1):
        others = np.convolve(others, single)
    centre = len(others) // 2
    weights = {z: single[z + 300] * others[centre - z] for z in range(-200, 201)}
    total = sum(weights.values())
    return lambda z: weights.get(int(z), 0.0) / total


@pytest.mark.parametrize(("kinds", "epsilon"), [(2, "1"), (3, "1"), (3, "2/3"), (4, "2")])
def test_drawn_noise_has_the_law(kinds, epsilon):
    """The true scale is accepted, 0.9 and 1.1 of it are rejected."""
    epsilon = Fraction(epsilon)
    from countwise.noise.sampling import sample

    law = Geometric(scale=2 / epsilon)
    vectors = sample(law, 1_500_000 // kinds * kinds).reshape(-1, kinds)
    kept = vectors[vectors.sum(axis=1) == 0]
    draws = kept[:, 0]
    assert fits_law(draws, marginal(kinds, epsilon)) > 1e-6
    assert fits_law(draws, marginal(kinds, epsilon * Fraction(9, 10))) < 1e-12
    assert fits_law(draws, marginal(kinds, epsilon * Fraction(11, 10))) < 1e-12


def test_standard_deviations_of_the_noise():
    """MATH figures at epsilon 1: 1.78 lattice, 2.83 Laplace, 1.36 binary."""
    rng, epsilon = np.random.default_rng(1), Fraction(1)
    counts = np.tile([20, 20, 10], (200_000, 1))
    for mechanism, deviation in (("lattice", 1.78), ("laplace", 2.83), ("binary", 1.36)):
        noisy = simulate(counts, mechanism=mechanism, epsilon=epsilon, rng=rng)
        assert noisy[:, 0].std() == pytest.approx(deviation, abs=0.02)
        if mechanism != "laplace":
            assert (noisy.sum(axis=1) == 50).all()


def test_simulated_lattice_noise_has_the_law():
    rng = np.random.default_rng(2)
    noisy = simulate(
        np.zeros((100_000, 3), dtype=np.int64), mechanism="lattice", epsilon=Fraction(1), rng=rng
    )
    assert fits_law(noisy[:, 0], marginal(3, Fraction(1))) > 1e-6
    assert fits_law(noisy[:, 2], marginal(3, Fraction(1))) > 1e-6


@pytest.mark.parametrize("mechanism", ["lattice", "laplace", "binary"])
def test_measured_counts_look_as_promised(mechanism):
    noisy = measure(np.array([30, 15, 5]), mechanism=mechanism, epsilon=Fraction(1))
    assert len(noisy) == (2 if mechanism == "binary" else 3)
    if mechanism != "laplace":
        assert noisy.sum() == 50
        assert (noisy == noisy.round()).all()
    assert zero_sum(3, lambda size: np.zeros(size, dtype=np.int64)).tolist() == [0, 0, 0]


REQUESTS = [
    ("y ~ x + a + C(f)", "x > 0.5", "ols"),
    ('y ~ x + log(b) where age >= 40 and g = "u"', "x > 0.5", "ols"),
    ('y ~ x + a where not (x > 3 and f = "p")', "significant(a < -1.9, 0.05)", "ols"),
    ("won ~ x + a", "x > 0.1", "logistic"),
    ('count ~ x + a where f != "q"', "predict(x = 5, a = 0) > 2.1 and a > 0.2", "poisson"),
    ("y ~ x where age < 60", "trend(x over year) > 0", "ols"),
    ("y ~ x + a", "x cut at 0.3, 0.5, 0.7", "ols"),
]


@pytest.mark.parametrize(("model", "claim", "family"), REQUESTS)
def test_one_person_moves_one_partition(model, claim, family):
    """Key frozen; persons are removed, added, changed, made missing, moved past a filter."""
    request = make_request(
        SCHEMA, Question(model=model, claim=claim, family=family, epsilon=2, partitions=12)
    )
    size, rng = 1500, np.random.default_rng(3)
    data = rows(size)
    ids = [f"p{i % 700}" for i in range(size)]  # two or three rows a person
    key = bytes(range(16))
    before = boundary._outcomes(records(data, ids), request, key=key)
    assert len(set(before.tolist())) > 1
    moved = 0
    for trial in range(40):
        person = f"p{rng.integers(0, 700)}"
        own = np.array([i for i, each in enumerate(ids) if each == person])
        new, new_ids = {name: column.copy() for name, column in data.items()}, list(ids)
        kind = trial % 5
        if kind == 0:
            new = {name: np.delete(column, own) for name, column in data.items()}
            new_ids = [each for each in ids if each != person]
        elif kind == 1:
            extra = rows(3, seed=trial)
            new = {n: np.concatenate([extra[n] * 1.0, column]) for n, column in data.items()}
            new_ids = ["newcomer"] * 3 + ids
        elif kind == 2:
            for name in new:
                new[name][own] = np.nan
        elif kind == 3:
            wild = rows(len(own), seed=100 + trial)
            for name in new:
                new[name][own] = wild[name]
            new["y"][own], new["x"][own] = rng.choice([-100, 100]), rng.choice([0.5, 20])
        else:
            new["age"][own] = 17 if data["age"][own[0]] > 40 else 90
            new["f"][own] = (data["f"][own] + 1) % 3
            new["g"][own] = 1 - data["g"][own]
        after = boundary._outcomes(records(new, new_ids), request, key=key)
        different = (before != after).sum()
        assert different <= 1
        moved += different
        counts = [np.bincount(each, minlength=5) for each in (before, after)]
        assert np.abs(counts[0] - counts[1]).sum() <= 2
    assert moved  # the test could have seen more


def test_a_crowd_in_one_partition_is_that_partitions_error():
    """A person with more rows than public numbers allow turns one partition, and no other."""
    size, partitions = 1500, 12
    schema = replace(SCHEMA, persons=700, rows_a_person=3)
    request = make_request(
        schema, Question(model="y ~ x + a", claim="x > 0.5", epsilon=2, partitions=partitions)
    )
    assert request.most_rows == (2 * 700 // 12 + 20) * 3
    data, key = rows(size), bytes(range(16))
    ids = [f"p{i % 700}" for i in range(size)]
    unbounded = make_request(
        SCHEMA, Question(model="y ~ x + a", claim="x > 0.5", epsilon=2, partitions=partitions)
    )
    before = boundary._outcomes(records(data, ids), request, key=key)
    assert (before == boundary._outcomes(records(data, ids), unbounded, key=key)).all()
    assert 2 not in before
    for person in ("p0", "p1", "p2", "newcomer"):
        for more in range(200, 501, 50):
            extra = rows(more, seed=1)
            new = {name: np.concatenate([column, extra[name]]) for name, column in data.items()}
            after = boundary._outcomes(records(new, ids + [person] * more), request, key=key)
            assert (before != after).sum() <= 1
            assert (after[before != after] == 2).all() or more < 500
        assert np.bincount(after, minlength=3)[2] == 1  # in the end it is too much


def test_the_cap_is_exact():
    """The last row allowed, and one more; rows that a filter leaves out count."""
    schema = replace(SCHEMA, persons=40, rows_a_person=1)
    request = make_request(
        schema, Question(model="y ~ x where age < 90", claim="x > -50", epsilon=2, partitions=20)
    )
    most = request.most_rows
    assert most == 24
    for size, outcome in ((most, 0), (most + 1, 2)):
        data = rows(size)
        data["age"][-1] = 90
        found = boundary._outcomes(records(data, ["p"] * size), request, key=bytes(16))
        assert sorted(found.tolist()) == [outcome] + [2] * 19


def test_luck_does_not_pass_the_cap():
    """Persons who keep to their rows fill a partition past its cap less than once in 10^12."""
    for persons in (40, 1500, 32_561, 10**7):
        for partitions in {2, 5, 20, 50, 107, 1000, 10_000, persons // 14, persons // 2}:
            if not 2 <= partitions <= min(10_000, persons // 2):
                continue
            most = most_rows(partitions=partitions, persons=persons, rows=3)
            assert most % 3 == 0
            assert binom.sf(most // 3, persons, 1 / partitions) < 1e-12


def test_cutting_a_filtered_list_would_not_do():
    """Blocks of a filtered list: one person who leaves the filter shifts many partitions."""
    passes = np.arange(100) % 3 > 0
    blocks = np.full(100, -1)
    blocks[passes] = np.arange(passes.sum()) % 7
    passes[1] = False
    shifted = np.full(100, -1)
    shifted[passes] = np.arange(passes.sum()) % 7
    assert ((blocks != shifted) & passes).sum() > 50


def test_nobody_passes_is_an_answer_of_errors():
    request = make_request(
        SCHEMA, Question(model="y ~ x where age > 89", claim="x > 0", epsilon=1, partitions=12)
    )
    data = rows(300)
    data["age"][:] = 20
    found = boundary._outcomes(records(data), request, key=bytes(16))
    assert found.tolist() == [2] * 12
    empty = {name: column[:0] for name, column in data.items()}
    assert boundary._outcomes(records(empty), request, key=bytes(16)).tolist() == [2] * 12


def test_a_fault_inside_shows_nothing(monkeypatch):
    request = make_request(SCHEMA, Question(model="y ~ x", claim="x > 0", epsilon=1, partitions=12))

    def broken(*_, **__):
        raise ValueError("secret 12345")

    monkeypatch.setattr(boundary, "fit", broken)
    with pytest.raises(CountwiseError) as caught:
        boundary.verify(records(rows(50)), request)
    assert "12345" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_records_do_not_show_themselves():
    import pickle

    wrapped = records(rows(5))
    assert "Records(" in repr(wrapped)
    assert not any(str(value)[:6] in repr(wrapped) for value in rows(5)["y"])
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(wrapped)
    with pytest.raises(TypeError, match="pickled"):
        wrapped.__getstate__()
