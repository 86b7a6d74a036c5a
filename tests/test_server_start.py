"""The server as people start it: processes, restarts, configuration, migrations, commands."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from typer.testing import CliRunner

from countwise.cli import app
from countwise.errors import BudgetError, ConfigError, InputError, LedgerError
from countwise.examples.workers import workers
from countwise.ledger.chain import check
from countwise.ledger.ledger import Book, Ledger, metadata
from countwise.ledger.storage import open_engine
from countwise.server import start
from countwise.server.backup import back_up
from countwise.server.config import load_config
from countwise.server.database_versions import is_current, upgrade
from needs import shut_in
from offices import (
    EPSILON,
    PASSWORD,
    body,
    client,
    example_config,
    first_session,
    new_key,
    open_office,
    wait_for,
)

COUNTWISE = [sys.executable, "-m", "countwise"]
CELLS = "region,county,n\nN,a,30\nN,b,5\nS,c,7\n"


def run(*arguments):
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def children(pid):
    """Process ids of a process's children, and what they were started with."""
    found = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = each.read_text().rsplit(")", 1)[1].split()
            words = (each.parent / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if int(fields[1]) == pid:
            found[int(each.parent.name)] = " ".join(words)
    return found


def test_serve_from_nothing_survives_kills(tmp_path):
    """First start, an answer end to end, kill -9 of web and worker, restart, and all is there."""
    shut_in()
    environment = os.environ | {"COUNTWISE_SERVER_SLOT_SECONDS": "8"}
    log = tmp_path / "log"
    state = tmp_path / "state"

    with log.open("wb") as out:
        server = subprocess.Popen(
            [*COUNTWISE, "serve", "--state", state, "--port", "0"], cwd=tmp_path, env=environment,
            stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def address():
        said = re.findall(r"Serving at (http://127.0.0.1:[1-9]\d*)", log.read_text())
        return said[-1] if said else "http://127.0.0.1:1"

    def healthy():
        with client(address()) as caller:
            return caller.get("/health").json()["status"] == "ok"

    try:
        wait_for(healthy)
        (password,) = re.findall(r"shown this once: (\S+)", log.read_text())
        with client(address()) as caller:
            first_session(caller, password)
            keys = {"label": "k", "scopes": ["read", "submit"]}
            key = caller.post("/api/v1/keys", json=keys).json()["key"]
        kinds = children(server.pid)
        web = next(pid for pid, words in kinds.items() if words.strip().endswith("web"))
        worker = next(pid for pid, words in kinds.items() if words.strip().endswith("worker"))
        compute = next(iter(children(worker)))
        assert os.readlink(f"/proc/{compute}/ns/net") != os.readlink(f"/proc/{web}/ns/net")
        assert (state / "confidential" / "workers.csv").stat().st_mode & 0o077 == 0
        with client(address(), key) as caller:
            headers = {"Idempotency-Key": "one"}
            job = caller.post("/api/v1/jobs", json=body(), headers=headers).json()
            for pid in (worker, web):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not Path(f"/proc/{compute}").exists())  # it goes with its worker

        def answered():
            with client(address(), key) as again:
                same = again.post("/api/v1/jobs", json=body(), headers=headers).json()
                assert same["id"] == job["id"]
                return same["status"] == "answered"

        wait_for(answered)
        with client(address(), key) as caller:
            first = caller.get(f"/api/v1/jobs/{job['id']}/answer").json()
            receipt = caller.get(f"/api/v1/jobs/{job['id']}/receipt").json()
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.wait()
    assert password not in log.read_text().replace(f"shown this once: {password}", "")
    check_what_is_left(tmp_path, state, first, receipt)


def check_what_is_left(tmp_path, state, first, receipt):
    """Ledger, receipt and backup of a server that has ended, by the commands."""
    (tmp_path / "receipt.json").write_text(json.dumps(receipt))
    url = f"sqlite:///{state}/server/countwise.db"
    assert "whole" in run("ledger", "check", url, "--receipt", tmp_path / "receipt.json")
    shown = json.loads(run("ledger", "show", url, "--dataset", "workers", "--json"))
    assert [each["kind"] for each in shown["entries"]][-3:] == ["reserved", "computed", "released"]
    assert shown["accounts"][0]["spent"] == EPSILON
    checked = json.loads(run("receipt", "check", tmp_path / "receipt.json", "--json"))
    assert checked["verdict"] == first["verdict"]
    assert "Claim: education_years" in run("verify", "recompute", tmp_path / "receipt.json")
    run("backup", "--state", state, "--out", tmp_path / "backup")
    copy = f"sqlite:///{tmp_path}/backup/countwise.db"
    assert "whole" in run("ledger", "check", copy, "--receipt", tmp_path / "receipt.json")
    assert start.prepare(load_config(None, environment={}, state=state)) is None  # no new steward


def test_two_server_processes_and_a_budget_for_ten(database, tmp_path, computer):
    config = example_config(tmp_path, database)
    office = open_office(config, computer)
    keys = [new_key(office, name) for name in ("ann", "bob")]
    state = tmp_path / "state"
    url = ["--database", database]
    environment = os.environ | {
        "COUNTWISE_SERVER_ISOLATION": "false", "COUNTWISE_SERVER_QUERIES_PER_MINUTE": "100000"
    }  # fmt: skip
    ports = [free_port(), free_port()]
    servers = [
        subprocess.Popen(
            [*COUNTWISE, "serve", "--only", "web", "--state", state, *url, "--port", str(port)],
            cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL,
        )
        for port in ports
    ]  # fmt: skip
    try:
        addresses = [f"http://127.0.0.1:{port}" for port in ports]
        for each in addresses:
            wait_for(lambda each=each: answers(each))

        def one(i):
            with client(addresses[i % 2], keys[i // 2 % 2]) as caller:
                headers = {"Idempotency-Key": f"k{i}"}
                asked = body(partitions=50 + i)
                return caller.post("/api/v1/jobs", json=asked, headers=headers).status_code

        with ThreadPoolExecutor(40) as pool:
            statuses = list(pool.map(one, range(200)))
    finally:
        for each in servers:
            each.kill()
            each.wait()
    assert sorted(set(statuses)) == [202, 402]
    assert statuses.count(202) == 10
    found = office.finding()
    assert found.flaws == ()
    assert found.spent["dataset", "workers"] == 10 * EPSILON
    office.engine.dispose()


def answers(address):
    with client(address) as caller:
        return caller.get("/api/v1/key").status_code == 200


def free_port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_migrations_make_the_tables_the_code_means(database):
    engine = open_engine(database)
    upgrade(engine)
    assert is_current(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    with engine.begin() as connection:
        Book(connection).set_cap("user", "ann", 5)
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM ledger_entries")
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(ConfigError, match="version 9999"):
        is_current(engine)
    engine.dispose()


BROKEN = {
    "[server]\nprot = 1\n": "unknown key 'prot'",
    "[server]\nport = '80'\n": "port must be a whole number",
    "[server]\nport = 99999\n": "port must be from 0 to 65535",
    "[server]\nisolation = 1\n": "isolation must be true or false",
    "[server]\nslot_seconds = -1\n": "slot_seconds must be from",
    "[serve]\nport = 1\n": "unknown key 'serve'",
    "[server\n": "not a configuration in TOML",
    "[datasets.A]\nschema = 'x'\n": "named with small letters",
    "[datasets.a]\nschema = 'x'\n": "no synthetic",
    "[datasets.a]\nschema = 'x'\nsynthetic = 'y'\ndata = 'z'\n": "there is no file y",
    "[datasets.a]\nscheme = 'x'\n": "unknown key 'scheme'",
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_configuration_is_refused(tmp_path, text):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(ConfigError, match=re.escape(BROKEN[text])):
        run("serve", "--config", tmp_path / "c.toml", "--state", tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_an_address_that_is_taken_is_refused_before_anything_is_made(tmp_path):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        with pytest.raises(ConfigError, match=f"can not listen at 127.0.0.1, port {port}: "):
            run("serve", "--state", tmp_path / "s", "--port", port)
    assert not (tmp_path / "s").exists()


def test_configuration_comes_from_file_environment_and_flags(tmp_path):
    for name in ("workers.toml", "workers_synthetic.csv"):
        shutil.copy(workers(name), tmp_path / name)
    (tmp_path / "c.toml").write_text(
        "[server]\nport = 1\nworkers = 3\nstate = 'here'\n[datasets.census]\n"
        "schema = 'workers.toml'\nsynthetic = 'workers_synthetic.csv'\ndata = '/elsewhere/x.csv'\n"
    )
    environment = {"COUNTWISE_SERVER_PORT": "2", "COUNTWISE_SERVER_SLOT_SECONDS": "30"}
    config = load_config(tmp_path / "c.toml", environment=environment, host="::1")
    assert (config.port, config.workers, config.slot_seconds, config.host) == (2, 3, 30, "::1")
    assert config.state == tmp_path / "here"
    assert list(config.datasets) == ["census"]
    assert str(config.datasets["census"].data) == "/elsewhere/x.csv"
    for key, value in (("PORT", "x"), ("EXAMPLE", "yes"), ("PROT", "1")):
        with pytest.raises(ConfigError, match=key):
            load_config(None, environment={f"COUNTWISE_SERVER_{key}": value})


def test_a_web_process_that_can_read_the_data_does_not_start(tmp_path):
    shut_in()
    for name in ("workers.toml", "workers_synthetic.csv", "workers.csv"):
        shutil.copy(workers(name), tmp_path / name)
    (tmp_path / "c.toml").write_text(
        "[server]\nstate = 'state'\n[datasets.open]\nschema = 'workers.toml'\n"
        "synthetic = 'workers_synthetic.csv'\ndata = 'state/server/workers.csv'\n"
    )
    run("serve", "--config", tmp_path / "c.toml", "--only", "prepare")
    shutil.move(tmp_path / "workers.csv", tmp_path / "state" / "server")
    done = subprocess.run(
        [*COUNTWISE, "serve", "--config", tmp_path / "c.toml", "--only", "web", "--port", "0"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 2
    assert "can read the confidential rows of open" in done.stderr


def test_releases_are_charged_to_the_same_ledger(database, tmp_path):
    (tmp_path / "cells.csv").write_text(CELLS)
    run("ledger", "grant", database, "--dataset", "census", "--epsilon", "1.5")

    def release(out, *more, by="region,county"):
        return run(
            "release", tmp_path / "cells.csv", "--by", by, "--count", "n", "--cells-are-public",
            "--out", tmp_path / out, "--ledger", database, *more,
        )  # fmt: skip

    release("one", "--epsilon", "1", "--dataset", "census")
    with pytest.raises(BudgetError, match=r"ε = 0\.5 left and this asks for 1") as caught:
        release("two", "--epsilon", "1", "--dataset", "census")
    assert caught.value.exit_code == 3
    assert not (tmp_path / "two").exists()
    with pytest.raises(InputError, match="no column 'what'"):
        release("two", "--epsilon", "0.5", "--dataset", "census", by="what,county")
    with pytest.raises(InputError, match="add --dataset"):
        release("two", "--epsilon", "0.5")
    with pytest.raises(BudgetError, match="counted in ε alone"):
        release("two", "--rho", "0.5", "--mechanism", "gaussian", "--dataset", "census")
    (tmp_path / "cells.csv").write_text(CELLS.rstrip() + "\nX,Y,-1\n")
    levels = ("--epsilon", "total=0.1,region=0.2,county=0.2", "--dataset", "census")
    with pytest.raises(InputError, match="negative"):
        release("three", *levels)
    (tmp_path / "cells.csv").write_text(CELLS)
    release("three", *levels)  # was charged, and no noise was drawn
    engine = open_engine(database)
    with Ledger(engine).reading() as book:
        found = check(book.all())
    engine.dispose()
    assert found.flaws == ()
    assert found.spent["dataset", "census"] == 1_500_000
    assert found.states["spent"] == 2
    assert found.states["returned"] == 0


def test_ledger_commands_say_what_is_wrong(tmp_path):
    url = f"sqlite:///{tmp_path}/l.db"
    with pytest.raises(InputError, match="no such ledger"):
        run("ledger", "check", url)
    with pytest.raises(InputError, match="name one of"):
        run("ledger", "grant", url, "--epsilon", "1")
    run("ledger", "grant", url, "--dataset", "d", "--epsilon", "1")
    head = json.loads(run("ledger", "check", url, "--json"))["head"]
    run("ledger", "check", url, "--head", head)
    engine = open_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER ledger_no_update")
        connection.exec_driver_sql("UPDATE ledger_entries SET micro = 2000000")
    engine.dispose()
    with pytest.raises(LedgerError, match="not whole"):
        run("ledger", "check", url)


def test_the_core_works_without_the_extra(tmp_path):
    """Where SQLAlchemy is missing, commands say what to install and everything else works."""
    code = (
        "import sys\n"
        "for name in ('sqlalchemy', 'fastapi', 'alembic', 'argon2', 'uvicorn'):\n"
        "    sys.modules[name] = None\n"
        "import countwise\n"
        "from countwise.cli import main\n"
        "sys.argv = ['countwise', *sys.argv[1:]]\n"
        "main()\n"
    )
    (tmp_path / "cells.csv").write_text(CELLS)

    def without(*words):
        return subprocess.run(
            [sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    for words in (["serve"], ["ledger", "check", "sqlite:///x.db"], ["backup", "--out", "b"]):
        done = without(*words)
        assert done.returncode == 2
        assert "pip install 'countwise[server]'" in done.stderr
    release = ["release", "cells.csv", "--by", "region,county", "--count", "n", "--epsilon", "1",
               "--cells-are-public", "--out", "r"]  # fmt: skip
    assert without(*release).returncode == 0


def test_postgresql_is_backed_up(postgres_folder, tmp_path):
    from databases import new_database
    from needs import needs

    needs(shutil.which("pg_dump") is not None, "pg_dump")
    url = new_database(postgres_folder)
    run("serve", "--only", "prepare", "--state", tmp_path / "s", "--database", url)
    run("backup", "--state", tmp_path / "s", "--database", url, "--out", tmp_path / "b")
    assert (tmp_path / "b" / "countwise.dump").stat().st_size > 1000
    assert PASSWORD not in (tmp_path / "b" / "countwise.dump").read_bytes().decode("latin-1")


@pytest.mark.parametrize(
    "address",
    ["steward:s%40cret-1@db.test:6432/office", "steward@db.test:6432/office?password=s%40cret-1"],
)
def test_the_password_of_the_database_is_on_no_command_line(address, tmp_path, monkeypatch):
    """Whoever is on the machine sees the words of a command; the environment its user alone."""
    program = tmp_path / "pg_dump"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$PGPASSWORD" "$@" > {tmp_path}/seen\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    config = example_config(tmp_path, f"postgresql+psycopg://{address}")
    assert back_up(config, tmp_path).file == "countwise.dump"
    password, *words = (tmp_path / "seen").read_text().splitlines()
    assert password == "s@cret-1"
    assert words[-1] == "--dbname=postgresql://steward@db.test:6432/office"
    assert "cret-1" not in " ".join(words)
