"""countwise reproduce: the papers' tables and figures, ours beside theirs."""

import json as json_format
from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table, progress
from countwise.release.folder import refuse_existing, whole
from countwise.reports.reproduction_page import reproduction_page
from countwise.reports.reproduction_summary import summary
from countwise.reproduce.exhibits import FULL, QUICK
from countwise.reproduce.papers import PAPERS
from countwise.reproduce.recomputation import Reproduction, select
from countwise.reproduce.recomputation import reproduce as compute
from countwise.reproduce.verdicts import VERDICTS

EXAMPLE = "Example: countwise reproduce --quick --only wang2021 --out report"


def reproduce(
    folder: Annotated[
        Path | None, typer.Option("--out", help="Folder for the page, the summary, JSON and CSV.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer runs: under two minutes instead of under thirty.")
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(
            help=f"Papers ({', '.join(PAPERS)}) or single exhibits, such as wang2021/table-3."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulations.")] = 0,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Compute every table and figure of the papers anew, with a verdict on each number.

    Ends with exit code 1 when a number is not reproduced.
    """
    chosen = select(options.names(only))
    if folder is not None:
        refuse_existing(folder, overwrite=overwrite)
    with progress(len(chosen)) as tell:
        found = compute(chosen, QUICK if quick else FULL, seed=seed, tell=tell)
    if folder is not None:
        write(found, folder, overwrite=overwrite)
    if json:
        print_json(found.to_dict())
    else:
        show(found, folder)
    raise typer.Exit(0 if found.holds else 1)


def write(found: Reproduction, folder: Path, *, overwrite: bool) -> None:
    """The page, and the numbers for machines."""
    with whole(folder, overwrite=overwrite) as partial:
        partial.mkdir()
        text = json_format.dumps(found.to_dict(), indent=2, ensure_ascii=False)
        (partial / "reproduction.json").write_text(text + "\n", encoding="utf-8")
        (partial / "reproduction.csv").write_text(found.to_csv(), encoding="utf-8")
        (partial / "summary.md").write_text(summary(found), encoding="utf-8")
        (partial / "index.html").write_text(reproduction_page(found), encoding="utf-8")


def show(found: Reproduction, folder: Path | None) -> None:
    """How many numbers of each exhibit have each verdict, and those that are not reproduced."""
    heads = ("reproduced", "by a reading", "corrected", "not reproduced")
    print_table(
        ("exhibit", *heads),
        [
            (
                f"{each.paper.key}/{each.exhibit.key}",
                *(str(each.verdicts[name] or "") for name in VERDICTS),
            )
            for each in found.compared
        ]
        + [("all", *(str(found.verdicts[name]) for name in VERDICTS))],
    )
    for each in found.compared:
        for number in each.findings.numbers:
            if number.verdict == "not reproduced":
                out.print(
                    f"Not reproduced: {each.paper.key}/{each.exhibit.key}, {number.row}, "
                    f"{number.column}: printed {number.printed}, ours {number.ours:.6g}, accepted "
                    f"from {number.low:.6g} to {number.high:.6g}.",
                    soft_wrap=True,
                )
    if folder is not None:
        out.print(f"See the report: open {(folder / 'index.html').resolve()}", soft_wrap=True)
