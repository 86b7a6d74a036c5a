"""A session of Spark, made so that what it writes on its way is encrypted, and no log is kept."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from countwise.errors import TableError

SCHEMES = ("spark", "pyspark")
EVENT_LOG, PAGES = "spark.eventLog.enabled", "spark.ui.enabled"
ENCRYPTION = "spark.io.encryption.enabled"
USUAL = {EVENT_LOG: "false", PAGES: "true", ENCRYPTION: "false"}
"""What a session has where its settings say nothing."""
KEPT = (
    (EVENT_LOG, "true", "keeps an event log, which would hold exact numbers of records and people"),
    (PAGES, "true", "has a web page, which would show queries with the key of bounded rows"),
    (ENCRYPTION, "false", "writes records and counts on its way that are not encrypted"),
)
"""Settings that an open session keeps, their unsafe value, and what it would do."""
SETTINGS = {
    ENCRYPTION: "true",  # shuffled and spilled records and counts
    PAGES: "false",  # shows queries, with the key of bounded rows in them
    EVENT_LOG: "false",  # keeps them, and exact numbers of records, people and cells
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


def is_spark(engine: str) -> bool:
    """Whether an engine's URL is one of Spark: spark, or spark://host:port."""
    return engine.partition("://")[0] in SCHEMES


def session(engine: str) -> Any:
    """The session of an engine such as `spark` or `spark://host:7077`.

    Without a host the master is the one that Spark's own settings name, or this machine.
    """
    try:
        with quiet():
            from pyspark.sql import SparkSession
    except ImportError:
        raise TableError(
            "engine 'spark' needs PySpark, which is not installed. To fix, "
            'pip install "countwise[spark]"'
        ) from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("countwise")
    host = engine.partition("://")[2]
    if host:
        builder = builder.master(f"spark://{host}")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    if "PYTHONPATH" in os.environ:
        builder = builder.config("spark.executorEnv.PYTHONPATH", os.environ["PYTHONPATH"])
    try:
        with quiet():
            made = builder.getOrCreate()
    except Exception as problem:
        raise TableError(
            f"engine {engine!r} can not be reached: {type(problem).__name__}. To fix, check the "
            "host and the port in its URL, and that Java 17 or later is installed."
        ) from None
    _refuse_open_session(made, engine)
    made.sparkContext.setLogLevel("OFF")
    return made


def _refuse_open_session(made: Any, engine: str) -> None:
    """A session that was open already keeps its settings, whatever we asked for."""
    now = made.sparkContext.getConf()
    for name, unsafe, why in KEPT:
        if str(now.get(name, USUAL[name])).lower() == unsafe:
            safe = "true" if unsafe == "false" else "false"
            raise TableError(
                f"engine {engine!r}: a session of Spark is open already and {why}. To fix, stop "
                f"that session, or open it with {name}={safe}."
            )


@contextmanager
def quiet() -> Iterator[None]:
    """Without PySpark's warning that it has not been tried with the newest Pandas, unused here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        yield
