"""What tests share: data beside the checkout, and skips that are loud and never in CI."""

import os
from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


def needs(present: bool, what: str) -> None:
    """Skip loudly where something is missing on this machine; in CI that is a failure."""
    if present:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must have {what}")
    pytest.skip(f"NOT TESTED: {what} is missing on this machine")


@pytest.fixture
def north_carolina() -> Path:
    """2020 census counts of North Carolina: county, tract, race."""
    path = SHARED_DATA / "nc_tracts_2020.csv"
    needs(path.is_file(), "the census tracts in ../shared/data")
    return path
