"""The command line: parse, call, print. One file a command; no mathematics here."""

import sys

import typer

from countwise.cli import adjust, audit, demo, plan, release
from countwise.errors import CountwiseError

app = typer.Typer(
    name="countwise",
    help="Publish counts that protect people and add up, and reason about them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", epilog=demo.EXAMPLE)(demo.demo)
app.command("plan", epilog=plan.EXAMPLE)(plan.plan)
app.command("release", epilog=release.EXAMPLE)(release.release)
app.command("adjust", epilog=adjust.EXAMPLE)(adjust.adjust)
app.add_typer(audit.app, name="audit")


def main() -> None:
    """Run the command line; a known problem ends with its message and exit code."""
    try:
        app()
    except CountwiseError as problem:
        print(f"countwise: {problem}", file=sys.stderr)
        sys.exit(problem.exit_code)
    except OSError as problem:
        print(f"countwise: {problem.strerror or problem}: {problem.filename}", file=sys.stderr)
        sys.exit(1)
