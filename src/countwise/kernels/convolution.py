"""Convolution and correlation of positive sequences: direct when short, Fourier when long.

The Fourier transforms are compiled here, because the callers are: thousands of them a
millisecond, without the interpreter's lock.
"""

from typing import NamedTuple

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import inner

NOISE = 1e-16  # share of the product of norms below which a Fourier result is noise

# A direct convolution of lengths a, b took 0.077·a·b ns (lengths 400 to 10,000), a Fourier one
# 1.5·n·log2(n) ns with n the padded length (1,024 to 131,072): best of repeated calls to each
# alone, one core of an AMD EPYC with AVX-512. The quotient of the two is the constant.
FOURIER_COST = 20.0


class Circle(NamedTuple):
    """Roots of unity, filled as far as the longest transform so far needs them."""

    cosines: FloatArray
    sines: FloatArray
    filled: IntArray


@inner
def empty_circle(longest: int) -> Circle:
    """Room for transforms of up to 2·longest values; nothing computed yet."""
    size = padded(2 * longest)
    return Circle(np.empty(size), np.empty(size), np.ones(1, np.int64))


@inner
def padded(length: int) -> int:
    """The smallest power of two that is at least length."""
    size = 1
    while size < length:
        size *= 2
    return size


@inner
def fill_circle(circle: Circle, size: int) -> None:
    """Roots of unity for transforms up to a size: entry h + j is the angle πj/h, h = 1, 2, 4, …"""
    half = circle.filled[0]
    while half < size:
        for j in range(half):
            circle.cosines[half + j] = np.cos(np.pi * j / half)
            circle.sines[half + j] = np.sin(np.pi * j / half)
        half *= 2
    circle.filled[0] = half


@inner
def transform(circle: Circle, re: FloatArray, im: FloatArray) -> None:
    """Fourier transform in place, frequencies in bit-reversed order."""
    half = re.size // 2
    while half > 0:
        c, s = circle.cosines[half : 2 * half], circle.sines[half : 2 * half]
        for k in range(0, re.size, 2 * half):
            xr, xi = re[k : k + half], im[k : k + half]
            yr, yi = re[k + half : k + 2 * half], im[k + half : k + 2 * half]
            for j in range(half):
                dr, di = xr[j] - yr[j], xi[j] - yi[j]
                xr[j] += yr[j]
                xi[j] += yi[j]
                yr[j] = dr * c[j] + di * s[j]
                yi[j] = di * c[j] - dr * s[j]
        half //= 2


@inner
def transform_back(circle: Circle, re: FloatArray, im: FloatArray) -> None:
    """The inverse of `transform`, times the size."""
    half = 1
    while half < re.size:
        c, s = circle.cosines[half : 2 * half], circle.sines[half : 2 * half]
        for k in range(0, re.size, 2 * half):
            xr, xi = re[k : k + half], im[k : k + half]
            yr, yi = re[k + half : k + 2 * half], im[k + half : k + 2 * half]
            for j in range(half):
                tr = yr[j] * c[j] - yi[j] * s[j]
                ti = yr[j] * s[j] + yi[j] * c[j]
                yr[j] = xr[j] - tr
                yi[j] = xi[j] - ti
                xr[j] += tr
                xi[j] += ti
        half *= 2


@inner
def fourier(circle: Circle, a: FloatArray, b: FloatArray, size: int, first: int) -> FloatArray:
    """Entries first, first + 1, … of a ⊛ b modulo size, a power of two; noise set to zero.

    With z = a + ib the imaginary part of z ⊛ z is twice a ⊛ b, so two transforms do.
    """
    fill_circle(circle, size)
    norm_a, norm_b = np.sqrt((a * a).sum()), np.sqrt((b * b).sum())
    if norm_a == 0.0 or norm_b == 0.0:
        return np.zeros(size - first)
    re, im = np.zeros(size), np.zeros(size)
    re[: a.size] = a / norm_a
    im[: b.size] = b / norm_b
    transform(circle, re, im)
    for i in range(size):
        x, y = re[i], im[i]
        re[i] = x * x - y * y
        im[i] = 2.0 * x * y
    transform_back(circle, re, im)
    result = im[first:] * (0.5 / size)
    for i in range(result.size):
        result[i] = result[i] * norm_a * norm_b if result[i] > NOISE else 0.0
    return result


@inner
def long(a: int, b: int, tail: float) -> bool:
    """Whether a Fourier transform beats a direct convolution; never when tails are kept."""
    size = padded(a + b - 1)
    return tail > 0.0 and float(a) * float(b) > FOURIER_COST * size * np.log2(size)


@inner
def convolve(circle: Circle, a: FloatArray, b: FloatArray, out: FloatArray, tail: float) -> None:
    """out = a ⊛ b."""
    if long(a.size, b.size, tail):
        out[:] = fourier(circle, a, b, padded(out.size), 0)[: out.size]
        return
    if b.size < a.size:
        a, b = b, a
    n = b.size
    out[:] = 0.0
    whole = a.size - a.size % 4 if n >= 4 else 0
    for i in range(0, whole, 4):
        p, q, r, s = a[i], a[i + 1], a[i + 2], a[i + 3]
        o = out[i : i + n + 3]
        o[0] += p * b[0]
        o[1] += p * b[1] + q * b[0]
        o[2] += p * b[2] + q * b[1] + r * b[0]
        for j in range(3, n):
            o[j] += (p * b[j] + q * b[j - 1]) + (r * b[j - 2] + s * b[j - 3])
        o[n] += q * b[n - 1] + r * b[n - 2] + s * b[n - 3]
        o[n + 1] += r * b[n - 1] + s * b[n - 2]
        o[n + 2] += s * b[n - 1]
    for i in range(whole, a.size):
        for j in range(n):
            out[i + j] += a[i] * b[j]


@inner
def correlate(circle: Circle, a: FloatArray, b: FloatArray, out: FloatArray, tail: float) -> None:
    """out[i] = Σ_j a[i + j]·b[j], with a of length out + b - 1."""
    n = out.size
    if long(n, b.size, tail):
        # Modulo the length of a, only the first b.size - 1 entries are wrapped, and not used.
        out[:] = fourier(circle, a, b[::-1].copy(), padded(a.size), b.size - 1)[:n]
        return
    out[:] = 0.0
    whole = b.size - b.size % 4
    for j in range(0, whole, 4):
        p, q, r, s = b[j], b[j + 1], b[j + 2], b[j + 3]
        a0, a1, a2, a3 = a[j : j + n], a[j + 1 :][:n], a[j + 2 :][:n], a[j + 3 :][:n]
        for i in range(n):
            out[i] += (p * a0[i] + q * a1[i]) + (r * a2[i] + s * a3[i])
    for j in range(whole, b.size):
        for i in range(n):
            out[i] += b[j] * a[i + j]
