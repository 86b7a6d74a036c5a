"""The command line: parse, call, print. One file a command; no mathematics here."""

import sys
from contextlib import nullcontext
from importlib.metadata import version
from typing import Annotated

import typer

from countwise.cli import (
    adjust_command,
    audit_command,
    convert_command,
    demo_command,
    infer_command,
    ledger_command,
    plan_command,
    receipt_command,
    release_command,
    reproduce_command,
    risk_command,
    tabulate_command,
    verify_command,
)
from countwise.cli import backup_command as backing
from countwise.cli import serve_command as serving
from countwise.cli.crashes import only_our_words, unforeseen
from countwise.errors import CountwiseError
from countwise.tables.file_faults import reason

app = typer.Typer(
    name="countwise",
    epilog="Example: countwise demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", epilog=demo_command.EXAMPLE)(demo_command.demo)
app.command("plan", epilog=plan_command.EXAMPLE)(plan_command.plan)
app.command("release", epilog=release_command.EXAMPLE)(release_command.release)
app.command("tabulate", epilog=tabulate_command.EXAMPLE)(tabulate_command.tabulate)
app.command("convert", epilog=convert_command.EXAMPLE)(convert_command.convert)
app.command("adjust", epilog=adjust_command.EXAMPLE)(adjust_command.adjust)
app.command("infer", epilog=infer_command.EXAMPLE)(infer_command.infer)
app.command("reproduce", epilog=reproduce_command.EXAMPLE)(reproduce_command.reproduce)
app.command("serve", epilog=serving.EXAMPLE)(serving.serve)
app.command("backup", epilog=backing.EXAMPLE)(backing.backup)
app.add_typer(audit_command.app, name="audit", epilog=audit_command.EXAMPLE)
app.add_typer(ledger_command.app, name="ledger")
app.add_typer(receipt_command.app, name="receipt")
app.add_typer(risk_command.app, name="risk")
app.add_typer(verify_command.app, name="verify")


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
    with nullcontext() if sys.argv[1:2] == ["serve"] else only_our_words():
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
        place = f": {problem.filename}" if problem.filename else ""
        print(f"countwise: {reason(problem)}{place}", file=sys.stderr)
    except SystemExit:
        raise
    except BaseException as problem:  # a panic of Polars is no Exception
        print(f"countwise: {unforeseen(problem)}", file=sys.stderr)
    else:
        return 0
    return 1
