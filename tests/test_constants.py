"""Every number that a module fixes has its reason beside it."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import countwise as cw

SOURCE = Path(cw.__file__).parent
MODULES = sorted(
    path
    for path in SOURCE.rglob("*.py")
    # Numbers of papers are explained by the exhibit they stand in; migrations are history.
    if not {"reproduce", "migrations"} & set(path.parts)
)
PLAIN = (
    ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Tuple, ast.Load,
    ast.Call, ast.Name,
)  # fmt: skip
Assignment = ast.Assign | ast.AnnAssign


def is_number(value: ast.expr | None) -> bool:
    """Numbers, or arithmetic of them, and nothing else."""
    if value is None or not all(isinstance(each, PLAIN) for each in ast.walk(value)):
        return False
    found = [each.value for each in ast.walk(value) if isinstance(each, ast.Constant)]
    numbers = [each for each in found if isinstance(each, int | float) and each is not True]
    return bool(numbers) and not any(isinstance(each, str) for each in found)


def unexplained(text: str) -> Iterator[str]:
    """Names of numbers with neither a comment at them nor a docstring below their group."""
    body, lines = ast.parse(text).body, text.splitlines()
    for i, node in enumerate(body):
        if not isinstance(node, Assignment) or not is_number(node.value):
            continue
        last = i
        while last + 1 < len(body) and follows(body[last], body[last + 1], Assignment):
            last += 1
        below = body[last + 1] if last + 1 < len(body) else None
        if below is not None and follows(body[last], below, ast.Expr):
            continue
        above = lines[max(node.lineno - 2, 0)]
        own = lines[node.lineno - 1 : node.end_lineno]
        if not above.startswith("#") and not any("#" in line for line in own):
            yield lines[node.lineno - 1]


def follows(one: ast.stmt, other: ast.stmt, kind: Any) -> bool:
    """Whether a statement of a kind stands right below another."""
    return isinstance(other, kind) and other.lineno == (one.end_lineno or 0) + 1


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_number_has_its_reason_beside_it(path: Path) -> None:
    found = list(unexplained(path.read_text(encoding="utf-8")))
    assert not found, (
        "say why it is this number: a comment on its line, or a docstring line below it"
    )


def test_a_number_without_a_reason_is_found() -> None:
    assert list(unexplained('A = 3\n\nB = 4  # why\nC = 5\n"""Why."""\nD = "x"\n')) == ["A = 3"]
    assert list(unexplained("A, B = 1 / 3, 2.0**-53\n")) == ["A, B = 1 / 3, 2.0**-53"]
