"""How far one person can move the counts of a level."""

from typing import Literal

Neighbours = Literal["add-remove", "replace-one"]
NEIGHBOURS: tuple[Neighbours, ...] = ("add-remove", "replace-one")


def level_sensitivity(neighbours: Neighbours, *, rows: int, nodes: int) -> int:
    """The largest L1 distance between a level's counts in two neighbouring tables.

    `add-remove`: one person with up to `rows` rows comes or goes, so the counts move by up to
    `rows`. `replace-one`: one person's rows are replaced by another's, so up to `rows` leave
    some nodes and up to `rows` enter others. A level of a single node then sees only the
    difference of two numbers of rows, each from 1 to `rows`.
    """
    if neighbours == "add-remove":
        return rows
    return rows - 1 if nodes == 1 else 2 * rows


def squared_level_sensitivity(neighbours: Neighbours, *, rows: int, nodes: int) -> int:
    """The largest squared Euclidean distance between a level's counts in two neighbours.

    Reached when all rows of a person fall into one node.
    """
    if neighbours == "add-remove":
        return rows**2
    return (rows - 1) ** 2 if nodes == 1 else 2 * rows**2
