"""Whatever is wrong with a confidential file, nothing shows a true count or a cell of a record.

`pytest tests/test_mutations.py --mutations 20000` tries more of them than a default run.
"""

import io
import re
import shutil
import sys
import tempfile
import traceback
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from countwise.cli import main
from countwise.release import piece_tasks
from countwise.release import run as in_memory
from countwise.release.measure import measure
from countwise.tables.measurements import Measurements
from mutations import (
    CELL,
    COUNT,
    FAR,
    LIKE_CONFIGURATIONS,
    MISPLACED,
    Kind,
    kinds,
    written,
)

KINDS = kinds()
BROKEN_UP = re.compile(r"[,_ \0\n]|\\x00|\\0|\\n")
"""What may stand within a number or text where it is shown."""
PACKED = re.compile(r"[A-Za-z0-9+/=]{40,}")
"""Arrays of numbers in a page."""
PAYMENT = re.compile(r"work/(l\.db|\.out\.unfinished/(lock|run\.json)|domain.csv|.*\.toml)")
"""What a paid run leaves that was refused: its charge."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a command said, and what it left behind beside its input, by file."""

    code: int
    said: str
    left: dict[str, str]


def _far_from_true(*given: Any, **how: Any) -> Measurements:
    """What is measured, moved away from the true counts, and no level by what another is."""
    measured = measure(*given, **how)
    exact = measured.exact or (False,) * len(measured.noisy)
    far = [FAR * (level + 1) ** 2 for level in range(len(exact))]
    moved = (
        np.where(e, n, n + away) for e, n, away in zip(exact, measured.noisy, far, strict=True)
    )
    return replace(measured, noisy=tuple(moved))


Runner = Callable[[Kind, bytes, tuple[str, ...]], Run]


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Runner:
    """Runs a command on a mutated file in a new folder, in this process."""

    for module in (in_memory, piece_tasks):
        monkeypatch.setattr(module, "measure", _far_from_true)

    def once(kind: Kind, content: bytes, command: tuple[str, ...]) -> Run:
        work, temporary = tmp_path / "work", tmp_path / "temporary"
        for folder in (work, temporary):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        written(kind, content, work)
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        monkeypatch.chdir(work)
        words = [re.sub("FILE$", kind.file, word) for word in command]
        monkeypatch.setattr(sys, "argv", ["countwise", *words])
        capfd.readouterr()
        code, escaped = _ended()
        said = "".join(capfd.readouterr()) + escaped
        given = [work / name for name in (kind.file, *(() if kind.paid else kind.beside))]
        found = [path for path in tmp_path.rglob("*") if path.is_file() and path not in given]
        left = {str(path.relative_to(tmp_path)): f"{path} {_content(path)}" for path in found}
        return Run(code=code, said=said, left=left)

    return once


def _ended() -> tuple[int, str]:
    """The exit code, and what Python would print of an exception that nobody caught."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = _print_warning
            main()
    except SystemExit as end:
        return int(end.code or 0), ""
    except BaseException:
        return 1, traceback.format_exc()
    return 0, ""


def _print_warning(*what: Any) -> None:
    """As Python does where no test records them."""
    print(warnings.formatwarning(*what[:4]), file=sys.stderr)


def _content(path: Path) -> str:
    """All that is in a file, as text."""
    raw = path.read_bytes()
    text = raw.decode("utf-8", "replace")
    if path.suffix == ".html":
        text = PACKED.sub("", text)  # numbers of released counts, in which any letters may follow
    if path.suffix == ".parquet":
        frame = pl.read_parquet(io.BytesIO(raw))
        text += frame.write_csv() + str(pl.read_parquet_metadata(io.BytesIO(raw)))
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            text += " ".join(str(n) for name in arrays.files for n in arrays[name].tolist())
    return text


def leaks(kind: Kind, content: bytes, command: tuple[str, ...], run: Run) -> list[str]:
    """What a run shows that it must not, and what else it did wrong."""
    said = BROKEN_UP.sub("", run.said)
    found = [f"said: …{said[max(said.find(s) - 60, 0) :][:160]}…"
             for s in (COUNT, CELL, *kind.sums) if s in said]  # fmt: skip
    declared = kind.declared(content) if "--cells-are-public" in command else ""
    for name, text in ({} if kind.public else run.left).items():
        shown = {CELL} if CELL in text and CELL not in declared else set()
        counts = re.findall(rf"(?<!\d){COUNT}\d{{3}}(?!\d)", text)
        sums = [each for each in kind.sums if re.search(rf"(?<!\d){each}(?!\d)", text)]
        shown |= {each for each in (*counts, *sums) if each not in declared}
        found += [f"{name} shows {each}" for each in shown]
    if run.code not in (0, 2):
        found.append(f"exit code {run.code}: {run.said[-300:]}")
    left = [name for name in run.left if not (kind.paid and PAYMENT.fullmatch(name))]
    if run.code and left:
        found.append(f"left behind: {', '.join(left)}")
    return found


@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_nothing_shows_a_count_or_a_cell(kind: Kind, mutations: int, run: Runner) -> None:
    found: dict[str, str] = {}
    tries = mutations // len(KINDS) + 1
    for i in range(tries):
        rng = np.random.default_rng([zlib.crc32(kind.name.encode()), i])
        content, command = kind.mutated(rng), kind.commands[i % len(kind.commands)]
        for leak in leaks(kind, content, command, run(kind, content, command)):
            found[f"{i} {leak.partition(' ')[0]}"] = f"{i}: {' '.join(command[:1])}: {leak}"
    shown = "\n".join(list(found.values())[:60])
    assert not found, f"{len(found)} of {tries} with {kind.name}:\n{shown}"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_unmutated_files_are_read(kind: Kind, run: Runner) -> None:
    """Or the mutations would try refusals of options."""
    for command in kind.commands:
        done = run(kind, kind.content, command)
        assert done.code == 0, done.said
        assert done.left or kind.silent
        assert not leaks(kind, kind.content, command, done)


@pytest.mark.parametrize("command", MISPLACED, ids=" ".join)
def test_a_confidential_file_in_the_place_of_another(command: tuple[str, ...], run: Runner) -> None:
    """It is refused, shown nothing of, and left as it is."""
    by_name = {kind.name: kind for kind in KINDS}
    beside = by_name["paid cells"].beside
    for name in ("levels", "records", "Parquet"):
        kind = replace(by_name[name], beside=beside)
        done = run(kind, kind.content, command)
        assert done.code == 2, done.said
        assert not leaks(kind, kind.content, command, done)
        assert Path(kind.file).read_bytes() == kind.content


@pytest.mark.parametrize("command", MISPLACED, ids=" ".join)
def test_records_that_read_like_a_configuration(command: tuple[str, ...], run: Runner) -> None:
    """TOML and JSON by accident: their keys and values are cells and counts."""
    by_name = {kind.name: kind for kind in KINDS}
    kind = replace(by_name["records"], beside=by_name["paid cells"].beside)
    for content in LIKE_CONFIGURATIONS:
        done = run(kind, content, command)
        assert done.code == 2, done.said
        assert not leaks(kind, content, command, done)
