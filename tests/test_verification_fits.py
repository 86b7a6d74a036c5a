"""Batched regressions: statsmodels as oracle, errors, and bits that depend on one group alone."""

import warnings

import mpmath
import numpy as np
import pytest
import statsmodels.api as sm

from countwise.kernels.design_columns import natural_log
from countwise.kernels.exponentials import exponentials
from countwise.kernels.keyed_hash import hashes, shares
from countwise.kernels.row_blocks import PITCH, ROWS, add_gram, add_score, predict
from countwise.verification.design import design
from countwise.verification.fits import fit
from countwise.verification.formula import parse_model
from countwise.verification.partitions import assign, fresh_key
from countwise.verification.schema import schema_from_dict
from verification.samples import SCHEMA, rows

RESPONSE = {"ols": "y", "logistic": "won", "poisson": "count"}
FAMILIES = list(RESPONSE)


def problem(family, size=3000, text="x + a + C(f)", seed=0):
    data = rows(size, seed=seed)
    layout = design(parse_model(f"{RESPONSE[family]} ~ {text}", SCHEMA), SCHEMA)
    return layout, layout.matrix(data, size), data[RESPONSE[family]]


def reference(family, x, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if family == "ols":
            return sm.OLS(y, x).fit()
        kind = sm.families.Binomial() if family == "logistic" else sm.families.Poisson()
        return sm.GLM(y, x, family=kind).fit(tol=1e-12, maxiter=100)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("text", ["x + a + C(f)", "0 + x + C(f)", "poly(x, 3) + x:a"])
def test_fits_agree_with_statsmodels(family, text):
    layout, x, y = problem(family, text=text)
    groups = np.random.default_rng(1).integers(0, 7, len(y))
    found = fit(x, y, groups, count=7, family=family, intercept=layout.intercept)
    assert found.fitted.all()
    contrast = np.arange(1.0, x.shape[1] + 1)
    for g in range(7):
        wanted = reference(family, x[groups == g], y[groups == g])
        np.testing.assert_allclose(found.coefficients[g], wanted.params, rtol=1e-7, atol=1e-9)
        error = np.sqrt(contrast @ wanted.cov_params() @ contrast)
        assert found.standard_error(contrast)[g] == pytest.approx(error, rel=1e-5)
        np.testing.assert_allclose(
            found.standard_error(np.eye(len(contrast)))[:, g], wanted.bse, rtol=1e-5
        )
        assert found.combination(contrast)[g] == pytest.approx(contrast @ wanted.params, rel=1e-7)
        assert found.rows[g] == (groups == g).sum()


def test_ill_conditioned_least_squares_are_corrected():
    rng = np.random.default_rng(2)
    base = rng.uniform(-1, 1, 400)
    x = np.column_stack([np.ones(400), base, base + 1e-4 * rng.normal(size=400)])
    y = x @ [1, 2, 3] + 1e-3 * rng.normal(size=400)
    found = fit(x, y, np.zeros(400, dtype=np.int64), count=1, family="ols", intercept=True)
    wanted = reference("ols", x, y)
    np.testing.assert_allclose(found.coefficients[0], wanted.params, rtol=1e-7)
    assert found.standard_error(np.array([0, 1.0, 0]))[0] == pytest.approx(wanted.bse[1], rel=1e-6)


def in_partitions(text, values, response, *, low, high, family="ols", partitions=20):
    """A fit of a column x within public bounds in partitions, and its design."""
    schema = schema_from_dict(
        {
            "person": {"one_row_each": True},
            "columns": {
                "x": {"type": "number", "low": low, "high": high},
                "a": {"type": "number", "low": -5, "high": 5},
                "y": {"type": "number", "low": -1e6, "high": 1e6},
                "won": {"type": "binary"},
                "count": {"type": "integer", "low": 0, "high": 500},
            },
        }
    )
    layout = design(parse_model(f"{RESPONSE[family]} ~ {text}", schema), schema)
    x = layout.matrix(values, len(response))
    groups = np.arange(len(response)) % partitions
    found = fit(x, response, groups, count=partitions, family=family, intercept=layout.intercept)
    return found, layout, groups


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("width", [1e1, 1e5, 1e9])
@pytest.mark.parametrize("place", ["low", "high", "middle"])
def test_loose_bounds_and_offsets_make_no_column_singular(family, width, place):
    """A regressor of standard deviation 1, anywhere within bounds of any width."""
    rng = np.random.default_rng(11)
    low = {"low": -5.0, "high": 5 - width, "middle": -width / 2}[place]
    columns = {"x": rng.normal(size=3000).clip(-4, 4), "a": rng.normal(size=3000).clip(-5, 5)}
    eta = 0.3 + 0.5 * columns["x"] - 0.4 * columns["a"]
    y = {
        "ols": eta + rng.normal(size=3000),
        "logistic": (rng.random(3000) < 1 / (1 + np.exp(-eta))).astype(float),
        "poisson": rng.poisson(np.exp(eta)).astype(float),
    }[family]
    found, layout, groups = in_partitions(
        "x + a", columns, y, low=low, high=low + width, family=family
    )
    assert found.fitted.all()
    plain = np.column_stack([np.ones(3000), columns["x"], columns["a"]])
    # A column keeps a rounding of its bounds' width, and the intercept is that far from the data.
    close = 1e-6 + 1e-14 * width
    for g in (0, 7, 19):
        wanted = reference(family, plain[groups == g], y[groups == g])
        for j in range(3):
            contrast = layout.contrast({j: 1.0})
            assert found.combination(contrast)[g] == pytest.approx(
                wanted.params[j], abs=close * wanted.bse[j]
            )
            assert found.standard_error(contrast)[g] == pytest.approx(wanted.bse[j], rel=2e-5)


def test_powers_are_fitted_about_the_middle_of_their_bounds():
    rng = np.random.default_rng(12)
    year = rng.integers(2000, 2021, 2000).astype(float)
    z = (year - 2010) / 10
    y = 1 + z - 2 * z**2 + 3 * z**3 + rng.normal(size=2000)
    found, layout, groups = in_partitions("poly(x, 3)", {"x": year}, y, low=2000, high=2020)
    assert found.fitted.all()
    one = groups == 4
    # The plain powers in 60 digits: their normal equations lose 20.
    with mpmath.workdps(60):
        plain = mpmath.matrix([[mpmath.mpf(v) ** p for p in range(4)] for v in year[one]])
        wanted = mpmath.lu_solve(plain.T * plain, plain.T * mpmath.matrix(y[one]))
    for power in range(4):
        ours = found.combination(layout.contrast({power: 1.0}))[4]
        assert ours == pytest.approx(float(wanted[power]), rel=1e-9)
    alone, layout, groups = in_partitions("0 + poly(x, 2)", {"x": year}, y, low=2000, high=2020)
    plain = np.column_stack([year, year**2])
    wanted = np.linalg.lstsq(plain[groups == 0], y[groups == 0], rcond=None)[0]
    assert alone.combination(layout.contrast({1: 1.0}))[0] == pytest.approx(wanted[1], rel=1e-6)


def test_a_column_is_singular_beside_what_the_constant_leaves_of_it():
    rng = np.random.default_rng(13)
    x, y = rng.normal(size=200), rng.normal(size=200)
    ones = np.ones(200)
    for offset in (0.0, 1e4, 1e7):
        near = np.column_stack([ones, offset + x, offset + x + 1e-3 * rng.normal(size=200)])
        assert one_group(near, y, "ols")
        twin = np.column_stack([ones, offset + x, 2 * (offset + x) + 3])
        assert not one_group(twin, y, "ols")
        flat = np.column_stack([ones, offset + x, np.full(200, offset + 0.1)])
        assert not one_group(flat, y, "ols")
    outlier = x.copy()
    outlier[0] = 1e6  # the row that the others are measured from
    assert one_group(np.column_stack([ones, outlier, rng.normal(size=200)]), y, "ols")


def one_group(x, y, family):
    groups = np.zeros(len(y), dtype=np.int64)
    return fit(np.array(x), np.array(y), groups, count=1, family=family, intercept=True).fitted[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_what_can_not_be_fitted(family):
    layout, x, y = problem(family, size=60)
    assert one_group(x, y, family)
    assert not one_group(x[:4], y[:4], family)  # too small
    assert not one_group(x[:0], y[:0], family)  # empty
    twin = np.column_stack([x, x[:, 1]])
    assert not one_group(twin, y, family)  # a column twice
    flat = np.column_stack([x, np.zeros(60)])
    assert not one_group(flat, y, family)  # a level nobody has
    broken = y.copy()
    broken[3] = np.inf
    assert not one_group(x, broken, family)
    assert layout.intercept


def test_separated_data_are_not_fitted():
    rng = np.random.default_rng(3)
    a = rng.normal(size=200)
    x = np.column_stack([np.ones(200), a])
    assert not one_group(x, (a > 0.1).astype(float), "logistic")  # separated
    group = (np.arange(200) < 40).astype(float)
    quasi = np.where(group == 1, 1.0, rng.integers(0, 2, 200))
    assert not one_group(np.column_stack([np.ones(200), group]), quasi, "logistic")
    assert not one_group(x, np.ones(200), "logistic")
    assert not one_group(x, np.zeros(200), "poisson")
    counts = np.where(group == 1, 0.0, rng.poisson(3, 200))
    assert not one_group(np.column_stack([np.ones(200), group]), counts, "poisson")


def test_nearly_separated_data_are_fitted():
    rng = np.random.default_rng(4)
    a = rng.normal(size=400)
    y = (a > 0).astype(float)
    y[:8] = 1 - y[:8]
    x = np.column_stack([np.ones(400), a])
    assert one_group(x, y, "logistic")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_groups_bits_depend_on_its_rows_alone(family):
    """Other groups are emptied, filled with rubbish, moved: the group's bits stay."""
    layout, x, y = problem(family, size=4001)
    rng = np.random.default_rng(5)
    groups = rng.integers(0, 9, len(y))
    before = fit(x, y, groups, count=9, family=family, intercept=True)
    for trial in range(12):
        kept = int(rng.integers(0, 9))
        others = np.flatnonzero(groups != kept)
        new_x, new_y = x.copy(), y.copy()
        new_groups = groups.copy()
        if trial % 3 == 0:
            new_x[others] = rng.normal(scale=10.0 ** rng.integers(-30, 100), size=x[others].shape)
        elif trial % 3 == 1:
            new_groups[others] = rng.integers(-1, 9, len(others))
            new_groups[(new_groups == kept) & (groups != kept)] = -1
        else:
            drop = rng.choice(others, size=int(rng.integers(1, len(others))), replace=False)
            new_x = np.delete(x, drop, axis=0)
            new_y, new_groups = np.delete(y, drop), np.delete(groups, drop)
        after = fit(new_x, new_y, new_groups, count=9, family=family, intercept=True)
        assert before.fitted[kept] == after.fitted[kept]
        for name in ("coefficients", "factors", "scales", "dispersion"):
            one, two = getattr(before, name)[kept], getattr(after, name)[kept]
            assert one.tobytes() == two.tobytes()
        contrast = np.arange(1.0, x.shape[1] + 1)
        for method in ("combination", "standard_error"):
            one, two = getattr(before, method)(contrast), getattr(after, method)(contrast)
            assert one[kept].tobytes() == two[kept].tobytes()
    assert layout.intercept


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("text", ["x", "x + a + C(f)", "poly(x, 3)*a*C(f)"])
def test_threads_and_the_way_through_memory_change_no_bit(monkeypatch, family, text):
    count = 60
    layout, x, y = problem(family, size=20_000, text=text)
    groups = np.random.default_rng(6).integers(0, count, len(y))
    assert layout.intercept
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("countwise.verification.fits.LEAST_SHARED_WORK", 0)
    many = fit(x, y, groups, count=count, family=family, intercept=True)
    monkeypatch.setattr("countwise.verification.fits.LEAST_SHARED_WORK", 10**12)
    one = fit(x, y, groups, count=count, family=family, intercept=True)
    monkeypatch.setattr("countwise.verification.fits.OPEN_GROUPS", 0)
    gathered = fit(x, y, groups, count=count, family=family, intercept=True)
    for name in ("coefficients", "factors", "scales", "dispersion", "fitted"):
        bits = getattr(one, name).tobytes()
        assert bits == getattr(many, name).tobytes() == getattr(gathered, name).tobytes()


def test_exponentials_are_right_and_do_not_depend_on_position():
    values = np.concatenate([np.random.default_rng(8).uniform(-699, 699, 900), [0, 1, -1, -1e-20]])
    whole = values.copy()
    exponentials(whole, len(whole))
    np.testing.assert_allclose(whole, np.exp(values), rtol=5e-16)
    for start in range(20):
        part = values[start:].copy()
        exponentials(part, len(part))
        assert part.tobytes() == whole[start:].tobytes()
    ends = np.array([np.inf, -np.inf, 800.0, np.nan])
    exponentials(ends, 4)
    assert ends[0] == ends[2] == pytest.approx(np.exp(700))
    assert 0 < ends[1] < 1e-300
    assert np.isnan(ends[3])


def test_sums_over_blocks_are_those_of_plain_algebra():
    rng = np.random.default_rng(9)
    block = rng.normal(size=(8, PITCH))
    weights, solution = rng.random(ROWS), rng.normal(size=8)
    gram, score, line = np.zeros((8, 8)), np.zeros(8), np.zeros(ROWS)
    x = block[:, :ROWS]
    add_gram(block, weights, gram)
    add_score(block, weights, score)
    predict(block, solution, line)
    wanted = (x * weights) @ x.T
    np.testing.assert_allclose(np.tril(gram), np.tril(wanted), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(score, x @ weights, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(line, solution @ x, rtol=1e-12, atol=1e-12)


def test_logarithms_do_not_depend_on_position():
    values = np.random.default_rng(7).uniform(0.5, 20, 1003)
    whole = natural_log(values)
    np.testing.assert_allclose(whole, np.log(values), rtol=1e-15)
    for start in range(20):
        assert natural_log(values[start:]).tobytes() == whole[start:].tobytes()


# Reference values of SipHash-2-4, key 00 01 … 0f, of 0, 1, 2, 7, 8 and 15 bytes 00 01 02 …
SIPHASH = {
    0: 0x726FDB47DD0E0E31,
    1: 0x74F839C593DC67FD,
    2: 0x0D6C8009D9A94F5A,
    7: 0xAB0200F58B01D137,
    8: 0x93F5F5799A932462,
    15: 0xA129CA6149BE45E5,
}


@pytest.mark.parametrize("size", SIPHASH)
def test_siphash_reference_values(size):
    key = np.frombuffer(bytes(range(16)), dtype=np.uint64).copy()
    data = np.arange(16, dtype=np.uint8)
    out = np.empty(1, dtype=np.uint64)
    hashes(key, data, np.array([0, size]), out)
    assert int(out[0]) == SIPHASH[size]


def test_shares_are_exact():
    words = np.random.default_rng(8).integers(0, 2**64, 1000, dtype=np.uint64)
    out = np.empty(1000, dtype=np.int64)
    for parts in (2, 50, 9999):
        shares(words, parts, out)
        assert out.tolist() == [int(word) * parts >> 64 for word in words]


def test_partitions_are_by_person_and_even():
    ids = [f"person {i % 20_000}" for i in range(40_000)]
    data = np.frombuffer("".join(ids).encode(), dtype=np.uint8).copy()
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in ids])])
    key = fresh_key()
    found = assign(data, offsets, partitions=50, key=key)
    np.testing.assert_array_equal(found[:20_000], found[20_000:])
    counts = np.bincount(found[:20_000], minlength=50)
    chi_square = ((counts - 400) ** 2 / 400).sum()
    assert chi_square < 120  # 49 degrees of freedom; beyond 1e-7
    assert (assign(data, offsets, partitions=50, key=fresh_key()) != found).mean() > 0.9
    assert fresh_key() != key


def test_rows_without_a_person_are_in_no_partition():
    data, offsets = np.frombuffer(b"ab", dtype=np.uint8).copy(), np.array([0, 1, 1, 2])
    assert (assign(data, offsets, partitions=5, key=bytes(16)) >= 0).tolist() == [
        True, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("text", ["x + a + C(f)", "0 + x + C(f)"])
def test_robust_and_clustered_errors_agree_with_statsmodels(family, text):
    layout, x, y = problem(family, text=text)
    rng = np.random.default_rng(5)
    persons = rng.integers(0, 800, len(y))
    groups = rng.permutation(800)[persons] % 6 - 1
    found = fit(x, y, groups, count=5, family=family, intercept=layout.intercept, persons=persons)
    contrast = np.arange(1.0, x.shape[1] + 1)
    kinds = {"ols": None, "logistic": sm.families.Binomial(), "poisson": sm.families.Poisson()}
    for g in range(5):
        here = groups == g
        kind = kinds[family]
        model = sm.OLS(y[here], x[here]) if kind is None else sm.GLM(y[here], x[here], family=kind)
        how = {} if kind is None else {"tol": 1e-12, "maxiter": 100}
        for name, wanted in (
            ("robust", model.fit(cov_type="HC1", **how)),
            ("clustered", model.fit(cov_type="cluster", cov_kwds={"groups": persons[here]}, **how)),
        ):
            error = np.sqrt(contrast @ wanted.cov_params() @ contrast)
            if name == "robust" and kind is not None:  # there HC1 is without its factor
                error *= np.sqrt(here.sum() / (here.sum() - x.shape[1]))
            assert found.error(contrast, name)[g] == pytest.approx(error, rel=1e-5), (name, g)


def test_robust_errors_of_a_group_depend_on_its_rows_alone():
    layout, x, y = problem("logistic")
    persons = np.random.default_rng(6).integers(0, 900, len(y))
    groups = persons % 4
    contrast = np.ones(x.shape[1])
    for kind in ("robust", "clustered"):
        whole = fit(x, y, groups, count=4, family="logistic", intercept=layout.intercept,
                    persons=persons)  # fmt: skip
        some = groups != 2
        less = fit(x[some], y[some], groups[some], count=4, family="logistic",
                   intercept=layout.intercept, persons=persons[some])  # fmt: skip
        others = [0, 1, 3]
        assert (whole.error(contrast, kind)[others] == less.error(contrast, kind)[others]).all()
