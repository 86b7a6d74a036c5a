"""A session of Spark, made so that what it writes on its way is encrypted, and no log is kept."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from countwise.errors import TableError

SCHEMES = ("spark", "pyspark")
EVENT_LOG = "spark.eventLog.enabled"
SETTINGS = {
    "spark.io.encryption.enabled": "true",  # shuffled and spilled records and counts
    "spark.ui.enabled": "false",  # shows queries, with the key of bounded rows in them
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
    if str(made.sparkContext.getConf().get(EVENT_LOG, "false")).lower() == "true":
        raise TableError(
            f"engine {engine!r}: a session of Spark is open already and keeps an event log, which "
            "would hold exact numbers of records and people. To fix, stop the session, or open it "
            f"with {EVENT_LOG}=false."
        )
    made.sparkContext.setLogLevel("OFF")
    return made


@contextmanager
def quiet() -> Iterator[None]:
    """Without PySpark's warning that it has not been tried with the newest Pandas, unused here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
        yield
