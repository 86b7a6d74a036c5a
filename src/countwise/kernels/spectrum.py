"""Coupled sums of pairs of whole numbers, frequency by frequency.

Component s has a pair (z, y) with a weight for each, and T is a function of (Σz, Σy). Both sums
are taken modulo the lengths of a transform, so that at every frequency a law is one number and a
convolution a product: the tree of `countwise.kernels.sumtree`, with products in place of
convolutions. It is gone through once for each frequency of y, with a vector over those of z.

Weights come as columns: a component, one y, and the transform over z. An *atom* is a range of
columns that every step takes as a whole, or not at all; the piece that serves a component at a
step is a range of atoms. Nothing is cut off and nothing divided out, but errors are absolute: 1e-16
of all the weight there is, whether or not T meets it. Choosing lengths that nothing wraps around,
and tilts at which law and T meet, is left to the caller.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled, inner
from countwise.kernels.sumtree import above

ComplexArray = npt.NDArray[np.complex128]


class Atoms(NamedTuple):
    """Atom a has the columns starts[a] to starts[a + 1] - 1, column c the second number y[c].

    Piece q has the atoms firsts[q] to lasts[q] - 1, and serves as in `kernels.tilting.Problem`.
    """

    y: IntArray
    starts: IntArray
    firsts: IntArray
    lasts: IntArray
    components: IntArray
    bounds: IntArray


@inner
def multiply(a: FloatArray, b: FloatArray, out: FloatArray, more: bool) -> None:
    """out = a·b, or out += a·b, of complex vectors held as real and imaginary parts."""
    ar, ai, br, bi, re, im = a[0], a[1], b[0], b[1], out[0], out[1]
    if more:
        for i in range(re.size):
            re[i] += ar[i] * br[i] - ai[i] * bi[i]
            im[i] += ar[i] * bi[i] + ai[i] * br[i]
    else:
        for i in range(re.size):
            re[i] = ar[i] * br[i] - ai[i] * bi[i]
            im[i] = ar[i] * bi[i] + ai[i] * br[i]


@inner
def add(source: FloatArray, out: FloatArray, more: bool) -> None:
    """out = source, or out += source."""
    for part in range(2):
        to, of = out[part], source[part]
        if more:
            for i in range(to.size):
                to[i] += of[i]
        else:
            for i in range(to.size):
                to[i] = of[i]


@inner
def turned(source: FloatArray, angle: float, factor: float, out: FloatArray) -> None:
    """out += factor·exp(-i·angle)·source."""
    c, s = factor * np.cos(angle), factor * np.sin(angle)
    ar, ai, re, im = source[0], source[1], out[0], out[1]
    for i in range(re.size):
        re[i] += c * ar[i] + s * ai[i]
        im[i] += c * ai[i] - s * ar[i]


@inner
def hand_down(laws: FloatArray, messages: FloatArray, waiting: IntArray, p: int) -> None:
    """Pass the message waiting at node p on to both children."""
    if waiting[p] == 0:
        return
    waiting[p] = 0
    for a in (2 * p + 1, 2 * p + 2):
        multiply(messages[p], laws[4 * p + 3 - a], messages[a], waiting[a] == 1)
        waiting[a] = 1


@inner
def hand_over(
    message: FloatArray, waiting: IntArray, leaf: int, sent: FloatArray, first: int, last: int
) -> None:
    """Add what has come to a leaf to what was sent to its atoms first to last - 1."""
    if waiting[leaf] == 0:
        return
    waiting[leaf] = 0
    for atom in range(first, last):
        add(message, sent[atom], True)


@inner
def sweep(
    atoms: Atoms,
    spectra: FloatArray,
    coupling: FloatArray,
    laws: FloatArray,
    messages: FloatArray,
    sent: FloatArray,
    total: FloatArray,
) -> None:
    """All steps at one frequency of y: Σ of the laws of the sum, and the messages sent to atoms."""
    leaves = (len(laws) + 1) // 2
    active, waiting = np.full(leaves, -1), np.zeros(len(laws), np.int64)
    for step in range(atoms.bounds.size - 1):
        first, last = atoms.bounds[step], atoms.bounds[step + 1]
        nodes = above(leaves, atoms.components[first:last])
        for p in nodes:
            hand_down(laws, messages, waiting, p)
        for q in range(first, last):
            s = atoms.components[q]
            leaf, old = leaves - 1 + s, active[s]
            if old >= 0:
                hand_over(messages[leaf], waiting, leaf, sent, atoms.firsts[old], atoms.lasts[old])
            active[s] = q
            laws[leaf] = 0.0
            for atom in range(atoms.firsts[q], atoms.lasts[q]):
                add(spectra[atom], laws[leaf], True)
        for p in nodes[::-1]:
            multiply(laws[2 * p + 1], laws[2 * p + 2], laws[p], False)
        add(laws[0], total, True)
        add(coupling, messages[0], waiting[0] == 1)
        waiting[0] = 1
    for p in range(leaves - 1):
        hand_down(laws, messages, waiting, p)
    for s in range(leaves):
        q, leaf = active[s], leaves - 1 + s
        hand_over(messages[leaf], waiting, leaf, sent, atoms.firsts[q], atoms.lasts[q])


@compiled
def by_frequency(
    atoms: Atoms, columns: FloatArray, coupling: FloatArray, period: int
) -> tuple[FloatArray, FloatArray]:
    """Spectrum of the sum over steps of the law of the sum, and of the messages to every column.

    ``columns`` and the second result are transforms over z, real and imaginary parts of each
    column; ``coupling`` has one for each frequency 0, 1, …, period // 2 of y, complex conjugate,
    and so has the first result. The message to a column at z is the real part of the transform of
    its vector, over period times its length.
    """
    leaves, length = atoms.bounds[1], columns.shape[2]
    laws, messages = np.empty((2, 2 * leaves - 1, 2, length))
    spectra, sent = np.empty((2, atoms.starts.size - 1, 2, length))
    totals, result = np.zeros(coupling.shape), np.zeros(columns.shape)
    for f in range(len(coupling)):
        spectra[:], sent[:] = 0.0, 0.0
        factor = 1.0 if f == 0 or 2 * f == period else 2.0
        for atom in range(len(spectra)):
            for c in range(atoms.starts[atom], atoms.starts[atom + 1]):
                angle = 2.0 * np.pi * ((f * atoms.y[c]) % period) / period
                turned(columns[c], angle, 1.0, spectra[atom])
        sweep(atoms, spectra, coupling[f], laws, messages, sent, totals[f])
        for atom in range(len(spectra)):
            for c in range(atoms.starts[atom], atoms.starts[atom + 1]):
                angle = 2.0 * np.pi * ((f * atoms.y[c]) % period) / period
                turned(sent[atom], angle, factor, result[c])
    return totals, result


def planes(spectrum: ComplexArray) -> FloatArray:
    """Real and imaginary parts of each row."""
    return np.ascontiguousarray(np.stack([spectrum.real, spectrum.imag], axis=-2))


def merged(parts: FloatArray) -> ComplexArray:
    """The inverse of `planes`."""
    return np.asarray(parts[..., 0, :] + 1j * parts[..., 1, :])
