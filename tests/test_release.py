"""The boundary, the folder, and what is never in it."""

import ast
import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import countwise as cw
from cases import HARD_CASES, Case, flat, tree
from countwise.errors import CountwiseError, InputError, ReleaseError
from countwise.noise.laws import IntegerLaw
from countwise.release import measure as boundary
from countwise.release.document import check_counts
from countwise.tables.confidential import Confidential

SOURCE = Path(cw.__file__).parent
PAGES = {"certificate.html", "release.html"}
FILES = {"counts.csv", "counts.parquet", "measurements.parquet", "release.json"} | PAGES


def released(case: Case, **changes: object) -> cw.Release:
    return cw.release(Confidential(case.hierarchy, case.cells), case.make_plan(**changes))


def test_only_the_boundary_reveals() -> None:
    """`reveal` is called in the boundaries of releases and verification, and nowhere else.

    `synthetic_partitions` refuses rows that were not read as synthetic.
    """
    callers = [
        f"{path.relative_to(SOURCE)}:{function.name}"
        for path in SOURCE.rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr == "reveal"
    ]
    assert sorted(callers) == [
        "release/measure.py:measure",
        "verification/verify.py:_outcomes",
        "verification/verify.py:synthetic_partitions",
    ]


def test_no_seed_near_privacy_noise() -> None:
    for path in [*(SOURCE / "noise").glob("*.py"), SOURCE / "release" / "measure.py"]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.arg):
                assert not re.search("seed|rng|random", node.arg), f"{path}: {node.arg}"


def test_neighbours_differ_by_the_sensitivity_and_take_the_same_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Noise frozen: the calls are identical, and levels move by no more than declared."""
    hierarchy = tree(3, 4)
    calls: list[tuple[IntegerLaw, int]] = []

    def frozen_noise(law: IntegerLaw, size: int) -> np.ndarray:
        calls.append((law, size))
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setitem(boundary.SAMPLERS, "exact", frozen_noise)
    rng = np.random.default_rng(3)
    for neighbours, rows in (("add-remove", 1), ("add-remove", 2), ("replace-one", 2)):
        budget = cw.Plan(epsilon=1, neighbours=neighbours, rows=rows).budget(hierarchy)
        for _ in range(30):
            cells = rng.integers(0, 4, 12)
            other = cells + np.bincount(rng.integers(0, 12, rows), minlength=12)
            if neighbours == "replace-one":
                cells = cells + np.bincount(rng.integers(0, 12, 1), minlength=12)
            calls.clear()
            first = boundary.measure(Confidential(hierarchy, cells.copy()), budget)
            steps = list(calls)
            calls.clear()
            second = boundary.measure(Confidential(hierarchy, other), budget)
            assert calls == steps
            for a, b, level in zip(first.noisy, second.noisy, budget.levels, strict=True):
                assert np.abs(a - b).sum() <= level.sensitivity


def test_probability_ratios_of_neighbours_stay_within_epsilon() -> None:
    """Every output of a small table: the log-ratio of its probabilities never passes ε."""
    hierarchy = flat(2)
    for neighbours, one, other in (
        ("add-remove", [3, 1], [3, 2]),
        ("replace-one", [3, 1], [2, 2]),
    ):
        budget = cw.Plan(epsilon="0.7", neighbours=neighbours).budget(hierarchy)
        true = [hierarchy.sums(np.array(cells)) for cells in (one, other)]
        grid = np.arange(-6, 11)
        worst = 0.0
        for level, law in enumerate(budget.laws):
            ratios = [
                np.abs(law.logpmf(grid - a) - law.logpmf(grid - b)).max() if a != b else 0.0
                for a, b in zip(true[0][level], true[1][level], strict=True)
            ]
            worst += sum(ratios)
        assert worst == pytest.approx(0.7, abs=1e-12)


@pytest.mark.parametrize("case", HARD_CASES, ids=lambda case: case.name)
def test_a_release_is_written_whole_and_read_back(case: Case, tmp_path: Path) -> None:
    release = released(case)
    folder = tmp_path / "release"
    release.save(folder)
    assert {path.name for path in folder.iterdir()} == FILES
    assert list(tmp_path.iterdir()) == [folder]
    back = cw.read_release(folder)
    assert back.manifest() == release.manifest()
    assert back.budget == release.budget
    for a, b in zip(back.counts, release.counts, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(back.measurements.noisy, release.measurements.noisy, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("noise", ["exact", "opendp"])
@pytest.mark.parametrize("mechanism", ["geometric", "laplace"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_every_mechanism_releases(noise: str, mechanism: str, neighbours: str) -> None:
    case = HARD_CASES[2]
    release = released(case, noise=noise, mechanism=mechanism, neighbours=neighbours, epsilon=2)
    check_counts(case.hierarchy, release.counts)
    if neighbours == "replace-one":
        assert release.counts[0][0] == case.cells.sum()


@pytest.mark.parametrize("noise", ["exact", "opendp"])
def test_gaussian_releases_count_in_rho(noise: str, tmp_path: Path) -> None:
    case = HARD_CASES[2]
    table = Confidential(case.hierarchy, case.cells)
    release = cw.release(table, cw.Plan(rho="0.3", mechanism="gaussian", noise=noise))
    release.save(tmp_path / "r")
    assert cw.read_release(tmp_path / "r").budget == release.budget
    privacy = json.loads((tmp_path / "r" / "release.json").read_text())["privacy"]
    assert privacy["rho"] == "0.3"
    assert privacy["epsilon_at_delta"] == pytest.approx(3.9201, abs=1e-4)
    page = (tmp_path / "r" / "certificate.html").read_text()
    assert "zero-concentrated" in page
    assert "ρ = 0.3" in page


def test_fresh_noise_and_fresh_ties_every_time() -> None:
    case = HARD_CASES[7]
    first, second = released(case), released(case)
    assert (first.measurements.noisy[1] != second.measurements.noisy[1]).any()
    assert first.tie_key != second.tie_key


def test_the_noise_of_a_release_has_its_law() -> None:
    size = 20_000
    case = Case(name="", hierarchy=flat(size), cells=np.full(size, 100))
    noise = released(case, epsilon={"total": 1, "part": "0.5"}).measurements.noisy[1] - 100
    assert noise.mean() == pytest.approx(0, abs=0.12)
    law = cw.Plan(epsilon={"total": 1, "part": "0.5"}).budget(case.hierarchy).laws[1]
    assert law.scale == Fraction(2)
    assert noise.var() == pytest.approx(law.variance, rel=0.1)


def test_nothing_confidential_is_in_the_folder(tmp_path: Path) -> None:
    """A count planted far from any noise appears nowhere; nor do paths, users or seeds."""
    hierarchy = flat(3)
    planted = 777_123_457
    release = cw.release(
        Confidential(hierarchy, np.array([planted, 5, 0])), cw.Plan(epsilon="0.0000001")
    )
    folder = tmp_path / "release"
    release.save(folder)
    text = "".join((folder / name).read_text() for name in FILES if not name.endswith("parquet"))
    tables = [pl.read_parquet(folder / name) for name in FILES if name.endswith("parquet")]
    assert str(planted) not in text
    assert all(planted not in frame.to_series(-1).to_list() for frame in tables)
    for word in (str(tmp_path), "seed", Path.home().name + "@", "rows_read"):
        assert word not in text


def test_the_manifest_is_enough_to_infer_from(tmp_path: Path) -> None:
    plain = {"split": "even", "mechanism": "geometric"}
    released(HARD_CASES[2], **plain).save(tmp_path / "r")
    manifest = json.loads((tmp_path / "r" / "release.json").read_text())
    assert manifest["format"] == 2
    assert manifest["privacy"] == {
        "epsilon": "1",
        "sum": "1/3 (total) + 1/3 (l0) + 1/3 (l1) = 1",
        "neighbours": "add-remove",
        "promise": "Whether or not any one person is in the records, no possible release becomes "
        "more than e^1 ≈ 2.72 times more or less likely.",
        "rows": 1,
    }
    assert manifest["measured"][2] == {
        "margin": "l1", "counts": 12, "law": "geometric", "scale": "3", "sensitivity": 1,
        "epsilon": "1/3",
    }  # fmt: skip
    assert re.fullmatch("[0-9a-f]{16}", manifest["adjustment"]["tie_key"])
    assert set(manifest["checksums"]) == {"counts.csv", "counts.parquet", "measurements.parquet"}


def test_an_existing_folder_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="--overwrite"):
        released(HARD_CASES[0]).save(folder)
    assert (folder / "mine.txt").read_text() == "mine"
    with pytest.raises(InputError, match="holds other things than a release"):
        released(HARD_CASES[0]).save(folder, overwrite=True)
    (folder / "mine.txt").unlink()
    released(HARD_CASES[0]).save(folder, overwrite=True)
    released(HARD_CASES[0]).save(folder, overwrite=True)
    assert {path.name for path in folder.iterdir()} == FILES


def test_a_file_is_never_replaced_by_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "cells.csv"
    path.write_text("mine")
    with pytest.raises(InputError, match="is a file and is left alone"):
        released(HARD_CASES[0]).save(path, overwrite=True)
    assert path.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [path]


def test_names_are_never_patterns(tmp_path: Path) -> None:
    """Of `my[1].csv` and `my1.csv` the one that was named is read, and written back."""
    (tmp_path / "my[1].csv").write_text("part,n\na,430\n")
    (tmp_path / "my1.csv").write_text("part,n\na,99999\n")
    table = cw.read_counts(tmp_path / "my[1].csv", by=["part"], count="n", cells_are_public=True)
    assert table.reveal().tolist() == [430]
    release = cw.release(table, cw.Plan(epsilon=1))
    release.save(tmp_path / "out[1]")
    assert cw.read_release(tmp_path / "out[1]").manifest() == release.manifest()


@pytest.mark.parametrize("stage", ["counts.csv", "measurements", "checking"])
def test_an_interrupted_write_leaves_nothing(stage: str, tmp_path: Path) -> None:
    def interrupt(told: str) -> None:
        if stage in told:
            raise KeyboardInterrupt

    kept = tmp_path / "kept"
    released(HARD_CASES[0]).save(kept)
    before = (kept / "release.json").read_text()
    with pytest.raises(KeyboardInterrupt):
        released(HARD_CASES[0]).save(kept, overwrite=True, tell=interrupt)
    with pytest.raises(KeyboardInterrupt):
        released(HARD_CASES[0]).save(tmp_path / "new", tell=interrupt)
    assert list(tmp_path.iterdir()) == [kept]
    assert (kept / "release.json").read_text() == before


def test_counts_that_do_not_add_up_never_get_a_name(tmp_path: Path) -> None:
    release = released(HARD_CASES[2])
    broken = (release.counts[0] + 1, *release.counts[1:])
    object.__setattr__(release, "counts", broken)
    with pytest.raises(CountwiseError, match="below total do not add up"):
        release.save(tmp_path / "r")
    assert not list(tmp_path.iterdir())
    negative = np.zeros(12, dtype=np.int64)
    negative[4:6] = 1, -1
    with pytest.raises(ReleaseError, match="00001/00001 is negative"):
        check_counts(
            HARD_CASES[2].hierarchy,
            (*HARD_CASES[2].hierarchy.sums(negative)[:2], negative),
            error=ReleaseError,
        )


def _edit_json(change: Callable[[dict[str, object]], object]) -> Callable[[Path], object]:
    def edit(folder: Path) -> None:
        path = folder / "release.json"
        manifest = json.loads(path.read_text())
        change(manifest)
        path.write_text(json.dumps(manifest))

    return edit


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "release.json").unlink(), "has no release.json"),
        (lambda f: (f / "release.json").write_text("{"), "not readable as JSON"),
        (lambda f: (f / "counts.parquet").unlink(), "counts.parquet is missing"),
        (lambda f: (f / "counts.csv").write_text("x"), "was changed after"),
        (_edit_json(lambda m: m.update(format=99)), "not of release format 1"),
        (_edit_json(lambda m: m.pop("measured")), "has no 'measured'"),
        (_edit_json(lambda m: m["measured"].pop()), "the noise of every level"),
    ],
)
def test_damaged_folders_are_refused(
    damage: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    released(HARD_CASES[2]).save(tmp_path / "r")
    damage(tmp_path / "r")
    with pytest.raises(ReleaseError, match=message):
        cw.read_release(tmp_path / "r")


def test_the_certificate_speaks_to_a_person(tmp_path: Path) -> None:
    released(HARD_CASES[2], neighbours="replace-one", rows=1).save(tmp_path / "r")
    page = (tmp_path / "r" / "certificate.html").read_text()
    for words in ("What is promised", "What is not promised", "Not protected", "ε = 1", "total"):
        assert words in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_labels_are_escaped(tmp_path: Path) -> None:
    from countwise.release.counts_page import release_page

    path = tmp_path / "cells.csv"
    path.write_text('part,n\n<script>alert(1)</script>,3\n"a & b",4\n')
    table = cw.read_counts(path, by=["part"], count="n", cells_are_public=True)
    page = release_page(cw.release(table, cw.Plan(epsilon=1)))
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
