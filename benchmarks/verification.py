"""Speed of verification against references in the same run: a table, then JSON.

    python benchmarks/verification.py [--json]

Ratios are of the shortest of repeated runs. statsmodels is timed as a loop over partitions that
asks for coefficients and standard errors, with the linear algebra library's threads as they come
and, in a second process, held to one. Last come 200 answers about real data beside their planned
power. The papers' own figures are in `countwise reproduce`.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np

from countwise.reproduce.balmat2018_times import fastest
from countwise.verification.answer import answer
from countwise.verification.design import design
from countwise.verification.fits import fit
from countwise.verification.formula import parse_model
from countwise.verification.planner import Setting, power, synthetic_power
from countwise.verification.proportion_posterior import ProportionPosterior
from countwise.verification.question import Question
from countwise.verification.records import read_records
from countwise.verification.reference_samplers import coefficient_table, table_draws
from countwise.verification.request import make_request
from countwise.verification.schema import schema_from_dict
from countwise.verification.verify import verify

ROWS, COLUMNS, PARTITIONS = 200_000, 20, 50


def posterior_against_gibbs(rng):
    """M = 50, K = 3: closed form with summary against 5,000 sweeps with the coefficient table."""
    noisy = np.array([31.0, 14.0, 5.0])
    given = {"partitions": 50, "epsilon": Fraction(1), "alpha": np.ones(3)}

    def closed():
        ProportionPosterior(noisy=noisy, **given).share([0], [0, 1]).summary()

    def sampled():
        draws = table_draws(noisy, rng=rng, **given)
        np.quantile(draws[:, 0] / (draws[:, 0] + draws[:, 1]), [0.025, 0.5, 0.975])

    def table():
        coefficient_table(50, 3)

    ours, theirs = fastest(closed, repetitions=300), fastest(sampled, repetitions=15)
    setup = fastest(table, repetitions=15)
    return {
        "work": "posterior and summary, M = 50, K = 3",
        "ours": ours,
        "reference": theirs,
        "ratio": theirs / ours,
        "ratio_without_table_setup": (theirs - setup) / ours,
        "wanted": 100,
    }


def posterior_costs():
    """Seconds for r and its summary over M and K, at epsilon 1 and at a wide 0.01."""
    found = []
    for epsilon in (Fraction(1), Fraction(1, 100)):
        for size in (50, 200, 1000, 5000, 10_000):
            for kinds in (3, 5, 10):
                noisy = np.full(kinds, size / kinds)
                given = {"partitions": size, "epsilon": epsilon, "alpha": np.ones(kinds)}

                def closed(noisy=noisy, given=given, kinds=kinds):
                    ProportionPosterior(noisy=noisy, **given).share([0], range(kinds - 1)).summary()

                found.append(
                    {
                        "epsilon": str(epsilon),
                        "partitions": size,
                        "kinds": kinds,
                        "seconds": fastest(closed, repetitions=3),
                    }
                )
    return found


def numbers(fits):
    """Coefficients and standard errors of every partition."""
    errors = fits.standard_error(np.eye(fits.coefficients.shape[1]))
    return np.stack([fits.coefficients, errors.T], axis=1)


def regressions(rng):
    """OLS and logistic regression in 50 partitions, 200,000 rows, 20 columns.

    `arrays`: from a finished design matrix, on both sides. `data frame`: the same, statsmodels on
    a data frame grouped by partition. `formulas`: from columns and a formula, the design included
    on both sides.
    """
    import pandas as pd
    import statsmodels.api as sm
    import statsmodels.formula.api as smf

    names = [f"x{j}" for j in range(1, COLUMNS)]
    columns = {name: rng.uniform(-1, 1, ROWS) for name in names}
    x = np.column_stack([np.ones(ROWS), *columns.values()])
    beta = rng.normal(0, 0.5, COLUMNS)
    groups = rng.integers(0, PARTITIONS, ROWS)
    line = x @ beta
    responses = {
        "ols": line + rng.normal(size=ROWS),
        "logistic": (rng.random(ROWS) < 1 / (1 + np.exp(-line))).astype(float),
    }
    schema = schema_from_dict(
        {
            "person": {"one_row_each": True},
            "columns": {name: {"type": "number", "low": -1, "high": 1} for name in names}
            | {"y": {"type": "number", "low": -100, "high": 100}},
        }
    )
    formula = f"y ~ {' + '.join(names)}"
    found = []
    for family, y in responses.items():
        frame = pd.DataFrame(columns | {"y": y})
        data = pd.DataFrame(x).assign(y=y, partition=groups)

        def arrays(family=family, y=y):
            return numbers(fit(x, y, groups, count=PARTITIONS, family=family, intercept=True))

        def formulas(family=family, y=y):
            layout = design(parse_model(formula, schema), schema)
            matrix = layout.matrix(columns, ROWS)
            return numbers(fit(matrix, y, groups, count=PARTITIONS, family=family, intercept=True))

        def array_loop(family=family, y=y):
            model = sm.OLS if family == "ols" else sm.Logit
            arguments = {} if family == "ols" else {"disp": 0}
            found = []
            for g in range(PARTITIONS):
                part = groups == g
                fitted = model(y[part], x[part]).fit(**arguments)
                found.append((fitted.params, fitted.bse))
            return np.array(found)

        def frame_loop(family=family, data=data):
            model = sm.OLS if family == "ols" else sm.Logit
            arguments = {} if family == "ols" else {"disp": 0}
            for _, part in data.groupby("partition"):
                fitted = model(part["y"], part.drop(columns=["y", "partition"])).fit(**arguments)
                fitted.params, fitted.bse  # noqa: B018

        def formula_loop(family=family, frame=frame):
            model = smf.ols if family == "ols" else smf.logit
            arguments = {} if family == "ols" else {"disp": 0}
            for g in range(PARTITIONS):
                fitted = model(formula, frame[groups == g]).fit(**arguments)
                fitted.params, fitted.bse  # noqa: B018

        gap = float(np.abs(arrays() - array_loop()).max())
        for kind, ours, loop in (
            ("arrays", arrays, array_loop),
            ("data frame", arrays, frame_loop),
            ("formulas", formulas, formula_loop),
        ):
            fast, slow = fastest(ours, repetitions=25), fastest(loop, repetitions=3)
            found.append(
                {
                    "work": f"{family} in 50 partitions, 200,000 rows, 20 columns, {kind}",
                    "ours": fast,
                    "reference": slow,
                    "ratio": slow / fast,
                    "largest_difference": gap,
                    "wanted": 80 if family == "ols" else 12,
                }
            )
    return found


CENSUS = Path(__file__).parents[2] / "shared" / "data" / "census_income_1994.csv"
CENSUS_SCHEMA = {
    "person": {"one_row_each": True, "count": 32_561},
    "columns": {
        "age": {"type": "integer", "low": 17, "high": 90},
        "education_years": {"type": "integer", "low": 1, "high": 16},
        "hours_per_week": {"type": "integer", "low": 1, "high": 99},
        "sex": {"type": "category", "levels": ["Female", "Male"]},
        "income_over_50k": {"type": "binary"},
    },
}
HOURS = "hours_per_week ~ education_years + age + C(sex)"
INCOME = "income_over_50k ~ education_years + age + hours_per_week + C(sex)"
# Distances of the whole data's estimates from the thresholds, by statsmodels.
CLAIMS = (
    ("ols", HOURS, "education_years > 1.0", -12.1),
    ("ols", HOURS, "education_years > 0.4", 11.3),
    ("ols", HOURS, "education_years > 0.69", 0.0),
    ("ols", HOURS, "education_years > 0.64", 2.0),
    ("logistic", INCOME, "education_years > 0.30", 8.3),
    ("logistic", INCOME, "education_years > 0.42", -9.8),
    ("logistic", INCOME, "education_years > 0.34", 2.3),
)


def answers_and_plans(rng, repetitions=200):
    """Verdicts of 200 answers beside the chances planned from a distance and from like rows."""
    if not CENSUS.is_file():
        return []
    schema = schema_from_dict(CENSUS_SCHEMA)
    given = {"columns": schema.columns}
    data, like = (read_records(CENSUS, schema, synthetic=s, **given) for s in (False, True))
    found = []
    for family, model, claim, distance in CLAIMS:
        request = make_request(
            schema, Question(model=model, family=family, claim=claim, epsilon=1), border=0.5
        )
        verdicts = [answer(verify(data, request), request).verdict for _ in range(repetitions)]
        setting = Setting(
            partitions=50, epsilon=request.epsilon, mechanism="lattice", alpha=request.alpha
        )
        far = power(setting, distance=distance, repetitions=20_000, rng=rng)
        near, _ = synthetic_power(like, request, repetitions=200, rng=rng)
        row = {"family": family, "claim": claim, "distance": distance, "r": near.r}
        for name in ("supported", "contradicted"):
            chance = getattr(near, name)
            variance = max(chance * (1 - chance), 0.005) / repetitions + near.simulation_error**2
            share = verdicts.count(name) / repetitions
            row[name] = {
                "answers": share,
                "planned_by_distance": getattr(far, name),
                "planned_by_like_rows": chance,
                "standard_errors_apart": (share - chance) / float(np.sqrt(variance)),
            }
        found.append(row)
    return found


def with_one_thread():
    """The regressions again in a process whose linear algebra has one thread."""
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, __file__, "--regressions"],
        env=os.environ | one,
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def main():
    """Run everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--regressions", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    if chosen.regressions:
        print(json.dumps(regressions(rng)))
        return
    result = {
        "ratios": [posterior_against_gibbs(rng), *regressions(rng)],
        "ratios_one_thread": with_one_thread(),
        "posterior_seconds": posterior_costs(),
        "answers": answers_and_plans(rng),
    }
    if not chosen.json:
        show(result)
    print(json.dumps(result))


def show(result):
    """The same as tables."""
    for title, rows in (
        ("threads as they come", result["ratios"]),
        ("linear algebra on one thread", result["ratios_one_thread"]),
    ):
        print(f"\n{title}")
        for row in rows:
            print(
                f"  {row['work']:<62} {row['ours'] * 1e3:9.3f} ms {row['reference'] * 1e3:10.1f} ms"
                f" {row['ratio']:8.1f}x (wanted {row['wanted']}x)"
            )
    print("\nposterior of r with summary, ms")
    for row in result["posterior_seconds"]:
        print(
            f"  ε = {row['epsilon']:<6} M = {row['partitions']:<6} K = {row['kinds']:<3}"
            f" {row['seconds'] * 1e3:10.3f}"
        )
    print("\n200 answers on the census extract | planned by distance | by like rows | errors apart")
    for row in result["answers"]:
        for name in ("supported", "contradicted"):
            each = row[name]
            print(
                f"  {row['family']:<8} {row['claim']:<23} {name:<12} {each['answers']:.3f} |"
                f" {each['planned_by_distance']:.3f} | {each['planned_by_like_rows']:.3f} |"
                f" {each['standard_errors_apart']:+.1f}"
            )
    print()


if __name__ == "__main__":
    main()
