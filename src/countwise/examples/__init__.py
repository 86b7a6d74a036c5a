"""The bundled example: patients of thirteen made-up clinics by diagnosis, most counts small."""

from importlib.resources import files
from pathlib import Path

BY = ("region", "clinic", "diagnosis")
COUNT = "patients"


def clinics() -> Path:
    """The file of the example."""
    return Path(str(files("countwise.examples") / "clinics.csv"))
