"""What a release says about itself in release.json: written in format 2, read in 1 and 2.

Format 2 has variables and margins. Format 1, of version 0.1, was of one tree and had its levels; it
is read as the variable of these levels, whose margins are all measured and published.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from countwise.errors import ReleaseError
from countwise.noise.count_noise import law_named
from countwise.noise.numbers import written
from countwise.noise.sensitivity import level_moves
from countwise.release.budget import Budget, LevelBudget
from countwise.tables.hierarchy import ROOT

FORMAT = 2
ALWAYS = ("privacy", "adjustment", "plan", "checksums")
CONTENTS = {1: ("by", "levels", *ALWAYS), FORMAT: ("variables", "margins", "measured", *ALWAYS)}
"""Of each release format, what its manifest has."""


def contents(
    variables: Iterable[tuple[str, Sequence[str], Sequence[int]]],
    margins: Iterable[tuple[str, int]],
    budget: Budget,
) -> dict[str, Any]:
    """The variables with the sizes of their levels, the published margins, and the noise."""
    return {
        "variables": [
            {"name": name, "levels": list(levels), "sizes": list(sizes)}
            for name, levels, sizes in variables
        ],
        "margins": [{"margin": name, "counts": counts} for name, counts in margins],
        "measured": [_noise(each, budget) for each in budget.levels],
    }


def tree_contents(by: Sequence[str], budget: Budget) -> dict[str, Any]:
    """The same of one tree: a variable called as its finest level, of which all is measured."""
    sizes = [each.nodes for each in budget.levels]
    margins = [(each.level, each.nodes) for each in budget.levels]
    return contents([(by[-1], by, sizes[1:])], margins, budget)


def _noise(each: LevelBudget, budget: Budget) -> dict[str, Any]:
    return {
        "margin": each.level,
        "counts": each.nodes,
        "law": each.law.name,
        "scale": written(each.law.scale),
        "sensitivity": each.sensitivity,
        budget.unit: written(each.loss),
        **({"exact": each.exact} if budget.invariants else {}),
    }


def as_text(manifest: dict[str, Any]) -> str:
    """A manifest as JSON, its lists of numbers on a line each."""
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    return re.sub(r"\[[-+\d.e,\s]+\]", lambda found: " ".join(found[0].split()), text)


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a release says about itself, in the words of the newest format."""
    path = folder / "release.json"
    if folder.is_file():
        inside = folder.parent if (folder.parent / "release.json").is_file() else None
        fix = f" To fix, give the folder {inside}." if inside else ""
        raise ReleaseError(
            f"{folder} is a file; a release is a folder with a release.json in it.{fix}"
        )
    if not path.is_file():
        raise ReleaseError(f"{folder} is not a release: it has no release.json.")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ReleaseError(f"{path} is not readable as JSON.") from None
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found not in CONTENTS:
        known = " or ".join(map(str, CONTENTS))
        raise ReleaseError(f"{path} is not of release format {known}, which this version reads.")
    for key in CONTENTS[found]:
        if key not in manifest:
            raise ReleaseError(f"{path} has no {key!r}; a release of format {found} does.")
    return dict(manifest) if found == FORMAT else _newest(manifest)


def _newest(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest of format 1, whose levels become margins."""
    names = {"level": "margin", "nodes": "counts"}
    measured = [
        {names.get(key, key): value for key, value in level.items()} for level in manifest["levels"]
    ]
    by, sizes = manifest["by"], [each["counts"] for each in measured]
    rest = {key: value for key, value in manifest.items() if key not in ("by", "levels")}
    return rest | {
        "variables": [{"name": by[-1], "levels": by, "sizes": sizes[1:]}],
        "margins": [{key: each[key] for key in ("margin", "counts")} for each in measured],
        "measured": measured,
    }


def is_tree(manifest: dict[str, Any]) -> bool:
    """Whether it is of one tree of levels, and not of tables that cross."""
    return "variables" not in manifest["plan"]


def read_tree_manifest(folder: Path) -> dict[str, Any]:
    """The same of one tree; that of tables that cross is refused."""
    manifest = read_manifest(folder)
    if not is_tree(manifest):
        raise ReleaseError(
            f"{folder} has tables that cross several variables, and this takes the release of one "
            "tree of levels."
        )
    if [each["margin"] for each in manifest["measured"]] != [ROOT, *levels_of(manifest)]:
        raise ReleaseError(f"{folder}/release.json does not have the noise of every level.")
    return manifest


def levels_of(manifest: dict[str, Any]) -> tuple[str, ...]:
    """The levels of a tree from outer to inner."""
    return tuple(manifest["variables"][0]["levels"])


def read_noise(manifest: dict[str, Any]) -> tuple[LevelBudget, ...]:
    """The noise of everything that was measured."""
    neighbours, rows = manifest["privacy"]["neighbours"], manifest["privacy"]["rows"]
    return tuple(
        LevelBudget(
            level=entry["margin"],
            nodes=entry["counts"],
            moves=level_moves(neighbours, rows=rows, nodes=entry["counts"]),
            loss=Fraction(entry["epsilon"] if "epsilon" in entry else entry["rho"]),
            law=law_named(entry["law"])(scale=Fraction(entry["scale"])),
            exact=entry.get("exact", 0),
        )
        for entry in manifest["measured"]
    )


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def refuse_changed(folder: Path, manifest: dict[str, Any]) -> None:
    """Refuse a folder whose files are not those that were released."""
    for name, expected in manifest["checksums"].items():
        if not (folder / name).is_file():
            raise ReleaseError(f"{folder}: {name} is missing from the release.")
        if checksum(folder / name) != expected:
            raise ReleaseError(f"{folder / name} was changed after the release was made.")
