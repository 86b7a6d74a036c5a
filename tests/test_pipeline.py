"""Tables in memory and tables in pieces go one way, and end in the same folder."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import countwise as cw
from countwise.errors import TableError
from countwise.release.count_sources import HeldSource, table_source
from countwise.release.document import Release
from countwise.release.folder import place
from countwise.release.payment import Payment
from countwise.release.pipeline import publish
from countwise.release.publication import HeldPublication
from countwise.tables.confidential import Confidential
from test_large_release import BY, frame, written


def held(path: Path) -> HeldSource:
    return HeldSource(
        read=lambda: cw.read_counts(path, by=BY, count="count", cells_are_public=True)
    )


@pytest.mark.parametrize("adjust", ["mode", "least-squares", "clipped", "draw-1"])
def test_small_and_large_tables_go_one_way(adjust: str, tmp_path: Path) -> None:
    """The same files, words and columns, and with next to no noise the same counts."""
    path = written(tmp_path, frame())
    plan = cw.Plan(epsilon=200_000, by=BY, mechanism="geometric", adjust=adjust)
    cut = table_source(path, by=BY, count="count", domain=None, most=80)
    assert cut is not None
    folders = [tmp_path / "whole", tmp_path / "pieces"]
    for source, folder in zip((held(path), cut), folders, strict=True):
        made = publish(source, plan, folder)
        said = json.loads((folder / "release.json").read_text())
        assert made.manifest() == said
        assert not made.resumed
        assert not place(folder).exists()
    whole, pieces = (json.loads((each / "release.json").read_text()) for each in folders)
    for key in ("variables", "margins", "measured", "privacy"):
        assert whole[key] == pieces[key]
    for name in ("counts.parquet", "measurements.parquet"):
        first, second = (pl.read_parquet(each / name) for each in folders)
        assert first.columns == second.columns
        labels = [*BY, "level"]
        assert first[labels].cast(pl.String).equals(second[labels].cast(pl.String))
    one, other = (cw.read_release(each) for each in folders)
    assert isinstance(one, Release)
    assert isinstance(other, Release)
    for a, b in zip(one.measurements.noisy, other.measurements.noisy, strict=True):
        np.testing.assert_array_equal(a, b)


def test_noise_in_memory_goes_with_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn is nowhere when the run does not end well, and the next one draws anew."""
    path, out = written(tmp_path, frame()), tmp_path / "release"
    plan = cw.Plan(epsilon=1, by=BY, adjust="mode")
    with monkeypatch.context() as patch:
        patch.setattr(HeldPublication, "check_written", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            publish(held(path), plan, out)
    assert [each.name for each in tmp_path.iterdir()] == ["cells.parquet"]
    publish(held(path), plan, out)
    assert cw.read_release(out).size == 426


def test_a_charge_is_made_before_a_row_is_read_and_kept_for_the_next_run(tmp_path: Path) -> None:
    """Refused input leaves the name of its charge; noise that was drawn uses it up."""
    path, out, paid = written(tmp_path, frame()), tmp_path / "release", list[str]()
    payment = Payment(pay=paid.append, purpose="purpose", words="1 of ε")
    plan = cw.Plan(epsilon=1, by=BY)

    def refused() -> Confidential:
        assert paid, "rows are read before they are paid for"
        raise TableError("this table is wrong.")

    for _ in range(2):
        with pytest.raises(TableError) as refusal:
            publish(HeldSource(read=refused), plan, out, payment=payment)
        assert "stays charged; no noise was drawn" in refusal.value.__notes__[0]
    publish(held(path), plan, out, payment=payment)
    assert len(paid) == 3
    assert len(set(paid)) == 1
    publish(held(path), plan, out, payment=payment, overwrite=True)
    assert len(set(paid)) == 2


def test_noise_that_was_drawn_in_memory_uses_its_charge_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever could run again until a release pleased would draw twice for one charge."""
    path, out, paid = written(tmp_path, frame()), tmp_path / "release", list[str]()
    payment = Payment(pay=paid.append, purpose="purpose", words="1 of ε")
    plan = cw.Plan(epsilon=1, by=BY, adjust="mode")
    with monkeypatch.context() as patch:
        patch.setattr(HeldPublication, "check_written", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            publish(held(path), plan, out, payment=payment)
    assert not place(out).exists()
    publish(held(path), plan, out, payment=payment)
    assert len(set(paid)) == len(paid) == 2
