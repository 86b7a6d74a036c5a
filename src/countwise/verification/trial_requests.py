"""A request of every kind on made-up rows: what makes the machine code of this room ready."""

import numpy as np

from countwise.verification.answer import answer
from countwise.verification.planner import Setting, power
from countwise.verification.question import Question
from countwise.verification.records import Records
from countwise.verification.request import make_request
from countwise.verification.schema import schema_from_dict
from countwise.verification.verify import verify

ROWS = 400  # enough to fit every family in a few partitions
MODELS = (
    ('y ~ log(x) + poly(x, 2) + f where x > 1 and f = "p"', "log(x) > 0", "ols"),
    ("y ~ x + f", 'significant(x > 0, 0.05) and predict(x = 2, f = "p") > 0', "ols"),
    ("y ~ x", "trend(x over t) > 0", "ols"),
    ("y ~ x", "x cut at 0, 1", "ols"),
    ("b ~ x", "x > 0", "logistic"),
    ("t ~ x", "x > 0", "poisson"),
)


def try_requests() -> None:
    """Every kind of request to verify a finding, and planning one."""
    records = _records()
    for mechanism in ("lattice", "laplace"):
        for model, claim, family in MODELS:
            question = Question(
                model=model,
                claim=claim,
                family=family,
                epsilon=2,
                partitions=20,
                mechanism=mechanism,
            )
            request = make_request(records.schema, question)
            answer(verify(records, request), request).to_dict()
    rng = np.random.default_rng(0)
    setting = Setting(partitions=20, epsilon=request.epsilon, mechanism="lattice", alpha=np.ones(3))
    power(setting, distance=1, repetitions=10, rng=rng)


def _records() -> Records:
    """Made-up rows of every type of column."""
    schema = schema_from_dict(
        {
            "person": {"one_row_each": True},
            "columns": {
                "y": {"type": "number", "low": -9, "high": 9},
                "x": {"type": "number", "low": 1, "high": 9},
                "f": {"type": "category", "levels": ["p", "q"]},
                "b": {"type": "binary"},
                "t": {"type": "integer", "low": 0, "high": 3},
            },
        }
    )
    rng = np.random.default_rng(0)
    rows = {
        "y": rng.uniform(-9, 9, ROWS),
        "x": rng.uniform(1, 9, ROWS),
        "f": rng.integers(0, 2, ROWS).astype(float),
        "b": rng.integers(0, 2, ROWS).astype(float),
        "t": rng.integers(0, 4, ROWS).astype(float),
    }
    ids = np.arange(ROWS, dtype=np.int64).view(np.uint8)
    return Records(schema, rows, ids, 8 * np.arange(ROWS + 1))
