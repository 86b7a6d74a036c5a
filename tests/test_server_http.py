"""The API over HTTP: who may do what, crowds, hostile input, and what must not differ."""

import json
import re
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import psycopg
import pytest
import sqlalchemy as sa
from scipy.stats import ks_2samp

from countwise.errors import StorageError
from countwise.examples.workers import workers
from countwise.ledger.storage import LOCK
from countwise.server.app import create_app
from countwise.server.worker import Computer
from offices import (
    ANN,
    EPSILON,
    PASSWORD,
    STEWARD,
    ask,
    body,
    client,
    example_config,
    new_key,
    open_office,
    serving,
)

INJECTIONS = (Path(__file__).parent / "verification" / "injections.txt").read_text().splitlines()


@pytest.fixture
def office(database, tmp_path, computer):
    made = open_office(example_config(tmp_path, database), computer)
    yield made
    made.engine.dispose()


@pytest.fixture(scope="module")
def lasting(shared_database, tmp_path_factory, computer):
    """An office on either kind of database that the tests of this module share, its address."""
    folder = tmp_path_factory.mktemp("lasting")
    made = open_office(example_config(folder, shared_database), computer, budget=500)
    with serving(made) as address:
        yield made, address
    made.engine.dispose()


def submit(caller, key, **how):
    return caller.post("/api/v1/jobs", json=body(**how), headers={"Idempotency-Key": key})


def crowd(addresses, keys, size):
    """Statuses of so many submissions at once, every one another query."""

    def one(i):
        with client(addresses[i % len(addresses)], keys[i % len(keys)]) as caller:
            return submit(caller, f"k{i}", epsilon="1", partitions=50 + i).status_code

    with ThreadPoolExecutor(40) as pool:
        return list(pool.map(one, range(size)))


def test_two_hundred_at_once_and_a_budget_for_ten(office):
    keys = [new_key(office, name) for name in ("ann", "bob")]
    with serving(office) as address:
        statuses = crowd([address], keys, 200)
        assert sorted(set(statuses)) == [202, 402]
        assert statuses.count(202) == 10
        assert office.spent() == 10 * EPSILON
        office.work(10)
        answered = 0
        for key in keys:
            with client(address, key) as caller:
                for job in caller.get("/api/v1/jobs").json():
                    answer = caller.get(f"/api/v1/jobs/{job['id']}/answer")
                    answered += answer.status_code == 200
    assert answered == 10
    found = office.finding()
    assert found.flaws == ()
    assert found.states["released"] == 10
    assert found.spent["dataset", "workers"] == 10 * EPSILON


def test_the_same_submission_from_everywhere_at_once_is_charged_once(office):
    key = new_key(office, "ann")
    with serving(office) as address, ThreadPoolExecutor(20) as pool:

        def one(_):
            with client(address, key) as caller:
                return submit(caller, "same").json()["id"]

        assert len(set(pool.map(one, range(40)))) == 1
    assert office.spent() == EPSILON


ANYONE, SIGNED, STEWARDS = (200, 200, 200), (401, 200, 200), (401, 403, 200)
JOB = "0" * 32
ENDPOINTS = {
    "GET /health": ANYONE, "GET /api/v1/key": ANYONE, "GET /api/v1/openapi.json": ANYONE,
    "GET /metrics": STEWARDS,
    "GET /api/v1/session": SIGNED, "POST /api/v1/session": (422, 422, 422),
    "DELETE /api/v1/session": (401, 204, 204), "PUT /api/v1/password": (401, 403, 403),
    "GET /api/v1/datasets": SIGNED, "GET /api/v1/datasets/workers": (401, 200, 404),
    "GET /api/v1/datasets/workers/synthetic": (401, 200, 404),
    "GET /api/v1/budget": SIGNED,
    "POST /api/v1/plan": (401, 200, 404), "POST /api/v1/rehearse": (401, 200, 404),
    "POST /api/v1/jobs": (401, 202, 404), "GET /api/v1/jobs": SIGNED,
    f"GET /api/v1/jobs/{JOB}": (401, 404, 404), f"POST /api/v1/jobs/{JOB}/cancel": (401, 404, 404),
    f"GET /api/v1/jobs/{JOB}/answer": (401, 404, 404),
    f"GET /api/v1/jobs/{JOB}/receipt": (401, 404, 404),
    "GET /api/v1/keys": SIGNED, "POST /api/v1/keys": (401, 403, 403),
    f"DELETE /api/v1/keys/{JOB}": (401, 403, 403),
    "GET /api/v1/steward/datasets": STEWARDS, "GET /api/v1/steward/users": STEWARDS,
    "POST /api/v1/steward/users": (401, 403, 403),  # these are done by people, not by keys
    "PUT /api/v1/steward/users/bob/disabled": STEWARDS,
    "PUT /api/v1/steward/users/bob/password": (401, 403, 403),
    "GET /api/v1/steward/proposals": STEWARDS,
    f"POST /api/v1/steward/proposals/{JOB}/approve": (401, 403, 403),
    f"POST /api/v1/steward/proposals/{JOB}/refuse": (401, 403, 403),
    "PUT /api/v1/steward/users/bob/datasets/workers": STEWARDS,
    "DELETE /api/v1/steward/users/bob/datasets/workers": STEWARDS,
    "PUT /api/v1/steward/users/bob/projects/pay": STEWARDS,
    "DELETE /api/v1/steward/users/bob/projects/pay": STEWARDS,
    "GET /api/v1/steward/budgets": STEWARDS,
    "PUT /api/v1/steward/budgets/user/bob": STEWARDS,
    "POST /api/v1/steward/budgets/user/bob/grants": STEWARDS,
    "GET /api/v1/steward/keys": STEWARDS, f"DELETE /api/v1/steward/keys/{JOB}": (401, 403, 404),
    "GET /api/v1/steward/jobs": STEWARDS, "GET /api/v1/steward/audit": STEWARDS,
    "GET /api/v1/steward/audit.csv": STEWARDS, "GET /api/v1/steward/ledger": STEWARDS,
}  # fmt: skip
BODIES = {
    "POST /api/v1/session": {"name": 1}, "PUT /api/v1/password": {"old": "x", "new": "y"},
    "POST /api/v1/plan": body(), "POST /api/v1/rehearse": body(), "POST /api/v1/jobs": body(),
    "POST /api/v1/keys": {"label": "x", "scopes": ["read"]},
    "POST /api/v1/steward/users": {"name": "carl", "role": "analyst", "password": PASSWORD},
    "PUT /api/v1/steward/users/bob/disabled": {"disabled": True},
    "PUT /api/v1/steward/users/bob/password": {"password": PASSWORD},
    "PUT /api/v1/steward/budgets/user/bob": {"cap": "5"},
    "POST /api/v1/steward/budgets/user/bob/grants": {"epsilon": "1"},
}  # fmt: skip


def test_role_and_endpoint(office):
    """Nobody, an analyst and a steward at every endpoint; none is left out of the list."""
    office.stewardship.allow(STEWARD, "steward", "workers", allowed=False)
    keys = ["", new_key(office, "ann"), new_key(office, "steward")]
    with serving(office) as address:
        for place, key in enumerate(keys):
            for endpoint, expected in ENDPOINTS.items():
                method, path = endpoint.split()
                with client(address, key) as caller:
                    got = caller.request(
                        method, path, json=BODIES.get(endpoint), headers={"Idempotency-Key": "k"}
                    )
                if endpoint == "GET /health":
                    assert got.status_code == 503  # no worker here
                else:
                    assert got.status_code == expected[place], (endpoint, place, got.text)
                assert got.headers["content-security-policy"].startswith("default-src 'none'")
        with client(address) as caller:
            paths = caller.get("/api/v1/openapi.json").json()["paths"]
    described = {f"{verb.upper()} {path}" for path, verbs in paths.items() for verb in verbs}
    listed = {
        re.sub(r"/(0{32})", "/{id}", each)
        .replace("datasets/workers", "datasets/{name}")
        .replace("users/bob/datasets/{name}", "users/{name}/datasets/{dataset}")
        .replace("users/bob/projects/pay", "users/{name}/projects/{project}")
        .replace("users/bob", "users/{name}")
        .replace("budgets/user/bob", "budgets/{scope}/{name}")
        for each in ENDPOINTS
    }
    assert described == listed - {"GET /api/v1/openapi.json"}


def test_sessions_csrf_and_keys(lasting):
    office, address = lasting
    with client(address) as caller:
        wrong = caller.post("/api/v1/session", json={"name": "ann", "password": "wrong password"})
        nobody = caller.post("/api/v1/session", json={"name": "zed", "password": "wrong password"})
        assert wrong.status_code == nobody.status_code == 401
        assert wrong.json() == nobody.json()
        made = caller.post("/api/v1/session", json={"name": "ann", "password": PASSWORD})
        assert "HttpOnly" in made.headers["set-cookie"]
        assert "SameSite=strict" in made.headers["set-cookie"]
        new = {"label": "x", "scopes": ["read"]}
        assert caller.post("/api/v1/keys", json=new).status_code == 403  # no CSRF token
        forged = {"X-CSRF-Token": "x" * 43}
        assert caller.post("/api/v1/keys", json=new, headers=forged).status_code == 403
        caller.headers["X-CSRF-Token"] = made.json()["csrf"]
        more = new | {"scopes": ["steward"]}
        assert caller.post("/api/v1/keys", json=more).status_code == 422
        key = caller.post("/api/v1/keys", json=new).json()
        with client(address, key["key"]) as program:
            assert program.get("/api/v1/datasets").status_code == 200
            assert submit(program, "x").status_code == 403  # scope read only
            assert caller.delete(f"/api/v1/keys/{key['id']}").status_code == 204
            assert program.get("/api/v1/datasets").status_code == 401
        assert caller.delete("/api/v1/session").status_code == 204
        assert caller.get("/api/v1/datasets").status_code == 401
    with office.engine.connect() as connection:
        kept = str(connection.execute(sa.text("SELECT hash, scopes FROM api_keys")).all())
        kept += str(connection.execute(sa.text("SELECT password FROM users")).all())
    assert key["key"].split("_", 2)[2] not in kept  # a secret may hold "_" itself
    assert PASSWORD not in kept
    assert "$argon2id$" in kept


def test_sessions_end(lasting):
    from countwise.server import accounts
    from countwise.server.refusals import NotSignedIn

    office, _ = lasting
    for setting in ({"session_hours": 1e-5}, {"session_idle_minutes": 1e-4}):
        config = replace(office.config, **setting)
        made = accounts.sign_in(office.engine, config, "bob", PASSWORD, "here")
        time.sleep(0.05)
        with pytest.raises(NotSignedIn):
            accounts.session_actor(office.engine, config, made.token)
    office.stewardship.set_disabled(STEWARD, "bob", True)
    with pytest.raises(NotSignedIn):
        accounts.sign_in(office.engine, office.config, "bob", PASSWORD, "here")
    office.stewardship.set_disabled(STEWARD, "bob", False)


def test_rates_are_limited(database, tmp_path, computer):
    settings = {"sign_ins_per_minute": 3, "queries_per_minute": 4}
    office = open_office(example_config(tmp_path, database, **settings), computer)
    key = new_key(office, "ann")
    while time.time() % 60 > 50:
        time.sleep(0.5)  # all within one minute
    with serving(office) as address, client(address, key) as caller, client(address) as guest:
        plans = [caller.post("/api/v1/plan", json=body()).status_code for _ in range(6)]
        wrong = {"name": "bob", "password": "x"}
        tries = [guest.post("/api/v1/session", json=wrong).status_code for _ in range(5)]
    assert plans == [200] * 4 + [429] * 2
    assert tries == [401] * 3 + [429] * 2
    office.engine.dispose()


def test_others_things_are_not_there(lasting):
    office, address = lasting
    job = office.service.submit(ANN, ask(partitions=77), "private").id
    office.stewardship.allow(STEWARD, "bob", "workers", allowed=False)
    for name in ("bob", "steward"):
        with client(address, new_key(office, name)) as caller:
            for path in ("", "/answer", "/receipt"):
                assert caller.get(f"/api/v1/jobs/{job}{path}").status_code == 404
            assert caller.post(f"/api/v1/jobs/{job}/cancel").status_code == 404
            assert caller.get("/api/v1/jobs").json() == []
            if name == "bob":
                assert submit(caller, "x").status_code == 404
            project = caller.post("/api/v1/plan", json=body(project="secret"))
            assert project.status_code == 404
    office.stewardship.allow(STEWARD, "bob", "workers")


BAD_EPSILONS = [
    "nan",
    "inf",
    "-1",
    "0",
    "5e-324",
    "1e308",
    1e308,
    -1,
    0,
    "",
    "1/0",
    "0.0001",
    "1e400",
]


def test_bad_epsilons_cost_nothing(lasting):
    office, address = lasting
    before = office.spent()
    with client(address, new_key(office, "ann")) as caller:
        for bad in BAD_EPSILONS:
            got = submit(caller, f"bad {bad}".replace(" ", "-"), epsilon=bad)
            assert got.status_code == 422, bad
        for bad in ("NaN", "Infinity", "-Infinity", "1e999"):
            text = json.dumps(body(epsilon="E")).replace('"E"', bad)
            headers = {"Content-Type": "application/json", "Idempotency-Key": "k"}
            assert caller.post("/api/v1/jobs", content=text, headers=headers).status_code == 422
    assert office.spent() == before


def test_injections_are_refused_and_cost_nothing(lasting):
    """Each is refused, whatever field it is in; on PostgreSQL in those that reach the database."""
    office, address = lasting
    before, known = office.spent(), set()
    fields = ("project", "dataset")
    if office.engine.dialect.name == "sqlite":
        fields += ("model", "claim", "family", "mechanism")
    with client(address, new_key(office, "ann")) as caller:
        for text in INJECTIONS:
            for field in fields:
                got = caller.post("/api/v1/plan", json=body(**{field: text}))
                assert got.status_code in (404, 422), (field, text, got.text)
                known.add(got.status_code)
            got = submit(caller, f"i{len(known)}", claim=text)
            assert got.status_code == 422
        for text in INJECTIONS[:60]:
            path = f"/api/v1/datasets/{re.sub(r'[^!-~]|[?#/%]', '_', text)}"
            assert caller.get(path).status_code in (404, 422)
        for place in ("datasets/%00", "jobs/%00/answer", "datasets/%00/synthetic"):
            assert caller.get(f"/api/v1/{place}").status_code in (404, 422)
        name = {"name": "ann\0", "password": PASSWORD}
        assert caller.post("/api/v1/session", json=name).status_code in (401, 422)
    with client(address, new_key(office, "steward")) as caller:
        for text in (*INJECTIONS[::20], "\0"):
            for field in ("by", "event", "subject"):
                found = caller.get("/api/v1/steward/audit", params={field: text})
                assert found.status_code == 422 or found.json() == []
        for text in ("nan", "inf", "-1e308", "5e-324", "0x1"):
            found = caller.get("/api/v1/steward/audit", params={"since": text, "until": text})
            assert found.status_code == 422 or found.json() == []
    assert known == {404, 422}
    assert office.spent() == before
    assert not Path("/tmp/pwned").exists()


def test_every_call_the_description_allows_is_answered_without_a_fault(lasting):
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings

    office, address = lasting
    key = new_key(office, "steward")
    schema = schemathesis.openapi.from_url(f"{address}/api/v1/openapi.json")
    examples = 12 if office.engine.dialect.name == "sqlite" else 6
    calls, called = 0, set()
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=examples, deadline=None, database=None,
            phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        def check(case):
            nonlocal calls
            calls += 1
            called.add(f"{case.method.upper()} {case.path}")
            got = case.call(headers={"Authorization": f"Bearer {key}"})
            assert got.status_code < 500 or case.path == "/health", (case, got.text)

        given(case=operation.as_strategy())(check)()
    assert calls > 10 * examples
    assert len(called) == len(ENDPOINTS) - 1  # all but the description itself


def neighbour(folder: Path) -> Path:
    """The example without one person."""
    frame = pl.read_csv(workers())
    person = frame["person"][0]
    frame.filter(pl.col("person") != person).write_csv(folder / "neighbour.csv")
    return folder / "neighbour.csv"


LOOKED_AT = ("/api/v1/jobs/{}", "/api/v1/jobs/{}/answer", "/api/v1/jobs/{}/receipt",
             "/api/v1/budget", "/api/v1/datasets", "/api/v1/jobs", "/jobs/{}",
             "/jobs/{}/receipt")  # fmt: skip
VARYING = {"date", "x-request-id", "content-disposition"}  # the last has the job's name


def test_neighbouring_data_sets_look_the_same(databases, tmp_path, computer):
    """Statuses, headers and sizes, whatever is asked; and times, as far as a test can tell."""
    config = example_config(tmp_path, databases())
    known = replace(config.datasets["workers"], data=neighbour(tmp_path))
    others = example_config(tmp_path / "other", databases())
    others = replace(others, datasets={"workers": known})
    own = Computer(others)
    offices = [open_office(config, computer, budget=100), open_office(others, own, budget=100)]
    keys = [new_key(office, "ann") for office in offices]
    seen, times = ([], []), ([], [])
    asks = [
        {}, {"claim": "education_years > 2"}, {"claim": "education_years cut at 0, 1"},
        {"model": "union_member ~ age", "claim": "age > 0", "family": "logistic"},
        {"model": 'hours ~ age where region = "North" and age > 69', "claim": "age > 0"},
        {"claim": "nonsense >"}, {"epsilon": "0"}, {"mechanism": "binary"},
    ]  # fmt: skip
    with serving(offices[0]) as one, serving(offices[1]) as other:
        for i, how in enumerate(asks):
            for side in (i % 2, 1 - i % 2):  # in turns, so that both meet the machine alike
                with client((one, other)[side], keys[side]) as caller:
                    look(caller, offices[side], f"k{i}", how, seen[side], times[side])
    own.stop()
    for office in offices:
        office.engine.dispose()
    assert seen[0] == seen[1]
    assert ks_2samp(*times).pvalue > 1e-6


def look(caller, office, key, how, found, took):
    """Ask, work, and look at all there is to see; what was seen, and how long it took."""
    got = submit(caller, key, **how)
    found.append((got.status_code, len(got.content), shown(got)))
    if got.status_code != 202:
        found.append(got.text)
        return
    office.work()
    job = got.json()["id"]
    for path in LOOKED_AT:
        start = time.perf_counter()
        got = caller.get(path.format(job))
        took.append(time.perf_counter() - start)
        found.append((path, got.status_code, shown(got)))


def shown(got):
    return sorted((k, v) for k, v in got.headers.items() if k not in VARYING)


def test_when_an_answer_is_out_does_not_depend_on_data(databases, tmp_path):
    """The slot is fixed when work begins, whether the rows are 3,000 or ten times as many."""
    frame = pl.read_csv(workers())
    large = pl.concat([frame.with_columns(pl.col("person") + f"-{i}") for i in range(10)])
    large.write_csv(tmp_path / "large.csv")
    waits = []
    for i, data in enumerate((workers(), tmp_path / "large.csv")):
        config = example_config(tmp_path, databases(), slot_seconds=20.0)
        known = replace(config.datasets["workers"], data=data)
        config = replace(config, state=tmp_path / str(i), datasets={"workers": known})
        own = Computer(config)
        office, clock = open_office(config, own, budget=100), []
        for j in range(5):
            job = office.service.submit(ANN, ask(partitions=50 + j), f"k{j}")
            begin = office.clock
            office.work()
            clock.append(office.service.job(ANN, job.id).released_at - begin)
        own.stop()
        office.engine.dispose()
        waits.append(clock)
    assert np.allclose(waits, 20.0, atol=1e-6)


CANARY = "77.7373373"


def kept(office):
    """All that a database holds: its tables as text, and the bytes of its files and logs."""
    sqlite = office.engine.dialect.name == "sqlite"
    with office.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)" if sqlite else "CHECKPOINT")
    with office.engine.connect() as connection:
        found = sa.MetaData()
        found.reflect(connection)
        text = str([connection.execute(sa.select(each)).all() for each in found.sorted_tables])
        if sqlite:
            files = list(Path(office.engine.url.database).parent.glob("*.db*"))
        else:
            server = Path(office.engine.url.query["host"])
            own = connection.exec_driver_sql("SELECT pg_relation_filepath('jobs')").scalar_one()
            files = [*(server / "data" / own).parent.iterdir(), server / "log"]
            files += (server / "data" / "pg_wal").glob("0*")
    assert {"jobs", "answers", "users"} <= set(found.tables)
    return text + "".join(path.read_bytes().decode("latin-1") for path in files)


def test_canaries_stay_where_they_are(database, tmp_path, capfd):
    """Values of the rows are in no table, log line, answer or receipt."""
    config = example_config(tmp_path, database)
    rows = workers().read_text().splitlines()
    rows[1] = re.sub(r"^p\d+", "canaryperson", rows[1])
    for i in range(1, 200):
        parts = rows[i].split(",")
        parts[6] = CANARY
        rows[i] = ",".join(parts)
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
    known = replace(config.datasets["workers"], data=tmp_path / "rows.csv")
    config = replace(config, datasets={"workers": known})
    own = Computer(config)
    office = open_office(config, own)
    key, said = new_key(office, "ann"), ""
    with serving(office) as address, client(address, key) as caller:
        for i, how in enumerate(
            (
                {},
                {"mechanism": "laplace"},
                {"model": "hours ~ age where hours > 77", "claim": "age > 0"},
            )
        ):
            job = submit(caller, f"k{i}", **how).json()
            office.work()
            for path in LOOKED_AT:
                said += caller.get(path.format(job["id"])).text
        small = replace(own.config, memory_mb=256)
        own.config = small
        submit(caller, "small", epsilon="2")
        office.work()
        said += caller.get("/api/v1/jobs").text
    own.stop()
    stored = kept(office)
    office.engine.dispose()
    out, err = capfd.readouterr()
    assert '"event": "request"' in err
    assert "education_years" in said
    assert stored.count("education_years") > 1  # in the tables and in the files
    everything = said + out + err + stored
    for canary in (CANARY, CANARY[:7], "canaryperson"):
        assert canary not in everything


@contextmanager
def writing_elsewhere(office):
    """Another program's writing transaction, and what ends it."""
    if office.engine.dialect.name == "sqlite":
        path = office.engine.url.database
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
    else:
        other = psycopg.connect(office.config.url)
        other.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
    yield other.rollback
    other.close()


def test_a_locked_database_is_waited_for_or_said(database, tmp_path, computer):
    office = open_office(example_config(tmp_path, database, wait_seconds=1.0), computer)
    patient = replace(office.config, wait_seconds=15.0)
    key = new_key(office, "ann")
    with serving(office) as address, client(address, key) as caller:
        with writing_elsewhere(office) as end:
            timer = threading.Timer(5, end)
            timer.start()
            start = time.monotonic()
            got = submit(caller, "k")
            assert got.status_code == 503
            assert "in use by another writer" in got.json()["error"]["message"]
            assert got.headers["retry-after"] == "5"
            assert caller.get("/api/v1/jobs").status_code == 200  # reading goes on
            app = create_app(patient)
            assert app.state.service.submit(ANN, ask(), "k").cost == "1"
            assert time.monotonic() - start > 4
            timer.join()
        assert submit(caller, "k").status_code == 202  # the same, once
        app.state.engine.dispose()
    assert office.spent() == EPSILON
    office.engine.dispose()


def test_a_full_disk_is_said_and_charges_nothing(small_disk, tmp_path, computer):
    office = open_office(example_config(tmp_path, small_disk.url), computer, budget=10_000)
    app = create_app(office.config, office.engine)
    small_disk.squeeze(office.engine)
    made, problem = 0, ""
    while not problem and made < 1000:
        try:
            app.state.service.submit(ANN, ask(partitions=50 + made), f"k{made}")
            made += 1
        except StorageError as caught:
            problem = str(caught)
    assert "full" in problem
    assert office.spent() == made * EPSILON
    assert office.finding().flaws == ()
    office.engine.dispose()


def test_too_much_is_not_read(lasting):
    office, address = lasting
    with client(address, new_key(office, "ann")) as caller:
        headers = {"Content-Type": "application/json"}
        for content in (b"x" * 100_000, iter([b"x" * 50_000] * 3)):
            got = caller.post("/api/v1/plan", content=content, headers=headers)
            assert got.status_code == 413
        for content in (b"{", b"", b"\xff", b"[1]", b'{"model": "\\ud800"}', b"[" * 5000):
            got = caller.post("/api/v1/plan", content=content, headers=headers)
            assert got.status_code in (400, 422)
