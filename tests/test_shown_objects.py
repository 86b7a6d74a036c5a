"""What people see of objects in Python and in notebooks: a line, a table, a picture."""

from pathlib import Path

import numpy as np
import pytest

import countwise as cw
from countwise.errors import InputError
from countwise.examples import BY, COUNT, clinics
from countwise.examples.workers import workers
from countwise.pages.notebook import Picture
from countwise.release import counts_page
from countwise.verification.answer import Answer, recompute

LONGEST = 250
ANSWER = {
    "noisy": [41, 8, 1], "epsilon": "1", "partitions": 50, "alpha": [1.0, 1.0, 1.0],
    "mechanism": "lattice", "claim": "age > 0", "model": "hours ~ age", "family": "ols",
}  # fmt: skip


@pytest.fixture(scope="module")
def release() -> cw.Release:
    table = cw.read_counts(clinics(), by=BY, count=COUNT, cells_are_public=True)
    return cw.release(table, cw.Plan(epsilon=3, title="Clinics", mechanism="geometric"))


@pytest.fixture(scope="module")
def crossed() -> cw.CrossedRelease:
    table = cw.read_counts(
        clinics(), by=BY[:2], across={"d": [BY[2]]}, count=COUNT, cells_are_public=True
    )
    return cw.release(table, cw.Plan(rho=1, by=BY[:2], across={"d": [BY[2]]}))


@pytest.fixture(scope="module")
def posterior(release: cw.Release) -> object:
    return cw.infer(release)


def answer() -> Answer:
    return recompute(ANSWER)


def shown(release: cw.Release, crossed: cw.CrossedRelease, posterior: object) -> dict[str, object]:
    draws = posterior.draws(20, rng=np.random.default_rng(1))  # type: ignore[attr-defined]
    return {
        "release": release, "crossed": crossed, "posterior": posterior, "draws": draws,
        "sums": cw.infer(crossed), "plan": release.plan, "answer": answer(),
    }  # fmt: skip


def test_every_object_is_a_line_and_a_table(
    release: cw.Release, crossed: cw.CrossedRelease, posterior: object
) -> None:
    for name, each in shown(release, crossed, posterior).items():
        line = repr(each)
        assert len(line) < LONGEST, (name, line)
        assert "array(" not in line
        html = each._repr_html_()  # type: ignore[attr-defined]
        assert html.count("<table>") == 1, name
        assert html.count("<tr>") <= 12
        assert len(html) < 20_000


def test_labels_and_titles_are_escaped_in_notebooks(release: cw.Release) -> None:
    made = cw.release(
        cw.read_counts(clinics(), by=BY, count=COUNT, cells_are_public=True),
        cw.Plan(epsilon=1, title="<script>alert(1)</script>", mechanism="geometric"),
    )
    assert "<script>" not in made._repr_html_()
    assert "<script>" not in made.plot()._repr_html_()
    assert "Clinics" in repr(release)


def test_frames_of_both_kinds_hold_the_same(
    release: cw.Release, crossed: cw.CrossedRelease, posterior: object
) -> None:
    pytest.importorskip("pandas")
    for name, each in shown(release, crossed, posterior).items():
        if name == "plan":
            continue
        polars, pandas = each.to_polars(), each.to_pandas()  # type: ignore[attr-defined]
        assert list(pandas.columns) == polars.columns, name
        assert len(pandas) == len(polars)
    assert release.to_polars().equals(release.table())
    draws = posterior.draws(7, rng=np.random.default_rng(1))  # type: ignore[attr-defined]
    frame = draws.to_polars()
    assert frame["total"].to_list() == draws["total"].tolist()
    assert frame.width == release.size


def test_pictures_show_every_count_of_a_level(
    release: cw.Release, crossed: cw.CrossedRelease, posterior: object, tmp_path: Path
) -> None:
    clinic = release.plot("clinic")
    assert isinstance(clinic, Picture)
    assert clinic._page.count("<li>") == 13
    assert "<iframe" in clinic._repr_html_()
    clinic.save(tmp_path / "p.html")
    assert "Old Docks" in (tmp_path / "p.html").read_text()
    assert crossed.plot("region*diagnosis")._page.count("<li>") == 15
    assert posterior.plot("region")._page.count("<li>") == 3  # type: ignore[attr-defined]
    node = posterior.node("Harbour")  # type: ignore[attr-defined]
    assert "Harbour" in node.plot().title
    assert repr(node).startswith("Node 'Harbour' released")
    draws = posterior.draws(9, rng=np.random.default_rng(1))  # type: ignore[attr-defined]
    assert "Harbour" in draws.plot("Harbour").title
    assert "partitions" in answer().plot().title
    with pytest.raises(InputError, match="a level"):
        release.plot("clinics")


def test_a_level_that_no_picture_holds_is_refused(
    monkeypatch: pytest.MonkeyPatch, release: cw.Release
) -> None:
    monkeypatch.setattr(counts_page, "LARGEST_CHART", 5)
    with pytest.raises(InputError, match="13 counts, and a picture holds 5"):
        release.plot("clinic")


def test_a_schema_is_read_without_deep_imports() -> None:
    assert isinstance(cw.read_schema(workers("workers.toml")), cw.Schema)
