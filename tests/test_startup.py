"""What is loaded before there is anything to do: nothing that takes time."""

import inspect
import subprocess
import sys

import pytest

import countwise as cw
from countwise.cli.commands import COMMANDS, module_of

HEAVY = (
    "numba", "llvmlite", "numpy", "scipy", "polars", "duckdb", "ibis", "flint", "jinja2",
    "cryptography", "pyarrow", "pandas", "sqlalchemy", "fastapi", "pyspark",
)  # fmt: skip
LOADED = "print(*sorted({name.partition('.')[0] for name in sys.modules}))"


def loaded_by(code: str) -> set[str]:
    """The packages that a process of its own has loaded after some code."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{LOADED}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_importing_loads_nothing_heavy() -> None:
    found = loaded_by("import countwise")
    assert "countwise" in found
    assert not found & set(HEAVY)


def test_what_is_heavy_is_found_where_it_is_used() -> None:
    assert {"numpy", "polars", "flint"} <= loaded_by("import countwise; countwise.Plan")


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_loads_nothing_heavy(flag: str) -> None:
    found = loaded_by(
        f"sys.argv = ['countwise', '{flag}']\n"
        "from countwise.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code"
    )
    assert "typer" in found
    assert not found & set(HEAVY)


def test_completing_a_command_loads_nothing_heavy() -> None:
    asked = {"COMP_WORDS": "countwise rel", "COMP_CWORD": "1"}
    found = loaded_by(
        f"import io, os; os.environ.update({asked}, _COUNTWISE_COMPLETE='complete_bash')\n"
        "from countwise.cli import app\n"
        "kept, sys.stdout = sys.stdout, io.StringIO()\n"
        "try:\n    app(prog_name='countwise')\nexcept SystemExit:\n    pass\n"
        "said, sys.stdout = sys.stdout.getvalue(), kept\n"
        "assert said.split() == ['release'], said"
    )
    assert not found & set(HEAVY)


def test_every_public_name_is_there_and_listed() -> None:
    assert set(cw.__all__) <= set(dir(cw))
    assert all(getattr(cw, name) is not None for name in cw.__all__)
    with pytest.raises(AttributeError, match="nothing_of_ours"):
        cw.nothing_of_ours  # noqa: B018


def test_the_function_release_stays_when_its_room_is_loaded() -> None:
    code = (
        "import countwise as cw, countwise.release.plan, countwise.release as r\n"
        "from countwise.release import budget\n"
        "assert callable(cw.release) and r is cw.release and callable(budget.Budget)"
    )
    loaded_by(code)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_listed_with_its_own_first_words(name: str) -> None:
    module = module_of(name)
    own = (
        module.app.info.help
        if hasattr(module, "app")
        else getattr(module, name.replace("-", "_")).__doc__
    )
    if not isinstance(own, str):
        own = module.app.registered_callback.callback.__doc__
    assert " ".join(inspect.cleandoc(own).split("\n\n")[0].split()) == COMMANDS[name]
