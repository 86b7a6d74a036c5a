"""countwise verify end to end: answers, refusals, injections, and answers computed again."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from countwise.cli import app
from countwise.errors import CountwiseError, InputError
from countwise.examples.workers import workers
from countwise.verification.question import Question
from countwise.verification.records import read_records
from countwise.verification.request import make_request
from countwise.verification.schema import read_schema
from countwise.verification.verify import verify
from verification.samples import SCHEMA, records, rows

MODEL = "hours ~ education_years + age + C(sex)"
CLAIM = "education_years > 0.5"
INJECTIONS = (Path(__file__).parent / "verification" / "injections.txt").read_text().splitlines()
SUMMARY = {"r", "pr_above_half", "error_rate", "verdict"}
PUBLISHED = {"noisy", "epsilon", "partitions", "alpha", "mechanism"}

run_command = CliRunner().invoke


def run(*arguments):
    """The exit code, standard output, and what the problem says."""
    result = run_command(app, [str(each) for each in arguments])
    problem = result.exception
    if isinstance(problem, CountwiseError):
        return problem.exit_code, result.stdout, str(problem)
    if problem is not None and not isinstance(problem, SystemExit):
        raise problem
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(scope="module")
def schema():
    return read_schema(workers("workers.toml"))


def ask(*more, data=None, model=MODEL, claim=CLAIM, epsilon="1", partitions="50"):
    return run(
        "verify", data or workers(), "--schema", workers("workers.toml"), "--model", model,
        "--claim", claim, "--epsilon", epsilon, "--partitions", partitions, *more,
    )  # fmt: skip


def asked(*more, **how):
    code, out, problem = ask("--json", *more, **how)
    assert code == 0, problem
    return json.loads(out)


def test_answer_has_its_fields():
    answer = asked()
    assert answer.keys() >= PUBLISHED | SUMMARY
    assert answer["r"].keys() == {"mode", "median", "lower", "upper"}
    assert sum(answer["noisy"]) == 50
    assert answer["verdict"] == "supported"
    assert answer["partitions"] == 50
    assert answer["epsilon"] == "1"
    assert answer["distance_in_standard_errors"]["median"] > 0


def test_false_claims_are_contradicted():
    assert asked(claim="education_years > 2")["verdict"] == "contradicted"


def test_claims_with_two_ends_are_never_contradicted():
    # True of the whole data (1.12, 0.062, 4.02), and yet false in most partitions.
    for claim in (
        "education_years in [1.0, 1.2]",
        "education_years > 1.1 and age > 0.06 and C(sex)[Male] > 3.9",
    ):
        answer = asked(claim=claim, epsilon="4")
        assert answer["pr_above_half"] < 0.05
        assert answer["verdict"] == "not decided at this ε"
        assert "never contradicted" in answer["meaning"]
    assert asked(claim="education_years in [0, 2.5]")["verdict"] == "supported"


@pytest.mark.parametrize("mechanism", ["lattice", "laplace", "binary"])
def test_mechanisms(mechanism):
    answer = asked("--mechanism", mechanism)
    assert answer["mechanism"] == mechanism
    assert (answer["error_rate"] is None) is (mechanism == "binary")
    assert len(answer["noisy"]) == (2 if mechanism == "binary" else 3)


@pytest.mark.parametrize(
    ("family", "model", "claim"),
    [
        ("logistic", "union_member ~ education_years + age", "education_years > -0.2"),
        ("poisson", "days_absent ~ education_years + age", "education_years < 0"),
        ("ols", "hours ~ education_years + C(sex)", "trend(education_years over year) > -1"),
        ("ols", MODEL, "education_years cut at 0, 1, 2"),
        ("ols", MODEL + ' where age >= 25 and sex = "Female"', "education_years > 0.3"),
    ],
)
def test_families_and_claims(family, model, claim):
    how = {"partitions": "25"} if "where" not in model else {}
    answer = asked("--family", family, model=model, claim=claim, **how)
    assert answer["family"] == family
    if "cut" in claim:
        assert len(answer["shares"]) == 4
        assert answer["outcomes"][-1] == "error"


def test_recompute_gives_the_same(tmp_path):
    for mechanism in ("lattice", "laplace", "binary"):
        path = tmp_path / f"{mechanism}.json"
        answer = asked("--mechanism", mechanism, "--out", path)
        assert json.loads(path.read_text()) == answer
        code, out, _ = run("verify", "recompute", path, "--json")
        assert code == 0
        assert json.loads(out) == answer
    published = {key: answer[key] for key in PUBLISHED}
    path.write_text(json.dumps(published))
    code, out, _ = run("verify", "recompute", path, "--json")
    assert code == 0
    assert json.loads(out)["r"] == answer["r"]


def test_recompute_refuses_what_does_not_fit(tmp_path):
    path = tmp_path / "answer.json"
    answer = asked("--out", path)
    for key, value in (("pr_above_half", 0.5), ("verdict", "contradicted"), ("r", {"mode": 0.1})):
        path.write_text(json.dumps(answer | {key: value}))
        code, _, problem = run("verify", "recompute", path)
        assert code == 2
        assert key in problem
    bad = [
        "", "[]", "{}", '{"noisy": 1}', "not json", json.dumps(answer | {"noisy": ["a"]}),
        json.dumps(answer | {"epsilon": -1}), json.dumps(answer | {"partitions": 1.5}),
        json.dumps(answer | {"mechanism": "none"}), json.dumps(answer | {"alpha": [1]* 7}),
    ]  # fmt: skip
    for text in bad:
        path.write_text(text)
        assert run("verify", "recompute", path)[0] == 2
    assert run("verify", "recompute", tmp_path / "none.json")[0] == 2


def test_words_and_page(tmp_path):
    page = tmp_path / "answer.html"
    code, out, _ = ask("--page", page)
    assert code == 0
    for word in (
        "The claim is supported",
        "ε = 1 was spent",
        "It is not the probability",
        "Then a claim is supported if",
    ):
        assert word in " ".join(out.split())
    text = page.read_text()
    assert "<svg" in text
    assert "What r means, and what it does not" in text
    assert ask("--page", page)[0] == 2
    assert ask("--page", page, "--overwrite")[0] == 0


def test_labels_are_escaped_on_the_page(tmp_path):
    path, page = tmp_path / "answer.json", tmp_path / "answer.html"
    answer = asked()
    path.write_text(json.dumps(answer | {"claim": "<script>alert(1)</script>"}))
    assert run("verify", "recompute", path, "--page", page)[0] == 0
    assert "<script>" not in page.read_text()


def test_parquet_and_database_give_what_csv_gives(tmp_path):
    parquet, base = tmp_path / "workers.parquet", tmp_path / "workers.duckdb"
    with duckdb.connect(str(base)) as connection:
        source = f"read_csv('{workers()}', header=true)"
        connection.sql(f"COPY (SELECT * FROM {source}) TO '{parquet}' (FORMAT parquet)")
        connection.sql(f'CREATE TABLE "my workers" AS SELECT * FROM {source}')
    for more, data in ((("--table", "my workers"), base), ((), parquet)):
        assert asked(*more, data=data)["verdict"] == "supported"
    assert ask(data=base)[0] == 2
    assert ask("--table", 'x"; DROP TABLE "my workers', data=base)[0] == 2
    assert asked("--table", "my workers", data=base)["verdict"] == "supported"


def test_plan_and_rehearsal():
    code, out, _ = run("verify", "plan", "--epsilon", "0.5,1", "--partitions", "10,50", "--json")
    assert code == 0
    plan = json.loads(out)
    assert plan["never"] == [{"epsilon": "0.5", "partitions": 10}]
    assert len(plan["power"]) == 9
    code, out, problem = run(
        "verify", "plan", "--epsilon", "1", "--partitions", "50", "--distance", "4", "--json",
        "--rehearse", workers("workers_synthetic.csv"), "--schema", workers("workers.toml"),
        "--model", MODEL, "--claim", CLAIM, "--rehearsals", "20",
    )  # fmt: skip
    assert code == 0, problem
    rehearsal = json.loads(out)["rehearsals"][0]
    assert rehearsal["verdicts"]["supported"] == 1
    assert rehearsal["last"]["rehearsal"] is True
    code, out, problem = run(
        "verify", "--rehearse", workers("workers_synthetic.csv"), "--schema",
        workers("workers.toml"), "--model", MODEL, "--claim", CLAIM, "--epsilon", "1", "--json",
    )  # fmt: skip
    assert code == 0, problem
    assert "nothing was spent" in json.loads(out)["privacy"]


def test_hopeless_settings_are_refused():
    code, _, problem = run("verify", "plan", "--epsilon", "0.5", "--partitions", "10")
    assert code == 2
    assert "no verdict can ever be given" in problem
    assert ask(epsilon="0.5", partitions="10")[0] == 2


def test_example_is_written(tmp_path):
    assert run("verify", "example", "--out", tmp_path / "new")[0] == 0
    assert sorted(each.name for each in (tmp_path / "new").iterdir()) == [
        "workers.csv", "workers.toml", "workers_synthetic.csv",
    ]  # fmt: skip
    assert run("verify", "example", "--out", tmp_path / "new")[0] == 2


BAD = [
    ({"model": ""}, "the model is empty"),
    ({"model": "hours ~ salary"}, "no column 'salary'"),
    ({"model": "hours ~ (age"}, "expected ')'"),
    ({"model": "hours ~ __import__('os')"}, "no function '__import__'"),
    ({"model": 'hours ~ age where sex = "Other"'}, "no level 'Other'"),
    ({"model": "hours ~ age where age > 200"}, "no row within"),
    ({"claim": ""}, "the claim is empty"),
    ({"claim": "region > 1"}, "no coefficient 'region'"),
    ({"epsilon": "0"}, "epsilon must be positive"),
    ({"epsilon": "-1"}, "epsilon must be positive"),
    ({"epsilon": "abc"}, "epsilon must be a positive"),
    ({"epsilon": "nan"}, "epsilon must be a positive"),
    ({"epsilon": "1e-9"}, "from 0.001"),
    ({"partitions": "751"}, "at most half the 1,500 persons"),
    ({"partitions": "1"}, "from 2 to 10,000"),
    ({"partitions": "999999"}, "from 2 to 10,000"),
]


@pytest.mark.parametrize(("how", "message"), BAD)
def test_bad_requests_get_exit_code_2(how, message):
    code, out, problem = ask("--json", **how)
    assert code == 2
    assert out == ""
    assert message in problem


def test_more_bad_requests(tmp_path):
    assert ask("--family", "probit")[0] == 2
    assert ask("--mechanism", "none")[0] == 2
    assert ask("--alpha", "x")[0] == 2
    assert ask("--alpha", "1,2")[0] == 2
    assert ask("--family", "logistic")[0] == 2
    assert ask(data=tmp_path / "none.csv")[0] == 2
    assert ask("--rehearse", workers())[0] == 2
    assert run("verify", "--schema", workers("workers.toml"))[0] == 2
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    code, _, problem = ask(data=other)
    assert code == 2
    assert "which the schema promises" in problem
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 no")
    assert ask(data=broken)[0] == 2


def test_messages_do_not_depend_on_data(tmp_path):
    """Neighbouring, empty and absurd data: the same bytes and exit codes for bad requests."""
    lines = workers().read_text().splitlines(keepends=True)
    absurd = [lines[0], "p1,2019,abc,,Robot,Moon,1e400,2,-7\n", *lines[1:200], 'x,"\n']
    variants = [lines, lines[:-1], lines[:1], absurd]
    path = tmp_path / "data.csv"
    for how, _ in BAD:
        seen = set()
        for variant in variants:
            path.write_text("".join(variant))
            seen.add(ask("--json", data=path, **how))
        assert len(seen) == 1


def test_a_filter_that_excludes_everyone_in_the_data_is_an_answer(tmp_path):
    path = tmp_path / "young.csv"
    lines = workers().read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], *(line for line in lines[1:] if ",70," not in line)]))
    answer = asked(data=path, model="hours ~ education_years where age >= 70")
    assert answer["verdict"] == "not decided at this ε"
    assert answer["error_rate"] > 0.8
    path.write_text(lines[0])
    assert asked(data=path)["error_rate"] > 0.8


def test_broken_rows_are_missing_rows(tmp_path):
    path = tmp_path / "data.csv"
    rubbish = "p00001,2019,abc,1e999,Robot,Moon,-5,2,0.5\n,,,,,,,,\np2\na,b,c,d,e,f,g,h,i,j,k\n"
    text = workers().read_text()
    path.write_text(text + rubbish)
    assert asked(data=path)["verdict"] == "supported"


ODD_ROWS = {
    "not UTF-8": b"p1,2019,30,12,\xff\xfe,North,40,1,2\n",
    "a zero byte": b"p1,2019,30,12,Male\0,North,40,1,2\n",
    "a line end in quotes": b'p1,2019,30,12,"Ma\nle",North,40,1,2\n',
    "a return in quotes": b'p1,2019,30,12,"Ma\r\nle",North,40,1,2\n',
    "quotes in quotes": b'p1,2019,30,12,"Ma""le",North,40,1,2\n',
    "another line end": b"p1,2019,30,12,Male,North,40,1,2\r\n",
    "a lone return": b"p1,2019,30,12,Ma\rle,North,40,1,2\n",
    "a stray quote": b'p1,2019,30,12,Ma"le,North,40,1,2\n',
    "three megabytes": b"p1,2019,30,12," + b"x" * 3_000_000 + b",North,40,1,2\n",
    "too many fields": b"p1,2019,30,12,Male,North,40,1,2,3,4,5\n",
    "too few fields": b"p1,2019\n",
}


@pytest.mark.parametrize("kind", ODD_ROWS)
@pytest.mark.parametrize("first", [True, False])
def test_one_odd_row_costs_one_row(tmp_path, schema, kind, first):
    header, _, rest = workers().read_bytes().partition(b"\n")
    path, odd = tmp_path / "data.csv", ODD_ROWS[kind]
    path.write_bytes(header + b"\n" + (odd + rest if first else rest + odd))
    hours = read_records(path, schema, columns=["hours"]).reveal()[0]["hours"]
    plain = read_records(workers(), schema, columns=["hours"]).reveal()[0]["hours"]
    assert len(plain) <= len(hours) + 1
    part = slice(-1000, None) if first else slice(1000)
    np.testing.assert_array_equal(hours[part], plain[part])


def test_files_from_windows_are_read(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"\xef\xbb\xbf" + workers().read_bytes().replace(b"\n", b"\r\n"))
    assert asked(data=path)["verdict"] == "supported"


def refused(schema, *, model=MODEL, claim=CLAIM):
    """The refusal of a request, None when it is accepted; anything else is a fault."""
    try:
        make_request(schema, Question(model=model, claim=claim, epsilon=1))
    except InputError as problem:
        return problem
    return None


def test_injections_leave_no_trace(tmp_path, monkeypatch):
    """Every line in every place, with columns of the names it uses; what parses is run."""
    assert len(INJECTIONS) >= 200
    monkeypatch.chdir(tmp_path)
    before, environment = set(Path("/tmp").glob("pwned*")), dict(os.environ)
    count, data = 0, records(rows(300))
    for line in INJECTIONS:
        for model, claim in (
            (line, "x > 0"),
            (f"y ~ {line}", "x > 0"),
            (f"y ~ x + log({line}) + C({line})", "x > 0"),
            (f"y ~ x where {line}", "x > 0"),
            ("y ~ x + a + C(f)", line),
            ("y ~ x + a + C(f)", f"{line} > 0"),
            ("y ~ x + a + C(f)", f"x > {line}"),
        ):
            problem = refused(SCHEMA, model=model, claim=claim)
            if problem is None:
                verify(data, make_request(SCHEMA, Question(model=model, claim=claim, epsilon=1)))
                continue
            count += 1
            assert problem.exit_code == 2
            assert "\n" not in str(problem)
    assert count > 6.8 * len(INJECTIONS)  # the rest are sentences of the grammar
    assert set(Path("/tmp").glob("pwned*")) == before
    assert list(tmp_path.iterdir()) == []
    assert dict(os.environ) == environment


PIECES = st.sampled_from(
    ["hours", "age", "education_years", "sex", "region", "C(", "log(", "poly(", ")", "(", "[", "]",
     "+", "-", "*", "/", ":", "^", "~", "where", "and", "or", "not", "in", "<", ">", "=", ",", '"',
     '"Male"', "1", "0", "2.5", "1e9", "within", "of", "trend(", "over", "year", "predict(",
     "significant(", "cut", "at", "`", "\\", "é", "\x00", "Male", "inf", "%", " "]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25), st.text(max_size=30))
@settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_fuzz_ends_in_a_request_or_a_refusal(schema, pieces, text):
    sentence = " ".join(pieces)
    refused(schema, model=f"hours ~ {sentence}")
    refused(schema, model=sentence + text)
    refused(schema, claim=sentence)
    refused(schema, claim=f"education_years {sentence}")
    refused(schema, model=f"{MODEL} where {sentence}")
    refused(schema, claim=text)


def test_process_prints_only_json_and_messages():
    command = [str(Path(sys.executable).parent / "countwise"), "verify"]
    rest = ["--schema", str(workers("workers.toml")), "--model", MODEL, "--claim", CLAIM]
    good = subprocess.run(
        [*command, str(workers()), *rest, "--epsilon", "1", "--json"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert good.returncode == 0
    assert json.loads(good.stdout)["partitions"] == 50
    bad = subprocess.run(
        [*command, str(workers()), *rest, "--epsilon", "0", "--json"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "countwise: epsilon must be positive, got 0.\n"


def test_answers_differ_because_noise_and_partitions_do():
    assert len({tuple(asked()["noisy"]) for _ in range(8)}) > 2
    assert np.isfinite(asked()["pr_above_half"])


def test_commands_of_the_documentation_run(tmp_path, monkeypatch):
    page = Path(__file__).parents[1] / "docs" / "verification.md"
    joined = page.read_text(encoding="utf-8").replace("\\\n", " ")
    commands = [line for line in joined.splitlines() if line.startswith("    countwise verify")]
    assert len(commands) >= 5
    monkeypatch.chdir(tmp_path)
    for command in commands:
        code, _, problem = run(*shlex.split(command)[1:])
        assert code == 0, problem
