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
    examples = re.split("Examples?:", " ".join(result.output.split()))[-1]
    assert " ".join(("countwise", *path)) in examples


def test_completion_is_offered_for_every_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Named, not found out: the tests may run where no shell started them."""
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    for shell in ("bash", "zsh", "fish"):
        script = CliRunner().invoke(app, ["--show-completion", shell], prog_name="countwise")
        assert script.exit_code == 0
        assert "countwise" in script.output


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).output.strip() == version("countwise")
