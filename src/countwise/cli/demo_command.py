"""countwise demo: the main job on a bundled example, with pages to look at."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, progress
from countwise.cli.release_command import print_summary
from countwise.examples import BY, COUNT, clinics
from countwise.inference.routes import infer
from countwise.release.plan import Plan
from countwise.release.run import release as make_release
from countwise.reports.posterior_page import posterior_page
from countwise.tables.reading import read_counts

EXAMPLE = "Example: countwise demo --out my-demo"
PAGES = ("release.html", "posterior.html")


def demo(
    folder: Annotated[Path, typer.Option("--out", help="Folder to write.")] = Path(
        "countwise-demo"
    ),
    json: options.Json = False,
) -> None:
    """Release a small made-up table of clinics, infer the true counts, and draw both."""
    plan = Plan(epsilon=3, by=BY)
    with progress(9) as tell:
        tell("reading")
        table = read_counts(clinics(), by=BY, count=COUNT, cells_are_public=True)
        made = make_release(table, plan, tell=tell)
        made.save(folder, overwrite=True, tell=tell)
        tell("inferring the true counts")
        text = posterior_page(infer(made), imprint=made.imprint)
        (folder / "posterior.html").write_text(text, encoding="utf-8")
    if json:
        paths = {"folder": str(folder), "pages": [str(folder / name) for name in PAGES]}
        print_json(made.manifest() | paths)
        return
    print_summary(made, folder)
    out.print(
        f"See what the true counts can be: {(folder / 'posterior.html').resolve()}", soft_wrap=True
    )
