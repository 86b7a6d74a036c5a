"""The drawings of the documentation, computed with the project's own laws and kernels.

Usage: python docs/pictures.py writes them into docs/pictures.
"""

from collections.abc import Sequence
from fractions import Fraction
from html import escape
from pathlib import Path

import numpy as np

from countwise.arrays import FloatArray
from countwise.noise.laws import Geometric

HERE = Path(__file__).with_name("pictures")
INK, SOFT, LINE, MARK, PALE = "#1b2330", "#545f6e", "#d8dde4", "#1f5fbf", "#c9dbf5"
STYLE = "font: 14px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


class Drawing:
    """An SVG on white paper, part by part."""

    def __init__(self, width: int, height: int, *, title: str, words: str) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'style="{STYLE}"><title>{escape(title)}</title><desc>{escape(words)}</desc>'
            f'<rect width="{width}" height="{height}" rx="8" fill="#fff"/>'
        ]

    def text(
        self, x: float, y: float, words: str, *, fill: str = INK, anchor: str = "middle"
    ) -> None:
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" fill="{fill}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, look: str = "") -> None:
        look = look or f'stroke="{SOFT}"'
        self.parts.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" {look}/>')

    def bar(
        self, x: float, y: float, width: float, height: float, fill: str = MARK, look: str = ""
    ) -> None:
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}" '
            f"{look}/>"
        )

    def dot(self, x: float, y: float, *, full: bool) -> None:
        fill = MARK if full else "#fff"
        self.parts.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="6" fill="{fill}" stroke="{MARK}" stroke-width="2"/>'
        )

    def curve(self, points: Sequence[tuple[float, float]], look: str) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" {look}/>')

    def bars(
        self, values: Sequence[float], x: float, base: float, *, step: float, scale: float
    ) -> None:
        for i, value in enumerate(values):
            self.bar(x + i * step, base - value * scale, step * 0.8, value * scale)

    def svg(self) -> str:
        return "\n".join([*self.parts, "</svg>\n"])


def way_of_the_data() -> str:
    """Boxes from records to posterior, and the one line that true counts do not cross."""
    boxes = (
        ("records", "confidential"),
        ("table", "confidential"),
        ("measurements", "noisy, signed"),
        ("release", "adds up"),
        ("posterior", "of the truth"),
    )
    verbs = ("tabulate", "measure", "adjust", "infer")
    drawn = Drawing(
        900, 170, title="The way of the data",
        words="Records are tabulated, the table is measured, measurements are adjusted into a "
        "release, and a release is what inference starts from.",
    )  # fmt: skip
    for i, (name, about) in enumerate(boxes):
        x = 20 + i * 178
        drawn.bar(x, 60, 128, 60, "#fff" if i > 1 else PALE, f'stroke="{MARK}" rx="6"')
        drawn.text(x + 64, 86, name)
        drawn.text(x + 64, 106, about, fill=SOFT)
    for i, verb in enumerate(verbs):
        x = 148 + i * 178
        drawn.line(x + 4, 90, x + 46, 90, f'stroke="{INK}" stroke-width="1.5"')
        drawn.line(x + 38, 85, x + 46, 90, f'stroke="{INK}" stroke-width="1.5"')
        drawn.line(x + 38, 95, x + 46, 90, f'stroke="{INK}" stroke-width="1.5"')
        drawn.text(x + 25, 48, verb, fill=SOFT)
    drawn.line(351, 56, 351, 150, f'stroke="{INK}" stroke-width="2" stroke-dasharray="6 5"')
    drawn.text(351, 164, "the privacy boundary: no true count crosses it")
    return drawn.svg()


def gap_law(components: int) -> tuple[int, FloatArray]:
    """The law of noisy total minus sum of noisy parts at ε = 1 each: its reach and its pmf."""
    one = Geometric(scale=Fraction(1)).pmf(np.arange(-40, 41))
    law = one
    for _ in range(components):
        law = np.convolve(law, one)
    return len(law) // 2, law


def gap_between_total_and_parts() -> str:
    """How far a noisy total is from the sum of its noisy parts."""
    drawn = Drawing(
        900, 250, title="The gap between a noisy total and the sum of its noisy parts",
        words="Three bar charts of the chance of each gap at 2, 5 and 50 parts, wider each time.",
    )  # fmt: skip
    for i, parts in enumerate((2, 5, 50)):
        middle, law = gap_law(parts)
        x, shown = 30 + i * 295, law[middle - 15 : middle + 16]
        drawn.text(x + 125, 28, f"{parts} parts: adds up by luck in {law[middle]:.0%}")
        drawn.bars(shown, x, 200, step=8, scale=760)
        drawn.line(x, 200, x + 248, 200)
        for gap in (-15, 0, 15):
            drawn.text(x + 3 + (gap + 15) * 8, 218, f"{gap:+d}" if gap else "0", fill=SOFT)
        drawn.text(x + 125, 238, "noisy total − sum of noisy parts", fill=SOFT)
    return drawn.svg()


def awarded(noisy: Sequence[int], total: int) -> list[int]:
    """Units by falling quotient, ties to the last part."""
    counts = [0] * len(noisy)
    for _ in range(total):
        best = max(range(len(noisy)), key=lambda i: (Fraction(noisy[i], counts[i] + 1), i))
        counts[best] += 1
    return counts


def the_cut() -> str:
    """Units as quotients on a line: the first ones are awarded, the cut is the next."""
    noisy, total = (7, 4, 2), 9
    counts = awarded(noisy, total)
    cut = max(Fraction(n, k + 1) for n, k in zip(noisy, counts, strict=True))
    drawn = Drawing(
        900, 260, title="Units in the order of their quotients, and the cut",
        words=f"Noisy parts {noisy} share {total} units as {tuple(counts)}. The first unit that "
        f"is not awarded has quotient {cut}.",
    )  # fmt: skip

    def place(quotient: Fraction) -> float:
        return 840 - float(quotient) * 96

    for row, (n, k) in enumerate(zip(noisy, counts, strict=True)):
        y = 60 + row * 50
        drawn.line(150, y, 850, y, f'stroke="{LINE}"')
        drawn.text(16, y + 5, f"noisy {n}, gets {k}", anchor="start")
        for unit in range(1, n + 4):
            drawn.dot(place(Fraction(n, unit)), y, full=unit <= k)
            if Fraction(n, unit) - Fraction(n, unit + 1) > Fraction(2, 5):
                drawn.text(place(Fraction(n, unit)), y - 12, f"{n}/{unit}", fill=SOFT)
    look = f'stroke="{INK}" stroke-width="2" stroke-dasharray="6 5"'
    drawn.line(place(cut), 24, place(cut), 200, look)
    drawn.text(place(cut), 220, f"the cut: {cut}")
    about = "quotient, falling from left to right; full dots are the nine units awarded"
    drawn.text(450, 246, about, fill=SOFT)
    return drawn.svg()


def coupled_sum() -> str:
    """Two counts known by their noise, and what a noisy total adds."""
    law, values = Geometric(scale=Fraction(1)), np.arange(13)
    first, second = law.pmf(4 - values), law.pmf(2 - values)
    total = law.pmf(9 - np.arange(25))
    plane = np.outer(first, second) * total[np.add.outer(values, values)]
    before, after = first / first.sum(), plane.sum(axis=1) / plane.sum()
    sums = np.convolve(first, second)[:13]
    panels = (
        ("A: noisy count 4", before), ("B: noisy count 2", second / second.sum()),
        ("A + B: convolved", sums / sums.sum()), ("the noisy total 9", total[:13] / total.sum()),
        ("A, given all three", after),
    )  # fmt: skip
    drawn = Drawing(
        900, 200, title="Independent counts coupled through their sum",
        words="Five bar charts: the weights of A and of B, of their sum, of the noisy total, and "
        "of A once the total is known, which moves to the right.",
    )  # fmt: skip
    for i, (name, weights) in enumerate(panels):
        x = 20 + i * 178
        drawn.text(x + 74, 26, name)
        drawn.bars(weights, x, 160, step=11.5, scale=115 / max(weights))
        drawn.line(x, 160, x + 148, 160)
        for value in (0, 4, 8, 12):
            drawn.text(x + 5 + value * 11.5, 178, str(value), fill=SOFT)
    return drawn.svg()


def what_r_is() -> str:
    """The same estimate in the whole data and in one of fifty parts, against a threshold."""
    distance, parts = 4.0, 50
    x = np.linspace(-12, 28, 401)
    wide = np.exp(-0.5 * ((x - distance) / np.sqrt(parts)) ** 2)
    narrow = np.exp(-0.5 * (x - distance) ** 2)
    drawn = Drawing(
        900, 260, title="What r is",
        words="Two bell curves around the same estimate: a narrow one of the whole data and one "
        "seven times as wide of a partition. r is the part of the wide one beyond the threshold.",
    )  # fmt: skip

    def at(value: float) -> float:
        return 60 + (value + 12) * 19.5

    def points(y: FloatArray) -> list[tuple[float, float]]:
        return [(at(a), 200 - 150 * b) for a, b in zip(x, y, strict=True)]

    beyond = [(at(0), 200.0), *(p for p in points(wide) if p[0] >= at(0)), (at(28), 200.0)]
    drawn.curve(beyond, f'fill="{PALE}" stroke="none"')
    drawn.curve(points(wide), f'fill="none" stroke="{MARK}" stroke-width="2"')
    drawn.curve(
        points(narrow), f'fill="none" stroke="{INK}" stroke-width="2" stroke-dasharray="5 4"'
    )
    drawn.line(40, 200, 860, 200)
    drawn.line(at(0), 30, at(0), 200, f'stroke="{INK}" stroke-width="2"')
    drawn.text(at(0), 220, "threshold of the claim")
    drawn.text(at(distance) + 30, 44, "whole data", anchor="start")
    drawn.text(at(14), 120, "one of 50 partitions", fill=MARK, anchor="start")
    drawn.text(at(10.5), 180, "r = 0.71")
    about = "an estimate four standard errors of the whole data beyond the threshold"
    drawn.text(450, 246, about, fill=SOFT)
    return drawn.svg()


PICTURES = {
    "way-of-the-data.svg": way_of_the_data,
    "gap.svg": gap_between_total_and_parts,
    "cut.svg": the_cut,
    "coupled-sum.svg": coupled_sum,
    "what-r-is.svg": what_r_is,
}

if __name__ == "__main__":
    for name, picture in PICTURES.items():
        (HERE / name).write_text(picture(), encoding="utf-8")
