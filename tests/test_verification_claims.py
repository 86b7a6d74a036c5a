"""Claims: every kind against its definition, computed from statsmodels' fits of the partitions."""

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from countwise.errors import InputError
from countwise.verification import verify as boundary
from countwise.verification.partitions import assign
from countwise.verification.question import Question
from countwise.verification.request import make_request
from verification.samples import SCHEMA, records, rows

SIZE, PARTITIONS = 2400, 20
DATA = rows(SIZE)
KEY = bytes(range(16))


def frame():
    data = pd.DataFrame(DATA)
    data["f"] = np.array(["p", "q", "r"])[DATA["f"].astype(int)]
    _, ids, offsets = records(DATA).reveal()
    data["partition"] = assign(ids, offsets, partitions=PARTITIONS, key=KEY)
    return data


FRAME = frame()
MODEL, THEIRS = "y ~ x + a + C(f)", "y ~ x + a + C(f)"


def outcomes(claim, model=MODEL, family="ols"):
    request = make_request(
        SCHEMA, Question(model=model, claim=claim, epsilon=3, partitions=PARTITIONS, family=family)
    )
    return boundary._outcomes(records(DATA), request, key=KEY)


def fits(formula=THEIRS, family="ols"):
    for p in range(PARTITIONS):
        part = FRAME[FRAME["partition"] == p]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind = {"ols": smf.ols, "logistic": smf.logit, "poisson": smf.poisson}[family]
            arguments = {} if family == "ols" else {"disp": 0}
            yield kind(formula, part).fit(**arguments), part


def expect(claim, test, **how):
    model = how.pop("model", MODEL)
    formula = how.pop("formula", THEIRS)
    family = how.pop("family", "ols")
    wanted = [0 if test(found) else 1 for found, _ in fits(formula, family)]
    assert len(set(wanted)) == 2, "the claim must hold in some partitions and fail in others"
    assert outcomes(claim, model, family).tolist() == wanted


SIMPLE = [
    ("x > 0.5", lambda f: f.params["x"] > 0.5),
    ("0.5 < x", lambda f: f.params["x"] > 0.5),
    ("x <= 0.5", lambda f: f.params["x"] <= 0.5),
    ("0.45 < x < 0.55", lambda f: 0.45 < f.params["x"] < 0.55),
    ("0.55 >= x >= 0.45", lambda f: 0.45 <= f.params["x"] <= 0.55),
    ("x in [0.47, 0.53]", lambda f: 0.47 <= f.params["x"] <= 0.53),
    ("x in (0.5, inf)", lambda f: f.params["x"] > 0.5),
    ("x in (-inf, 0.5]", lambda f: f.params["x"] <= 0.5),
    ("x within 0.04 of 0.5", lambda f: abs(f.params["x"] - 0.5) <= 0.04),
    ("a within 5% of -2", lambda f: abs(f.params["a"] + 2) <= 0.1),
    ("x > -a/4", lambda f: f.params["x"] > -f.params["a"] / 4),
    ("2*x + a/2 - 0.01 > 0", lambda f: 2 * f.params["x"] + f.params["a"] / 2 > 0.01),
    ("C(f)[q] > 1.5", lambda f: f.params["C(f)[T.q]"] > 1.5),
    ("f[q] - f[r] > 1.5", lambda f: f.params["C(f)[T.q]"] - f.params["C(f)[T.r]"] > 1.5),
    ('C(f)["q"] > 1.5', lambda f: f.params["C(f)[T.q]"] > 1.5),
    ("Intercept < 1", lambda f: f.params["Intercept"] < 1),
    ("-x < -0.5", lambda f: f.params["x"] > 0.5),
    ("x > 0.48 and a < -1.9", lambda f: f.params["x"] > 0.48 and f.params["a"] < -1.9),
    (
        'predict(x = 4, a = 1, f = "q") > 2.5',
        lambda f: f.predict(pd.DataFrame({"x": [4], "a": [1], "f": ["q"]}))[0] > 2.5,
    ),
    (
        '2.3 < predict(x = 4, a = 1, f = "q") < 2.7',
        lambda f: 2.3 < f.predict(pd.DataFrame({"x": [4], "a": [1], "f": ["q"]}))[0] < 2.7,
    ),
    (
        "significant(x > 0.48, 0.05)",
        lambda f: np.sqrt(PARTITIONS) * (f.params["x"] - 0.48) / f.bse["x"] > stats.norm.isf(0.025),
    ),
    (
        "significant(x > 0.43, 10%, partition)",
        lambda f: (f.params["x"] - 0.43) / f.bse["x"] > stats.t.isf(0.05, f.df_resid),
    ),
    (
        "significant(2*x + a/2 < 0.1, 0.2)",
        lambda f: (
            np.sqrt(PARTITIONS) * (0.1 - f.t_test("2*x + a/2").effect[0])
            / f.t_test("2*x + a/2").sd[0, 0]
            > stats.norm.isf(0.1)
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("claim", "test"), SIMPLE)
def test_claims_mean_what_they_say(claim, test):
    expect(claim, test)


def test_interactions_and_transformations_can_be_claimed():
    expect(
        "x:C(f)[q] > 0.0",
        lambda f: f.params["x:C(f)[T.q]"] > 0,
        model="y ~ x*C(f)",
        formula="y ~ x*C(f)",
    )
    expect(
        "f[q]:x > 0.0",
        lambda f: f.params["x:C(f)[T.q]"] > 0,
        model="y ~ x*C(f)",
        formula="y ~ x*C(f)",
    )
    expect(
        "log(x) + (b - 5)/2 > 3.2",
        lambda f: f.params["np.log(x)"] + f.params["I((b - 5) / 2)"] > 3.2,
        model="y ~ log(x) + (b - 5)/2",
        formula="y ~ np.log(x) + I((b - 5) / 2)",
    )
    expect(
        "poly(x, 2)[2] > 0",
        lambda f: f.params["I(x ** 2)"] > 0,
        model="y ~ poly(x, 2)",
        formula="y ~ x + I(x ** 2)",
    )


def test_other_families():
    expect(
        "x > 0.1",
        lambda f: f.params["x"] > 0.1,
        model="won ~ x + a",
        formula="won ~ x + a",
        family="logistic",
    )
    expect(
        "predict(x = 10, a = 0) in [0.45, 0.55]",
        lambda f: 0.45 <= f.predict(pd.DataFrame({"x": [10], "a": [0]}))[0] <= 0.55,
        model="won ~ x + a",
        formula="won ~ x + a",
        family="logistic",
    )
    expect(
        "significant(a > 0.19, 0.05)",
        lambda f: np.sqrt(PARTITIONS) * (f.params["a"] - 0.19) / f.bse["a"] > stats.norm.isf(0.025),
        model="count ~ x + a",
        formula="count ~ x + a",
        family="poisson",
    )


def test_trend_over_periods():
    wanted = []
    for p in range(PARTITIONS):
        part = FRAME[FRAME["partition"] == p]
        values = [
            smf.ols("y ~ x", part[part["year"] == year]).fit().params["x"]
            for year in (2002, 2003, 2004)
        ]
        slope = np.polyfit([0, 1, 2], values, 1)[0]
        wanted.append(0 if slope > 0 else 1)
    found = outcomes("trend(x over year from 2002 to 2004) > 0", model="y ~ x")
    assert found.tolist() == wanted
    everything = outcomes("0.1 >= trend(x over year)", model="y ~ x")
    assert set(everything.tolist()) <= {0, 1, 2}


def test_cut_gives_more_outcomes():
    found = outcomes("x cut at 0.45, 0.5, 0.55")
    values = np.array([f.params["x"] for f, _ in fits()])
    assert found.tolist() == np.digitize(values, [0.45, 0.5, 0.55]).tolist()


def test_a_conjunction_is_an_error_where_a_part_is():
    # f[r] is missing in one partition: its pooled fit is singular there.
    data = {name: column.copy() for name, column in DATA.items()}
    data["f"][(FRAME["partition"] == 3) & (FRAME["f"] == "r")] = np.nan
    request = make_request(
        SCHEMA, Question(model=MODEL, claim="x > 0.5 and a < 0", epsilon=1, partitions=PARTITIONS)
    )
    found = boundary._outcomes(records(data), request, key=KEY)
    assert found[3] == 2
    assert (np.delete(found, 3) != 2).all()


def test_one_sided_claims_translate_to_distances():
    def one_sided(claim):
        return make_request(SCHEMA, Question(model=MODEL, claim=claim, epsilon=1)).claim.one_sided

    assert one_sided("x > 1")
    assert one_sided("significant(x > 1, 0.05)")
    assert not one_sided("significant(x > 1, 0.05, partition)")
    assert not one_sided("0 < x < 1")
    assert not one_sided("x > 1 and a > 1")
    assert not one_sided("x cut at 1")


REFUSED = {
    "": "claim is empty",
    "x": "expected '<'",
    "x > ": "expected a column",
    "x = 1": "never equals",
    "z > 1": "no coefficient 'z'",
    "C(f)[p] > 1": r"no coefficient 'C\(f\)\[p\]'",
    "C(f)[zz] > 1": "no coefficient",
    "1 > 0": "no coefficient in it",
    "x - x > 0": "no coefficient in it",
    "x*a > 0": "no coefficient 'x\\*a'",
    "x > 1 and": "expected a column",
    "x > 1 or a > 1": "expected the end",
    "x in [2, 1]": "is empty",
    "x in (-inf, inf)": "everything",
    "2 < x < 1": "no number is in",
    "0 < x > 1": "double comparison",
    "x within 0 of 1": "tolerance must be positive",
    "x cut at 2, 1": "rising numbers",
    "significant(x > 0)": "expected ','",
    "significant(x > 0, 2)": "between 0 and 1",
    "significant(0 < x < 1, 0.05)": "beyond one number",
    "significant(x > 0, 0.05, whole)": "takes partition, and robust",
    "predict(x = 1) > 0": "each column of the model",
    'predict(x = 99, a = 0, f = "p") > 0': "'x' must be a number from 0.5 to 20",
    'predict(x = 1, a = 0, f = "zz") > 0': "no level 'zz'",
    "predict(x = 1, a = 0, f = p) > 0": "give a level in quotes",
    'predict(x = 1, a = 0, f = "p") > a': "with a number only",
    "trend(x over year from 2004 to 2001) > 0": "rising periods",
    "trend(x over b) > 0": "without levels",
    "trend(x over f) > 0": "is in the model",
    "trend(1 over year) > 0": "coefficient or prediction",
    "trend(x over year from 1999 to 2001) > 0": "no level '1999'",
    "x > 1e999": "at most",
    "eval(x) > 0": "no coefficient",
    "x > 1; import os": "no meaning",
}  # fmt: skip


@pytest.mark.parametrize("claim", REFUSED)
def test_refusals_say_what_is_wrong(claim):
    with pytest.raises(InputError, match=REFUSED[claim]):
        make_request(SCHEMA, Question(model=MODEL, claim=claim, epsilon=1))
