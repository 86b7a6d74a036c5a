"""Passwords: kept as argon2id hashes, and refused where many people would try them first."""

import re
import secrets
import threading
from functools import cache
from importlib.resources import files
from itertools import pairwise

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from countwise.errors import InputError

SHORTEST_PASSWORD, LONGEST_PASSWORD = 10, 1000
DISGUISES = str.maketrans("013457$@!8", "oieastsaib")
"""Digits and marks that stand for letters in passwords such as p4ssw0rd."""
NONE = ""
"""What is kept for users who sign in elsewhere: the hash of no password."""

_hasher = PasswordHasher()
_nobody = _hasher.hash(secrets.token_hex(16))
_hashing = threading.Semaphore(4)  # each takes 64 MiB


def hash_password(password: str, *, name: str = "") -> str:
    """How a password is kept; a short one, a common one, or one made of the name is refused."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InputError(f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD:,} characters.")
    if is_common(password, name=name):
        raise InputError(
            "this password is among those that are tried first: common words, rows of keys, one "
            "pattern repeated, or the name. To fix, take several unrelated words."
        )
    with _hashing:
        return _hasher.hash(password)


def matches(kept: str | None, password: str) -> bool:
    """Whether it is the password; where there is no user, it takes as long to say no."""
    try:
        with _hashing:
            return _hasher.verify(kept or _nobody, password[: LONGEST_PASSWORD + 1])
    except (VerificationError, InvalidHashError):
        return False


def is_common(password: str, *, name: str = "") -> bool:
    """Whether nothing is left of a password without common words, patterns, digits and marks."""
    low = password.lower()
    if len(set(low)) < 5 or _repeated(low) or _in_a_row(low):
        return True
    for text in (low, low.translate(DISGUISES)):
        left = re.sub(r"[^a-z]", " ", text)
        for word in (*([name] if len(name) > 2 else []), *_common()):
            left = left.replace(word, " ")
        if len(left.replace(" ", "")) < 4:
            return True
    return False


def _repeated(text: str) -> bool:
    return any(text == (text[:n] * len(text))[: len(text)] for n in range(1, len(text) // 2 + 1))


def _in_a_row(text: str) -> bool:
    """Letters or digits that follow one another, forwards or backwards."""
    steps = [ord(b) - ord(a) for a, b in pairwise(text)]
    return sum(abs(step) == 1 for step in steps) >= 0.75 * len(steps)


@cache
def _common() -> tuple[str, ...]:
    """The list, the longest first, so that a part does not hide the whole."""
    text = (files("countwise.server") / "common_passwords.txt").read_text(encoding="utf-8")
    words = [line for line in text.split() if not line.startswith("#")]
    return tuple(sorted(words, key=len, reverse=True))
