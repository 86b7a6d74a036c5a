"""What is done while the site is built: the page of commands, made from the commands themselves,
and a navigation without pages of parts that are not installed."""

from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer.main import get_command

from countwise.cli import app

PAGE = "reference/commands.md"
HEAD = """# Commands

Made from the commands themselves; `countwise COMMAND --help` shows the same. Every command takes
`--help`. Exit codes: 0 done; 2 the input is wrong, and the message says what would be right; 3
refused because the budget does not allow it; 1 a fault of ours.
"""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leaves out of the navigation what is not there."""
    config.nav = _present(config.nav, Path(config.docs_dir))
    return config


def _present(part: Any, folder: Path) -> Any:
    if isinstance(part, str):
        return part if part == PAGE or (folder / part).is_file() else None
    if isinstance(part, dict):
        found = {name: _present(each, folder) for name, each in part.items()}
        return {name: each for name, each in found.items() if each}
    return [each for each in (_present(one, folder) for one in part) if each]


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the page to the site."""
    files.append(File.generated(config, PAGE, content=commands_page()))
    return files


def commands_page() -> str:
    """All commands, each with its use, arguments and options."""
    return "\n".join([HEAD, *_sections("countwise", get_command(app))])


def _sections(path: str, command: Any) -> list[str]:
    """A command and those below it, in the order of the help."""
    below = getattr(command, "commands", {})
    lines = [] if path == "countwise" else [_section(path, command)]
    for name, each in below.items():
        lines += _sections(f"{path} {name}", each)
    return lines


def _section(path: str, command: Any) -> str:
    context = click.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    rows = [_row(each, context) for each in command.params if each.name != "help"]
    table = ["| argument or option | meaning |", "|---|---|", *rows] if rows else []
    example = [f"```text\n{each}\n```" for each in _examples(command.epilog)]
    parts = [f"## {path}", " ".join((command.help or "").split()), f"    {usage}"]
    return "\n\n".join([*parts, "\n".join(table), *example, ""])


def _row(parameter: Any, context: click.Context) -> str:
    names = [*parameter.opts, *parameter.secondary_opts]
    label = ", ".join(f"`{name}`" for name in names)
    words = " ".join((getattr(parameter, "help", None) or "").split())
    default = parameter.get_default(context)
    shown = default is not None and default != "" and not isinstance(default, bool)
    extra = f" Default: `{default}`." if shown and not parameter.required else ""
    need = " Required." if parameter.required else ""
    return f"| {label} | {_plain(words)}{need}{extra} |"


def _plain(words: str) -> str:
    return words.replace("|", "\\|").replace("<", "&lt;")


def _examples(epilog: str | None) -> list[str]:
    text = (epilog or "").split(":", 1)[-1]
    return [each.strip() for each in text.split(" · ") if each.strip()]
