"""Every mutant fits the source as it is; that each of them is noticed is for tests/mutants.py."""

import ast

import pytest

from mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.name)
def test_every_mutant_is_a_change_of_the_source(mutant: Mutant) -> None:
    """There is one place for it, the result is Python, and its tests are there."""
    source = (ROOT / "src" / "countwise" / mutant.file).read_text(encoding="utf-8")
    changed = mutant.applied(source)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    for test in mutant.tests:
        file, _, name = test.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {name.partition('[')[0]}" in text


def test_there_are_many_and_no_name_stands_twice() -> None:
    assert len(MUTANTS) >= 40
    assert len({each.name for each in MUTANTS}) == len(MUTANTS)


def test_a_mutant_without_a_place_is_refused_loudly() -> None:
    with pytest.raises(LookupError, match="0 places"):
        Mutant(name="m", file="f", old="no such text", new="", tests=()).applied("source")
    with pytest.raises(LookupError, match="2 places"):
        Mutant(name="m", file="f", old="a", new="", tests=()).applied("a a")
