"""Persons to partitions: a keyed hash of the person id over the full roster.

The partition of a person depends on the key and the id alone, so filters and missing values act
inside partitions and one person's data can reach one partition only.

The key is drawn from the operating system for every query and forgotten with it:

* Under one fixed key, adding, removing or changing a person touches one partition. With a secret
  key drawn afresh the same holds for replacing a person by another one with another id, or for
  rows without ids whose numbers move up when one is removed: the partitions of the others are
  independent and uniform either way, so the two worlds can be laid side by side with all but one
  partition equal.
* r is about a random partition. Fresh keys make repeated answers independent given r, so that
  their posteriors may be combined and a planned power is met; under a fixed key every answer
  would repeat the luck of one partition.
* Nothing is stored that could be lost.

Partition sizes vary like a multinomial draw. Balancing them would let one person move others.
"""

import os

import numpy as np
import numpy.typing as npt

from countwise.arrays import IntArray
from countwise.kernels.keyed_hash import ByteArray, hashes, shares

LARGEST = 10_000
KEY_BYTES = 16


def fresh_key() -> bytes:
    """A key for one query."""
    return os.urandom(KEY_BYTES)


def assign(data: ByteArray, offsets: IntArray, *, partitions: int, key: bytes) -> IntArray:
    """The partition of each row from the bytes of its person id; -1 for a row without a person."""
    hashed = _hashed(data, offsets, key)
    out = np.empty(len(hashed), dtype=np.int64)
    shares(hashed, partitions, out)
    out[np.diff(offsets) == 0] = -1
    return out


def persons(data: ByteArray, offsets: IntArray) -> int:
    """How many different ids there are."""
    known = np.diff(offsets) > 0
    return len(np.unique(_hashed(data, offsets, fresh_key())[known]))


def _hashed(data: ByteArray, offsets: IntArray, key: bytes) -> npt.NDArray[np.uint64]:
    out = np.empty(len(offsets) - 1, dtype=np.uint64)
    hashes(np.frombuffer(key, dtype=np.uint64).copy(), data, offsets, out)
    return out
