"""Nodes of a tree picked by their labels: `county`, `county=Wake`, `county=Wake,race=Asian`.

A pattern stands for the nodes of the deepest level it names that have the labels it gives.
Levels it leaves out, and levels it names without a label, may have any.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from countwise.arrays import BoolArray
from countwise.errors import PlanError
from countwise.tables.files import load
from countwise.tables.hierarchy import ROOT, Hierarchy

FILES = (".csv", ".parquet", ".pq")


@dataclass(frozen=True)
class Pattern:
    """The labels asked for by level; None where any will do."""

    labels: tuple[tuple[str, str | None], ...]

    def __str__(self) -> str:
        return ",".join(
            level if label is None else f"{level}={label}" for level, label in self.labels
        )

    def to_dict(self) -> dict[str, str | bool]:
        """The pattern as plain data, `true` for any label."""
        return {level: True if label is None else label for level, label in self.labels}

    def nodes(self, hierarchy: Hierarchy) -> tuple[int, BoolArray]:
        """The level of the nodes it stands for, and which of that level they are."""
        for level, _ in self.labels:
            if level not in hierarchy.levels:
                raise PlanError(
                    f"{self}: there is no level {level!r}; the table has "
                    f"{', '.join(hierarchy.levels)}."
                )
        deepest = max(hierarchy.levels.index(level) for level, _ in self.labels)
        chosen = np.ones(hierarchy.sizes[deepest], dtype=np.bool_)
        codes = hierarchy.path_codes(deepest)
        for level, label in self.labels:
            if label is None or level == ROOT:
                continue
            depth = hierarchy.levels.index(level) - 1
            chosen &= codes[depth] == label_code(self, hierarchy, depth, label)
        if not chosen.any():
            raise PlanError(f"{self}: no node has all of these labels.")
        return deepest, chosen


def label_code(pattern: Pattern, hierarchy: Hierarchy, depth: int, label: str) -> int:
    """The number of a label that a pattern gives of a level column."""
    labels = hierarchy.labels[depth]
    if label not in labels:
        near = get_close_matches(label, labels[:5000], n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise PlanError(f"{pattern}: level {hierarchy.by[depth]!r} has no {label!r}.{hint}")
    return labels.index(label)


def read_pattern(given: str | Mapping[str, Any] | Pattern) -> Pattern:
    """A pattern as written on the command line, or as a table of a plan file."""
    if isinstance(given, Pattern):
        return given
    if isinstance(given, str):
        parts = [part.strip().partition("=") for part in given.split(",")]
        labels = [(level.strip(), label.strip() if mark else None) for level, mark, label in parts]
    else:
        labels = [(level, None if label is True else str(label)) for level, label in given.items()]
    names = [level for level, _ in labels]
    if not labels or "" in names or any(label == "" for _, label in labels):
        raise PlanError(
            f"{given!r} names no nodes. To fix, write a level such as county, or labels such as "
            "county=Wake,race=Asian."
        )
    if len(set(names)) < len(names):
        raise PlanError(f"{given!r} names a level twice.")
    return Pattern(tuple(labels))


def read_patterns(given: Sequence[Any] | str | None, *, by: Sequence[str]) -> tuple[Pattern, ...]:
    """Patterns of a list; an entry that is a CSV or Parquet file is read as one pattern a row."""
    patterns: list[Pattern] = []
    for each in [given] if isinstance(given, str) else given or ():
        if isinstance(each, str) and each.lower().endswith(FILES):
            patterns += _of_file(Path(each), by)
        else:
            patterns.append(read_pattern(each))
    return tuple(dict.fromkeys(patterns))


def _of_file(path: Path, by: Sequence[str]) -> list[Pattern]:
    """One node a row: its level columns filled down to its level, and empty below."""
    frame = load(path, by, []).frame
    filled = frame.select(pl.col(by).is_not_null() & (pl.col(by) != "")).rows()
    patterns = []
    for labels, full in zip(frame.rows(), filled, strict=True):
        depth = sum(full)
        if not all(full[:depth]):
            raise PlanError(f"{path}: a row has an empty level column before a filled one.")
        chosen = tuple(zip(by[:depth], labels[:depth], strict=True))
        patterns.append(Pattern(chosen or ((ROOT, None),)))
    return patterns
