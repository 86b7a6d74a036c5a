"""Releases compared with each other, and written in the formats that agencies exchange."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
import polars as pl

from countwise.choices import one_of
from countwise.errors import InputError
from countwise.front_door.output_files import output_files, write_frame
from countwise.front_door.words import PathLike
from countwise.inference.changes import Changes
from countwise.inference.changes import compare as changes_between
from countwise.inference.imputations import WHAT as DRAWN
from countwise.inference.imputations import imputations, write_imputations
from countwise.progress import Tell, silent
from countwise.release import person_rows
from countwise.release.crossed_release import CrossedRelease, read_release
from countwise.release.document import Release
from countwise.release.folder import refuse_existing, whole
from countwise.release.person_rows import WHAT
from countwise.release.workbook import write_workbook
from countwise.tables.crosstab import TOTAL, crosstab
from countwise.tables.notation import margin_of
from countwise.tables.sdmx import sdmx
from countwise.tables.workload import Margin

AnyRelease = Release | CrossedRelease
FORMATS = ("wide", "sdmx", "xlsx")
ENDINGS = {".xlsx": "xlsx"}
DATAFLOW = "COUNTWISE:COUNTS(1.0)"


def compare(
    earlier: AnyRelease | PathLike,
    later: AnyRelease | PathLike,
    *,
    probability: float = 0.95,
    out: PathLike | None = None,
    overwrite: bool = False,
    tell: Tell = silent,
) -> Changes:
    """Whether each count changed between two releases by more than the noise of both.

    Releases are those of `release`, or folders. With `out` the table is written, a row a count.
    """
    file = None if out is None else Path(out)
    output_files({"--out": file}, overwrite=overwrite)
    tell("reading")
    before, after = _read(earlier), _read(later)
    tell("comparing")
    changes = changes_between(before, after, probability=probability)
    if file is not None:
        tell("writing the table")
        write_frame(changes.table, file, overwrite=overwrite)
    return changes


@dataclass(frozen=True, kw_only=True)
class ConvertedFile:
    """A file that was written: its format, and of how many counts the release is."""

    file: Path
    format: str
    nodes: int

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"file": str(self.file), "format": self.format, "nodes": self.nodes}


def convert(
    release: AnyRelease | PathLike,
    out: PathLike,
    *,
    to: str | None = None,
    table: str | None = None,
    total_code: str = TOTAL,
    dataflow: str = DATAFLOW,
    overwrite: bool = False,
    tell: Tell = silent,
) -> ConvertedFile:
    """Write the counts of a release as a cross-table, as SDMX-CSV or as an Excel workbook.

    `to` is `wide`, `sdmx` or `xlsx`. Of tables that cross, a wide file holds the one named `table`.
    """
    file = Path(out)
    chosen = to or ENDINGS.get(file.suffix.lower(), "")
    if not chosen:
        raise InputError(
            f"{file}: the ending does not say the format. To fix, end the name in "
            f"{', '.join(ENDINGS)} (xlsx), or add --to with one of {', '.join(FORMATS)}: wide and "
            "sdmx are both .csv."
        )
    one_of(chosen, FORMATS, what="--to")
    refuse_existing(file, overwrite=overwrite)
    tell("reading")
    made = _read(release)
    tell("writing")
    with whole(file, overwrite=overwrite) as partial:
        _write(made, partial, chosen, table=table, total_code=total_code, dataflow=dataflow)
    return ConvertedFile(file=file, format=chosen, nodes=made.size)


@dataclass(frozen=True, kw_only=True)
class PersonRows:
    """A file of one row a person that was written, and what these rows are.

    Of joint draws there are as many tables of people as `draws`, and they rest on a prior.
    """

    file: Path
    rows: int
    what: str = WHAT
    draws: int = 0
    prior: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        plain = {"file": str(self.file), "rows": self.rows, "what": self.what}
        return plain | ({"draws": self.draws, "prior": self.prior} if self.draws else {})


@overload
def records(
    release: AnyRelease | PathLike,
    *,
    table: str | None = None,
    draws: int = 0,
    seed: int | None = None,
    rng: np.random.Generator | None = None,
    tell: Tell = silent,
) -> pl.DataFrame: ...
@overload
def records(
    release: AnyRelease | PathLike,
    out: PathLike,
    *,
    table: str | None = None,
    draws: int = 0,
    seed: int | None = None,
    rng: np.random.Generator | None = None,
    overwrite: bool = False,
    tell: Tell = silent,
) -> PersonRows: ...
def records(
    release: AnyRelease | PathLike,
    out: PathLike | None = None,
    *,
    table: str | None = None,
    draws: int = 0,
    seed: int | None = None,
    rng: np.random.Generator | None = None,
    overwrite: bool = False,
    tell: Tell = silent,
) -> pl.DataFrame | PersonRows:
    """One row a person of the released counts, for tools that read microdata.

    `table` names the table that becomes rows, of a tree the level; without it, it is the one that
    all others are totals of. No row is a real person: rows are the released counts in another form,
    and say no more. With `out` they are written to a file, of a folder batch by batch. With `draws`
    they are so many joint draws of the true counts, by a `seed` or `rng`, numbered in a column
    `draw`, for multiple imputation; by default of the cells.
    """
    if draws:
        rng = np.random.default_rng(seed) if rng is None else rng
        return _drawn_records(_read(release), out, table, draws, rng, overwrite, tell)
    if out is None:
        return person_rows.records(_read(release), table=table)
    file = Path(out)
    output_files({"--out": file}, overwrite=overwrite)
    tell("writing rows")
    if isinstance(release, (str, Path)):
        with whole(file, overwrite=overwrite) as partial:
            rows = person_rows.write_records(Path(release), partial, table=table)
    else:
        people = person_rows.records(release, table=table)
        write_frame(people, file, overwrite=overwrite)
        rows = len(people)
    return PersonRows(file=file, rows=rows)


def _drawn_records(
    release: AnyRelease,
    out: PathLike | None,
    table: str | None,
    draws: int,
    rng: np.random.Generator,
    overwrite: bool,
    tell: Tell,
) -> pl.DataFrame | PersonRows:
    """Rows of joint draws, as a frame or in a file."""
    if out is None:
        return pl.concat(imputations(release, draws, table=table, rng=rng, report=tell)[0])
    file = Path(out)
    output_files({"--out": file}, overwrite=overwrite)
    with whole(file, overwrite=overwrite) as partial:
        made = write_imputations(release, partial, draws, table=table, rng=rng, report=tell)
    return PersonRows(file=file, rows=made.rows, what=DRAWN, draws=draws, prior=made.prior)


def _read(release: AnyRelease | PathLike) -> AnyRelease:
    return read_release(release) if isinstance(release, (str, Path)) else release


def _write(
    release: AnyRelease,
    file: Path,
    to: str,
    *,
    table: str | None,
    total_code: str,
    dataflow: str,
) -> None:
    """The counts of a release in one of the formats."""
    crossed = isinstance(release, CrossedRelease)
    if table is not None and (to != "wide" or not crossed):
        raise InputError("--table names one of several tables that cross, to be written wide.")
    if to == "xlsx":
        write_workbook(release, file)
    elif to == "sdmx":
        cells = release.workload if isinstance(release, CrossedRelease) else release.hierarchy
        sdmx(cells, release.table(), dataflow=dataflow).write_csv(file)
    elif isinstance(release, CrossedRelease):
        release.drawn(_chosen(release, table), total=total_code).write_csv(file)
    else:
        crosstab(release.hierarchy, release.counts[-1], total=total_code).write_csv(file)


def _chosen(release: CrossedRelease, table: str | None) -> Margin:
    """The table that was asked for, or the only one there can be."""
    workload = release.workload
    if table is not None:
        return workload.find(workload.name(margin_of(table, workload.names)))
    if len(release.finest) == 1:
        return release.finest[0]
    names = ", ".join(map(workload.name, release.finest))
    raise InputError(f"a wide table is one table. To fix, name it with --table: {names}.")
