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

Partition sizes vary like a multinomial draw. Balancing them would let one person move others. A
partition larger than public numbers allow is an error, so that they bound what fitting takes.
"""

import os

import numpy as np
import numpy.typing as npt

from countwise.arrays import IntArray
from countwise.kernels.keyed_hash import ByteArray, hashes, shares

LARGEST = 10_000  # M: more says no more, and every fit takes time
KEY_BYTES = 16  # 128 bits, as SipHash takes them
SHARES, MORE_PERSONS = 2, 20  # by luck a partition exceeds both less than once in 10^12
ROWS_A_PERSON = 1000  # where the schema does not say
ROWS_OF_ALL = 200_000_000  # where it does not say how many persons there are


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


def most_rows(*, partitions: int, persons: int | None, rows: int | None) -> int:
    """How many rows a partition may have, from public numbers alone.

    Two shares of the persons and 20 more, with the rows a person that the schema promises.
    """
    if persons is None:
        return SHARES * ROWS_OF_ALL // partitions
    return (SHARES * persons // partitions + MORE_PERSONS) * (rows or ROWS_A_PERSON)


def within(groups: IntArray, *, partitions: int, most: int) -> IntArray:
    """The same, with -1 for all rows of a partition that has more than so many."""
    crowded = np.bincount(groups + 1, minlength=partitions + 1)[1:] > most
    return np.where(crowded[groups], -1, groups)


def persons(data: ByteArray, offsets: IntArray) -> int:
    """How many different ids there are."""
    known = np.diff(offsets) > 0
    return len(np.unique(_hashed(data, offsets, fresh_key())[known]))


def numbered(data: ByteArray, offsets: IntArray) -> IntArray:
    """A number for the person of each row."""
    found = np.unique(_hashed(data, offsets, fresh_key()), return_inverse=True)[1]
    return np.asarray(found, dtype=np.int64)


def _hashed(data: ByteArray, offsets: IntArray, key: bytes) -> npt.NDArray[np.uint64]:
    out = np.empty(len(offsets) - 1, dtype=np.uint64)
    hashes(np.frombuffer(key, dtype=np.uint64).copy(), data, offsets, out)
    return out
