"""What can be wrong with the labels of a level: names of totals, and one label spelled two ways.

Both are judged by the labels alone, never by a count.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from countwise.errors import TableError

NAMES = (
    "total, totals, grand total, subtotal, sub total, sub-total, sum, all, _t, in total, in all, "
    "overall, everyone, everybody, all ages, all persons, all people, all sexes, all races, "
    "all genders, both sexes, both genders, total persons, total population, insgesamt, gesamt, "
    "zusammen, summe, alle, alle personen, totalt, ialt, i alt, totaal, totale, totales, tutti, "
    "ensemble, tous, toutes, todos, todas, celkem, spolu, razem, ogółem, ukupno, skupaj, összesen, "
    "yhteensä, kaikki, samtals, kokku, kopā, viso, toplam, σύνολο, всего, итого, 合計, 総数, 总计, "
    "合计, 합계"
)
"""As offices of many countries head the last row or column of a table."""
TOTALS = frozenset(NAMES.split(", "))
CODES = frozenset({"t"})
"""What SDMX code lists of some agencies call a total beside `_T` and `TOTAL`."""


def total_labels(
    labels: Mapping[str, Iterable[str | None]], *, more: Iterable[str] = ()
) -> dict[str, list[str]]:
    """By level, the labels that name a total, or repeat the name of their level."""
    found = {}
    for level, texts in labels.items():
        names = TOTALS | {spelling(level), *more}
        found[level] = sorted({text for text in texts if text and spelling(text) in names})
    return {level: texts for level, texts in found.items() if texts}


def refuse_totals(found: Mapping[str, list[str]], *, where: Callable[[str, str], str]) -> None:
    """Refuse rows whose label names a total, with the words that help."""
    if not found:
        return
    level, texts = next(iter(found.items()))
    codes = {texts[0] for texts in found.values()}
    code = codes.pop() if len(codes) == 1 else ",".join(f"{k}={v[0]}" for k, v in found.items())
    raise TableError(
        f"{where(level, texts[0])}: level {level!r} has the label {texts[0]!r}, a name of totals, "
        f"and people counted in totals would be counted twice. To fix, add --total-code "
        f"{_quoted(code)} (totals are then checked against their cells and left out), or "
        "--no-totals if the label is one like the others."
    )


def refuse_totals_of_domain(labels: Mapping[str, Iterable[str | None]], *, where: str) -> None:
    """Refuse public cells that are totals."""
    for level, texts in total_labels(labels).items():
        raise TableError(
            f"{where}: level {level!r} has the label {texts[0]!r}, a name of totals. Totals are "
            "sums of cells, and no cells of their own. To fix, leave it out of the public cells, "
            f"such as by --total-code {_quoted(texts[0])}, or say that it is a label like the "
            "others: --no-totals, or no_totals = true at the "
            "top of a domain file."
        )


def spelling(label: str) -> str:
    """A label without its capitals and its spare spaces."""
    return re.sub(r"\s+", " ", label.strip()).casefold()


def alike(labels: Iterable[str]) -> tuple[str, str] | None:
    """Two labels that differ in capitals or spaces only, the first in their order."""
    seen: dict[str, str] = {}
    for label in sorted(labels):
        first = seen.setdefault(spelling(label), label)
        if first != label:
            return first, label
    return None


def _quoted(code: str) -> str:
    return f'"{code}"' if " " in code else code
