"""The R package asks a server: plan, wait for the answer, keep and check the receipt."""

import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from needs import needs
from offices import CLAIM, EPSILON, MODEL, example_config, new_key, open_office, serving

PACKAGE = Path(__file__).parents[1] / "r"
SCRIPT = """
library(countwise, lib.loc = "{library}")
options(countwise.command = c("{python}", "-m", "countwise"))
here <- server("{address}/", "{key}")
asked <- question("workers", "{model}", "{claim}", 0.5)
first <- plan_question(here, asked)
job <- ask(here, asked, "mine")
again <- ask(here, asked, "mine")
answer <- wait_answer(here, job, timeout = 120)
save_receipt(here, job, "{folder}/receipt.json")
checked <- check_receipt("{folder}/receipt.json", server_keys(here)$key[1])
refused <- tryCatch(ask(here, question("workers", "{model}", "{claim}", 1e6)),
                    error = function(problem) conditionMessage(problem$parent %||% problem))
far <- tryCatch(server("http://example.org", "k"), error = conditionMessage)
cat(jsonlite::toJSON(list(
  cost = first$cost, same = job$id == again$id, verdict = answer$verdict,
  checked = checked$verdict, trusted = checked$trusted, left = budget(here)$left,
  names = vapply(datasets(here), `[[`, "", "name"), refused = refused, far = far,
  verdicts = names(rehearse(here, asked)$verdicts)), auto_unbox = TRUE))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A folder with the package installed, and what it asks servers with beside."""
    needs(shutil.which("Rscript") is not None, "R (Debian's package r-base-core)")
    code = "library(jsonlite); library(httr2); library(openssl)"
    able = subprocess.run(["Rscript", "-e", code], check=False, capture_output=True).returncode
    needs(able == 0, "httr2 of R (Debian's package r-cran-httr2)")
    folder = tmp_path_factory.mktemp("library")
    done = subprocess.run(
        ["R", "CMD", "INSTALL", "--no-test-load", f"--library={folder}", str(PACKAGE)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_a_question_from_r_is_charged_once_answered_and_checked(library, tmp_path, computer):
    office = open_office(example_config(tmp_path, f"sqlite:///{tmp_path}/a.db"), computer)
    over = threading.Event()

    def work():
        while not over.wait(0.5):
            office.clock = time.time() - 5
            office.work()

    with serving(office) as address:
        worker = threading.Thread(target=work)
        worker.start()
        script = "`%||%` <- function(a, b) if (is.null(a)) b else a\n" + SCRIPT.format(
            library=library, python=sys.executable, address=address, key=new_key(office, "ann"),
            model=MODEL, claim=CLAIM, folder=tmp_path,
        )  # fmt: skip
        done = subprocess.run(
            ["Rscript", "-e", script], capture_output=True, text=True, check=False, timeout=250
        )
        over.set()
        worker.join()
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["cost"], said["same"], said["trusted"]) == ("0.5", True, True)
    assert said["verdict"] == said["checked"]
    assert said["names"] == "workers"
    assert "9.5" in said["left"]
    assert "epsilon must be from 0.001 to 100" in said["refused"]
    assert "https" in said["far"]
    assert "supported" in said["verdicts"]
    assert office.spent() == EPSILON // 2
    office.engine.dispose()
