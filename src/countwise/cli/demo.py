"""countwise demo: the main job on a bundled example, with a page to look at."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, progress
from countwise.cli.release import STAGES, print_summary
from countwise.examples import BY, COUNT, clinics
from countwise.release.plan import Plan
from countwise.release.run import release as make_release
from countwise.reports.release import release_page
from countwise.tables.reading import read_counts

EXAMPLE = "Example: countwise demo --out my-demo"


def demo(
    folder: Annotated[Path, typer.Option("--out", help="Folder to write.")] = Path(
        "countwise-demo"
    ),
    json: options.Json = False,
) -> None:
    """Release a small made-up table of clinics and draw what came out."""
    plan = Plan(epsilon=3, by=BY)
    with progress(STAGES) as tell:
        tell("reading")
        table = read_counts(clinics(), by=BY, count=COUNT, cells_are_public=True)
        made = make_release(table, plan, tell=tell)
        made.save(folder, overwrite=True, tell=tell)
    page = folder / "release.html"
    page.write_text(release_page(made), encoding="utf-8")
    if json:
        print_json(made.manifest() | {"folder": str(folder), "page": str(page)})
        return
    print_summary(made, folder)
    out.print(f"See the counts: open {page.resolve()}")
