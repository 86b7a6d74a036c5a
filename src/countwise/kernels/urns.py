"""Posterior of a ratio of Dirichlet proportions as one row of Beta laws.

Counts (s, t, e) add up to M and have weight first(s)·second(t)·others(e). Given them, the ratio
r = p_first/(p_first + p_second) is Beta(a+s, b+t). A Beta law is the average of what it becomes
after one more draw from its own urn,

    Beta(a, b) = a/(a+b)·Beta(a+1, b) + b/(a+b)·Beta(a, b+1),

so all laws with a smaller s+t are moved up to the largest, N, and the two-dimensional mixture
is the mixture over k of Beta(a+k, b+N-k). The weights are sums of positive terms only.

The counts are independent integers coupled through their sum, and outcomes are joined by the
convolution of the coupled sums (tails kept, so no Fourier transform). The last step is not
`coupled.marginals`: r needs the joint law of s and t, of which those are the margins, and `elevate`
sums it on the way up. Where a margin is all there is, in the share of a single outcome, the
weights are those marginals.
"""

from math import exp, lgamma, log

import numpy as np

from countwise.arrays import FloatArray
from countwise.kernels import convolution
from countwise.kernels.compilation import compiled_like_numpy


@compiled_like_numpy
def category(noisy: float, rate: float, prior: float, low: int, high: int) -> FloatArray:
    """exp(-rate·|noisy - x|)·Γ(prior + x)/x! for x = low..high, scaled to a largest value of 1."""
    out = np.empty(high - low + 1)
    rising = 0.0 if prior == 1.0 else lgamma(prior + low) - lgamma(low + 1.0)
    top = -np.inf
    for i in range(out.size):
        x = low + i
        out[i] = rising - rate * abs(noisy - x)
        top = max(top, out[i])
        if prior != 1.0:
            rising += log((prior + x) / (x + 1.0))
    for i in range(out.size):
        out[i] = exp(out[i] - top)
    return out


@compiled_like_numpy
def convolve(a: FloatArray, b: FloatArray) -> FloatArray:
    """All sums of a product, scaled to a largest value of 1."""
    out = np.empty(a.size + b.size - 1)
    convolution.convolve(convolution.empty_circle(1), a, b, out, 0.0)
    top = out.max()
    if top > 0.0:
        out /= top
    return out


@compiled_like_numpy
def elevate(
    first: FloatArray,
    first_low: int,
    second: FloatArray,
    second_low: int,
    others: FloatArray,
    others_low: int,
    partitions: int,
    a: float,
    b: float,
) -> tuple[FloatArray, int, int]:
    """The weights of Beta(a+k, b+N-k) for k from a first value on, that value, and N."""
    least = max(first_low + second_low, partitions - others_low - others.size + 1)
    most = min(first_low + first.size - 1 + second_low + second.size - 1, partitions - others_low)
    out = np.zeros(first.size + max(most - least, 0))
    top = -1  # the last place that carries weight
    for n in range(least, most + 1):
        if top >= 0:
            whole = 1.0 / (a + b + n - 1)
            out[top + 1] = out[top] * (a + first_low + top) * whole
            for i in range(top, 0, -1):
                s = first_low + i
                stay, come = b + n - 1 - s, a + s - 1
                out[i] = (out[i] * stay + out[i - 1] * come) * whole
            out[0] *= (b + n - 1 - first_low) * whole
            top += 1
        error = others[partitions - n - others_low]
        begin = max(0, n - second_low - second.size + 1 - first_low)
        end = min(first.size - 1, n - second_low - first_low)
        for i in range(begin, end + 1):
            out[i] += first[i] * second[n - first_low - i - second_low] * error
        top = max(top, end)
    out = out[: max(most, least) - first_low + 1]  # a count is at most the sum
    total = out.sum()
    if total > 0.0:
        out /= total
    return out, first_low, max(most, least)
