"""Data beside the checkout."""

from pathlib import Path

import pytest

from needs import needs

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def north_carolina() -> Path:
    """2020 census counts of North Carolina: county, tract, race."""
    path = SHARED_DATA / "nc_tracts_2020.csv"
    needs(path.is_file(), "the census tracts in ../shared/data")
    return path
