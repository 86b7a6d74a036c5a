"""Releases made in pieces are what they would be in one, and survive being stopped."""

import fcntl
import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

import countwise as cw
from countwise.adjust.adjustments import ADJUSTMENTS, Choices
from countwise.adjust.tree_walk import Piece
from countwise.errors import InputError, PlanError, TableError
from countwise.release import noise_budget
from countwise.release.checkpoints import Staging
from countwise.release.count_sources import record_source, table_source
from countwise.release.document import read_release
from countwise.release.folder import place
from countwise.release.piece_tasks import TOP, TaskContext
from countwise.release.pipeline import method_by_pieces, publish
from countwise.release.publication import Publication
from countwise.sumproduct.prior_free_laws import ByNormal
from countwise.tables.cut import Cut, cut_domain, cut_file, gathered
from countwise.tables.domainfile import read_domain_file
from countwise.tables.hierarchy import build
from countwise.tables.measurements import Measurements
from countwise.tables.tabulate import Tabulation, tabulate

pytestmark = pytest.mark.filterwarnings(
    "ignore:fetch_arrow_table:DeprecationWarning"  # Ibis 12 on DuckDB 2
)

BY = ("state", "county", "kind")
SHAPE = (5, 7, 11)


def frame(shape: Sequence[int] = SHAPE, by: Sequence[str] = BY, seed: int = 1) -> pl.DataFrame:
    """Cells of a full tree, with counts."""
    rng = np.random.default_rng(seed)
    grids = np.indices(shape).reshape(len(shape), -1)
    columns = {name: [f"{name} {i}" for i in grid] for name, grid in zip(by, grids, strict=True)}
    return pl.DataFrame(columns | {"count": rng.negative_binomial(0.5, 0.05, grids.shape[1])})


def written(folder: Path, table: pl.DataFrame, name: str = "cells.parquet") -> Path:
    path = folder / name
    table.write_csv(path) if path.suffix == ".csv" else table.write_parquet(path)
    return path


def make(
    path: Path, out: Path, *, by: tuple[str, ...] = BY, most: int = 80, **changes: object
) -> Publication:
    how = {key: changes.pop(key) for key in ("fresh", "overwrite", "csv") if key in changes}
    domain = changes.pop("domain", None)
    source = table_source(path, by=by, count="count", domain=domain, most=most)
    assert source is not None
    return publish(source, cw.Plan(**({"epsilon": 3, "by": by} | changes)), out, **how)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("name", ["cells.parquet", "cells.csv"])
def test_a_table_is_cut_into_whole_subtrees(name: str, shuffled: bool, tmp_path: Path) -> None:
    table = frame()
    if shuffled:
        table = table.sample(fraction=1.0, shuffle=True, seed=3)
    cut = cut_file(written(tmp_path, table, name), by=BY, most=80)
    assert cut is not None
    assert (cut.depth, len(cut), cut.total) == (1, 5, 385)
    assert cut.cells.tolist() == [77] * 5
    assert (cut.rows(2).condition is None) is not shuffled
    assert cut_file(tmp_path / name, by=BY, most=385) is None
    assert cut_file(tmp_path / name, by=("state",), most=10) is None


def test_pieces_hold_so_many_cells_or_one_subtree() -> None:
    assert gathered(np.array([3, 3, 3, 10, 1, 1]), 6).tolist() == [0, 2, 3, 4, 6]
    assert gathered(np.array([9]), 6).tolist() == [0, 1]


def measured(cut: Cut, table: pl.DataFrame, noisy: tuple[np.ndarray, ...]) -> tuple[object, ...]:
    """Noisy counts of a whole tree, and the same in pieces."""
    whole, _ = build(table.select(BY))
    laws = cw.Plan(epsilon=3).budget(whole).laws
    everything = Measurements(hierarchy=whole, laws=laws, noisy=noisy)
    top = Measurements(hierarchy=cut.top, laws=laws[: cut.depth + 1], noisy=noisy[: cut.depth + 1])
    starts = [np.concatenate([[0], np.cumsum(n)]) for n in ([7] * 5, [77] * 5)]
    firsts = np.cumsum(whole.sizes) - whole.sizes
    pieces = []
    for i in range(len(cut)):
        nodes = cut.nodes(i)
        hierarchy, _ = build(table.sort(BY).select(BY)[77 * nodes.start : 77 * nodes.stop])
        here = [(int(s[nodes.start]), int(s[nodes.stop])) for s in starts]
        values = (np.empty(0, np.int64),) * 2 + tuple(
            noisy[level + 2][a:b] for level, (a, b) in enumerate(here)
        )
        own = Measurements(hierarchy=hierarchy, laws=laws, noisy=values)
        first = (0, 0, *(int(firsts[level + 2]) + a for level, (a, _) in enumerate(here)))
        pieces.append(Piece(measurements=[own], depth=1, firsts=first))
    return everything, top, pieces


@pytest.mark.parametrize("ties", ["random", "last"])
@pytest.mark.parametrize("total", ["independent", "summed"])
@pytest.mark.parametrize("method", ["mode", "least-squares", "clipped"])
def test_adjusting_in_pieces_is_adjusting_the_whole(
    method: str, total: str, ties: str, tmp_path: Path
) -> None:
    """The same noisy counts: equal counts at every node, ties included."""
    table = frame()
    cut = cut_file(written(tmp_path, table), by=BY, most=80)
    hierarchy, order = build(table.select(BY))
    rng = np.random.default_rng(5)
    noisy = tuple(
        each + rng.integers(-3, 4, len(each))
        for each in hierarchy.sums(table["count"].to_numpy()[order])
    )
    everything, top, pieces = measured(cut, table, noisy)
    key = 1234567 if ties == "random" else None
    plan = cw.Plan(epsilon=3, adjust=method, total=total, ties=ties)
    expected = plan.adjustment(tie_key=key, rng=rng)([everything])
    how = ADJUSTMENTS[method].make(Choices(tie_key=key, total=total, rng=rng))
    ups = [how.up(piece) for piece in pieces]
    across = how.across([top], tuple(np.concatenate(each) for each in zip(*ups, strict=True)))
    got = [list(across)]
    got += [how.down(piece, across[1][cut.nodes(i)]) for i, piece in enumerate(pieces)]
    for level in range(2):
        np.testing.assert_array_equal(across[level], expected[level])
    for level in (2, 3):
        joined = np.concatenate([each[level - 2] for each in got[1:]])
        np.testing.assert_array_equal(joined, expected[level])


@pytest.mark.parametrize("method", [name for name, each in ADJUSTMENTS.items() if each.in_pieces])
def test_a_release_in_pieces_reads_like_any_other(method: str, tmp_path: Path) -> None:
    """Near the truth where there is next to no noise, adding up, with the same manifest."""
    table = frame()
    out = tmp_path / "release"
    made = make(written(tmp_path, table), out, adjust=method, epsilon=200_000)
    whole = cw.read_counts(tmp_path / "cells.parquet", by=BY, count="count", cells_are_public=True)
    plan = cw.Plan(epsilon=200_000, by=BY, adjust=method, mechanism="geometric")
    expected = cw.release(whole, plan)
    back = cw.read_release(out)
    assert back.hierarchy.sizes == (1, 5, 35, 385)
    assert back.budget == expected.budget == made.budget
    assert set(made.manifest()) == set(expected.manifest()) | {"checksums"}
    assert {path.name for path in out.iterdir()} == {
        "counts.csv", "counts.parquet", "measurements.parquet", "release.json", "certificate.html"
    }  # fmt: skip
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    truth = whole.hierarchy.sums(whole.reveal())
    for level, counts in enumerate(back.counts):
        np.testing.assert_array_equal(back.measurements.noisy[level], truth[level])
        if not method.startswith("draw"):
            np.testing.assert_array_equal(counts, truth[level])
    in_csv = pl.read_csv(out / "counts.csv")
    assert in_csv["count"].to_list() == np.concatenate(back.counts).tolist()
    order = pl.read_parquet(out / "counts.parquet")
    assert order["level"].cast(pl.String).to_list() == [
        "total", *["state"] * 5, *["county"] * 35, *["kind"] * 385
    ]  # fmt: skip


def test_noise_in_pieces_has_the_law_it_should_have(tmp_path: Path) -> None:
    """20,000 cells: mean absolute noise of every large level within six standard errors."""
    shape = (10, 20, 100)
    table = frame(shape).with_columns(count=pl.lit(50, pl.Int64))
    make(written(tmp_path, table), tmp_path / "release", most=3000, epsilon=1)
    back = cw.read_release(tmp_path / "release")
    for level, true in ((2, 5000), (3, 50)):
        noise = back.measurements.noisy[level] - true
        law = back.budget.laws[level]
        k = np.arange(-2000, 2001)
        mean = float((np.abs(k) * law.pmf(k)).sum())
        spread = np.sqrt(float((k**2 * law.pmf(k)).sum()) - mean**2)
        assert abs(np.abs(noise).mean() - mean) < 6 * spread / np.sqrt(len(noise))
        assert abs(noise.mean()) < 6 * np.sqrt(law.variance / len(noise))


def test_relative_splits_and_replaced_people_have_the_budget_of_the_whole(tmp_path: Path) -> None:
    path = written(tmp_path, frame())
    whole = cw.read_counts(path, by=BY, count="count", cells_are_public=True)
    for i, changes in enumerate(
        ({"split": "relative"}, {"neighbours": "replace-one"}, {"epsilon": None, "rho": 1,
         "mechanism": "gaussian"}, {"split": {"total": 1, "state": 2, "county": 3, "kind": 4}})
    ):  # fmt: skip
        made = make(path, tmp_path / f"release{i}", **changes)
        plan = cw.Plan(**({"epsilon": 3, "by": BY, "mechanism": "geometric"} | changes))
        assert made.budget == plan.budget(whole.hierarchy)


def test_a_public_domain_fills_in_zeros(tmp_path: Path) -> None:
    """The domain as a product and as a file: cells without a row are there, others refused."""
    table = frame()
    lists = "\n".join(
        f"[columns.{name}]\nlevels = {[f'{name} {i}' for i in range(n)]}"
        for name, n in zip(BY, SHAPE, strict=True)
    )
    (tmp_path / "domain.toml").write_text(lists)
    written(tmp_path, table.select(BY), "domain.parquet")
    some = table.filter(pl.col("kind") != "kind 3").sample(fraction=1.0, shuffle=True, seed=1)
    path = written(tmp_path, some)
    true = table.with_columns(count=pl.when(pl.col("kind") == "kind 3").then(0).otherwise("count"))
    hierarchy, order = build(table.select(BY))
    for i, domain in enumerate(("domain.toml", "domain.parquet")):
        make(path, tmp_path / f"r{i}", domain=tmp_path / domain, epsilon=200_000)
        back = cw.read_release(tmp_path / f"r{i}")
        assert back.hierarchy.sizes == hierarchy.sizes
        np.testing.assert_array_equal(back.counts[-1], true["count"].to_numpy()[order])
        stranger = pl.concat([some, some[:1].with_columns(county=pl.lit("elsewhere"))])
        outside = written(tmp_path, stranger, "outside.parquet")
        with pytest.raises(TableError, match=r"row 351: this cell is not in the domain"):
            make(outside, tmp_path / "r9", domain=tmp_path / domain)


BAD_TABLES: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = {
    "negative": (lambda t: t.with_columns(count=pl.when(pl.int_range(pl.len()) == 200)
                 .then(-987).otherwise("count")), r"row 201: column 'count' is negative"),
    "missing": (lambda t: t.with_columns(count=pl.when(pl.int_range(pl.len()) == 200)
                .then(None).otherwise("count")), r"row 201: column 'count' is missing"),
    "twice": (lambda t: pl.concat([t, t[100:101]]), r"row 386: duplicate of the cell in row 101"),
    "empty outer label": (lambda t: t.with_columns(state=pl.when(pl.int_range(pl.len()) == 200)
                          .then(None).otherwise("state")), r"row 201: level column 'state' is"),
    "empty inner label": (lambda t: t.with_columns(kind=pl.when(pl.int_range(pl.len()) == 200)
                          .then(pl.lit("")).otherwise("kind")), r"row 201: level column 'kind'"),
}  # fmt: skip


UNFIT: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = {
    "lists": (lambda t: t.with_columns(pl.concat_list("count")),
              "column 'count' has values of type List"),
    "labels in lists": (lambda t: t.with_columns(pl.concat_list("kind")),
                        "level column 'kind' has values of type List"),
    "structs": (lambda t: t.with_columns(pl.struct(pl.col("count").alias("987")).alias("count")),
                "column 'count' has values of type Struct"),
    "sum too large": (lambda t: t.with_columns(pl.lit(9 * 10**12).alias("count")),
                      r"column 'count' adds up to more than 10\^15"),
    "last row": (lambda t: t.with_columns(count=pl.when(pl.int_range(pl.len()) == pl.len() - 1)
                 .then(-987).otherwise("count")), r"row 385: column 'count' is negative"),
    "label of several lines": (
        lambda t: t.with_columns(kind=pl.when(pl.int_range(pl.len()) == 300)
                                 .then(pl.lit("a\n987")).otherwise("kind")),
        r"row 301: level column 'kind' has a label of several lines"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNFIT)
def test_what_can_be_seen_to_be_wrong_is_refused_before_noise_is_drawn(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(*_: object) -> bytes:
        raise AssertionError("a piece was measured")

    monkeypatch.setattr(TaskContext, "measure", drawn)
    change, message = UNFIT[name]
    path = written(tmp_path, change(frame()))
    with pytest.raises(TableError, match=message) as refusal:
        make(path, tmp_path / "release")
    assert "987" not in str(refusal.value)
    assert [each.name for each in tmp_path.iterdir()] == ["cells.parquet"]


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_are_refused_with_their_row(name: str, tmp_path: Path) -> None:
    change, message = BAD_TABLES[name]
    path = written(tmp_path, change(frame()))
    with pytest.raises(TableError, match=message) as refusal:
        make(path, tmp_path / "release")
    assert "987" not in str(refusal.value)
    assert not (tmp_path / "release").exists()


@pytest.mark.parametrize("adjust", ["bayes", "resized", "noisefirst", "segmented"])
def test_what_needs_the_whole_table_is_refused(adjust: str) -> None:
    with pytest.raises(PlanError, match=f"adjust {adjust} looks at all cells at once"):
        method_by_pieces(cw.Plan(epsilon=1, adjust=adjust))
    with pytest.raises(PlanError, match="whole tree at once"):
        method_by_pieces(cw.Plan(epsilon=1, mechanism="joint"))


def records(folder: Path) -> tuple[Path, Tabulation]:
    """People with one to four records, and a domain whose factors are interleaved in `by`."""
    rng = np.random.default_rng(2)
    n = 4000
    pl.DataFrame(
        {
            "id": rng.integers(0, 1500, n),
            "state": rng.choice(["N", "S"], n),
            "age": rng.integers(0, 90, n),
            "town": rng.choice(["a", "b", "c"], n),
        }
    ).with_columns(town=pl.col("state") + pl.col("town")).write_parquet(folder / "people.parquet")
    towns = {state: [f"{state}{t}" for t in "abc"] for state in "NS"}
    tree = ", ".join(f"{state} = {names}" for state, names in towns.items())
    (folder / "domain.toml").write_text(
        f'[nested.place]\ncolumns = ["state", "town"]\ntree = {{ {tree} }}\n'
        f"[columns.age]\nedges = {list(range(0, 91, 3))}\n"
    )
    domain = read_domain_file(folder / "domain.toml", by=("state", "age", "town"))
    return folder / "people.parquet", Tabulation(domain=domain, person="id", rows=2)


def test_records_are_counted_into_pieces(tmp_path: Path) -> None:
    path, _ = records(tmp_path)
    domain = read_domain_file(tmp_path / "domain.toml", by=("state", "age", "town"))
    cut = cut_domain(domain, most=40)
    assert cut is not None
    assert (cut.depth, cut.total) == (2, 180)
    tabulation = Tabulation(domain=domain)
    source = record_source(
        str(path), tabulation, domain=tmp_path / "domain.toml", engine="duckdb://", most=40
    )
    assert source is not None
    plan = cw.Plan(epsilon=200_000, by=domain.by)
    publish(source, plan, tmp_path / "release")
    back = cw.read_release(tmp_path / "release")
    truth = tabulate(path, tabulation)
    assert back.hierarchy.sizes == truth.hierarchy.sizes == source.sizes()
    cells = truth.hierarchy.frame(3, true=truth.reveal()).cast(dict.fromkeys(domain.by, pl.String))
    released = back.table().cast(dict.fromkeys(domain.by, pl.String)).tail(len(cells))
    both = released.join(cells, on=domain.by, validate="1:1")
    assert len(both) == 180
    np.testing.assert_array_equal(both["count"], both["true"])


# What a stopped run leaves, and what the next one does with it.

LARGE = (20, 20, 100)


def command(folder: Path, *more: str) -> list[str]:
    by, program = ",".join(BY), [sys.executable, "-m", "countwise", "release"]
    return [*program, str(folder / "cells.parquet"), "--by", by, "--cells-are-public", "--epsilon",
            "3", "--piece", "150", "--out", str(folder / "release"), *more]  # fmt: skip


def killed(folder: Path, sign: str) -> None:
    """Start the run and kill it as soon as a file of this name is there."""
    process = subprocess.Popen(
        ["nice", *command(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    staging = place(folder / "release")
    end = time.monotonic() + 200
    while not any(staging.glob(sign)):
        assert process.poll() is None, "the run was over before it could be stopped"
        assert time.monotonic() < end
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (folder / "release").exists()


def digests(folder: Path, pattern: str) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in place(folder / "release").glob(pattern)
    }


def test_a_killed_run_goes_on_and_draws_no_noise_twice(tmp_path: Path) -> None:
    """kill -9 in every stage; what was measured before is in the release, bit by bit."""
    table = frame(LARGE)
    written(tmp_path, table)
    signs = ("measured-000100.npz", TOP, "adjusted-000100.npz", "new/release/counts.parquet")
    kept: dict[str, str] = {}
    for sign in signs:
        killed(tmp_path, sign)
        now = digests(tmp_path, "measured-*") | digests(tmp_path, TOP)
        assert kept.items() <= now.items()
        kept = now
        assert oct(place(tmp_path / "release").stat().st_mode)[-3:] == "700"
    assert len(kept) == 401
    staging = Staging(folder=place(tmp_path / "release"))
    noisy = np.concatenate(
        [staging.kept(f"measured-{i:06}.npz", "noisy3")["noisy3"] for i in range(400)]
    )
    assert staging.settings()["person_key"] is None
    done = subprocess.run(command(tmp_path, "--json"), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["resumed"] is True
    assert "Went on from a stopped run" in done.stderr
    back = cw.read_release(tmp_path / "release")
    np.testing.assert_array_equal(back.measurements.noisy[-1], noisy)
    assert not place(tmp_path / "release").exists()


def stopped(path: Path, out: Path, monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
    """A run that fails when it begins to adjust."""
    with monkeypatch.context() as patch:
        patch.setattr(TaskContext, "adjust_top", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make(path, out, **changes)


def test_a_run_that_goes_on_forgets_the_key_of_bounded_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = written(tmp_path, frame()), tmp_path / "release"
    with monkeypatch.context() as patch:
        patch.setattr(Staging, "forget", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            make(path, out)
    assert Staging(folder=place(out)).settings()["person_key"]
    stopped(path, out, monkeypatch)
    assert Staging(folder=place(out)).settings()["person_key"] is None


def test_a_run_that_goes_on_draws_by_the_laws_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version or machine may divide the loss of the same plan in another way."""
    path, out = written(tmp_path, frame()), tmp_path / "release"
    plan = {"epsilon": 1, "split": "auto", "adjust": "least-squares"}
    stopped(path, out, monkeypatch, **plan)
    shares = (Fraction(1, 10), Fraction(2, 10), Fraction(3, 10), Fraction(4, 10))
    with monkeypatch.context() as patch:
        patch.setattr(noise_budget, "best_shares", lambda *_, **__: shares)
        with pytest.raises(InputError, match="drew noise by other laws"):
            make(path, out, **plan)
        assert make(path, out, fresh=True, **plan).resumed is False
    stopped(path, tmp_path / "again", monkeypatch, **plan)
    assert make(path, tmp_path / "again", **plan).resumed is True


def test_another_plan_or_input_is_refused_or_begun_afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = written(tmp_path, frame()), tmp_path / "release"
    stopped(path, out, monkeypatch)
    before = digests(tmp_path, "measured-*")
    with pytest.raises(InputError, match="unfinished run of another plan or input"):
        make(path, out, epsilon=2)
    os.utime(path, ns=(1, 1))
    with pytest.raises(InputError, match="--fresh"):
        make(path, out)
    assert digests(tmp_path, "measured-*") == before
    assert make(path, out, fresh=True).resumed is False
    assert cw.read_release(out).hierarchy.cells == 385


def test_staging_holds_no_true_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts that noise can not reach by chance: none is in any file of a stopped run."""
    table = frame().with_columns(count=7_654_321 + pl.int_range(pl.len()) * 1000)
    stopped(written(tmp_path, table), tmp_path / "release", monkeypatch, epsilon="0.000001")
    hierarchy, order = build(table.select(BY))
    truth = hierarchy.sums(table["count"].to_numpy()[order])
    staging = Staging(folder=place(tmp_path / "release"))
    true = {int(x) for each in truth for x in each}
    found = 0
    for path in staging.folder.glob("*.npz"):
        for name, array in staging.kept(path.name).items():
            if name.startswith(("noisy", "up")):
                found += sum(int(x) in true for x in array)
    assert found < 10  # noise of scale 4,000,000 hits one of 426 counts by chance, rarely
    everything = b"".join(p.read_bytes() for p in staging.folder.iterdir() if p.is_file())
    assert np.int64(truth[0][0]).tobytes() not in everything


def test_a_stopped_run_of_a_database_can_not_go_on_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records may have changed; once all is measured they are not needed any more."""
    path, tabulation = records(tmp_path)
    with duckdb.connect(str(tmp_path / "people.duckdb")) as database:
        database.sql(f"CREATE TABLE people AS FROM '{path}'")
    engine = f"duckdb://{tmp_path}/people.duckdb"

    def run() -> Publication:
        source = record_source(
            "people", tabulation, domain=tmp_path / "domain.toml", engine=engine, most=40
        )
        assert source is not None
        assert not source.lasting
        plan = cw.Plan(epsilon=1, by=tabulation.domain.by, person="id", rows=2)
        return publish(source, plan, tmp_path / "release")

    with monkeypatch.context() as patch:
        patch.setattr(TaskContext, "measure_top", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run()
    with pytest.raises(InputError, match="which may have changed since"):
        run()


def test_one_process_at_a_time(tmp_path: Path) -> None:
    path, out = written(tmp_path, frame()), tmp_path / "release"
    place(out).mkdir(mode=0o700)
    with (place(out) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another run is making"):
            make(path, out)


def test_a_full_disk_ends_with_one_line_and_is_recovered_from(tmp_path: Path) -> None:
    """Files may not grow beyond a limit, as on a full disk; then they may."""
    written(tmp_path, frame(LARGE))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))

    failed = subprocess.run(
        command(tmp_path), capture_output=True, text=True, check=False, preexec_fn=limit
    )
    assert failed.returncode == 1
    assert failed.stderr.strip().splitlines()[-1].startswith("countwise: ")
    assert "Traceback" not in failed.stderr
    assert "run the same command again" in failed.stderr
    assert not (tmp_path / "release").exists()
    kept = digests(tmp_path, "measured-*")
    assert kept
    done = subprocess.run(command(tmp_path, "--json"), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["resumed"] is True
    assert cw.read_release(tmp_path / "release").hierarchy.cells == 40_000


def test_trees_of_every_case_are_cut(tmp_path: Path) -> None:
    """A deep thin tree, and one whose first level has a single node."""
    for i, shape in enumerate(((1, 1, 30, 4), (2, 1, 1, 60), (40, 1, 1, 3))):
        by = ("a", "b", "c", "d")
        path = written(tmp_path, frame(shape, by), f"cells{i}.parquet")
        made = make(path, tmp_path / f"r{i}", by=by, most=40, epsilon=200_000)
        back = cw.read_release(tmp_path / f"r{i}")
        whole = cw.read_counts(path, by=by, count="count", cells_are_public=True)
        plan = cw.Plan(epsilon=200_000, by=by, mechanism="geometric")
        assert made.budget == plan.budget(whole.hierarchy)
        np.testing.assert_array_equal(back.counts[-1], whole.reveal())


def test_ranges_of_pieces_are_those_of_the_whole(tmp_path: Path) -> None:
    """The same noisy counts: own noise exact, all else as a normal, in pieces and at once."""
    out = tmp_path / "out"
    make(written(tmp_path, frame()), out, split="even", mechanism="geometric", most=80)
    made = read_release(out)
    assert made.ranges is not None
    assert not made.ranges.exact
    assert made.manifest()["ranges"]["method"] == "normal"
    near = ByNormal(measurements=(made.measurements,))
    for level in range(len(made.hierarchy.sizes)):
        low, high = near.ranges(level, 0.95)
        np.testing.assert_array_equal(made.ranges.low[level], low)
        np.testing.assert_array_equal(made.ranges.high[level], high)
