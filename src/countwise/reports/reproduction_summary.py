"""The reproduction on one page of plain text: verdicts by exhibit, corrections, readings, slips."""

from collections.abc import Callable, Iterator

from countwise.reports.reproduction_page import shown
from countwise.reproduce.exhibits import Compared, Paper
from countwise.reproduce.recomputation import Reproduction
from countwise.reproduce.verdicts import APART, VERDICTS, PrintedNumber

INTRODUCTION = """\
# Five papers, reproduced

Every table and figure of the papers behind countwise is computed anew and put beside what is
printed, with a verdict a number. This page is written by the command itself (as `summary.md`):

```sh
countwise reproduce --quick --out report     # under two minutes; without --quick under thirty
```

`report/index.html` has every number and picture, `reproduction.json` and `reproduction.csv` the
same for machines. `--only wang2021` computes one paper, `--only wang2021/table-3` one exhibit. The
exit code is 1 when a number is not reproduced, unless its note says why this machine differs.

A number is *reproduced* when ours rounds to it, or lies within five standard errors where chance
is involved; *reproduced with a stated reading* when the paper leaves something open; *corrected*
when it is wrong and ours is right by the reason given; else *not reproduced*. Each printed number
counts once: what stands beside a picture, beside a number that no paper prints, or beside one that
another row has is *listed apart*.
"""


def summary(found: Reproduction) -> str:
    """Markdown; nothing in it depends on the machine."""
    return "\n".join([INTRODUCTION, *_lines(found)]) + "\n"


def _lines(found: Reproduction) -> Iterator[str]:
    yield "| exhibit | reproduced | by a reading | corrected | not reproduced | apart |"
    yield "|---|---:|---:|---:|---:|---:|"
    for each in found.compared:
        counts = " | ".join(str(each.verdicts[name] or "") for name in (*VERDICTS, APART))
        yield f"| {each.paper.name}, {each.exhibit.title} | {counts} |"
    yield f"| **all** | {' | '.join(str(found.verdicts[name]) for name in (*VERDICTS, APART))} |"
    for paper in found.papers:
        yield from _paper(paper, [each for each in found.compared if each.paper == paper])


def _paper(paper: Paper, compared: list[Compared]) -> Iterator[str]:
    yield f"\n## {paper.name}\n\n*{paper.title}*"
    yield from _notes("Corrections", compared, lambda number: number.correction)
    yield from _notes("Readings", compared, lambda number: number.reading)
    yield from _notes("On another machine", compared, lambda number: number.elsewhere)
    yield "\nSlips of the text:\n"
    for slip in paper.slips:
        yield f"- {slip.where[0].upper()}{slip.where[1:]}: “{slip.says}”. Right is: {slip.right}."


def _notes(
    title: str, compared: list[Compared], note_of: Callable[[PrintedNumber], str]
) -> Iterator[str]:
    """Each reason once, with the first number that has it; a time has no number here."""
    seen: set[str] = set()
    lines = []
    for each in compared:
        for number in each.findings.numbers:
            note = note_of(number)
            if not note or note in seen:
                continue
            seen.add(note)
            lines.append(f"- {each.exhibit.title.partition(':')[0]}: {note}.{_example(number)}")
    if lines:
        yield f"\n{title}:\n"
        yield from lines


def _example(number: PrintedNumber) -> str:
    if not number.correction:
        return ""
    ours = shown(number.ours, number.printed)
    return f" ({number.row}: printed {number.printed}, ours {ours}.)"
