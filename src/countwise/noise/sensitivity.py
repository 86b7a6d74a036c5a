"""How far one person can move the counts of a level."""

from typing import Literal

Neighbours = Literal["add-remove", "replace-one"]
NEIGHBOURS: tuple[Neighbours, ...] = ("add-remove", "replace-one")


def level_moves(neighbours: Neighbours, *, rows: int, nodes: int) -> tuple[int, ...]:
    """How far one person moves a level's counts at worst, count by count.

    `add-remove`: one person with up to `rows` rows comes or goes; at worst all are in one node.
    `replace-one`: one person's rows are replaced by another's, so up to `rows` leave one node
    and up to `rows` enter another. A level of a single node then sees only the difference of
    two numbers of rows, each from 1 to `rows`.
    """
    if neighbours == "add-remove":
        return (rows,)
    return (rows - 1,) if nodes == 1 else (rows, rows)


def level_sensitivity(neighbours: Neighbours, *, rows: int, nodes: int) -> int:
    """The largest L1 distance between a level's counts in two neighbouring tables.

    >>> level_sensitivity("add-remove", rows=1, nodes=5)
    1
    >>> level_sensitivity("replace-one", rows=1, nodes=5)
    2
    """
    return sum(level_moves(neighbours, rows=rows, nodes=nodes))


def squared_level_sensitivity(neighbours: Neighbours, *, rows: int, nodes: int) -> int:
    """The largest squared Euclidean distance between a level's counts in two neighbours.

    Rows of a person that fall into one node go further than the same rows in several.
    """
    return sum(move**2 for move in level_moves(neighbours, rows=rows, nodes=nodes))
