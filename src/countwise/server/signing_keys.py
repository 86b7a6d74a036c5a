"""The keys that sign receipts and heads: the one in use, and those before, with when they were.

The private key is in `signing.key`; `signing-keys.json` beside it has the public half of every key
there was, so that what an earlier one signed stays good.
"""

import json
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from countwise.errors import ConfigError
from countwise.verification.receipt import new_key, public_key, read_key

KNOWN = "signing-keys.json"


@dataclass(frozen=True, kw_only=True)
class KeyPeriod:
    """A public key, and the days it was used to sign; the one in use has no end."""

    key: str
    since: str
    until: str | None


@dataclass(frozen=True, kw_only=True)
class SigningKeys:
    """The key in use and all there were, the newest last."""

    current: Ed25519PrivateKey
    periods: tuple[KeyPeriod, ...]

    @property
    def public(self) -> tuple[str, ...]:
        """The public halves of all keys."""
        return tuple(each.key for each in self.periods)


def read_keys(file: Path) -> SigningKeys:
    """The keys of a server; the list of a server that never had one is its key."""
    try:
        current = read_key(file)
        known = file.with_name(KNOWN)
        if not known.is_file():
            since = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")
            periods = [KeyPeriod(key=public_key(current), since=since, until=None)]
        else:
            periods = [KeyPeriod(**each) for each in json.loads(known.read_text())["keys"]]
    except (OSError, ValueError, TypeError, KeyError):
        raise ConfigError(
            f"{file}: no key to sign receipts with that this user can read. To fix, run countwise "
            "serve --only prepare as the user of the web part, which makes one."
        ) from None
    if periods[-1].key != public_key(current):
        raise ConfigError(
            f"{file} is not the newest key of {KNOWN}. To fix, bring back the two files of one "
            "time, from a backup."
        )
    return SigningKeys(current=current, periods=tuple(periods))


def make_keys(file: Path) -> None:
    """A first key, where there is none."""
    if not file.exists():
        new_key(file)
    if not file.with_name(KNOWN).exists():
        _write(file, list(read_keys(file).periods))


def rotate(file: Path) -> SigningKeys:
    """Another key from now on; the old private key is gone, what it signed stays good."""
    before, now = read_keys(file), datetime.now(UTC).isoformat(timespec="seconds")
    fresh = file.with_name("signing.key.new")
    fresh.unlink(missing_ok=True)
    new_key(fresh)
    last = before.periods[-1]
    periods = [
        *before.periods[:-1],
        KeyPeriod(key=last.key, since=last.since, until=now),
        KeyPeriod(key=public_key(read_key(fresh)), since=now, until=None),
    ]
    _write(file, periods)
    os.replace(fresh, file)
    return read_keys(file)


def _write(file: Path, periods: list[KeyPeriod]) -> None:
    partial = file.with_name(KNOWN + ".new")
    partial.write_text(json.dumps({"keys": [asdict(each) for each in periods]}, indent=1) + "\n")
    os.replace(partial, file.with_name(KNOWN))
