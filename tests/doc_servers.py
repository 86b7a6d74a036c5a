"""Servers of the pages, started as the pages start them: the office's and a Spark cluster."""

import configparser
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from countwise.client import Client, Question
from needs import needs, shut_in
from offices import CLAIM, MODEL, client, first_session, wait_for

UNIT = Path(__file__).parents[1] / "deploy" / "countwise-web.service"
PLACE, CONFIG = "http://127.0.0.1:8430", "/etc/countwise/countwise.toml"
SETTINGS = {"COUNTWISE_SERVER_SLOT_SECONDS": "5", "COUNTWISE_SERVER_PORT": "0"}


@contextmanager
def running(command: Sequence[object], folder: Path, log: Path) -> Iterator[None]:
    """A process until the end of the block."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            [str(each) for each in command], cwd=folder, env=os.environ | SETTINGS, stdout=out,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def countwise(line: str) -> list[str]:
    """A command line of a page, as this Python runs it."""
    return [sys.executable, "-m", "countwise", *line.split()[1:]]


@contextmanager
def office(folder: Path) -> Iterator[dict[str, str]]:
    """`countwise serve --state countwise-state`, and a key of its steward."""
    shut_in()
    with running(countwise("countwise serve --state countwise-state"), folder, folder / "log"):
        yield entered(folder)


@contextmanager
def office_by_units(folder: Path) -> Iterator[dict[str, str]]:
    """The web part and a worker by the commands of the page's units, and a receipt."""
    shut_in()
    (folder / "countwise.toml").write_text("[server]\nstate = 'countwise-state'\n")
    service = configparser.ConfigParser()
    service.optionxform = str  # type: ignore[assignment]
    service.read(UNIT)
    before, web = (
        service["Service"][name].replace(CONFIG, "countwise.toml")
        for name in ("ExecStartPre", "ExecStart")
    )
    assert "--only prepare" in before
    assert web.endswith("--only web")
    with ExitStack() as both:
        done = subprocess.run(countwise(before), cwd=folder, capture_output=True, check=True)
        (folder / "log").write_bytes(done.stdout + done.stderr)
        for line in (web, web.replace("web", "worker")):
            both.enter_context(running(countwise(line), folder, folder / "log"))
        filled = entered(folder)
        caller = Client(filled[PLACE], key=filled["cw_…"])
        asked = Question(dataset="workers", model=MODEL, claim=CLAIM, epsilon="1")
        caller.wait(caller.submit(asked)).receipt.save(folder / "receipt.json")
        yield filled | {CONFIG: "countwise.toml"}


def entered(folder: Path) -> dict[str, str]:
    """What a reader fills in, once the server is well: its address, a key, its public key."""

    def said(words: str) -> str:
        return re.findall(words, (folder / "log").read_text())[-1]

    def well() -> str:
        place = "http://127.0.0.1:" + said(r'"port": (\d+)')
        with client(place) as caller:
            return place if caller.get("/health").json()["status"] == "ok" else ""

    address = wait_for(well)
    with client(address) as caller:
        first_session(caller, said(r"shown this once: (\S+)"))
        wanted = {"label": "pages", "scopes": ["read", "submit"]}
        key = caller.post("/api/v1/keys", json=wanted).json()["key"]
        public = caller.get("/api/v1/key").json()["key"]
    return {
        PLACE: address, "https://verify.example.org": address, "cw_…": key, "3b6a27bc…": public
    }  # fmt: skip


@contextmanager
def spark_cluster(folder: Path) -> Iterator[str]:
    """The address of a standalone Spark master on loopback, with one worker."""
    needs(shutil.which("java") is not None, "Java (Debian's package default-jre-headless)")
    import pyspark

    start = [Path(pyspark.__file__).parent / "bin" / "spark-class"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    log = folder / "spark-log"
    kinds = {
        "master.Master": ["--host", "127.0.0.1", "--port", port, "--webui-port", 0],
        "worker.Worker": ["--host", "127.0.0.1", "--cores", 2, "--memory", "1500m",
                          "--webui-port", 0, "--work-dir", folder / "spark-work", address],
    }  # fmt: skip
    with ExitStack() as both:
        for kind, words in kinds.items():
            command = [*start, f"org.apache.spark.deploy.{kind}", *words]
            both.enter_context(running(command, folder, log))
        wait_for(lambda: "Successfully registered with master" in log.read_text())
        yield address
