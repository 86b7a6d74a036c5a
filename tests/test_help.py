"""The help of every command: it fits a terminal of 80 columns and ends with an example."""

import re
from collections.abc import Iterator
from importlib.metadata import version

import pytest
import typer
from typer.testing import CliRunner

from countwise.cli import app


def commands(group: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, command in sorted(getattr(group, "commands", {}).items()):
        yield from commands(command, (*path, name))


LONGEST = 60
ALL = list(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("path", ALL, ids=lambda path: " ".join(path) or "countwise")
def test_help_fits_and_shows_an_example(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    result = CliRunner().invoke(app, [*path, "--help"])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < LONGEST
    examples = re.split("Examples?:", " ".join(result.output.split()))[-1]
    assert " ".join(("countwise", *path)) in examples


def test_every_option_is_named_in_the_help_of_long_commands() -> None:
    for name in ("release", "plan", "infer"):
        command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
        short = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "80"}).output
        assert short.index("Example") < short.index("--")
        for each in command.params:
            if each.param_type_name == "option" and "--help-all" not in each.opts:
                assert max(each.opts, key=len) in short, (name, each.opts)
        every = CliRunner().invoke(app, [name, "--help-all"], env={"COLUMNS": "80"})
        assert every.exit_code == 0
        assert len(every.output.splitlines()) > LONGEST


def test_completion_is_offered_for_every_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Named, not found out: the tests may run where no shell started them."""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    for shell in ("bash", "zsh", "fish"):
        script = CliRunner().invoke(app, ["--show-completion", shell], prog_name="countwise")
        assert script.exit_code == 0
        assert "countwise" in script.output


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).output.strip() == version("countwise")
