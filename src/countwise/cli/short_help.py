"""Help that fits a screen: an example first, then options by what they are about, a line each.

Commands with few options keep the help of the parser. Of the others `--help-all` says every word.
"""

import re
import textwrap
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.main import get_command

MANY = 18  # options from which help would be longer than a screen
WIDTH, NAMES = 80, 24
GROUPS = {
    "Input": (
        "records by across tables count counts noisy domain cells-are-public layout total-code "
        "no-totals sum-duplicates person rows outside schema rehearse stand-in cells table"
    ),
    "Question": "model claim family distance about statement sum top prior from method",
    "Privacy": (
        "epsilon total-epsilon rho unit split neighbours exact zeros partitions ledger dataset"
    ),
    "Method": "mechanism adjust pool border skewness",
    "Output": "out title producer contact page level interval plan csv draws-out json overwrite",
}
MORE = "More"
"""What is in no group is named alone."""
CLAUSE = re.compile(r"(?<=\w)(?: \(|[:;.,] |, or |\.$)")


def shorten(command: Any) -> None:
    """Give a command, or those of a group, help that fits a screen."""
    for each in getattr(command, "commands", {}).values():
        shorten(each)
    if hasattr(command, "commands") or len(command.params) < MANY:
        return
    long = command.format_help

    def short(ctx: Any, formatter: Any) -> None:
        del formatter
        typer.echo(short_help(command, ctx), nl=False)

    def show_all(ctx: typer.Context, asked: bool) -> None:
        if asked and not ctx.resilient_parsing:
            long(ctx, ctx.make_formatter())
            raise typer.Exit

    command.format_help = short
    command.params.append(_flag(show_all))


def _flag(callback: Callable[[typer.Context, bool], None]) -> Any:
    """An option for more help, as the parser makes options."""
    holder = typer.Typer(add_completion=False)

    @holder.command()
    def asking(
        every_word: Annotated[
            bool,
            typer.Option(
                "--help-all",
                is_eager=True,
                expose_value=False,
                callback=callback,
                help="Say every word of every option.",
            ),
        ] = False,
    ) -> None:
        del every_word

    return get_command(holder).params[0]


def short_help(command: Any, ctx: Any) -> str:
    """What the command does, how, and its options by group."""
    about = " ".join((command.help or "").split("\n\n")[0].split())
    lines = [
        f"Usage: {ctx.command_path} {' '.join(_arguments(command))}[OPTIONS]",
        "",
        *_filled(about),
    ]
    example = re.sub(r"\\\[", "[", command.epilog or "")
    lines += ["", *_filled(example, later="    ")]
    options = {_word(each): each for each in command.params if each.param_type_name == "option"}
    options.pop("help-all", None)
    for heading, words in GROUPS.items():
        chosen = [options.pop(word) for word in words.split() if word in options]
        if chosen:
            lines += ["", f"{heading}:", *map(_line, chosen)]
    rest = ", ".join(f"--{word}" for word in options)
    lines += ["", *_filled(f"{MORE}: {rest}" if rest else "", later="  ")]
    lines += _filled("--help-all says every word of every option.")
    return "\n".join(lines).rstrip() + "\n"


def _arguments(command: Any) -> list[str]:
    return [
        f"[{(each.metavar or each.name).upper()}] "
        for each in command.params
        if each.param_type_name == "argument"
    ]


def _word(option: Any) -> str:
    return str(max(option.opts, key=len)).lstrip("-")


def _line(option: Any) -> str:
    """An option, and of its help as many clauses as a line holds."""
    name = f"  --{_word(option)}"
    said = " ".join((option.help or "").replace("\\", "").split())
    room = WIDTH - NAMES
    if len(said) > room:
        ends = [found.start() for found in CLAUSE.finditer(said) if found.start() <= room]
        said = said[: ends[-1]] if ends else textwrap.shorten(said, room, placeholder=" …")
    if said.count("(") > said.count(")"):
        said = said[: said.rindex("(")].rstrip()
    needed = " (required)" if option.required and len(said) + 11 <= room else ""
    return f"{name:<{NAMES}}{said.rstrip('.')}{needed}".rstrip()


def _filled(text: str, *, later: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )
