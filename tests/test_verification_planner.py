"""The planner's power: known figures, and verdicts on real data that meet it."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from conftest import SHARED_DATA, needs
from countwise.errors import CountwiseError
from countwise.verification.answer import answer
from countwise.verification.outcome_noise import simulate
from countwise.verification.planner import (
    Setting,
    of_coefficient,
    of_estimate,
    power,
    synthetic_power,
)
from countwise.verification.proportion_posterior import ProportionPosterior, majorities
from countwise.verification.question import Question
from countwise.verification.records import Records, read_records
from countwise.verification.request import make_request
from countwise.verification.rules import CONTRADICTED, SUPPORTED, best_case
from countwise.verification.schema import schema_from_dict
from countwise.verification.verify import synthetic_partitions, verify

REPETITIONS = 200


def setting(mechanism="lattice", partitions=50, epsilon="1", errors=0.0):
    alpha = np.ones(2 if mechanism == "binary" else 3)
    return Setting(
        partitions=partitions,
        epsilon=Fraction(epsilon),
        mechanism=mechanism,
        alpha=alpha,
        errors=errors,
    )


@pytest.mark.parametrize(("distance", "figure"), [(2, 0.39), (4, 0.87), (8, 1.0)])
def test_power_of_the_papers_mechanism(distance, figure):
    rng = np.random.default_rng(1)
    found = power(
        setting("laplace"), distance=distance, repetitions=20_000, rng=rng, about="coefficient"
    )
    assert found.supported == pytest.approx(figure, abs=0.02)
    assert found.contradicted < 0.005


def test_power_is_symmetric_and_grows():
    rng = np.random.default_rng(2)
    for mechanism in ("lattice", "binary"):
        up = power(setting(mechanism), distance=3, repetitions=8000, rng=rng)
        down = power(setting(mechanism), distance=-3, repetitions=8000, rng=rng)
        assert up.supported == pytest.approx(down.contradicted, abs=0.03)
        powers = [
            power(setting(mechanism, epsilon=e), distance=3, repetitions=4000, rng=rng).supported
            for e in ("1/2", "1", "4")
        ]
        assert powers == sorted(powers)
    half = power(setting(), distance=0, repetitions=8000, rng=rng)
    assert half.supported < 0.07
    errors = power(setting(errors=0.8), distance=8, repetitions=2000, rng=rng)
    assert errors.supported < 0.02


def test_what_can_never_be_given():
    assert not setting(partitions=10, epsilon="1/2").hopeful
    assert setting(partitions=50, epsilon="1").hopeful
    # The best case is a bound: no noisy counts do better.
    rng = np.random.default_rng(3)
    noisy = rng.normal(0, 40, size=(3000, 3)).round()
    alpha, epsilon = np.ones(3), Fraction(1, 2)
    found = majorities(noisy, partitions=10, epsilon=epsilon, alpha=alpha, border=0.5)[:, 0]
    best = best_case(partitions=10, epsilon=epsilon, alpha=alpha)
    assert found.max() <= best + 1e-12
    assert found.max() == pytest.approx(best, abs=1e-6)


@pytest.fixture(scope="module")
def census():
    """The census extract: rows without ids, a schema with public bounds and the number of rows."""
    path = SHARED_DATA / "census_income_1994.csv"
    needs(path.is_file(), "the census extract in ../shared/data")
    schema = schema_from_dict(
        {
            "person": {"one_row_each": True, "count": 32_561},
            "columns": {
                "age": {"type": "integer", "low": 17, "high": 90},
                "education_years": {"type": "integer", "low": 1, "high": 16},
                "hours_per_week": {"type": "integer", "low": 1, "high": 99},
                "sex": {"type": "category", "levels": ["Female", "Male"]},
                "income_over_50k": {"type": "binary"},
            },
        }
    )
    columns = list(schema.columns)
    like = read_records(path, schema, columns=columns, synthetic=True)
    return schema, read_records(path, schema, columns=columns), like


HOURS = "hours_per_week ~ education_years + age + C(sex)"
INCOME = "income_over_50k ~ education_years + age + hours_per_week + C(sex)"
# Estimates (standard errors) of education_years in the whole data, by statsmodels: hours
# 0.69006 (0.02559), income 0.35511 (0.00662). The fourth column is the distance they imply.
CLAIMS = [
    (HOURS, "ols", "education_years > 1.0", -12.1),
    (HOURS, "ols", "education_years > 0.4", 11.3),
    (HOURS, "ols", "education_years > 0.69", 0.0),
    (INCOME, "logistic", "education_years > 0.30", 8.3),
    (INCOME, "logistic", "education_years > 0.42", -9.8),
    (INCOME, "logistic", "education_years > 0.34", 2.3),
]


@pytest.mark.parametrize(("model", "family", "claim", "about"), CLAIMS)
def test_verdicts_on_the_census_meet_the_planned_power(census, model, family, claim, about):
    """200 answers against the planner.

    A logistic coefficient is biased away from 0 in a partition of 650 persons, which a distance
    does not know: a logistic claim is planned from rows like the data, here the data themselves.
    """
    schema, records, like = census
    request = make_request(
        schema,
        Question(model=model, family=family, claim=claim, epsilon=1, partitions=50),
        border=0.5,
    )
    verdicts = [answer(verify(records, request), request).verdict for _ in range(REPETITIONS)]
    distance = whole_data_distance(records, request)
    assert distance == pytest.approx(about, abs=0.1)
    rng = np.random.default_rng(4)
    planned = power(setting(), distance=distance, repetitions=20_000, rng=rng)
    if family == "logistic":
        planned, _ = synthetic_power(like, request, repetitions=150, rng=rng)
        assert planned.r > ndtr(distance / np.sqrt(50))  # the bias is upwards
    for name, chance in ((SUPPORTED, planned.supported), (CONTRADICTED, planned.contradicted)):
        found = verdicts.count(name) / REPETITIONS
        variance = max(chance * (1 - chance), 0.005) / REPETITIONS
        assert abs(found - chance) < 5 * np.sqrt(variance + planned.simulation_error**2)


def test_synthetic_partitions_have_the_size_of_the_datas(census):
    """A third of the persons in a third of the partitions: the same r as from all of them."""
    schema, _, like = census
    request = make_request(
        schema, Question(model=INCOME, family="logistic", claim="education_years > 0.34", epsilon=1)
    )
    columns, data, offsets = like.reveal()
    third = slice(0, len(offsets) // 3)
    fewer = Records(
        schema,
        {name: column[third] for name, column in columns.items()},
        data[: offsets[third.stop]],
        offsets[: third.stop + 1],
        synthetic=True,
    )
    assert len(synthetic_partitions(like, request).outcomes) == 50
    assert len(synthetic_partitions(fewer, request).outcomes) == 17
    found, lean = synthetic_power(fewer, request, repetitions=20, rng=np.random.default_rng(9))
    assert 0.35 < lean < 0.5
    assert found.repetitions == 20 * (20 * 17 // 50)
    assert 0 < found.simulation_error < 0.2


def test_outcomes_of_confidential_rows_are_not_shown(census):
    schema, records, _ = census
    request = make_request(schema, Question(model=HOURS, claim="education_years > 1", epsilon=1))
    with pytest.raises(CountwiseError, match="synthetic rows only"):
        synthetic_partitions(records, request)


def test_claims_without_a_distance_have_a_power(census):
    schema, _, like = census
    for claim, mechanism in (("education_years in [0, 2]", "binary"), ("age cut at 0", "lattice")):
        request = make_request(
            schema, Question(model=HOURS, claim=claim, epsilon=1, mechanism=mechanism)
        )
        found, _ = synthetic_power(like, request, repetitions=5, rng=np.random.default_rng(10))
        assert found.supported + found.undecided == pytest.approx(1)


def test_the_simulation_error_is_that_of_the_least_certain_verdict():
    rng = np.random.default_rng(11)
    found = power(setting(), distance=-2, repetitions=4000, rng=rng)
    assert found.supported < 0.01
    chance = found.contradicted
    assert found.simulation_error == pytest.approx(np.sqrt(chance * (1 - chance) / 4000), rel=1e-6)


def whole_data_distance(records, request):
    """The distance of the estimate from the claim's threshold, in whole-data standard errors."""
    import statsmodels.api as sm

    columns, _, _ = records.reveal()
    x = request.design.matrix(columns, len(columns["age"]))
    y = columns[request.model.response.value]
    kind = sm.families.Binomial() if request.family == "logistic" else sm.families.Gaussian()
    found = sm.GLM(y, x, family=kind).fit()
    part = request.claim.parts[0]
    contrast = part.quantity.contrast
    error = np.sqrt(contrast @ found.cov_params() @ contrast)
    return float((contrast @ found.params - part.low) / error)


def test_an_estimates_count_varies_less_than_a_coefficients():
    rng, many = np.random.default_rng(7), 20_000
    fixed = of_estimate(0.0, setting(), many, rng)
    drawn = of_coefficient(0.0, setting(), many, rng)
    assert fixed[:, 0].mean() == pytest.approx(25, abs=0.1)
    assert drawn[:, 0].var() == pytest.approx(50 / 4, rel=0.05)
    # Signs of normal numbers that add up to 0: 1/4 - 1/(2π) each.
    assert fixed[:, 0].var() == pytest.approx(50 * (1 / 4 - 1 / (2 * np.pi)), rel=0.05)
    assert (fixed.sum(axis=1) == 50).all()


@pytest.mark.parametrize("mechanism", ["lattice", "laplace", "binary"])
def test_intervals_hold_what_they_promise(mechanism):
    """Proportions from the prior, counts, noise, posterior: 95% of intervals hold the share."""
    rng, held, many = np.random.default_rng(8), 0, 1500
    for _ in range(many):
        alpha = np.ones(2 if mechanism == "binary" else 3)
        p = rng.dirichlet(alpha)
        counts = rng.multinomial(30, np.append(p, 0) if mechanism == "binary" else p)
        noisy = simulate(counts[None, :], mechanism=mechanism, epsilon=Fraction(1), rng=rng)[0]
        posterior = ProportionPosterior(
            noisy=noisy, partitions=30, epsilon=Fraction(1), alpha=alpha
        )
        found = posterior.share([0], [0, 1]).summary()
        held += found.lower <= p[0] / (p[0] + p[1]) <= found.upper
    assert held / many == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / many))
