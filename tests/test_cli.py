"""The command line as a user meets it: from files to folders, exit codes, and JSON."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from countwise.cli import app
from countwise.release.document import read_release

BY = "region,clinic,diagnosis"
EXAMPLE = Path(__file__).parents[1] / "src" / "countwise" / "examples" / "clinics.csv"
RELEASE = ("--by", BY, "--count", "patients", "--cells-are-public")


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "countwise", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, timeout=200
    )


def test_demo_releases_and_draws(tmp_path: Path) -> None:
    done = run("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in ("release.html", "posterior.html"):
        page = tmp_path / "countwise-demo" / name
        assert str(page) in done.stdout
        assert "<svg" in page.read_text()
    read_release(tmp_path / "countwise-demo")
    assert run("demo", "--json", cwd=tmp_path).returncode == 0, "a second demo replaces the first"


def test_release_writes_a_folder_and_json_stands_alone(tmp_path: Path) -> None:
    done = run(
        "release", EXAMPLE, *RELEASE, "--epsilon", "1/3", "--out", "r", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["privacy"]["epsilon"] == "1/3"
    table = pl.read_csv(tmp_path / "r" / "counts.csv", infer_schema=False)
    assert table.columns == ["region", "clinic", "diagnosis", "level", "count", "low", "high"]
    assert table.row(0)[:4] == (None, None, None, "total")
    assert len(table) == 1 + 3 + 13 + 65
    again = run("release", EXAMPLE, *RELEASE, "--epsilon", "1", "--out", "r", cwd=tmp_path)
    assert again.returncode == 2
    assert "--overwrite" in again.stderr
    over = run(
        "release", EXAMPLE, *RELEASE, "--epsilon", 1, "--out", "r", "--overwrite", cwd=tmp_path
    )
    assert over.returncode == 0
    assert "Privacy loss" in over.stdout


def test_the_flags_write_the_plan_and_the_plan_releases(tmp_path: Path) -> None:
    flags = ("--by", BY, "--epsilon", "total=1,region=1/2,clinic=0.5,diagnosis=2", "--rows", 2)
    planned = run("plan", EXAMPLE, *flags, "--out", "plan.toml", "--json", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    data = json.loads(planned.stdout)
    assert data["epsilon"] == "4"
    assert [level["scale"] for level in data["levels"]] == ["2", "4", "4", "1"]
    released = run(
        "release", EXAMPLE, "--plan", "plan.toml", "--count", "patients", "--cells-are-public",
        "--out", "r", "--json", "--ties", "last", cwd=tmp_path,
    )  # fmt: skip
    assert released.returncode == 0, released.stderr
    plan = json.loads(released.stdout)["plan"]
    assert plan == data["plan"] | {"ties": "last"}


def test_plan_simulates_on_a_stand_in(tmp_path: Path) -> None:
    stand_in = ("--stand-in", EXAMPLE, "--count", "patients", "--repetitions", 20)
    done = run("plan", EXAMPLE, "--by", BY, "--epsilon", 2, *stand_in, "--json", cwd=tmp_path)
    levels = json.loads(done.stdout)["levels"]
    assert all(0 < level["error95_after"] < 30 for level in levels)
    shown = run("plan", EXAMPLE, "--by", BY, "--epsilon", 2, *stand_in, cwd=tmp_path)
    assert "as adjusted, in simulated releases" in shown.stdout
    alike = run("plan", EXAMPLE, "--by", BY, "--epsilon", 2, *stand_in, "--json", cwd=tmp_path)
    assert alike.stdout == done.stdout, "a simulation is reproducible"


def test_plan_reads_no_count(tmp_path: Path) -> None:
    cells = tmp_path / "cells.csv"
    cells.write_text("region,clinic,diagnosis\nA,b,c\nA,b,d\n")
    assert run("plan", cells, "--by", BY, "--epsilon", 1, cwd=tmp_path).returncode == 0


def test_adjust_takes_counts_noised_elsewhere(tmp_path: Path) -> None:
    run("release", EXAMPLE, *RELEASE, "--epsilon", 1, "--out", "r", cwd=tmp_path)
    noisy = pl.read_parquet(tmp_path / "r" / "measurements.parquet")
    noisy.with_columns(second=pl.col("noisy") + 3).drop("level").write_csv(tmp_path / "noisy.csv")
    one = run("adjust", "noisy.csv", "--by", BY, "--epsilon", 1, "--out", "a.csv", cwd=tmp_path)
    assert one.returncode == 0, one.stderr
    several = run(
        "adjust", "noisy.csv", "--by", BY, "--noisy", "noisy", "--noisy", "second@0.5",
        "--epsilon", 1, "--method", "mode", "--total", "summed", "--out", "b.parquet", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert several.returncode == 0, several.stderr
    assert json.loads(several.stdout)["nodes"] == 82
    for frame in (pl.read_csv(tmp_path / "a.csv"), pl.read_parquet(tmp_path / "b.parquet")):
        totals = frame.group_by(pl.col("level").cast(pl.String)).agg(pl.col("count").sum())
        assert totals["count"].n_unique() == 1
        assert frame["count"].min() >= 0


def test_audit_gives_a_verdict_a_scale(tmp_path: Path) -> None:
    done = run("audit", "noise", "--law", "geometric", "--draws", 100_000, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    verdicts = json.loads(done.stdout)
    assert [verdict["scale"] for verdict in verdicts] == ["0.5", "1", "1.5", "7/3", "3", "10"]
    assert all(verdict["passed"] for verdict in verdicts)


BAD = {
    "no domain": (("release", EXAMPLE, "--by", BY, "--count", "patients", "--epsilon", 1),
                  "list of cells must be public"),
    "no epsilon": (("release", EXAMPLE, *RELEASE), "no epsilon given"),
    "epsilon zero": (("release", EXAMPLE, *RELEASE, "--epsilon", 0), "epsilon must be positive"),
    "epsilon infinite": (("release", EXAMPLE, *RELEASE, "--epsilon", "inf"), "got 'inf'"),
    "epsilon nan": (("release", EXAMPLE, *RELEASE, "--epsilon", "nan"), "got 'nan'"),
    "level without epsilon": (("release", EXAMPLE, *RELEASE, "--epsilon", "total=1,region=1"),
                              "level 'clinic' has no epsilon"),
    "level twice": (("release", EXAMPLE, *RELEASE, "--epsilon", "total=1,total=1"), "twice"),
    "unreadable level": (("release", EXAMPLE, *RELEASE, "--epsilon", "total="), "level=value"),
    "missing column": (("release", EXAMPLE, "--by", "region,county", "--count", "patients",
                        "--cells-are-public", "--epsilon", 1), "no column 'county'"),
    "unknown mechanism": (("release", EXAMPLE, *RELEASE, "--epsilon", 1, "--mechanism", "gauss"),
                          "mechanism must be one of"),
    "no such file": (("release", "nowhere.csv", *RELEASE, "--epsilon", 1), "no such file"),
    "no such plan": (("release", EXAMPLE, *RELEASE, "--plan", "nowhere.toml"), "no such plan"),
    "scale too large": (("release", EXAMPLE, *RELEASE, "--epsilon", "1e-20"), "larger epsilon"),
    "levels missing": (("release", EXAMPLE, "--count", "patients", "--cells-are-public",
                        "--epsilon", 1), "no level columns given"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_with_2_and_writes_nothing(name: str, tmp_path: Path) -> None:
    arguments, message = BAD[name]
    done = run(*arguments, "--out", "r", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_interrupt_leaves_nothing_half_written(tmp_path: Path) -> None:
    """Ctrl-C while the noise of a large table is drawn or its counts are written."""
    size = 400_000
    cells = tmp_path / "cells.parquet"
    pl.DataFrame({"a": pl.int_range(size, eager=True) // 50, "b": pl.int_range(size, eager=True),
                  "count": pl.int_range(size, eager=True) % 9}).write_parquet(cells)  # fmt: skip
    command = [sys.executable, "-m", "countwise", "release", str(cells), "--by", "a,b", "--epsilon",
               "1", "--cells-are-public", "--out", str(tmp_path / "r")]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(list(tmp_path.iterdir())) == 1:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert list(tmp_path.iterdir()) == [cells]


def test_labels_are_not_markup(tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text("[/z],n\n[/x],3\n[red]y[/red],4\n")
    flags = ("--by", "[/z]", "--count", "n", "--cells-are-public", "--epsilon", 1)
    done = run("release", "cells.csv", *flags, "--out", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "[/z]" in done.stdout
    shown = run("infer", "r", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "[red]y[/red]" in shown.stdout


def test_every_command_has_help_with_an_example() -> None:
    from typer.main import get_command

    def leaves(command: object, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], object]]:
        children = getattr(command, "commands", None)
        if not children:
            return [(path, command)]
        return [leaf for name, child in children.items() for leaf in leaves(child, (*path, name))]

    for path, command in leaves(get_command(app), ("countwise",)):
        assert command.help, path
        assert " ".join(path) in (command.epilog or ""), f"{path} has no example"


def test_north_carolina_releases(north_carolina: Path, tmp_path: Path) -> None:
    done = run(
        "release", north_carolina, "--by", "county,tract,race", "--epsilon", 2,
        "--cells-are-public", "--out", "r", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    release = read_release(tmp_path / "r")
    assert release.hierarchy.sizes == (1, 100, 2672, 18704)
    assert abs(int(release.counts[0][0]) - 10_439_388) < 100
