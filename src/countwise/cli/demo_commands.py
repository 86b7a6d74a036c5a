"""countwise demo, reproduce and warm-up: on a bundled example, on papers, and ahead of use."""

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table, progress
from countwise.cli.release_command import print_summary
from countwise.front_door import demo_function
from countwise.front_door.demo_function import FOLDER
from countwise.reproduce.papers import PAPERS
from countwise.reproduce.recomputation import Reproduction
from countwise.reproduce.verdicts import APART, VERDICTS

EXAMPLES = {
    "demo": "Example: countwise demo --out my-demo",
    "reproduce": "Example: countwise reproduce --quick --only wang2021 --out report",
    "warm-up": "Example: countwise warm-up",
}


def demo(
    folder: Annotated[Path, typer.Option("--out", help="Folder to write.")] = Path(FOLDER),
    json: options.Json = False,
) -> None:
    """Release a small made-up table of clinics, infer the true counts, and draw both."""
    with progress() as tell:
        made = demo_function.demo(folder, tell=tell)
    if json:
        print_json(made.to_dict())
        return
    print_summary(made.release, folder)
    out.print(f"See what the true counts can be: {made.pages[-1].resolve()}", soft_wrap=True)


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
    with progress() as tell:
        found = demo_function.reproduce(
            only or (), out=folder, quick=quick, seed=seed, overwrite=overwrite, tell=tell
        )
    if json:
        print_json(found.to_dict())
    else:
        show(found, folder)
    raise typer.Exit(0 if found.holds else 1)


def show(found: Reproduction, folder: Path | None) -> None:
    """How many numbers of each exhibit have each verdict, and those that are not reproduced."""
    heads = ("reproduced", "by a reading", "corrected", "not reproduced", APART)
    print_table(
        ("exhibit", *heads),
        [
            (
                f"{each.paper.key}/{each.exhibit.key}",
                *(str(each.verdicts[name] or "") for name in (*VERDICTS, APART)),
            )
            for each in found.compared
        ]
        + [("all", *(str(found.verdicts[name]) for name in (*VERDICTS, APART)))],
    )
    for each in found.compared:
        for number in each.findings.numbers:
            if number.verdict == "not reproduced":
                out.print(
                    f"Not reproduced: {each.paper.key}/{each.exhibit.key}, {number.row}, "
                    f"{number.column}: printed {number.printed}, ours {number.ours:.6g}, accepted "
                    f"from {number.low:.6g} to {number.high:.6g}. {number.elsewhere}".strip(),
                    soft_wrap=True,
                )
    if folder is not None:
        out.print(f"See the report: open {(folder / 'index.html').resolve()}", soft_wrap=True)


def warm_up(json: options.Json = False) -> None:
    """Compile what commands use ahead, once for all commands: for images, services and impatient
    users.
    """
    start = perf_counter()
    with progress() as tell:
        folder = demo_function.warm_up(tell=tell)
    if json:
        print_json({"folder": str(folder), "seconds": round(perf_counter() - start, 1)})
    else:
        out.print(f"All is compiled. It is kept in {folder}", soft_wrap=True)
