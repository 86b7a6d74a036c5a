"""A page that puts the papers' numbers beside ours, with a verdict each."""

from collections.abc import Sequence
from importlib.metadata import version
from math import isfinite
from typing import Any

from markupsafe import Markup

from countwise.pages.bars import bars
from countwise.pages.densities import density
from countwise.pages.lines import lines
from countwise.pages.page import render
from countwise.reproduce.exhibits import Bars, Compared, Curves, Paper, Picture
from countwise.reproduce.recomputation import Reproduction
from countwise.reproduce.verdicts import APART, VERDICTS, PrintedNumber

MARKS = dict(zip(VERDICTS, ("=", "≈", "✎", "✗"), strict=True))
CLASSES = dict(zip(VERDICTS, ("same", "read", "right", "failed"), strict=True))


def reproduction_page(found: Reproduction) -> str:
    """The whole report, complete in itself."""
    papers = [_paper(paper, found.compared) for paper in found.papers]
    return render(
        "reproduction.html",
        title="Five papers, reproduced" if len(papers) == 5 else "Papers, reproduced",
        effort=found.effort.name,
        seed=found.seed,
        minutes=f"{found.seconds / 60:.1f}",
        total=sum(found.verdicts[name] for name in VERDICTS),
        apart=found.verdicts[APART],
        verdicts=[
            {
                "name": name,
                "mark": MARKS[name],
                "kind": CLASSES[name],
                "count": found.verdicts[name],
            }
            for name in VERDICTS
        ],
        papers=papers,
        corrections=_corrections(found.compared),
        version=version("countwise"),
    )


def _paper(paper: Paper, compared: Sequence[Compared]) -> dict[str, Any]:
    return {
        "key": paper.key,
        "name": paper.name,
        "title": paper.title,
        "slips": paper.slips,
        "exhibits": [_exhibit(each) for each in compared if each.paper == paper],
    }


def _corrections(compared: Sequence[Compared]) -> list[dict[str, str]]:
    """Every reason of a correction once, with the first exhibit that has it."""
    found: dict[str, dict[str, str]] = {}
    for each in compared:
        for number in each.findings.numbers:
            if number.correction and number.correction not in found:
                found[number.correction] = {
                    "id": _anchor(each),
                    "where": f"{each.paper.name}, {each.exhibit.title.partition(':')[0]}",
                    "why": number.correction,
                }
    return list(found.values())


def _anchor(each: Compared) -> str:
    return f"{each.paper.key}-{each.exhibit.key}"


def _exhibit(each: Compared) -> dict[str, Any]:
    numbers = each.findings.numbers
    notes = list(dict.fromkeys(number.note for number in numbers if number.note))
    columns = list(dict.fromkeys(number.column for number in numbers))
    rows = list(dict.fromkeys(number.row for number in numbers))
    return {
        "id": _anchor(each),
        "title": each.exhibit.title,
        "source": each.exhibit.source,
        "how": each.exhibit.how,
        "remark": each.findings.remark,
        "counts": [
            {"mark": MARKS[name], "kind": CLASSES[name], "name": name, "count": each.verdicts[name]}
            for name in VERDICTS
            if each.verdicts[name]
        ],
        "columns": columns,
        "list": len(rows) == len(numbers),
        "rows": [
            {"name": row, "cells": [_cell(numbers, row, column, notes) for column in columns]}
            for row in rows
        ],
        "notes": [
            {"text": note, "kind": "Correction" if _corrects(numbers, note) else "Reading"}
            for note in notes
        ],
        "pictures": [
            {"title": picture.title, "svg": draw(picture), "wide": isinstance(picture, Curves)}
            for picture in each.findings.pictures
        ],
    }


def _corrects(numbers: Sequence[PrintedNumber], note: str) -> bool:
    return any(bool(number.correction) and number.note == note for number in numbers)


def _cell(
    numbers: Sequence[PrintedNumber], row: str, column: str, notes: Sequence[str]
) -> dict[str, Any] | None:
    """The number of a row and column; None where the paper has none."""
    for number in numbers:
        if (number.row, number.column) == (row, column):
            return {
                "printed": number.printed,
                "ours": shown(number.ours, number.printed),
                "range": f"accepted from {number.low:.6g} to {number.high:.6g}",
                "verdict": number.verdict,
                "mark": MARKS[number.verdict],
                "kind": CLASSES[number.verdict],
                "note": notes.index(number.note) + 1 if number.note else None,
            }
    return None


def shown(ours: float, printed: str) -> str:
    """Our number with one digit more than is printed."""
    text = printed.replace(",", "")
    digits = len(text.partition(".")[2]) if text.replace(".", "").lstrip("-").isdigit() else None
    if not isfinite(ours):
        return str(ours)
    if digits is None:
        return f"{ours:.4g}" if abs(ours) < 1000 else f"{ours:,.0f}"
    if digits > 6 or ours == int(ours):
        return f"{ours:.{min(digits, 13)}f}" if digits > 6 else f"{ours:,.0f}"
    plain = f"{ours:,.{digits + 1}f}"
    return plain if float(plain.replace(",", "")) else f"{ours:.2g}"


def draw(picture: Picture) -> Markup:
    """A picture of the report as inline SVG."""
    if isinstance(picture, Bars):
        return bars(
            picture.low,
            picture.heights,
            title=picture.title,
            axis=picture.axis,
            marked=picture.marked,
        )
    if isinstance(picture, Curves):
        return lines(
            picture.lines,
            title=picture.title,
            x_axis=picture.x_axis,
            y_axis=picture.y_axis,
            log_x=picture.log_x,
            log_y=picture.log_y,
        )
    return density(picture.curve, title=picture.title, axis=picture.axis)
