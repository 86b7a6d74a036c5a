"""Load on the verification server: sustained submissions and page views, with p95 latency.

Starts `countwise serve` (one web process, one worker) in a temporary folder, on SQLite or on the
PostgreSQL database given, and calls it from threads for a while: some callers submit claims,
each another one, and the others look at job lists, data sets and budgets. The ledger is checked
at the end: every charge that was accepted is there.

    python benchmarks/server.py [--seconds 20] [--submitters 4] [--viewers 8] [--database URL]
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from countwise.ledger.chain import check
from countwise.ledger.ledger import Ledger
from countwise.ledger.storage import open_engine

VIEWS = ("/api/v1/jobs?limit=20", "/api/v1/datasets", "/api/v1/budget", "/")
ASK = {
    "dataset": "workers",
    "model": "hours ~ education_years + age + C(sex)",
    "claim": "education_years > 0.5",
}

PASSWORD = "a phrase of the load test"


def main() -> None:
    """Run the load and print what was measured, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--submitters", type=int, default=4)
    parser.add_argument("--viewers", type=int, default=8)
    parser.add_argument("--database")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.database or f"sqlite:///{folder}/state/server/countwise.db"
        print(json.dumps(measure(Path(folder), url, given), indent=2))


def measure(folder: Path, url: str, given: argparse.Namespace) -> dict[str, Any]:
    """Start a server, load it, stop it, and check its ledger."""
    log = folder / "log"
    server = subprocess.Popen(
        [sys.executable, "-m", "countwise", "serve", "--state", folder / "state", "--port", "0",
         "--database", url],
        cwd=folder, stdout=log.open("wb"), stderr=subprocess.STDOUT,
        env=os.environ | {"COUNTWISE_SERVER_QUERIES_PER_MINUTE": "1000000"},
    )  # fmt: skip
    try:
        address, key = ready(log)
        times: dict[str, list[float]] = {"submit": [], "view": []}
        statuses: dict[str, int] = {}
        end, numbers = time.monotonic() + given.seconds, count()

        def call(kind: str) -> None:
            with httpx.Client(
                base_url=address, headers={"Authorization": f"Bearer {key}"}, timeout=60
            ) as caller:
                while time.monotonic() < end:
                    number, start = next(numbers), time.perf_counter()
                    if kind == "submit":
                        asked = ASK | {"epsilon": f"1.{1_000_000 + number}"}
                        header = {"Idempotency-Key": f"k{number}"}
                        got = caller.post("/api/v1/jobs", json=asked, headers=header)
                    else:
                        got = caller.get(VIEWS[number % len(VIEWS)])
                    times[kind].append(time.perf_counter() - start)
                    name = f"{kind} {got.status_code}"
                    statuses[name] = statuses.get(name, 0) + 1

        kinds = ["submit"] * given.submitters + ["view"] * given.viewers
        threads = [threading.Thread(target=call, args=(kind,)) for kind in kinds]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
    engine = open_engine(url)
    with Ledger(engine).reading() as book:
        found = check(book.all())
    engine.dispose()
    charges = sum(found.states.values())
    accepted = statuses.get("submit 202", 0)
    if set(statuses) != {"submit 202", "view 200"}:
        raise SystemExit(f"not every call was answered as it should be: {statuses}")
    return {
        "database": url.split(":", maxsplit=1)[0],
        "seconds": given.seconds,
        "callers": {"submit": given.submitters, "view": given.viewers},
        "load average at the end": os.getloadavg()[0],
        "statuses": statuses,
        "ledger": {"whole": not found.flaws, "charges": charges, "all there": charges == accepted},
        **{kind: summary(each, given.seconds) for kind, each in times.items()},
    }


def ready(log: Path) -> tuple[str, str]:
    """The address of a server that is up, and a key, with a budget for everything to come."""
    while True:
        text = log.read_text()
        ports = re.findall(r'"event": "serving".*"port": (\d+)', text)
        passwords = re.findall(r"shown this once: (\S+)", text)
        if ports and passwords and "web ready" in text and "worker ready" in text:
            break
        time.sleep(0.2)
    address = f"http://127.0.0.1:{ports[0]}"
    with httpx.Client(base_url=address, timeout=60) as caller:
        for password in (passwords[0], PASSWORD):
            who = {"name": "steward", "password": password}
            made = caller.post("/api/v1/session", json=who)
            caller.headers["X-CSRF-Token"] = made.json()["csrf"]
            if password != PASSWORD:  # the first one must be changed
                caller.put("/api/v1/password", json={"old": password, "new": PASSWORD})
        for account in ("user/steward", "dataset/workers"):
            caller.put(f"/api/v1/steward/budgets/{account}", json={"cap": "100000"})
        scopes = {"label": "load", "scopes": ["read", "submit"]}
        return address, caller.post("/api/v1/keys", json=scopes).json()["key"]


def summary(times: list[float], seconds: float) -> dict[str, float]:
    """Calls a second, and milliseconds at the median, 95 % and the slowest."""
    ranks = np.quantile(times, [0.5, 0.95, 1.0]) * 1000
    return {
        "per_second": round(len(times) / seconds, 1),
        **{
            name: round(float(ms), 1) for name, ms in zip(("p50", "p95", "max"), ranks, strict=True)
        },
    }


if __name__ == "__main__":
    main()
