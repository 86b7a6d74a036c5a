"""The files under deploy/: two users, TLS in front, copies, containers; health and figures."""

import configparser
import datetime
import json
import os
import re
import shlex
import shutil
import site
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

import httpx
import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import countwise
from countwise.examples.workers import workers
from countwise.server import monitoring
from countwise.server.config import load_config
from countwise.verification.receipt import check_receipt
from needs import needs, shut_in
from offices import (
    ANN,
    ask,
    body,
    client,
    example_config,
    first_session,
    new_key,
    open_office,
    serving,
    wait_for,
)

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
IDS = {"root": 0, "countwise": 64011, "countwise-worker": 64012, "countwise-data": 64010}
PREFIXES = ("/var/lib/countwise", "/var/backups/countwise", "/etc/countwise", "/srv/confidential")


def unit(name):
    found = configparser.ConfigParser(strict=False, interpolation=None)
    found.optionxform = str
    found.read(DEPLOY / name)
    return found


def moved(text, folder):
    """A text of deploy/ with its places beneath a folder."""
    for prefix in PREFIXES:
        text = text.replace(prefix, f"{folder}{prefix}")
    return text


@contextmanager
def open_folder():
    """A folder that other users can enter, too."""
    folder = Path(tempfile.mkdtemp(prefix="countwise-deploy-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def make_places(folder):
    """What systemd-tmpfiles makes of countwise.tmpfiles."""
    for line in (DEPLOY / "countwise.tmpfiles").read_text().splitlines():
        if line.startswith("d "):
            _, path, mode, user, group = line.split()
            place = Path(f"{folder}{path}")
            place.mkdir(parents=True, exist_ok=True)
            os.chown(place, IDS[user], IDS[group])
            place.chmod(int(mode, 8))


@cache
def python_of_others():
    """A Python that any user can run, with what this one has installed; None without."""
    if os.geteuid() != 0:
        return None
    installed = [str(Path(countwise.__file__).parents[1]), *site.getsitepackages()]
    system = shutil.which(f"python3.{sys.version_info.minor}", path="/usr/bin:/usr/local/bin")
    for program, path in ((sys.executable, ""), (system, ":".join(installed))):
        words = {"PYTHONPATH": path} if path else {}
        try:
            done = program and subprocess.run(
                [program, "-c", "import countwise.server.config"], user=64011, group=64011,
                extra_groups=[], env=os.environ | {"HOME": "/"} | words, cwd="/", check=False,
                capture_output=True,
            )  # fmt: skip
        except PermissionError:
            continue
        if done and done.returncode == 0:
            return program, words
    return None


def as_user(words, folder, *, user, group, groups, umask, **how):
    """A command of countwise as a user with its groups and mask."""
    program, path = python_of_others()
    given = {"COUNTWISE_SERVER_SLOT_SECONDS": "4", "NUMBA_CACHE_DIR": f"{folder}/cache"}
    return subprocess.Popen(
        [program, "-m", "countwise", *words], cwd="/", user=user, group=group,
        extra_groups=groups, umask=umask, env=os.environ | path | given | {"HOME": str(folder)},
        **how,
    )  # fmt: skip


def started(name, key, folder, out):
    """A command of a unit, as its user and with its groups, places and mask."""
    service = unit(name)["Service"]
    program, *words = moved(service[key], folder).split()
    assert program == "/opt/countwise/bin/countwise"
    return as_user(
        words, folder, user=IDS[service["User"]], group=IDS[service["Group"]],
        groups=[IDS[service["SupplementaryGroups"]]], umask=int(service["UMask"], 8),
        stdout=out, stderr=subprocess.STDOUT,
    )  # fmt: skip


@contextmanager
def running(process):
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def can(user, path, how="r"):
    """Whether a user with its groups can open a file."""
    code = f"open({str(path)!r}, {how!r})"
    program, _ = python_of_others()
    done = subprocess.run(
        [program, "-I", "-S", "-c", code], user=IDS[user], group=IDS[user],
        extra_groups=[IDS["countwise-data"]], cwd="/", check=False, capture_output=True,
    )  # fmt: skip
    return done.returncode == 0


def configured(folder, database):
    """The configuration of deploy/ with the example's files, and rows that one user can read."""
    text = moved((DEPLOY / "countwise.toml").read_text(), folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = text.replace("port = 8430", f"port = {port}")
    text = text.replace("secure_cookies = true", "secure_cookies = false")  # no TLS in this test
    if database.startswith("postgresql"):
        text = re.sub(r"^database = .*$", f'database = "{database}"', text, flags=re.MULTILINE)
    etc = folder / "etc" / "countwise"
    etc.mkdir(parents=True)
    (etc / "countwise.toml").write_text(text)
    shutil.copy(workers("workers.toml"), etc / "example.toml")
    shutil.copy(workers("workers_synthetic.csv"), etc / "example_synthetic.csv")
    rows = folder / "srv" / "confidential" / "example.csv"
    shutil.copy(workers(), rows)
    os.chown(rows, IDS["countwise-worker"], IDS["countwise-worker"])
    rows.chmod(0o600)
    for each in etc.iterdir():
        each.chmod(0o644)
    cache = os.environ.get("NUMBA_CACHE_DIR")
    if cache and Path(cache).is_dir():
        shutil.copytree(cache, folder / "cache")
    (folder / "cache").mkdir(exist_ok=True)
    for each in (folder / "cache", *(folder / "cache").rglob("*")):
        each.chmod(0o777)
    return f"http://127.0.0.1:{port}"


def test_two_users_start_as_the_units_say_and_answer(database):
    """With SQLite and with PostgreSQL; the worker never sees the signing key, the web no row."""
    needs(python_of_others() is not None, "root, and a Python that other users can run")
    shut_in()
    with open_folder() as folder, ExitStack() as both:
        make_places(folder)
        address = configured(folder, database)
        log = folder / "log"
        out = both.enter_context(log.open("wb"))
        prepared = started("countwise-web.service", "ExecStartPre", folder, out)
        assert prepared.wait(200) == 0, log.read_text()
        key = folder / "var/lib/countwise/server/signing.key"
        rows = folder / "srv/confidential/example.csv"
        seen = [
            can(user, each) for user in ("countwise", "countwise-worker") for each in (key, rows)
        ]
        assert seen == [True, False, False, True]
        for name in ("countwise-web.service", "countwise-worker.service"):
            both.enter_context(running(started(name, "ExecStart", folder, out)))

        def well():
            ended = re.findall(r"countwise: .*", log.read_text())
            assert not ended
            with client(address) as caller:
                return caller.get("/health").json()["status"] == "ok"

        wait_for(well, 280)
        (password,) = re.findall(r"shown this once:\s+(\S+)", log.read_text())
        with client(address) as caller:
            first_session(caller, password)
            for account in ("dataset/example", "user/steward"):
                caller.put(f"/api/v1/steward/budgets/{account}", json={"cap": "5"})
            caller.put("/api/v1/steward/users/steward/datasets/example")
            asked = body(dataset="example", partitions=50)
            got = caller.post("/api/v1/jobs", json=asked, headers={"Idempotency-Key": "k"})
            job = got.json()["id"]
            path = f"/api/v1/jobs/{job}"
            wait_for(lambda: caller.get(path).json()["status"] == "answered", 60)
            receipt = caller.get(f"{path}/receipt").json()
            known = caller.get("/api/v1/key").json()["key"]
        assert check_receipt(receipt, trusted=known).verdict
        wait_for(lambda: (key.parent / "heads.jsonl").stat().st_size, 30)
        file = folder / "var/lib/countwise/database/countwise.db"
        if not database.startswith("postgresql"):
            assert file.stat().st_mode & 0o777 == 0o660
            assert can("countwise-worker", file, "r+b")
        backup(folder, out)


def backup(folder, out):
    """The backup's command: a folder of its own that nobody else can read."""
    if "sqlite" not in (folder / "etc/countwise/countwise.toml").read_text():
        needs(shutil.which("pg_dump") is not None, "pg_dump")
    line = unit("countwise-backup.service")["Service"]["ExecStart"]
    shell = moved(re.search(r"'exec (.*)'", line)[1], folder).replace("%%", "%")
    words = shlex.split(shell.replace("$(date +%Y-%m-%d-%H%M%S)", "now"))[1:]
    done = as_user(
        words, folder, user=64011, group=64011, groups=[64010], umask=0o077, stdout=out, stderr=out
    )
    assert done.wait(120) == 0, (folder / "log").read_text()[-2000:]
    (made,) = (folder / "var/backups/countwise").iterdir()
    assert {"signing.key", "signing-keys.json", "heads.jsonl"} <= {p.name for p in made.iterdir()}
    assert made.stat().st_mode & 0o077 == 0


def test_the_units_are_ones_that_systemd_reads(tmp_path):
    needs(shutil.which("systemd-analyze") is not None, "systemd-analyze")
    names = sorted(p.name for p in DEPLOY.iterdir() if p.suffix in (".service", ".timer"))
    assert len(names) == 4
    program = tmp_path / "countwise"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for name in names:
        text = (DEPLOY / name).read_text().replace("/opt/countwise/bin/countwise", str(program))
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(tmp_path / name for name in names)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    ours = [each for each in done.stderr.splitlines() if "countwise" in each]
    assert not [each for each in ours if "Unknown" in each or "nvalid" in each or "rror" in each]
    for name in names:
        assert (DEPLOY / name).read_text().startswith(f"# /etc/systemd/system/{name}\n")


def test_the_other_files_name_the_users_and_places_of_the_units():
    users = {unit(f"countwise-{name}.service")["Service"]["User"] for name in ("web", "worker")}
    made = (DEPLOY / "countwise.sysusers").read_text()
    assert users == {line.split()[1] for line in made.splitlines() if line.startswith("u ")}
    config = (DEPLOY / "countwise.toml").read_text()
    assert 'state = "/var/lib/countwise"' in config
    assert (
        "InaccessiblePaths=-/var/lib/countwise/server"
        in (DEPLOY / "countwise-worker.service").read_text()
    )
    assert "heads.jsonl" in (DEPLOY / "logrotate.conf").read_text()


def certificate(folder, name):
    """A key and a certificate of its own for a name."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    (folder / "fullchain.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "privkey.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )


@contextmanager
def nginx(folder, upstream):
    """Debian's nginx with the configuration of deploy/ in front of an address; its ports."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    needs(program is not None, "nginx (Debian's package nginx-light)")
    certificate(folder, "verify.example.org")
    ports = []
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as free:
            ports.append(free.getsockname()[1])
    site = (DEPLOY / "nginx.conf").read_text()
    for old, new in (
        ("127.0.0.1:8430", upstream.removeprefix("http://")), ("listen 443", f"listen {ports[0]}"),
        ("listen 80", f"listen {ports[1]}"), ("/etc/countwise/tls", str(folder)),
        ("_timeout 10s", "_timeout 1s"),
    ):  # fmt: skip
        assert old in site
        site = site.replace(old, new)
    (folder / "site.conf").write_text(site)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "main.conf").write_text(
        f"daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
        + ("user root;\n" if os.geteuid() == 0 else "")
        + f"events {{}}\nhttp {{\naccess_log off;\n{temporary}include {folder}/site.conf;\n}}\n"
    )
    process = subprocess.Popen([str(program), "-c", folder / "main.conf", "-p", folder])

    def up():
        assert process.poll() is None, (folder / "error.log").read_text()
        with socket.create_connection(("127.0.0.1", ports[0])):
            return True

    try:
        wait_for(up, 20)
        yield ports
    finally:
        process.terminate()
        process.wait(20)


def secured(port, folder, name="verify.example.org"):
    """A TLS connection that says which host it wants, and trusts the test's certificate."""
    context = ssl.create_default_context(cafile=str(folder / "fullchain.pem"))
    plain = socket.create_connection(("127.0.0.1", port))
    plain.settimeout(15)
    return context.wrap_socket(plain, server_hostname=name)


def test_the_proxy_speaks_tls_and_bounds_every_address(tmp_path, computer):
    """TLS, HSTS, one host, whole requests in time, few connections, the caller's true address."""
    config = example_config(
        tmp_path, f"sqlite:///{tmp_path}/a.db", trusted_proxies="127.0.0.1", secure_cookies=True
    )
    office = open_office(config, computer)
    with serving(office) as upstream, nginx(tmp_path, upstream) as (port, plain):

        def get(text):
            """The head of what comes back, or nothing where the connection ends."""
            with secured(port, tmp_path) as made:
                made.sendall(text)
                said = b""
                while b"\r\n\r\n" not in said and (part := made.recv(65536)):
                    said += part
            return said.decode()

        head = b"GET /api/v1/key HTTP/1.1\r\nHost: verify.example.org\r\n"
        said = get(head + b"Connection: close\r\n\r\n")
        assert said.startswith("HTTP/1.1 200")
        assert "strict-transport-security: max-age=31536000" in said.lower()
        with pytest.raises(ssl.SSLError):
            secured(port, tmp_path, "evil.example")
        redirect = httpx.get(f"http://127.0.0.1:{plain}/jobs", headers={"Host": "evil.example"})
        assert redirect.headers["location"] == "https://verify.example.org/jobs"
        large = b"Content-Length: 70000\r\nContent-Type: application/json\r\n\r\n"
        post = b"POST /api/v1/session HTTP/1.1\r\nHost: verify.example.org\r\n"
        assert get(post + large).startswith("HTTP/1.1 413")
        slow = [head, post + b"Content-Length: 99\r\nContent-Type: application/json\r\n\r\n{"]
        for begun in slow:  # ended by the proxy, long before the server would
            assert get(begun)[:12] in ("", "HTTP/1.1 408")
        wrong = json.dumps({"name": "ann", "password": "wrong password"}).encode()
        forged = b"X-Forwarded-For: 203.0.113.9\r\nConnection: close\r\n"
        sent = post + forged + b"Content-Type: application/json\r\n"
        answer = get(sent + b"Content-Length: %d\r\n\r\n" % len(wrong) + wrong)
        assert answer.startswith("HTTP/1.1 401")
        with sqlite3.connect(tmp_path / "a.db") as database:
            (detail,) = database.execute(
                "SELECT detail FROM audit WHERE event = 'sign-in failed'"
            ).fetchone()
        database.close()
        assert json.loads(detail)["address"] == "127.0.0.1"
        many = [secured(port, tmp_path) for _ in range(24)]
        for each in many:
            each.sendall(head + b"\r\n")
        first = [each.recv(12) for each in many]
        for each in many:
            each.close()
        assert first.count(b"HTTP/1.1 200") <= 20
        assert b"HTTP/1.1 429" in first
    office.engine.dispose()


def test_every_part_of_the_containers_exists():
    """What compose.yaml and the Containerfile name is in the repository, or said to be yours."""
    found = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    yours = [(DEPLOY / each).resolve() for each in found["x-provided"]]
    parts = found["services"]
    assert set(parts) == {"database", "prepare", "web", "worker", "proxy"}
    for name, part in parts.items():
        if "build" in part:
            context = (DEPLOY / part["build"]["context"]).resolve()
            assert (context / part["build"]["dockerfile"]).is_file()
        for volume in part.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                place = (DEPLOY / source).resolve()
                assert place.is_file() or place in yours, (name, source)
            else:
                assert source in found["volumes"]
        assert set(part.get("secrets", [])) <= set(found["secrets"])
        assert set(part.get("depends_on", {})) <= set(parts)
        assert set(part.get("networks", [])) <= set(found["networks"])
    for secret in found["secrets"].values():
        assert (DEPLOY / secret["file"]).resolve() in yours
    assert not any("state:" in each for each in parts["worker"]["volumes"])  # no signing key
    assert [each for each in parts["web"]["volumes"] if "confidential" in each] == []
    copied = re.findall(r"^COPY (.*)$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    for line in copied:
        assert all((ROOT / each).exists() for each in line.split()[:-1]), line
    settings = (DEPLOY / "compose.toml").read_text()
    assert found["secrets"].keys() == {"database_password"}
    assert "/run/secrets/database_password" in settings


def test_the_image_is_built():
    engine = shutil.which("podman") or shutil.which("docker")
    able = engine is not None and (
        subprocess.run([engine, "info"], capture_output=True, check=False).returncode == 0
    )
    if not able:  # nor can one be had on every machine that runs these tests, CI's among them
        pytest.skip("NOT TESTED: no engine here builds images (podman or docker, running)")
    subprocess.run(
        [str(engine), "build", "-f", DEPLOY / "Containerfile", "-t", "countwise-test", ROOT],
        check=True, timeout=900,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["countwise.toml", "compose.toml"])
def test_the_settings_are_ones_the_server_knows(name, tmp_path):
    """Both configurations are read; a password in a file becomes part of the address."""
    (tmp_path / "secret").write_text("s3/cret\n")
    text = (
        (DEPLOY / name).read_text().replace("/run/secrets/database_password", f"{tmp_path}/secret")
    )
    for place in ("/etc/countwise", "/public"):
        text = text.replace(place, str(tmp_path))
    shutil.copy(workers("workers.toml"), tmp_path / "example.toml")
    shutil.copy(workers("workers_synthetic.csv"), tmp_path / "example_synthetic.csv")
    (tmp_path / name).write_text(text)
    config = load_config(tmp_path / name, environment={})
    assert config.secure_cookies
    assert config.trusted_proxies == "127.0.0.1"
    if name == "compose.toml":
        assert config.url == "postgresql://countwise:s3%2Fcret@database/countwise"


@pytest.fixture
def small(tmp_path, computer, monkeypatch):
    monkeypatch.setattr(monitoring, "KEPT_SECONDS", 0.0)
    monkeypatch.setattr(monitoring, "PATIENCE_SECONDS", 0.3)
    made = open_office(example_config(tmp_path, f"sqlite:///{tmp_path}/a.db"), computer)
    made.work()  # a worker was seen
    yield made
    made.engine.dispose()


def test_health_sees_a_locked_database_and_a_full_disk(small, tmp_path, monkeypatch):
    with serving(small) as address, client(address) as caller:

        def health():
            got = caller.get("/health")
            return got.status_code, got.json()

        status, said = health()
        assert (status, said["status"]) == (200, "ok")
        assert "version" not in said
        other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        status, said = health()
        assert (status, said["database"], said["writable"]) == (503, True, False)
        other.rollback()
        other.close()
        assert health()[0] == 200
        usage = shutil.disk_usage(tmp_path)._replace(free=1000)
        monkeypatch.setattr(monitoring.shutil, "disk_usage", lambda _: usage)
        status, said = health()
        assert (status, said["room"]) == (503, False)


def test_metrics_tell_the_queue_the_workers_the_budgets_and_the_refusals(small):
    small.service.submit(ANN, ask(), "one")
    with serving(small) as address, client(address, new_key(small, "steward")) as caller:
        assert caller.get("/api/v1/jobs/x").status_code == 422
        assert caller.get(f"/api/v1/jobs/{'0' * 32}").status_code == 404
        figures = dict(
            line.rsplit(" ", 1)
            for line in caller.get("/metrics").text.splitlines()
            if not line.startswith("#")
        )
    assert figures['countwise_answers{state="queued"}'] == "1"
    assert 0 <= float(figures["countwise_queue_age_seconds"]) < 600
    assert figures["countwise_workers"] == "1"
    assert figures['countwise_budget_left{dataset="workers",unit="epsilon"}'] == "9"
    assert figures['countwise_refusals_total{code="not_found"}'] == "1"
    assert float(figures["countwise_free_bytes"]) > 0


def test_a_database_file_is_its_owners_alone_unless_the_folder_is_shared(tmp_path):
    from countwise.server import start

    for name, mode, expected in (("own", 0o700, 0o600), ("shared", 0o2770, 0o660)):
        folder = tmp_path / name
        folder.mkdir()
        folder.chmod(mode)
        config = replace(
            load_config(None, environment={}, state=tmp_path / "state"),
            database=f"sqlite:///{folder}/c.db",
        )
        start.prepare(config)
        assert (folder / "c.db").stat().st_mode & 0o777 == expected
