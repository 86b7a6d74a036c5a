"""What is computed on examples and papers, and made ready: demo, reproduction, warming up."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countwise import compiled_ahead
from countwise.examples import BY, COUNT, clinics
from countwise.front_door.words import PathLike, names
from countwise.inference.routes import infer
from countwise.progress import Tell, counted, silent
from countwise.release.document import Release
from countwise.release.folder import refuse_existing, whole
from countwise.release.plan import Plan
from countwise.release.run import release
from countwise.reports.posterior_page import posterior_page
from countwise.reports.reproduction_page import reproduction_page
from countwise.reports.reproduction_summary import summary
from countwise.reproduce.exhibits import FULL, QUICK
from countwise.reproduce.recomputation import Reproduction, select
from countwise.reproduce.recomputation import reproduce as recompute
from countwise.tables.reading import read_counts

FOLDER = "countwise-demo"
PAGES = ("release.html", "posterior.html")


@dataclass(frozen=True, kw_only=True, eq=False)
class Demo:
    """A release of the bundled example, and the pages that show it."""

    release: Release
    folder: Path
    pages: tuple[Path, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return self.release.manifest() | {
            "folder": str(self.folder),
            "pages": [str(each) for each in self.pages],
        }


def demo(out: PathLike = FOLDER, *, tell: Tell = silent) -> Demo:
    """Release a small made-up table of clinics, infer the true counts, and draw both."""
    folder = Path(out)
    tell("reading")
    table = read_counts(clinics(), by=BY, count=COUNT, cells_are_public=True)
    made = release(table, Plan(epsilon=3, by=BY), tell=tell)
    made.save(folder, overwrite=True, tell=tell)
    tell("inferring the true counts")
    text = posterior_page(infer(made), imprint=made.imprint)
    (folder / PAGES[-1]).write_text(text, encoding="utf-8")
    return Demo(release=made, folder=folder, pages=tuple(folder / name for name in PAGES))


def reproduce(
    only: str | Sequence[str] = (),
    *,
    out: PathLike | None = None,
    quick: bool = False,
    seed: int = 0,
    overwrite: bool = False,
    tell: Tell = silent,
) -> Reproduction:
    """Compute every table and figure of the papers anew, with a verdict on each number.

    `only` names papers, or exhibits such as `wang2021/table-3`. The page, a summary, JSON and CSV
    are written into the folder `out`.
    """
    chosen = select(names(only))
    if out is not None:
        refuse_existing(Path(out), overwrite=overwrite)
    tell = counted(tell, len(chosen))
    found = recompute(chosen, QUICK if quick else FULL, seed=seed, tell=tell)
    if out is not None:
        _save(found, Path(out), overwrite=overwrite)
    return found


def _save(found: Reproduction, folder: Path, *, overwrite: bool) -> None:
    """The page, and the numbers for machines."""
    with whole(folder, overwrite=overwrite) as partial:
        partial.mkdir()
        text = json.dumps(found.to_dict(), indent=2, ensure_ascii=False)
        (partial / "reproduction.json").write_text(text + "\n", encoding="utf-8")
        (partial / "reproduction.csv").write_text(found.to_csv(), encoding="utf-8")
        (partial / "summary.md").write_text(summary(found), encoding="utf-8")
        (partial / "index.html").write_text(reproduction_page(found), encoding="utf-8")


def warm_up(*, tell: Tell = silent) -> Path:
    """Compile what commands use ahead, once for all commands; the folder that keeps it."""
    return compiled_ahead.compile_ahead(counted(tell, len(compiled_ahead.JOBS)))
