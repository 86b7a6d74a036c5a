"""Apportionment: sharing a whole number among components in proportion to whole weights.

Unit j of a component with weight v has the quotient v/j. The first m units in the order of
falling quotients, ties by rising rank, are awarded. The result is a mode of the multinomial
law with m trials and probabilities proportional to v (Finucan 1964, Le Gall 2003), the divisor
method of D'Hondt and Jefferson. Every comparison is one of integers: v·j' against v'·j.

All units with quotient at least Σv/m are floor(m·v/Σv) a component, at most m together; all
with quotient at least Σv/(m+S) are at least m. So the last unit awarded is among at most 2S
units between the two, and a selection in linear time finds it.
"""

import numpy as np

from countwise.arrays import IntArray, UIntArray
from countwise.kernels.compilation import compiled

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_FEW = 1 << 12  # ranks that are selected from directly, and buckets of more: both fit the cache


@compiled
def _wide(a: int, b: int) -> tuple[np.uint64, np.uint64]:
    """The 128-bit product of two non-negative integers, as its high and low words."""
    x, y = np.uint64(a), np.uint64(b)
    x0, x1, y0, y1 = x & _LOW, x >> _HALF, y & _LOW, y >> _HALF
    low = x0 * y0
    middle = x1 * y0 + (low >> _HALF)
    cross = x0 * y1 + (middle & _LOW)
    return x1 * y1 + (middle >> _HALF) + (cross >> _HALF), (cross << _HALF) | (low & _LOW)


@compiled
def compare_products(a: int, b: int, c: int, d: int) -> int:
    """The sign of a·b - c·d for non-negative 64-bit integers."""
    if (a | b | c | d) < 1 << 31:
        left, right = a * b, c * d
        return int(left > right) - int(left < right)
    left_high, left_low = _wide(a, b)
    right_high, right_low = _wide(c, d)
    if left_high != right_high:
        return 1 if left_high > right_high else -1
    return int(left_low > right_low) - int(left_low < right_low)


@compiled
def floor_share(m: int, v: int, total: int) -> int:
    """floor(m·v/total), for m, v up to 2^51 and total up to 2^62."""
    if (m | v) < 1 << 31:
        return m * v // total
    share = int(float(m) * float(v) / float(total))
    while compare_products(share, total, m, v) > 0:
        share -= 1
    while compare_products(share + 1, total, m, v) <= 0:
        share += 1
    return share


@compiled
def _before(values: IntArray, ranks: UIntArray, i: int, j: int, other: int, k: int) -> bool:
    """Whether unit j of component i is served before unit k of component `other`."""
    sign = compare_products(values[i], k, values[other], j)
    if sign != 0:
        return bool(sign > 0)
    if ranks[i] != ranks[other]:
        return bool(ranks[i] < ranks[other])
    return i < other


@compiled
def _select(
    values: IntArray, ranks: UIntArray, owners: IntArray, numbers: IntArray, need: int
) -> None:
    """Reorder units (owner, number) so that the first `need` of them are those served first."""
    left, right = 0, len(owners) - 1
    while left < right:
        # Three spread positions make a good pivot on sorted, reversed and flat input alike.
        middle = (left + right) // 2
        for a, b in ((left, middle), (left, right), (middle, right)):
            if _before(values, ranks, owners[b], numbers[b], owners[a], numbers[a]):
                owners[a], owners[b] = owners[b], owners[a]
                numbers[a], numbers[b] = numbers[b], numbers[a]
        owner, number = owners[middle], numbers[middle]
        i, j = left, right
        while i <= j:
            while _before(values, ranks, owners[i], numbers[i], owner, number):
                i += 1
            while _before(values, ranks, owner, number, owners[j], numbers[j]):
                j -= 1
            if i <= j:
                owners[i], owners[j] = owners[j], owners[i]
                numbers[i], numbers[j] = numbers[j], numbers[i]
                i += 1
                j -= 1
        if need <= j:
            right = j
        elif need >= i:
            left = i
        else:
            return


@compiled
def _shares(values: IntArray, a: int, b: int, out: IntArray) -> int:
    """out = floor(a·values/b); returns its sum. Where products are short, all in plain integers."""
    awarded = 0
    if float(a) * float(values.max()) + float(b) < 2.0**62:
        ratio = a / b
        for i in range(len(values)):
            share = int(ratio * values[i])  # off by one at most, put right by the next lines
            share -= share * b > a * values[i]
            share += (share + 1) * b <= a * values[i]
            out[i] = share
            awarded += share
        return awarded
    for i in range(len(values)):
        out[i] = floor_share(a, values[i], b)
        awarded += out[i]
    return awarded


@compiled
def _last_rank(ranks: UIntArray, count: int) -> np.uint64:
    """The count-th largest rank: large sets are first cut to the bucket it falls in."""
    if len(ranks) > _FEW:
        low, high = ranks.min(), ranks.max()
        shift = np.uint64(0)
        while (high - low) >> shift >= np.uint64(_FEW):
            shift += np.uint64(1)
        held = np.zeros(_FEW, dtype=np.int64)
        for rank in ranks:
            held[(rank - low) >> shift] += 1
        bucket = _FEW - 1
        while held[bucket] < count:
            count -= held[bucket]
            bucket -= 1
        ranks = ranks[(ranks - low) >> shift == np.uint64(bucket)]
    return np.uint64(np.sort(ranks)[len(ranks) - count])


@compiled
def _dock(values: IntArray, ranks: UIntArray, excess: int, out: IntArray) -> None:
    """out = values, less one for the `excess` positive components that are served last."""
    out[:] = values
    if excess == 0:
        return
    last = _last_rank(ranks[values > 0], excess)
    for i in range(len(values)):
        if values[i] > 0 and ranks[i] > last:
            out[i] -= 1
            excess -= 1
    for i in range(len(values) - 1, -1, -1):  # equal ranks: the later component is served last
        if excess > 0 and values[i] > 0 and ranks[i] == last:
            out[i] -= 1
            excess -= 1


@compiled
def apportion(values: IntArray, m: int, ranks: UIntArray, out: IntArray) -> None:
    """Share m among components in proportion to non-negative values, into `out`.

    Where every value is zero the components count as equal. Where m falls short of Σv by no
    more than the number of positive values, the normal case after negative values were
    clipped, all units in question have the quotient 1 and only ranks decide.
    """
    total, positive = 0, 0
    for value in values:
        total += value
        positive += value > 0
    if m == 0:
        out[:] = 0
    elif total == 0:
        _share_by_quotients(np.ones_like(values), m, ranks, out)
    elif 0 <= total - m <= positive:
        _dock(values, ranks, total - m, out)
    else:
        _share_by_quotients(values, m, ranks, out)


@compiled
def _share_by_quotients(values: IntArray, m: int, ranks: UIntArray, out: IntArray) -> None:
    """The general case: bracket the last unit by two shares, then select between them."""
    total, positive = values.sum(), int((values > 0).sum())
    other = np.empty_like(out)
    awarded = _shares(values, 2 * m + positive, 2 * total, out)
    if awarded >= m:
        other[:], reached = out, awarded
        awarded = _shares(values, m, total, out)
    else:
        reached = _shares(values, m + positive, total, other)
    owners = np.empty(reached - awarded, dtype=np.int64)
    numbers = np.empty(reached - awarded, dtype=np.int64)
    u = 0
    for i in range(len(values)):
        for number in range(out[i] + 1, other[i] + 1):
            owners[u], numbers[u] = i, number
            u += 1
    need = m - awarded
    if 0 < need < len(owners):
        _select(values, ranks, owners, numbers, need)
    for u in range(need):
        out[owners[u]] += 1


@compiled
def apportion_children(
    offsets: IntArray,
    parents: IntArray,
    values: IntArray,
    ranks: UIntArray,
    out: IntArray,
    first: int,
    last: int,
) -> None:
    """Share each parent's count among its children, for the parents from first to last - 1."""
    for parent in range(first, last):
        start, stop = offsets[parent], offsets[parent + 1]
        apportion(values[start:stop], parents[parent], ranks[start:stop], out[start:stop])


@compiled
def random_ranks(key: np.uint64, first: int, size: int) -> UIntArray:
    """Ranks of the nodes numbered first, first+1, …: those outputs of SplitMix64 at `key`."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    state = np.uint64(key) + np.uint64(first) * golden
    out = np.empty(size, dtype=np.uint64)
    for i in range(size):
        state += golden
        z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        out[i] = z ^ (z >> np.uint64(31))
    return out


def last_ranks(size: int) -> UIntArray:
    """Ranks under which ties go to the last component."""
    return np.arange(size, 0, -1).astype(np.uint64)
