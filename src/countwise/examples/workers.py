"""The example of verification: made-up working hours, their schema, and a synthetic twin."""

from importlib.resources import files
from pathlib import Path

FILES = ("workers.toml", "workers.csv", "workers_synthetic.csv")


def workers(name: str = "workers.csv") -> Path:
    """A file of the example."""
    return Path(str(files("countwise.examples") / name))


def write_example(folder: Path) -> tuple[str, ...]:
    """Copy the example to a new folder; returns the names of its files."""
    folder.mkdir()
    for name in FILES:
        (folder / name).write_bytes(workers(name).read_bytes())
    return FILES
