"""What readers of the source rely on: names that occur once, sources, examples, equality."""

import ast
import dataclasses
import doctest
import importlib
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import countwise

SOURCE = Path(countwise.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
CITED = re.compile(
    r"([A-Z][a-zü]+(?: Gall)?)(?:(?:, [A-Z][a-zü]+)* & [A-Z][A-Za-zü]+| et al\.)?"
    r" \(?((?:19|20)\d\d)\b"
)
VAGUE = (
    "dealt dealtsums makings sharing relatives grafted climbing judgement pairing printed computed "
    "sampled stepsums noisesums treemode fitted topdown rows runners stages staging streamed "
    "pieces asks bodies chances warming views"
)


def dotted(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_a_file_name_stands_in_one_room() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        if path.name != "__init__.py":
            places[path.name].append(str(path.relative_to(SOURCE)))
    assert not {name: rooms for name, rooms in places.items() if len(rooms) > 1}


def test_a_class_name_occurs_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(SOURCE)))
    assert not {name: files for name, files in places.items() if len(files) > 1}


def test_no_module_has_a_name_that_readers_could_not_guess() -> None:
    assert not [path for path in MODULES if path.stem in VAGUE.split()]


def test_frozen_dataclasses_with_arrays_are_equal_to_themselves_only() -> None:
    """Comparing arrays gives arrays, which have no truth: `==` and `hash` would raise."""
    compared = [
        f"{each.__module__}.{each.__name__}"
        for each in _dataclasses()
        if each.__dataclass_params__.frozen
        and each.__eq__ is not object.__eq__
        and _holds_arrays(each)
    ]
    assert not compared


def _dataclasses() -> Iterator[type]:
    for path in MODULES:
        if "migrations" in path.parts or path.name == "__main__.py":
            continue
        module = importlib.import_module(dotted(path))
        for _, each in inspect.getmembers(module, inspect.isclass):
            if each.__module__ == module.__name__ and dataclasses.is_dataclass(each):
                yield each


def _holds_arrays(kind: type) -> bool:
    return any("numpy.ndarray" in repr(each.type) for each in dataclasses.fields(kind))


def test_every_source_that_is_named_stands_in_the_bibliography() -> None:
    page = (Path(__file__).parents[1] / "docs" / "bibliography.md").read_text(encoding="utf-8")
    named = {
        pair
        for path in MODULES
        if "server" not in path.parts and "reproduce" not in path.parts
        for pair in CITED.findall(" ".join(path.read_text(encoding="utf-8").split()))
    }
    assert len(named) > 25
    absent = [
        f"{name} {year}"
        for name, year in sorted(named)
        if not re.search(rf"^[-|] ?{name}, [^\n]*\({year}\)", page, re.MULTILINE)
    ]
    assert not absent


def test_the_examples_of_docstrings_are_true() -> None:
    examples = [path for path in MODULES if ">>> " in path.read_text(encoding="utf-8")]
    assert len(examples) > 5
    for path in examples:
        result = doctest.testmod(importlib.import_module(dotted(path)))
        assert result.attempted
        assert not result.failed
