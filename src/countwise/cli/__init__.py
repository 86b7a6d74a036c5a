"""The command line: parse, call, print. One file a command; no mathematics here."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from countwise.cli.commands import MARKUP, Front
from countwise.cli.compiling import told
from countwise.cli.crashes import only_our_words, unforeseen
from countwise.errors import CountwiseError

app = typer.Typer(
    name="countwise",
    cls=Front,
    epilog="Example: countwise demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=MARKUP,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
    # The processes that a server starts write their logs where libraries would write.
    if sys.argv[1:2] == ["serve"]:
        code = _ended()
    else:
        with only_our_words(), told():
            code = _ended()
    sys.exit(code)


def _ended() -> int:
    """Run the command and say how it failed, if it did."""
    try:
        app()
    except CountwiseError as problem:
        for words in (f"countwise: {problem}", *getattr(problem, "__notes__", ())):
            print(words, file=sys.stderr)
        return problem.exit_code
    except OSError as problem:
        from countwise.tables.file_faults import reason

        place = f": {problem.filename}" if problem.filename else ""
        print(f"countwise: {reason(problem)}{place}", file=sys.stderr)
    except SystemExit:
        raise
    except BaseException as problem:  # a panic of Polars is no Exception
        print(f"countwise: {unforeseen(problem)}", file=sys.stderr)
    else:
        return 0
    return 1
