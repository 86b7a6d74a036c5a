"""What an answer says in words, on its page and in a plan."""

import json

import pytest
from typer.testing import CliRunner

from countwise.cli import app
from countwise.errors import CountwiseError
from countwise.examples.workers import workers
from countwise.reports.verification_page import answer_page
from countwise.verification.answer import recompute
from countwise.verification.wording import in_words, probability


def answer(noisy, partitions=50, **more):
    fields = {"epsilon": "1", "partitions": partitions, "alpha": [1.0], "mechanism": "lattice"}
    return recompute({"noisy": noisy, **fields, **more})


def test_a_flat_posterior_has_no_most_likely_share():
    flat = " ".join(answer([2, 2, 1], 5, epsilon="0.2").sentences())
    assert "Most likely" not in flat
    assert "says next to nothing about the share of partitions where the claim holds" in flat
    clear = " ".join(answer([40, 8, 2]).sentences())
    assert "Most likely the claim holds in 8" in clear


def test_no_probability_is_said_to_be_one():
    sure, never = answer([50, 0, 0]), answer([0, 50, 0])
    assert sure.r.above_half > 0.9999
    assert "above 1/2 is more than 0.9999." in " ".join(sure.sentences())
    assert "above 1/2 is less than 0.0001." in " ".join(never.sentences())
    assert "is more than 0.9999" in answer_page(sure)
    assert "1.0000" not in answer_page(sure)
    assert "is less than 0.0001" in answer_page(never)
    assert "✓" in answer_page(sure)
    assert "✗" in answer_page(never)
    assert (probability(0.12345), in_words(0.5)) == ("0.1235", "0.5000")


def test_errors_are_given_with_their_interval():
    said = " ".join(answer([30, 21, -1]).sentences())
    assert "With 95% probability 0% to " in said
    assert "of partitions can not be fitted" in said


def test_ranges_are_not_called_a_claim():
    names = ["below 0", "0 to 1", "1 or more", "error"]
    given = answer([20, 15, 15, 0], outcomes=names, one_sided=False)
    assert given.sentences()[0].startswith("Not decided at this ε: no range")
    assert "claim" not in given.meaning
    assert answer([50, 0, 0, 0], outcomes=names, border=0.5).sentences()[0] == (
        "Supported: in most partitions the value is below 0."
    )


def plan(*arguments):
    result = CliRunner().invoke(app, ["verify", "plan", *map(str, arguments)])
    problem = result.exception
    if isinstance(problem, CountwiseError):
        return problem.exit_code, str(problem)
    return result.exit_code, result.stdout


@pytest.mark.parametrize("partitions", ["2.7", "50,50.5", "many", "1e999"])
def test_partitions_of_a_plan_are_whole(partitions):
    code, said = plan("--partitions", partitions)
    assert code == 2
    assert "partitions must be a" in said


def test_a_plan_from_synthetic_rows():
    model = "union_member ~ education_years + age"
    how = ["--epsilon", "1", "--partitions", "20", "--distance", "2", "--rehearsals", "5",
           "--rehearse", workers("workers_synthetic.csv"), "--schema", workers("workers.toml"),
           "--family", "logistic", "--model", model,
           "--claim", "education_years > -0.2"]  # fmt: skip
    code, said = plan(*how)
    assert code == 0
    assert "If the data are like the synthetic rows" in said
    code, said = plan(*how, "--json")
    found = json.loads(said)["rehearsals"][0]
    assert 0 <= found["r"] <= 1
    assert found["supported"] + found["contradicted"] + found["not_decided"] == pytest.approx(1)
    assert found["simulation_error"] > 0
    assert found["repetitions"] == 5
