"""The command line: parse, call, print. One file a command; no mathematics here."""

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from countwise.cli import (
    adjust,
    audit,
    convert,
    demo,
    infer,
    ledger,
    plan,
    receipt,
    release,
    reproduce,
    risk,
    tabulate,
    verify,
)
from countwise.cli import backup as backing
from countwise.cli import serve as serving
from countwise.errors import CountwiseError

app = typer.Typer(
    name="countwise",
    epilog="Example: countwise demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", epilog=demo.EXAMPLE)(demo.demo)
app.command("plan", epilog=plan.EXAMPLE)(plan.plan)
app.command("release", epilog=release.EXAMPLE)(release.release)
app.command("tabulate", epilog=tabulate.EXAMPLE)(tabulate.tabulate)
app.command("convert", epilog=convert.EXAMPLE)(convert.convert)
app.command("adjust", epilog=adjust.EXAMPLE)(adjust.adjust)
app.command("infer", epilog=infer.EXAMPLE)(infer.infer)
app.command("reproduce", epilog=reproduce.EXAMPLE)(reproduce.reproduce)
app.command("serve", epilog=serving.EXAMPLE)(serving.serve)
app.command("backup", epilog=backing.EXAMPLE)(backing.backup)
app.add_typer(audit.app, name="audit", epilog=audit.EXAMPLE)
app.add_typer(ledger.app, name="ledger")
app.add_typer(receipt.app, name="receipt")
app.add_typer(risk.app, name="risk")
app.add_typer(verify.app, name="verify")


def print_version(asked: bool) -> None:
    """Print the version, if asked, and nothing else."""
    if asked:
        print(version("countwise"))
        raise typer.Exit


@app.callback()
def countwise(
    asked: Annotated[
        bool,
        typer.Option(
            "--version", callback=print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Publish counts that protect people and add up, and reason about them."""
    del asked


def main() -> None:
    """Run the command line; a known problem ends with its message and exit code."""
    try:
        app()
    except CountwiseError as problem:
        for words in (f"countwise: {problem}", *getattr(problem, "__notes__", ())):
            print(words, file=sys.stderr)
        sys.exit(problem.exit_code)
    except OSError as problem:
        place = f": {problem.filename}" if problem.filename else ""
        print(f"countwise: {problem.strerror or problem}{place}", file=sys.stderr)
        sys.exit(1)
    except Exception as problem:  # the message of an unforeseen fault could hold data
        if os.environ.get("COUNTWISE_TRACEBACK"):
            raise
        kind = type(problem).__name__
        print(
            f"countwise: a fault of ours ({kind}). COUNTWISE_TRACEBACK=1 shows where.",
            file=sys.stderr,
        )
        sys.exit(1)
