"""Random bits for privacy noise: AES-256-CTR under keys of the operating system.

Every block has a key of its own and none is kept. So there is nothing that a forked process, or
a virtual machine started twice from one snapshot, could draw again, whoever made the fork; only
a copy made in the few milliseconds in which a block is drawn has that block twice. There is no
seed.
"""

import os

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from countwise.arrays import UIntArray

BLOCK = 1 << 20
"""Bytes under one key; a new one costs 3% of the time it takes to draw them."""
_zeros = bytes(BLOCK)


def words(size: int) -> UIntArray:
    """`size` independent uniform 64-bit words."""
    out = np.empty(size, dtype=np.uint64)
    view = out.data.cast("B")
    for start in range(0, len(view), BLOCK):
        part = view[start : start + BLOCK]
        _fresh().update_into(memoryview(_zeros)[: len(part)], part)
    return out


def _fresh() -> CipherContext:
    """A stream under a new key."""
    return Cipher(AES(os.urandom(32)), CTR(os.urandom(16))).encryptor()


def word() -> int:
    """One uniform 64-bit word as a Python integer."""
    return int(words(1)[0])
