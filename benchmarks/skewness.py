"""How often a verdict on skewed data is false, under each way to state a border.

    python benchmarks/skewness.py [--answers 300]

A claim is true of the whole data by z of its standard errors, or its opposite, false by as much, is
asked. Every answer has rows of its own; from the same noisy counts verdicts are taken

* as if estimates were symmetric (border 1/2: what version 1 of the answers did);
* with nothing stated;
* with the border of the skewness that the estimate's influence values really have;
* with the border rehearsed on synthetic rows: another draw of the same law.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from countwise.verification.answer import Answer, answer
from countwise.verification.border import by_skewness, rehearsed_border
from countwise.verification.planner import synthetic_lean
from countwise.verification.question import Question
from countwise.verification.records import Records
from countwise.verification.request import Request, make_request
from countwise.verification.rules import CONTRADICTED, SUPPORTED
from countwise.verification.schema import schema_from_dict
from countwise.verification.verify import verify

Array = npt.NDArray[np.float64]
Rows = dict[str, Array]
N, M, EPSILON = 2000, 50, "2"
BOUND = 1e9
SCHEMA = schema_from_dict(
    {
        "person": {"one_row_each": True, "count": N},
        "columns": {
            "y": {"type": "number", "low": -BOUND, "high": BOUND},
            "won": {"type": "binary"},
            "count": {"type": "integer", "low": 0, "high": 10_000},
            "t": {"type": "binary"},
            "x": {"type": "number", "low": -100, "high": 100},
        },
    }
)
SYNTHETIC_SAMPLES, ROUNDS = 12, 20


def case(law: Callable[[np.random.Generator], Array]) -> Callable[[np.random.Generator], Rows]:
    """Rows of one response."""
    return lambda rng: {"y": law(rng)}


def lognormal(sigma: float) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.lognormal(sigma=sigma, size=N)


def costs(share: float) -> Callable[[np.random.Generator], Array]:
    return lambda rng: (rng.random(N) < share) * rng.lognormal(sigma=1.0, size=N)


def treated(share: float, law: Callable[[np.random.Generator], Array]):
    return lambda rng: {"t": (rng.random(N) < share).astype(float), "y": law(rng)}


def crossed(rng: np.random.Generator) -> Rows:
    t = (rng.random(N) < 0.2).astype(float)
    return {"t": t, "x": rng.normal(size=N), "y": rng.lognormal(sigma=1.2, size=N)}


def binary(share: float, base: float):
    def rows(rng: np.random.Generator) -> Rows:
        t = (rng.random(N) < share).astype(float)
        return {"t": t, "won": (rng.random(N) < base + 0.1 * t).astype(float)}

    return rows


def counted(share: float, mean: float):
    def rows(rng: np.random.Generator) -> Rows:
        t = (rng.random(N) < share).astype(float)
        return {"t": t, "count": rng.poisson(mean * (1 + 0.3 * t)).astype(float)}

    return rows


def rare(share: float):
    def rows(rng: np.random.Generator) -> Rows:
        t = (rng.random(N) < 0.5).astype(float)
        return {"t": t, "y": (rng.random(N) < share).astype(float)}

    return rows


TABLE = {  # the rows that a first look found false
    "log-normal 0.5": ("y ~ 1", case(lognormal(0.5))),
    "log-normal 1": ("y ~ 1", case(lognormal(1.0))),
    "log-normal 1.5": ("y ~ 1", case(lognormal(1.5))),
    "log-normal 2": ("y ~ 1", case(lognormal(2.0))),
    "2% have a cost": ("y ~ 1", case(costs(0.02))),
    "5% treated, log-normal 1.2": ("y ~ t", treated(0.05, lognormal(1.2))),
}
OTHERS = {  # chosen before any of them was run
    "normal": ("y ~ 1", case(lambda rng: rng.normal(size=N))),
    "exponential": ("y ~ 1", case(lambda rng: rng.exponential(size=N))),
    "gamma 0.1": ("y ~ 1", case(lambda rng: rng.gamma(0.1, size=N))),
    "Pareto 3": ("y ~ 1", case(lambda rng: rng.pareto(3, N))),
    "Pareto 1.5": ("y ~ 1", case(lambda rng: rng.pareto(1.5, N))),
    "minus log-normal 1.5": ("y ~ 1", case(lambda rng: -rng.lognormal(sigma=1.5, size=N))),
    "0.5% have a cost": ("y ~ 1", case(costs(0.005))),
    "0.1% have a cost": ("y ~ 1", case(costs(0.001))),
    "interaction, log-normal 1.2": ("y ~ x*t", crossed),
    "logistic, 10% treated": ("won ~ t", binary(0.1, 0.3)),
    "logistic, 30% treated, rare": ("won ~ t", binary(0.3, 0.1)),
    "Poisson, 10% treated": ("count ~ t", counted(0.1, 0.5)),
    "half treated, 2% events": ("y ~ t", rare(0.02)),
}
LAST = {"y ~ 1": "Intercept", "y ~ x*t": "x:t"}
FAMILY = {"won": "logistic", "count": "poisson"}


def whole_fit(model: str, rows: Rows) -> tuple[float, float, float]:
    """The claimed coefficient in the whole data, its standard error and its skewness."""
    response, right = (part.strip() for part in model.split("~"))
    ones = np.ones(N)
    columns = {
        "1": [ones],
        "t": [ones, rows.get("t", ones)],
        "x*t": [
            ones,
            rows.get("x", ones),
            rows.get("t", ones),
            rows.get("x", ones) * rows.get("t", ones),
        ],
    }[right]
    x, y = np.column_stack(columns), rows[response]
    family, beta = FAMILY.get(response, "ols"), np.zeros(len(columns))
    if family == "poisson":
        beta[0] = np.log(y.mean())
    for _ in range(40):
        line = x @ beta
        mean = {"ols": line, "logistic": 1 / (1 + np.exp(-line)), "poisson": np.exp(line)}[family]
        weight = {"ols": ones, "logistic": mean * (1 - mean), "poisson": mean}[family]
        inverse = np.linalg.inv((x * weight[:, None]).T @ x)
        beta = beta + inverse @ (x.T @ (y - mean))
    influence = (x @ inverse)[:, -1] * (y - mean)
    variance = float(inverse[-1, -1])
    if family == "ols":
        variance *= float(((y - mean) ** 2).sum()) / (N - len(columns))
    skewness = float((influence**3).mean() / (influence**2).mean() ** 1.5)
    return float(beta[-1]), float(np.sqrt(variance)), skewness


def drawn(law: Callable[[np.random.Generator], Rows], rng: np.random.Generator) -> Rows:
    """Rows of which two at least have something: without, nothing can be claimed."""
    while True:
        rows = law(rng)
        if all(len(np.unique(column)) > 1 and (column != 0).sum() > 1 for column in rows.values()):
            return rows


def request(model: str, sign: str, threshold: float) -> Request:
    name = LAST.get(model, "t")
    return make_request(
        SCHEMA,
        Question(
            model=model,
            claim=f"{name} {sign} {threshold!r}",
            epsilon=EPSILON,
            partitions=M,
            family=FAMILY.get(model.split(" ", maxsplit=1)[0], "ols"),
        ),
    )


def records(rows: Rows, *, synthetic: bool = False) -> Records:
    ids = np.arange(N, dtype=np.int64).view(np.uint8)
    return Records(SCHEMA, rows, ids, 8 * np.arange(N + 1), synthetic=synthetic)


def rehearsed(
    model: str, law: Callable[[np.random.Generator], Rows], rng: np.random.Generator
) -> float | None:
    """The border of one draw of synthetic rows."""
    lean = synthetic_lean(
        records(drawn(law, rng), synthetic=True), request(model, ">", 0.0), repetitions=ROUNDS
    )
    return rehearsed_border(lean)


def read_with(found: Answer, border: float | None) -> str:
    return replace(found, border=border).verdict


def false_verdicts(
    model: str,
    law: Callable[[np.random.Generator], Rows],
    z: float,
    answers: int,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Shares of answers: true claims contradicted, and false ones supported, by way of border."""
    borders = [rehearsed(model, law, rng) for _ in range(SYNTHETIC_SAMPLES)]
    ways = ("symmetric", "nothing stated", "its skewness", "rehearsed")
    false = {(way, word): 0 for way in ways for word in (CONTRADICTED, SUPPORTED)}
    for i in range(answers):
        rows = drawn(law, rng)
        estimate, error, skewness = whole_fit(model, rows)
        stated = by_skewness(abs(skewness), persons=N, partitions=M)
        for sign, side, word in ((">", -1, CONTRADICTED), ("<", -1, SUPPORTED)):
            asked = request(model, sign, estimate + side * z * error)
            found = answer(verify(records(rows), asked), asked)
            for way, border in zip(
                ways, (0.5, None, stated, borders[i % len(borders)]), strict=True
            ):
                false[way, word] += read_with(found, border) == word
    return {f"{way}, {word}": count / answers for (way, word), count in false.items()}


def power(
    model: str,
    law: Callable[[np.random.Generator], Rows],
    d: float,
    answers: int,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Shares of false claims, d standard errors off, that are contradicted."""
    borders = [rehearsed(model, law, rng) for _ in range(SYNTHETIC_SAMPLES)]
    given = {"symmetric": 0, "its skewness": 0, "skewness 2": 0, "rehearsed": 0}
    for i in range(answers):
        rows = drawn(law, rng)
        estimate, error, skewness = whole_fit(model, rows)
        asked = request(model, ">", estimate + d * error)
        found = answer(verify(records(rows), asked), asked)
        for way, border in zip(
            given,
            (
                0.5,
                by_skewness(abs(skewness), persons=N, partitions=M),
                by_skewness(2.0, persons=N, partitions=M),
                borders[i % len(borders)],
            ),
            strict=True,
        ):
            given[way] += read_with(found, border) == CONTRADICTED
    return {way: count / answers for way, count in given.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--answers", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    for name, (model, law) in (TABLE | OTHERS).items():
        for z in (0.5, 1.0, 2.0):
            if name in OTHERS and z != 0.5:
                continue
            found = false_verdicts(model, law, z, given.answers, rng)
            print(json.dumps({"rows": name, "z": z} | found), flush=True)
    for name in ("normal", "exponential", "log-normal 1"):
        model, law = (TABLE | OTHERS)[name]
        for d in (4.0, 6.0, 8.0):
            print(
                json.dumps({"rows": name, "d": d} | power(model, law, d, given.answers, rng)),
                flush=True,
            )


if __name__ == "__main__":
    main()
