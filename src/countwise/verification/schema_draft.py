"""A first public schema, from the names of columns and what the user states: never from values.

Bounds and levels must be known from questionnaires, laws and code lists. A schema made from the
values that occur would publish them, so columns nobody speaks of are left as questions.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from countwise.errors import SchemaError
from countwise.verification.schema import schema_from_dict

BOUNDS = re.compile(r"\s*(-?[\d.]+(?:e\d+)?)\s*(?:to|\.\.)\s*(-?[\d.]+(?:e\d+)?)\s*")
BARE = re.compile(r"[A-Za-z0-9_-]+")
Facts = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class SchemaDraft:
    """The text of a schema file, and what it still asks."""

    text: str
    questions: tuple[str, ...]


def draft_schema(
    columns: Sequence[str],
    stated: Mapping[str, Facts],
    *,
    person: str | None,
    count: int | None = None,
    rows: int | None = None,
    title: str = "",
    names_are_public: bool = False,
) -> SchemaDraft:
    """A schema with what is stated of columns, and with the others as questions.

    The others are named only if `names_are_public`: the first line of a file without a header is
    a record.
    """
    _refuse_values(columns)
    for name in (*stated, *([person] if person is not None else ())):
        if name not in columns:
            raise SchemaError(
                f"the file has no column {name!r} among its {len(columns)}. To fix, check the "
                "names in its first line, which are not shown: without a header they are data."
            )
    who: Facts = {"one_row_each": True} if person is None else {"id": person}
    who |= {"count": count} if count is not None else {}
    who |= {"rows": rows} if rows is not None else {}
    known = {name: stated[name] for name in columns if name in stated}
    if known:
        head: Facts = {"title": title, "person": who, "columns": known}
        schema_from_dict(head, where="the draft")
    lines = [f"title = {_text(title)}"] if title else []
    lines += ["", "[person]", *_lines(who)]
    questions = []
    if count is None:
        questions.append("How many persons there are, if that is public: count in [person]?")
    if person is not None and rows is None:
        questions.append("How many rows a person has at most: rows in [person]?")
    others = [name for name in columns if name != person and name not in known]
    if others and not names_are_public:
        lines += ["", f"# {len(others)} other columns: --names-are-public lists them."]
        questions.append(
            f"What are the {len(others)} other columns? If the first line of the file is its "
            "header, and no record, --names-are-public lists them."
        )
    for name in columns if names_are_public else known:
        if name == person:
            continue
        lines.append("")
        if name in known:
            lines += [f"[columns.{_key(name)}]", *_lines(known[name])]
            continue
        questions.append(
            f"What can {name} be, by its questionnaire or code list: a number from … to …, 0 and "
            "1, or one of which labels?"
        )
        lines += [f"# [columns.{_key(name)}]", '# type = "number"  # low, high; integer; binary; '
                  'category with levels']  # fmt: skip
    return SchemaDraft(text="\n".join(lines).lstrip("\n") + "\n", questions=tuple(questions))


def stated_columns(
    numbers: Sequence[str],
    integers: Sequence[str],
    categories: Sequence[str],
    binary: Sequence[str],
) -> dict[str, Facts]:
    """What is said of columns: `age: 18 to 70`, `sex: Female, Male`, `member`."""
    found: dict[str, Facts] = {}
    for kind, texts in (("number", numbers), ("integer", integers)):
        for text in texts:
            name, said = _parted(text, "18 to 70")
            ends = BOUNDS.fullmatch(said)
            if ends is None:
                raise SchemaError(f"{text!r} must have bounds. To fix, write {name}: 18 to 70.")
            whole = kind == "integer"
            low, high = ((int if whole else float)(float(end)) for end in ends.groups())
            _add(found, name, {"type": kind, "low": low, "high": high})
    for text in categories:
        name, said = _parted(text, "Female, Male")
        levels = [each.strip() for each in said.split(",")]
        _add(found, name, {"type": "category", "levels": levels})
    for text in binary:
        _add(found, text.strip(), {"type": "binary"})
    return found


def _parted(text: str, example: str) -> tuple[str, str]:
    name, mark, said = text.rpartition(":")
    if not mark or not name.strip():
        raise SchemaError(f"{text!r} must read column: {example}.")
    return name.strip(), said


def _add(found: dict[str, Facts], name: str, facts: Facts) -> None:
    if name in found:
        raise SchemaError(f"column {name!r} is stated twice. To fix, state it once.")
    found[name] = facts


def _refuse_values(columns: Sequence[str]) -> None:
    """Names that are numbers or nothing are values of a file without a header."""
    for name in columns:
        if not name.strip() or re.fullmatch(r"[-+\d.,\s]+", name):
            raise SchemaError(
                "the first line does not name every column: one name is empty or a number. To "
                "fix, write the names of the columns there."
            )


def _lines(facts: Facts) -> list[str]:
    return [f"{key} = {_text(value)}" for key, value in facts.items()]


def _text(value: object) -> str:
    """A value as TOML, whose texts, numbers, booleans and lists are those of JSON."""
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _text(name)
