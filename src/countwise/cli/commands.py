"""The commands with a line on each; the code of a command is loaded when that is used."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Literal, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from countwise.cli.short_help import shorten

MARKUP: Literal["rich"] = "rich"
COMMANDS = {
    "demo": "Release a small made-up table of clinics, infer the true counts, and draw both.",
    "plan": "Show levels, privacy loss and expected error. Reads no count and spends nothing.",
    "release": "Release counts that protect people, are whole, non-negative, and add up at every "
    "level.",
    "tabulate": "Count records into the cells of a public domain. The result is confidential: no "
    "noise.",
    "convert": "Write the counts of a release as a cross-table, as SDMX-CSV or as an Excel "
    "workbook.",
    "records": "Write one row a person of the released counts, for tools that read microdata.",
    "adjust": "Make noisy counts whole, non-negative and additive; the flags declare their noise.",
    "infer": "What the true counts can be: best values, ranges, probabilities of statements.",
    "explore": "Look around in a release in your browser: search, and sums of what you click.",
    "compare": "Whether each count changed between two releases by more than the noise of both.",
    "reproduce": "Compute every table and figure of the papers anew, with a verdict on each "
    "number.",
    "serve": "Answer claims about confidential data over HTTP, within budgets. Stops on SIGTERM.",
    "backup": "Copy the database while the server runs, and check the ledger of the copy.",
    "warm-up": "Compile what commands use ahead, once for all commands: for images, services and "
    "impatient users.",
    "audit": "Checks to run on your own machine.",
    "ledger": "The ledger of privacy loss that countwise serve, and release and verify --ledger "
    "share.",
    "receipt": "Receipts of the verification server.",
    "risk": "Expected loss of estimators and mechanisms, on public or made-up counts.",
    "verify": "Ask whether a finding holds in confidential data. The answer is a verdict with a "
    "stated privacy loss. countwise verify DATA … is short for countwise verify data DATA …",
}
"""What `countwise --help` says of each, in its order; the module has the command's own help."""


MODULES = {
    "compare": "exchange_commands",
    "convert": "exchange_commands",
    "records": "exchange_commands",
    "demo": "demo_commands",
    "reproduce": "demo_commands",
    "warm-up": "demo_commands",
    "serve": "server_commands",
    "backup": "server_commands",
    "risk": "risk.risk_command",
    "verify": "verify.verify_command",
    "receipt": "verify.receipt_command",
}
"""Where a command stands that has no module of its own, `NAME_command`, beside this one."""


def module_of(name: str) -> Any:
    """The module of a command."""
    return import_module(f"countwise.cli.{MODULES.get(name, f'{name}_command')}")


@cache
def loaded(name: str) -> Any:
    """The command of the module with its name: its `app`, or else the function of its name."""
    module = module_of(name)
    example = getattr(module, "EXAMPLES", {}).get(name) or getattr(module, "EXAMPLE", None)
    holder = typer.Typer(rich_markup_mode=MARKUP, add_completion=False)
    holder.callback()(_no_options)
    if hasattr(module, "app"):
        holder.add_typer(module.app, name=name, epilog=example)
    else:
        holder.command(name, epilog=example)(getattr(module, name.replace("-", "_")))
    group: Any = get_command(holder)
    shorten(group.commands[name])
    return group.commands[name]


def _no_options() -> None:
    """What makes a group of a single command."""


class Commands(Mapping[str, Any]):
    """The commands by name, each loaded when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            raise KeyError(name)
        return loaded(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Front(TyperGroup):
    """The group of all commands, which lists them without loading them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = cast(Any, Commands())

    def list_commands(self, ctx: Any) -> list[str]:
        """The names alone, in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command as it is listed: a name and a line."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name], rich_markup_mode=MARKUP)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """A command as it is run."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and self.commands[str(name)], rest
