"""Machine code made ready before a process shuts itself in, on made-up rows."""

import numpy as np

from countwise.kernels.compilation import keep_in_memory
from countwise.verification.answer import answer
from countwise.verification.planner import Setting, power
from countwise.verification.question import Question
from countwise.verification.records import Records
from countwise.verification.request import make_request
from countwise.verification.schema import schema_from_dict
from countwise.verification.verify import verify

SIZE = 400
KINDS = (
    ('y ~ log(x) + poly(x, 2) + f where x > 1 and f = "p"', "log(x) > 0", "ols"),
    ("y ~ x + f", 'significant(x > 0, 0.05) and predict(x = 2, f = "p") > 0', "ols"),
    ("y ~ x", "trend(x over t) > 0", "ols"),
    ("y ~ x", "x cut at 0, 1", "ols"),
    ("b ~ x", "x > 0", "logistic"),
    ("t ~ x", "x > 0", "poisson"),
)


def warm_up() -> None:
    """Run every kind of request once; from then on nothing is written to disk."""
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
        "y": rng.uniform(-9, 9, SIZE),
        "x": rng.uniform(1, 9, SIZE),
        "f": rng.integers(0, 2, SIZE).astype(float),
        "b": rng.integers(0, 2, SIZE).astype(float),
        "t": rng.integers(0, 4, SIZE).astype(float),
    }
    ids = np.arange(SIZE, dtype=np.int64).view(np.uint8)
    records = Records(schema, rows, ids, 8 * np.arange(SIZE + 1))
    for mechanism in ("lattice", "laplace"):
        for model, claim, family in KINDS:
            question = Question(
                model=model,
                claim=claim,
                family=family,
                epsilon=2,
                partitions=20,
                mechanism=mechanism,
            )
            request = make_request(schema, question)
            answer(verify(records, request), request).to_dict()
    setting = Setting(partitions=20, epsilon=request.epsilon, mechanism="lattice", alpha=np.ones(3))
    power(setting, distance=1, repetitions=10, rng=rng)
    keep_in_memory()
