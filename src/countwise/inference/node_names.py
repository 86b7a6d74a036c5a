"""Finding a node by its name: a path such as North/A, or a label that occurs once."""

from difflib import get_close_matches

import numpy as np

from countwise.errors import InputError, TableError
from countwise.tables.hierarchy import ROOT, Hierarchy


def find(hierarchy: Hierarchy, name: str) -> tuple[int, int]:
    """Level and position of the node with this path or, if only one node has it, label."""
    if name in (ROOT, ""):
        return 0, 0
    try:
        return hierarchy.find(name.split("/"))
    except (TableError, IndexError):
        pass
    found = []
    for depth, labels in enumerate(hierarchy.labels):
        if name in labels:
            nodes = np.flatnonzero(hierarchy.codes[depth] == labels.index(name))
            found += [(depth + 1, int(node)) for node in nodes]
    if len(found) == 1:
        return found[0]
    if found:
        paths = [path_name(hierarchy, *each) for each in found[:3]]
        raise InputError(
            f"{len(found)} nodes are called {name!r}. To fix, give a path: {', '.join(paths)}."
        )
    known = [label for labels in hierarchy.labels for label in labels[:5000]]
    spaced = [label for label in known if label.startswith(f"{name} ")][:3]
    if spaced:
        quoted = " or ".join(f'"{label}"' for label in spaced)
        raise InputError(
            f"there is no node {name!r}. To fix, put a label with spaces in quotes: {quoted}."
        )
    near = get_close_matches(name.rsplit("/", maxsplit=1)[-1], known, n=3)
    hint = f" Did you mean {', '.join(near)}?" if near else ""
    raise InputError(f"there is no node {name!r}; a node is a path such as North/A.{hint}")


def path_name(hierarchy: Hierarchy, level: int, node: int) -> str:
    """The labels of a node joined by "/"; the root is called total."""
    return "/".join(hierarchy.path(level, node)) or ROOT


def level_names(hierarchy: Hierarchy, level: int) -> list[str]:
    """The path of every node of a level."""
    if level == 0:
        return [ROOT]
    codes = hierarchy.path_codes(level)
    labels = [np.array(hierarchy.labels[d], dtype=object)[codes[d]] for d in range(level)]
    return ["/".join(row) for row in zip(*labels, strict=True)]
