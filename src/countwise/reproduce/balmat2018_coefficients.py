"""Balmat, Barrientos & Reiter (2018), section 6: the table of multinomial coefficients."""

from math import comb, factorial, prod

import numpy as np
from scipy.special import gammaln

from countwise.arrays import FloatArray
from countwise.reproduce.exhibits import Bars, Effort, Exhibit, Findings
from countwise.reproduce.verdicts import around, between, corrected, listed_apart, near
from countwise.verification.reference_samplers import coefficient_table

M = 50
TABLE_1 = {
    1: (0, 0, 0), 2: (1, 0, 1), 3: (1, 1, 0), 4: (2, 0, 2), 5: (2, 0, 2),
    6: (2, 2, 0), 7: (3, 0, 3), 8: (3, 1, 2), 9: (3, 2, 1), 10: (3, 3, 0),
}  # fmt: skip
"""k, S0 and S_err of the factorials M!/((M-k)!·S0!·S_err!) in the last column, as printed."""

MISPRINTED = 5
SMALLEST = 1e-290  # below, a double loses digits by underflow
CHUNK = 500


def table_1(effort: Effort, rng: np.random.Generator) -> Findings:
    """The first ten coefficients at M = 50, from the recursion and from the printed factorials."""
    del effort, rng
    rows, coefficients = coefficient_table(M, 3)
    why = (
        "row 5 is S0 = 1, S_err = 1, so its factorials are 1!·1!; the table prints 0!·2!, which is "
        "row 4. The recursion beside it and the comment of the script are right"
    )
    numbers = []
    for i, (k, zero, failed) in TABLE_1.items():
        value = factorial(M) // (factorial(M - k) * factorial(zero) * factorial(failed))
        row, ours = f"Row {i}: {', '.join(map(str, rows[i - 1]))}", float(coefficients[i - 1])
        if i == MISPRINTED:
            numbers.append(
                corrected(row, "coefficient", str(value), ours, *around(comb(M, 2) * 2, 0),
                          why=why, value=value)
            )  # fmt: skip
        else:
            numbers.append(near(row, "coefficient", str(value), ours))
    numbers += [
        near("Rows of the table", "number", "1,326", len(rows)),
        near("Coefficients in 5,000 iterations", "number", "6,630,000", 5000 * len(rows)),
        near("Share of them that is needed, %", "number", "0.02", 100 / 5000),
    ]
    return Findings(numbers=numbers)


def categories(effort: Effort, rng: np.random.Generator) -> Findings:
    """The recursion for more categories against exact factorials."""
    del effort, rng
    numbers = []
    for kinds, size in ((3, 50), (4, 20), (5, 15), (6, 12)):
        rows, coefficients = coefficient_table(size, kinds)
        exact = [factorial(size) // prod(map(factorial, row)) for row in rows.tolist()]
        off = max(abs(a / b - 1) for a, b in zip(coefficients.tolist(), exact, strict=True))
        label = f"K = {kinds}, M = {size}"
        numbers += [
            near(label, "rows", str(comb(size + kinds - 1, kinds - 1)), len(rows)),
            near(label, "row 1", "1", float(coefficients[0])),
            near(
                label, f"rows 2 to {kinds} (all M)", str(size), float(coefficients[1:kinds].max())
            ),
            between(label, "largest relative error", "exact", off, 0.0, 1e-13),
        ]
    why = "no paper prints it; what stands as printed follows from the formula"
    return Findings(numbers=listed_apart(numbers, why))


def triplets(count: int, rng: np.random.Generator) -> FloatArray:
    """Random probabilities that add up to 1, in random order, as footnote 13 means them."""
    first = rng.random(count)
    second = rng.random(count) * (1 - first)
    return rng.permuted(np.stack([first, second, 1 - first - second], axis=1), axis=1)


def digits(p: FloatArray) -> FloatArray:
    """The fewest digits in which both ways agree over all rows of the table, for each triplet."""
    rows, coefficients = coefficient_table(M, 3)
    logs = gammaln(rows + 1)
    found = []
    for part in np.array_split(p, max(len(p) // CHUNK, 1)):
        by_table, by_function = coefficients, np.full(1, gammaln(M + 1))
        for j in range(3):
            by_table = by_table * part[:, j, None] ** rows[:, j]
            by_function = by_function + (rows[:, j] * np.log(part[:, j, None]) - logs[:, j])
        gap = np.maximum(np.abs(by_table - np.exp(by_function)), by_table * 1e-17)
        agree = np.where(by_table > SMALLEST, by_table / np.maximum(gap, 1e-320), 1e17)
        found.append(np.log10(agree).min(axis=1))
    return np.concatenate(found)


def figure_2(effort: Effort, rng: np.random.Generator) -> Findings:
    """Digits in agreement between the table's probabilities and those by log-gamma functions."""
    p = triplets(effort.triplets, rng)
    agree = digits(p)
    each, digits_of = p.ravel(), np.repeat(agree, 3)
    middle = digits_of[(each > 0.3) & (each < 0.7)].mean()
    ends = {"0": digits_of[each < 0.01].mean(), "1": digits_of[each > 0.99].mean()}
    which = (
        "dmultinom is taken as it is written in R: the exponential of sums of log-gamma functions; "
        f"probabilities below {SMALLEST:g} are left out"
    )
    heights, edges = np.histogram(agree, bins=np.arange(11.5, 16.01, 0.1))
    picture = Bars(
        title="Fewest digits in agreement: share of triplets by tenths of a digit",
        axis="tenths of a digit above 11.5",
        low=0,
        heights=tuple((heights / len(agree)).tolist()),
        marked=5,
    )
    return Findings(
        numbers=[
            between("Fewest digits in agreement", "digits", "beyond 12", float(agree.min()),
                    12.0, 17.0, reading=which),
            *(
                near(f"Middle less the end at {end}", "digits", "0.2", middle - mean, within=0.2,
                     reading="“approximately 0.2 digits near the 0 and 1 endpoints”: probabilities "
                     "below 0.01 and above 0.99 against those from 0.3 to 0.7")
                for end, mean in ends.items()
            ),
        ],
        pictures=[picture],
        remark=f"{len(p):,} triplets with all 1,326 rows; the mark is at 12 digits, the last bin "
        f"at {edges[-1]:.1f}.",
    )  # fmt: skip


EXHIBITS = (
    Exhibit(key="table-1", title="Table 1: coefficients by recursion", source="section 6.1",
            how="The recursion of the package against the printed factorials at M = 50.",
            compute=table_1),
    Exhibit(key="categories", title="Any number of categories", source="section 6.1",
            how="The same recursion against factorials in whole numbers.", compute=categories),
    Exhibit(key="figure-2", title="Figure 2: digits in agreement", source="section 6.2",
            how="Random triplets of probabilities, all rows of the table.", compute=figure_2),
)  # fmt: skip
