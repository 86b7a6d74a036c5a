"""Schema, grammar, design matrices and filters; formulaic is the oracle of designs."""

import formulaic
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countwise.errors import InputError, RequestError
from countwise.verification.arithmetic import bounds, values, written
from countwise.verification.design import design
from countwise.verification.formula import parse_model
from countwise.verification.grammar import Parser
from countwise.verification.schema import read_schema, schema_from_dict
from verification.samples import CATEGORIES, SCHEMA, rows

ROWS = rows(300)


def frame():
    data = pd.DataFrame(ROWS)
    for name in CATEGORIES:
        levels = SCHEMA.columns[name].levels
        data[name] = pd.Categorical.from_codes(data[name].astype(int), categories=list(levels))
    return data


def unscaled(text):
    """Our design on the scale of the columns, with its names.

    With β = Cγ for the coefficients, Zγ = Xβ says X = ZC⁻¹.
    """
    model = parse_model(text, SCHEMA)
    layout = design(model, SCHEMA)
    turned = np.array([layout.contrast({j: 1.0}) for j in range(len(layout.names))])
    return layout.matrix(ROWS, 300) @ np.linalg.inv(turned), layout


# Ours on the left, formulaic's on the right.
EQUAL = [
    ("y ~ x", "x"),
    ("y ~ x + a - 1", "x + a - 1"),
    ("y ~ 0 + x + a", "0 + x + a"),
    ("y ~ C(f)", "C(f)"),
    ("y ~ f + g", "f + g"),
    ("y ~ 0 + C(f)", "0 + C(f)"),
    ("y ~ x + C(f) + C(g)", "x + C(f) + C(g)"),
    ("y ~ x:a", "x:a"),
    ("y ~ x*a", "x*a"),
    ("y ~ x*C(f)", "x*C(f)"),
    ("y ~ C(f)*C(g)", "C(f)*C(g)"),
    ("y ~ x*a*C(g)", "x*a*C(g)"),
    ("y ~ (x + a):C(f)", "(x + a):C(f)"),
    ("y ~ x:C(f)", "x:C(f)"),
    ("y ~ x + x:C(f)", "x + x:C(f)"),
    ("y ~ log(x) + sqrt(b)", "np.log(x) + np.sqrt(b)"),
    ("y ~ x/10 + 2*a", "I(x/10) + I(2*a)"),
    ("y ~ (x - 5)/10 + a^2", "I((x - 5)/10) + I(a**2)"),
    ("y ~ a**3", "I(a**3)"),
    ("y ~ log(x + 1):C(g)", "np.log(x + 1):C(g)"),
    ("y ~ poly(x, 2)", "poly(x, 2, raw=True)"),
    ("y ~ poly(x, 3) + a", "poly(x, 3, raw=True) + a"),
    ("y ~ 0 + poly(x, 2)", "0 + poly(x, 2, raw=True)"),
    ("y ~ poly(x, 2):a", "poly(x, 2, raw=True):a"),
    ("y ~ poly(x, 2)*poly(b, 2)", "poly(x, 2, raw=True)*poly(b, 2, raw=True)"),
    ("y ~ poly(x, 2)*C(f)", "poly(x, 2, raw=True)*C(f)"),
    ('y ~ C(f, "q")', "C(f, contr.treatment('q'))"),
    ("y ~ `odd name` + x", "`odd name` + x"),
]
# The same space of columns, perhaps in another basis.
SPAN = [
    ("y ~ C(f):C(g)", "C(f):C(g)"),
    ("y ~ 0 + C(f):C(g)", "0 + C(f):C(g)"),
    ("y ~ C(f) + C(f):C(g)", "C(f) + C(f):C(g)"),
    ("y ~ 0 + C(f) + C(g)", "0 + C(f) + C(g)"),
    ("y ~ x:C(f):C(g) + x", "x:C(f):C(g) + x"),
    ("y ~ 0 + x:C(f) + C(g)", "0 + x:C(f) + C(g)"),
]


def oracle(formula):
    return formulaic.model_matrix(formula, frame(), context={"np": np})


@pytest.mark.parametrize(("ours", "theirs"), EQUAL)
def test_design_equals_formulaic(ours, theirs):
    matrix, _ = unscaled(ours)
    wanted = oracle(theirs)
    assert matrix.shape == wanted.shape
    left = matrix[:, np.lexsort(matrix[:40].round(9))]
    right = wanted.to_numpy()
    right = right[:, np.lexsort(right[:40].round(9))]
    np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("ours", "theirs"), EQUAL + SPAN)
def test_design_spans_what_formulaic_spans(ours, theirs):
    matrix, _ = unscaled(ours)
    wanted = oracle(theirs).to_numpy()
    rank = np.linalg.matrix_rank(wanted)
    assert np.linalg.matrix_rank(matrix) == matrix.shape[1] == rank
    assert np.linalg.matrix_rank(np.hstack([matrix, wanted])) == rank


def test_names_of_coefficients():
    _, layout = unscaled('y ~ x*C(f) + poly(a, 2) + log(b) + C(g, "v")')
    assert layout.names == (
        "Intercept", "x", "C(f)[q]", "C(f)[r]", "poly(a, 2)[1]", "poly(a, 2)[2]", "log(b)",
        "C(g)[u]", "x:C(f)[q]", "x:C(f)[r]",
    )  # fmt: skip


def test_contrast_translates_coefficients():
    model = parse_model("y ~ x + a + C(f) + x:a", SCHEMA)
    layout = design(model, SCHEMA)
    scaled = layout.matrix(ROWS, 300)
    matrix, _ = unscaled("y ~ x + a + C(f) + x:a")
    gamma = np.linalg.lstsq(scaled, ROWS["y"], rcond=None)[0]
    beta = np.linalg.lstsq(matrix, ROWS["y"], rcond=None)[0]
    for j in range(len(beta)):
        assert layout.contrast({j: 1.0}) @ gamma == pytest.approx(beta[j], rel=1e-8)


def test_design_does_not_look_at_data():
    layout = design(parse_model("y ~ C(f) + C(year) + poly(x, 2)", SCHEMA), SCHEMA)
    few = {name: column[:1] for name, column in ROWS.items()}
    assert layout.matrix(few, 1).shape == (1, len(layout.names))
    assert "C(year)[2004]" in layout.names
    np.testing.assert_array_equal(layout.matrix(few, 1)[0], layout.matrix(ROWS, 300)[0])


@given(st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_bounds_hold_for_every_expression(seed):
    rng = np.random.default_rng(seed)

    def expression(depth):
        if depth == 0 or rng.random() < 0.3:
            return str(rng.choice(["x", "a", "b", "age", "2", "0.5", "7"]))
        left, right = expression(depth - 1), expression(depth - 1)
        kind = rng.integers(6)
        if kind == 4:
            return f"({left})^{rng.integers(1, 4)}"
        if kind == 5:
            return f"({left})/{rng.integers(1, 9)}"
        return f"({left}) {'+-*+'[kind]} ({right})"

    text = expression(3)
    node = Parser(text, what="test").sum()
    low, high = bounds(node, SCHEMA, what="test")
    found = values(node, ROWS)
    assert (found >= low - 1e-9 * abs(low)).all()
    assert (found <= high + 1e-9 * abs(high)).all()
    again = Parser(written(node), what="test").sum()
    assert written(again) == written(node)


FILTERS = [
    ("age >= 25", lambda r: r["age"] >= 25),
    ('age >= 25 and f = "q"', lambda r: (r["age"] >= 25) & (r["f"] == 1)),
    ('f in ("p", "r") or x < 3', lambda r: np.isin(r["f"], [0, 2]) | (r["x"] < 3)),
    ("not (age > 40 and x > 3)", lambda r: ~((r["age"] > 40) & (r["x"] > 3))),
    ('g != "u" and not a > -1', lambda r: (r["g"] != 0) & ~(r["a"] > -1)),
    ("year == 2003 or year = 2001", lambda r: np.isin(r["year"], [2001, 2003])),
    ("`odd name` <= 0.5", lambda r: r["odd name"] <= 0.5),
]


@pytest.mark.parametrize(("text", "meaning"), FILTERS)
def test_filters_mean_what_they_say(text, meaning):
    where = parse_model(f"y ~ x where {text}", SCHEMA).where
    np.testing.assert_array_equal(where.keeps(ROWS), meaning(ROWS))


def test_missing_values_never_pass_a_filter():
    where = parse_model("y ~ x where not age > 30 or x > 1", SCHEMA).where
    columns = {"age": np.array([20.0, np.nan, 50.0]), "x": np.array([np.nan, 5.0, 5.0])}
    assert where.keeps(columns).tolist() == [False, False, True]


IMPOSSIBLE = [
    "age > 90",
    "age < 17",
    "age > 40 and age < 40.5",
    'f = "p" and f = "q"',
    'not (f = "p" or f != "p")',
    "age >= 30 and (age < 20 or age < 25)",
    "won = 0.5",
    "x < 1 and x > 1",
]


@pytest.mark.parametrize("text", IMPOSSIBLE)
def test_filters_that_no_row_can_pass_are_refused(text):
    with pytest.raises(RequestError, match="no row within the bounds"):
        parse_model(f"y ~ x where {text}", SCHEMA)


REFUSED = {
    "": "the model is empty",
    "   ": "the model is empty",
    "y": "expected '~'",
    "~ x": "expected a column",
    "y ~": "expected a column",
    "y ~ 0": "nothing to fit",
    "y ~ (x": r"expected '\)'",
    "y ~ x)": "expected the end",
    "y ~ x +": "expected a column",
    "y ~ z": "no column 'z'",
    "y ~ agee": "Did you mean 'age'",
    "y ~ y": "response can not be one of the terms",
    "y ~ log(a)": "needs a above 0",
    "y ~ sqrt(a)": "of 0 or more",
    "y ~ x/0": "divided by a constant other than 0",
    "y ~ x/a": "divided by a constant",
    "y ~ x^0.5": "whole number from 1",
    "y ~ x^99": "whole number from 1",
    "y ~ ((x^8)^8)^8": "larger than",
    "y ~ exp(x)": "no function 'exp'",
    "y ~ __import__('os')": "no function '__import__'",
    "y ~ x.__class__": "no column 'x.__class__'",
    "y ~ C(x)": "number without levels",
    'y ~ C(f, "zz")': "no level 'zz'",
    "y ~ C(f + g)": "C takes a column",
    "y ~ poly(x, 1)": "degree of poly",
    "y ~ poly(x)": "poly takes",
    "y ~ f/10": "is a category",
    "f ~ x": "is a category",
    "y ~ x - a": "can not be taken away",
    "y ~ x*a/10": "could be terms or arithmetic",
    "y ~ (x + a)^2": "could be terms or arithmetic",
    "y ~ 7": "alone is no term",
    "y ~ 'x'": "no term of a model",
    "y ~ x where": "expected a column",
    "y ~ x where f > \"p\"": "is a category; compare",
    "y ~ x where f = \"zz\"": "no level 'zz'",
    "y ~ x where age = \"p\"": "is a number, not a label",
    "y ~ x where f = p": "in quotation marks",
    "y ~ x; drop": "';' has no meaning",
    "y ~ " + "(" * 60 + "x" + ")" * 60: "nested deeper",
    "y ~ x where " + "(" * 60 + "x > 1" + ")" * 60: "nested deeper",
    "y ~ " + "x + " * 2000 + "a": "at most 4000 characters",
    "y ~ x*a*b*age*C(f)*C(g)*C(year)*won": "more than",
    "1 ~ x": "response must be a column",
    "y ~ x + 1e999": "at most 1.7e308",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_refusals_say_what_is_wrong(text):
    with pytest.raises(InputError, match=REFUSED[text]):
        design(parse_model(text, SCHEMA), SCHEMA)


BAD_SCHEMAS = [
    ({}, "no columns"),
    ({"columns": {"x": {"type": "binary"}}}, "how a person is known"),
    ({"columns": {"x": {"type": "wide"}}, "person": {"id": "p"}}, "type must be one of"),
    ({"columns": {"x": {"type": "number"}}, "person": {"id": "p"}}, "no low"),
    (
        {"columns": {"x": {"type": "number", "low": 2, "high": 1}}, "person": {"id": "p"}},
        "low must be below high",
    ),
    (
        {"columns": {"x": {"type": "category", "levels": ["a", "a"]}}, "person": {"id": "p"}},
        "different labels",
    ),
    (
        {"columns": {"x": {"type": "binary"}}, "person": {"id": "p", "n": 3}},
        "unknown key; known are",
    ),
    ({"columns": {"x": {"type": "binary"}}, "person": {"id": "p", "count": 1}}, "count must be"),
    ({"columns": {"x": {"type": "binary"}}, "person": {"id": "p", "rows": 0}}, "rows must be"),
    (
        {"columns": {"x": {"type": "binary"}}, "person": {"one_row_each": True, "rows": 2}},
        "rows can only be 1",
    ),
    (
        {"columns": {"x": {"type": "integer", "low": 0.5, "high": 2}}, "person": {"id": "p"}},
        "whole",
    ),
]


@pytest.mark.parametrize(("data", "message"), BAD_SCHEMAS)
def test_bad_schemas_are_refused(data, message):
    with pytest.raises(InputError, match=message):
        schema_from_dict(data)


def test_schema_file_problems(tmp_path):
    with pytest.raises(InputError, match="no such schema"):
        read_schema(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[[[")
    with pytest.raises(InputError, match="not a schema in TOML"):
        read_schema(tmp_path / "bad.toml")
