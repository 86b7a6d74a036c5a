"""Every mutant fits the source as it is; that each of them is noticed is for tests/mutants.py."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.name)
def test_every_mutant_is_a_change_of_the_source(mutant: Mutant) -> None:
    """There is one place for it, the result is Python, and its tests are there."""
    _, source, changed = mutant.applied(ROOT)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    for test in mutant.tests:
        file, _, name = test.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {name.partition('[')[0]}" in text


def test_there_are_many_and_no_name_stands_twice() -> None:
    assert len(MUTANTS) >= 40
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)


def test_a_mutant_without_a_place_of_its_own_is_refused_loudly(tmp_path: Path) -> None:
    folder = tmp_path / "src" / "countwise" / "room"
    folder.mkdir(parents=True)
    (folder / "one.py").write_text("a = 1\nb = 2\n")
    (folder / "two.py").write_text("a = 1\n")
    fault = Mutant(name="m", file="room", old="b = 2", new="b = 3", tests=())
    path, _, changed = fault.applied(tmp_path)
    assert (path.name, changed) == ("one.py", "a = 1\nb = 3\n")
    with pytest.raises(LookupError, match="2 places"):
        replace(fault, old="a = 1").place(tmp_path)
    with pytest.raises(LookupError, match="0 places"):
        replace(fault, old="c = 1").place(tmp_path)
