"""SipHash-2-4 of many texts at once (Aumasson & Bernstein, INDOCRYPT 2012)."""

import numpy as np
import numpy.typing as npt

from countwise.arrays import IntArray, UIntArray
from countwise.kernels.compilation import compiled, inlined

ByteArray = npt.NDArray[np.uint8]

_A, _B = np.uint64(0x736F6D6570736575), np.uint64(0x646F72616E646F6D)
_C, _D = np.uint64(0x6C7967656E657261), np.uint64(0x7465646279746573)
_FULL = np.uint64(64)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@inlined
def _turn(x: np.uint64, by: int) -> np.uint64:
    return (x << np.uint64(by)) | (x >> (_FULL - np.uint64(by)))


@compiled
def _round(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    a += b
    b = _turn(b, 13) ^ a
    a = _turn(a, 32)
    c += d
    d = _turn(d, 16) ^ c
    a += d
    d = _turn(d, 21) ^ a
    c += b
    b = _turn(b, 17) ^ c
    c = _turn(c, 32)
    return a, b, c, d


@compiled
def hashes(key: UIntArray, data: ByteArray, offsets: IntArray, out: UIntArray) -> None:
    """out[i] = SipHash-2-4 of the bytes data[offsets[i]:offsets[i + 1]] under a 128-bit key."""
    for i in range(out.size):
        first, size = offsets[i], offsets[i + 1] - offsets[i]
        a, b, c, d = key[0] ^ _A, key[1] ^ _B, key[0] ^ _C, key[1] ^ _D
        for block in range(size // 8 + 1):
            word = np.uint64(0)
            for j in range(min(8, size - 8 * block)):
                word |= np.uint64(data[first + 8 * block + j]) << np.uint64(8 * j)
            if block == size // 8:
                word |= np.uint64(size & 255) << np.uint64(56)
            d ^= word
            a, b, c, d = _round(a, b, c, d)
            a, b, c, d = _round(a, b, c, d)
            a ^= word
        c ^= np.uint64(255)
        for _ in range(4):
            a, b, c, d = _round(a, b, c, d)
        out[i] = a ^ b ^ c ^ d


@compiled
def shares(hashed: UIntArray, parts: int, out: IntArray) -> None:
    """out[i] = floor(hashed[i]·parts / 2^64), in integers."""
    n = np.uint64(parts)
    for i in range(out.size):
        low = ((hashed[i] & _LOW) * n) >> _HALF
        out[i] = np.int64(((hashed[i] >> _HALF) * n + low) >> _HALF)
