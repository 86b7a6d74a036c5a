"""Random bits for privacy noise: an AES-256-CTR stream keyed by the operating system.

One stream a thread, a new key after a fork and after every 64 GiB. There is no seed.
"""

import os
import threading

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from countwise.arrays import UIntArray

REKEY_AFTER = 1 << 36
_BLOCK = 1 << 20


class _Streams(threading.local):
    """This thread's key stream and how much of it is used."""

    encryptor: CipherContext | None = None
    used = 0
    generation = -1


_streams = _Streams()
_zeros = bytes(_BLOCK)
_generation = 0


def _after_fork() -> None:
    global _generation  # noqa: PLW0603 - a forked child must not share its parent's stream
    _generation += 1


os.register_at_fork(after_in_child=_after_fork)


def _stream() -> CipherContext:
    stale = _streams.generation != _generation or _streams.used >= REKEY_AFTER
    if _streams.encryptor is None or stale:
        _streams.encryptor = Cipher(AES(os.urandom(32)), CTR(os.urandom(16))).encryptor()
        _streams.generation, _streams.used = _generation, 0
    return _streams.encryptor


def words(size: int) -> UIntArray:
    """`size` independent uniform 64-bit words."""
    out = np.empty(size, dtype=np.uint64)
    view = out.data.cast("B")
    for start in range(0, len(view), _BLOCK):
        part = view[start : start + _BLOCK]
        _stream().update_into(memoryview(_zeros)[: len(part)], part)
        _streams.used += len(part)
    return out


def word() -> int:
    """One uniform 64-bit word as a Python integer."""
    return int(words(1)[0])
