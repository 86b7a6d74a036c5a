"""Verdicts on skewed data: what they rely on, and how often they are false."""

import json
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from typer.testing import CliRunner

from countwise.cli import app
from countwise.errors import AnswerError, InputError, RequestError, SchemaError
from countwise.examples.workers import workers
from countwise.progress import silent
from countwise.verification.answer import answer, disagreements, recompute
from countwise.verification.border import (
    by_skewness,
    rehearsed_border,
    skewness_of,
    stated_border,
)
from countwise.verification.canonical import query_hash
from countwise.verification.planner import Setting, power, rehearse, synthetic_lean
from countwise.verification.question import Question
from countwise.verification.records import Records
from countwise.verification.request import make_request
from countwise.verification.rules import (
    CONTRADICTED,
    MOSTLY_FAILS,
    MOSTLY_HOLDS,
    SUPPORTED,
    UNDECIDED,
)
from countwise.verification.schema import schema_from_dict
from countwise.verification.verify import synthetic_partitions, verify

SIZE, M = 2000, 50


def schema(**person):
    return schema_from_dict(
        {
            "person": {"one_row_each": True, "count": SIZE} | person,
            "columns": {
                "y": {"type": "number", "low": -1e9, "high": 1e9},
                "t": {"type": "binary"},
            },
        }
    )


def request(claim, model="y ~ 1", epsilon=2, known=None, *, border=None, skewness=None, **more):
    question = Question(model=model, claim=claim, epsilon=epsilon, **more)
    return make_request(known or schema(), question, border=border, skewness=skewness)


def records(columns, *, synthetic=False):
    size = len(columns["y"])
    ids = np.arange(size, dtype=np.int64).view(np.uint8)
    return Records(schema(), columns, ids, 8 * np.arange(size + 1), synthetic=synthetic)


def skewed(rng):
    return {"y": rng.lognormal(sigma=2.0, size=SIZE)}


def costs(rng):
    return {"y": (rng.random(SIZE) < 0.02) * rng.lognormal(size=SIZE)}


def test_the_border_of_a_skewness_is_that_of_the_two_point_law():
    """Share p above: values √(q/p) and -√(p/q), whose third moment is (q - p)/√(pq)."""
    for p in (0.02, 0.2, 0.35, 0.5):
        s = (1 - 2 * p) / sqrt(p * (1 - p))
        assert by_skewness(s * sqrt(SIZE / M), persons=SIZE, partitions=M) == pytest.approx(p)
        assert skewness_of(p, persons=SIZE, partitions=M) == pytest.approx(s * sqrt(SIZE / M))
    # One row with all there is: a skewness of √n, and one partition of M above.
    one = np.zeros(SIZE)
    one[0] = 1
    third = ((one - one.mean()) ** 3).mean() / one.std() ** 3
    assert by_skewness(third, persons=SIZE, partitions=M) == pytest.approx(1 / M, rel=0.06)


@pytest.mark.parametrize("law", ["exponential", "gamma", "rare costs", "one cost", "Poisson"])
def test_partitions_of_skewed_data_lean_less_than_their_skewness_allows(law):
    rng = np.random.default_rng(1)
    for _ in range(10):
        y = {
            "exponential": rng.exponential(size=SIZE),
            "gamma": rng.gamma(0.1, size=SIZE),
            "rare costs": costs(rng)["y"],
            "one cost": (np.arange(SIZE) == 3) * 1.0,
            "Poisson": rng.poisson(0.02, SIZE).astype(float),
        }[law]
        off = y - y.mean()
        labels = rng.integers(0, M, size=(40, SIZE))
        sums = [np.bincount(row, off, minlength=M) for row in labels]
        lean = float((np.array(sums) > 0).mean())
        border = by_skewness((off**3).mean() / y.std() ** 3, persons=SIZE, partitions=M)
        assert lean > border - 3 * sqrt(border / 2000)


@pytest.mark.parametrize("law", [skewed, costs])
def test_no_verdict_on_the_whole_is_false_for_skewness_alone(law):
    """A claim true by half a standard error, and its opposite, both asked of the same counts."""
    rng = np.random.default_rng(2)
    synthetic = [
        synthetic_lean(records(law(rng), synthetic=True), request("Intercept > 0"), repetitions=20)
        for _ in range(6)
    ]
    false = {"symmetric": 0, "nothing": 0, "rehearsed": 0}
    for i in range(150):
        rows = law(rng)
        threshold = rows["y"].mean() - 0.5 * rows["y"].std() / sqrt(SIZE)
        asked = request(f"Intercept > {float(threshold)!r}")
        found = answer(verify(records(rows), asked), asked)
        assert found.verdict in (MOSTLY_HOLDS, MOSTLY_FAILS, UNDECIDED)
        border = rehearsed_border(synthetic[i % 6])
        false["symmetric"] += found.relying_on(0.5).verdict == CONTRADICTED
        false["nothing"] += found.verdict == CONTRADICTED
        false["rehearsed"] += border is not None and (
            found.relying_on(border).verdict == CONTRADICTED
        )
    assert false["symmetric"] > 0.4 * 150  # what the border is for
    assert false["nothing"] == 0
    assert false["rehearsed"] <= 0.05 * 150


def test_a_claim_and_its_opposite_have_opposite_verdicts():
    fields = {"epsilon": "2", "partitions": 50, "alpha": [1.0], "mechanism": "lattice"}
    opposite = {
        SUPPORTED: CONTRADICTED,
        MOSTLY_HOLDS: MOSTLY_FAILS,
        UNDECIDED: UNDECIDED,
        MOSTLY_FAILS: MOSTLY_HOLDS,
        CONTRADICTED: SUPPORTED,
    }
    seen = set()
    for border in (None, 0.3, 0.5):
        for holds in range(51):
            one, other = (
                recompute({"noisy": noisy, "border": border, **fields}).verdict
                for noisy in ([holds, 50 - holds, 0], [50 - holds, holds, 0])
            )
            assert other == opposite[one]
            seen.add(one)
    assert seen == set(opposite)


def test_normal_data_keep_their_power_where_symmetry_is_stated():
    rng = np.random.default_rng(3)
    chances = []
    for border in (None, by_skewness(6.0, persons=SIZE, partitions=M), 0.45, 0.5):
        setting = Setting(
            partitions=M, epsilon=Fraction(2), mechanism="lattice", alpha=np.ones(3), border=border
        )
        chances.append(power(setting, distance=-4, repetitions=2000, rng=rng).contradicted)
    assert chances[0] == 0
    assert chances == sorted(chances)
    assert chances[-1] > 0.95


def test_an_answer_says_what_a_verdict_would_rely_on():
    fields = {"epsilon": "2", "partitions": 50, "alpha": [1.0], "mechanism": "lattice"}
    found = recompute({"noisy": [8, 42, 0], "persons": SIZE, **fields})
    assert found.verdict == MOSTLY_FAILS
    said = " ".join(found.sentences())
    assert said.startswith("The claim is not supported: it fails in most partitions.")
    assert "contradicted if a claim just at its threshold" in said
    assert "nothing is stated about that" in said
    assert "With about 40 persons in a partition" in said
    # What it says is enough is enough, and a little more is not.
    assert found.relying_on(found.needed_border + 1e-6).verdict == CONTRADICTED
    assert found.relying_on(found.needed_border - 1e-6).verdict == MOSTLY_FAILS
    border = by_skewness(found.needed_skewness, persons=SIZE, partitions=M)
    assert border == pytest.approx(found.needed_border)
    sure = found.relying_on(0.5)
    assert "takes for granted that the estimates of partitions are symmetric" in " ".join(
        sure.sentences()
    )
    leaning = found.relying_on(0.4)
    assert leaning.verdict == CONTRADICTED
    assert "holds in 40% to 60% of partitions" in " ".join(leaning.sentences())
    up = recompute({"noisy": [42, 8, 0], "persons": SIZE, **fields})
    assert up.verdict == MOSTLY_HOLDS
    assert up.relying_on(up.needed_border + 1e-6).verdict == SUPPORTED


def test_old_answers_keep_their_verdict_and_new_ones_theirs():
    fields = {"epsilon": "2", "partitions": 50, "alpha": [1.0], "mechanism": "lattice"}
    old = {"format": 1, "noisy": [8, 42, 0], "verdict": "contradicted", **fields}
    assert recompute(old).verdict == CONTRADICTED
    assert disagreements(old, recompute(old)) == []
    again = recompute(old).to_dict()
    assert (again["format"], again["border"], again["verdict"]) == (2, 0.5, CONTRADICTED)
    new = recompute({"noisy": [8, 42, 0], "persons": SIZE, **fields}).to_dict()
    assert (new["format"], new["border"], new["verdict"]) == (2, None, MOSTLY_FAILS)
    forged = new | {"verdict": "contradicted"}
    assert disagreements(forged, recompute(forged)) == ["verdict"]
    for key, value in (("border", "much"), ("persons", 0), ("persons", True), ("persons", 1.5)):
        with pytest.raises(AnswerError, match=key):
            recompute(new | {key: value})
    with pytest.raises(InputError, match="a border is the least share"):
        recompute(new | {"border": 0.7})


def test_what_a_schema_and_a_request_state():
    known = schema(skewness=2)
    two = by_skewness(2, persons=SIZE, partitions=M)
    assert request("Intercept > 0", known=known).border == pytest.approx(two)
    assert request("Intercept > 0").border is None
    assert request("Intercept > 0", known=known, border=0.5).border == 0.5
    one = request("Intercept > 0", known=known, skewness=1)
    assert one.border == by_skewness(1, persons=SIZE, partitions=M)
    # Stated after the noise, so the same question as before it was stated.
    hashes = {
        query_hash(request("Intercept > 0", known=known, **more), dataset="d", version="1")
        for more in ({}, {"border": 0.3}, {"skewness": 9})
    }
    hashes.add(query_hash(request("Intercept > 0"), dataset="d", version="1"))
    assert len(hashes) == 1
    for given, message in (
        ({"border": 0.4, "skewness": 1}, "not both"),
        ({"border": 0.0}, "above 0"),
        ({"border": float("nan")}, "above 0"),
        ({"skewness": -1.0}, "from 0"),
    ):
        with pytest.raises(RequestError, match=message):
            request("Intercept > 0", **given)
    with pytest.raises(RequestError, match="state count"):
        stated_border(None, 2.0, persons=None, partitions=M)
    for wrong in (-1, "2", True):
        with pytest.raises(SchemaError, match="skewness must be"):
            schema(skewness=wrong)
    with pytest.raises(SchemaError, match="needs count"):
        schema_from_dict(
            {
                "person": {"one_row_each": True, "skewness": 1},
                "columns": {"y": {"type": "binary"}},
            }
        )


@pytest.mark.parametrize(
    "claim", ["Intercept > 1", "Intercept < 1", "significant(Intercept > 1, 0.05)"]
)
def test_a_rehearsal_sees_how_partitions_lean(claim):
    rng = np.random.default_rng(5)
    lean = {}
    for name, y in (("even", rng.normal(size=SIZE)), ("skewed", rng.lognormal(sigma=2, size=SIZE))):
        found = synthetic_lean(records({"y": y}, synthetic=True), request(claim), repetitions=30)
        lean[name] = found
        if not claim.startswith("significant"):
            labels = rng.integers(0, M, size=(30, SIZE))
            sums = np.array([np.bincount(row, y - y.mean(), minlength=M) for row in labels])
            assert found == pytest.approx(min((sums > 0).mean(), (sums < 0).mean()), abs=0.06)
    assert lean["even"] > 0.47
    assert lean["skewed"] < 0.42


def test_a_rehearsal_sees_ties():
    """Rare events in two halves: in most partitions the difference is exactly 0. No skewness."""
    rng = np.random.default_rng(6)
    t = (np.arange(SIZE) % 2).astype(float)
    y = np.zeros(SIZE)
    y[rng.choice(SIZE, 12, replace=False)] = 1
    found = synthetic_lean(
        records({"y": y, "t": t}, synthetic=True), request("t > 0", "y ~ t"), repetitions=20
    )
    assert found < 0.25
    assert rehearsed_border(found) is None


def test_all_equal_partitions_have_no_border():
    flat = records({"y": np.ones(SIZE)}, synthetic=True)
    sides = synthetic_partitions(flat, request("Intercept > 1")).sides
    assert sides[0, 2] == M
    assert rehearsed_border(0.0) is None
    assert rehearsed_border(None) is None
    assert rehearsed_border(0.49) == pytest.approx(0.48)
    one = records({"y": np.ones(SIZE), "t": np.ones(SIZE)}, synthetic=True)
    assert synthetic_partitions(one, request("t > 0", "y ~ t")).sides is None


def test_rehearsed_verdicts_have_all_names():
    rows = records({"y": np.random.default_rng(7).normal(size=SIZE)}, synthetic=True)
    found = rehearse(rows, request("Intercept > -1"), repetitions=3, tell=silent)
    assert found.verdicts[MOSTLY_HOLDS] == 1
    assert sum(found.verdicts.values()) == 1


def plan(*words):
    result = CliRunner().invoke(app, ["verify", "plan", "--repetitions", "100", *words])
    return result.exit_code, " ".join(result.stdout.split()), result.exception


def test_the_plan_says_when_partitions_are_too_small():
    how = ["--epsilon", "1", "--distance", "4"]
    _, said, _ = plan(*how, "--partitions", "50")
    assert "neither that it is supported nor that it is contradicted" in said
    known = ["--schema", workers("workers.toml")]
    _, said, _ = plan(*how, *known, "--partitions", "50", "--skewness", "8")
    # 1,500 persons: 30 a partition, and 8² = 64 of them are too few from M = 24 on.
    assert "partitions of about 30 persons are too small for a skewness of 8: choose M = 23" in said
    _, said, _ = plan(*how, *known, "--partitions", "20", "--skewness", "8")
    assert "too small" not in said
    assert "M = 20: verdicts reckon with" in said
    _, said, _ = plan(*how, *known, "--partitions", "50", "--skewness", "40")
    assert "no M is small enough" in said
    _, said, _ = plan(*how, "--partitions", "50", "--border", "0.5")
    assert "reckon" not in said
    assert "neither that it" not in said
    code, _, problem = plan(*how, "--partitions", "50", "--skewness", "8")
    assert code
    assert "state count" in str(problem)


def test_a_rehearsal_says_what_border_to_state(tmp_path):
    rng = np.random.default_rng(8)
    rows = tmp_path / "like.csv"
    facts = tmp_path / "schema.toml"
    facts.write_text(
        '[person]\none_row_each = true\ncount = 2000\n[columns.y]\ntype = "number"\n'
        "low = -1e9\nhigh = 1e9\n"
    )
    how = ["--epsilon", "2", "--partitions", "50", "--distance", "4", "--rehearsals", "20",
           "--rehearse", str(rows), "--schema", str(facts), "--model", "y ~ 1",
           "--claim", "Intercept > 0"]  # fmt: skip

    def rehearsed(values, *more):
        rows.write_text("y\n" + "\n".join(map(repr, values.tolist())) + "\n")
        _, said, _ = plan(*how, *more)
        result = CliRunner().invoke(
            app, ["verify", "plan", "--repetitions", "100", *how, *more, "--json"]
        )
        return said, json.loads(result.stdout)["rehearsals"][0]

    said, found = rehearsed(rng.normal(size=SIZE) - 1)
    assert "A verdict may rely on --border 0.4" in said
    assert found["border"] == pytest.approx(rehearsed_border(found["lean"]))
    assert found["contradicted"] > 0.9
    said, found = rehearsed((rng.random(SIZE) < 0.003) * 1.0)
    assert "too small: no verdict on the whole data is safe" in said
    assert (found["border"], found["supported"], found["contradicted"]) == (None, 0, 0)
    _, found = rehearsed(rng.normal(size=SIZE) - 1, "--border", "0.3")
    assert found["border"] == 0.3


def test_an_answer_is_read_again_with_another_border(tmp_path):
    fields = {"epsilon": "2", "partitions": 50, "alpha": [1.0], "mechanism": "lattice"}
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(recompute({"noisy": [8, 42, 0], **fields}).to_dict()))
    for more, verdict in (([], MOSTLY_FAILS), (["--border", "0.4"], CONTRADICTED)):
        result = CliRunner().invoke(app, ["verify", "recompute", str(file), "--json", *more])
        assert json.loads(result.stdout)["verdict"] == verdict
