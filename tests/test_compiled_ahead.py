"""`countwise warm-up` leaves no compiled function out, but two rare ones and what they call."""

from importlib import import_module
from pkgutil import iter_modules

import pytest

from countwise import compiled_ahead, kernels
from countwise.errors import CountwiseError
from countwise.kernels.compilation import not_kept

INLINED = {"keyed_hash._round", "keyed_hash._turn"}  # into their callers, which are kept
RARE = {"gibbs_sweeps.products"}  # met by some samplers of counts alone
BY_FREQUENCY = "spectrum."  # of summed totals with very many pairs of counts


@pytest.mark.timeout(1200)
def test_every_function_is_kept() -> None:
    """In a fresh folder this takes minutes."""
    stages: list[str] = []
    compiled_ahead.compile_ahead(stages.append)
    assert stages == list(compiled_ahead.JOBS)
    for module in iter_modules(kernels.__path__):
        import_module(f"{kernels.__name__}.{module.name}")
    left = {name for name in not_kept() if not name.startswith(BY_FREQUENCY)}
    assert left <= INLINED | RARE


def test_it_is_refused_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_ahead, "folder_of_code", lambda: None)
    with pytest.raises(CountwiseError, match="NUMBA_CACHE_DIR"):
        compiled_ahead.compile_ahead()
