"""Receipts: an answer with what was charged for it, signed, to be checked by anyone offline.

The signature (Ed25519) is over the canonical JSON of all fields but itself. A receipt has the
hashes of the ledger's entries of its charge and its release, so receipts also bear witness that a
ledger was not rewritten. It does not have their places: those would tell what was written between.
"""

import hashlib
import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from countwise.errors import AnswerError
from countwise.verification.answer import Answer, disagreements, recompute

FORMAT, FORMATS = 2, (1, 2)  # 1 had the place of the charge's entry, and nothing of its release
FIELDS = ("receipt", "answer", "dataset", "version", "query", "charge", "ledger", "slot", "key")


def new_key(path: Path) -> None:
    """Write a new signing key, readable by its owner alone."""
    raw = Ed25519PrivateKey.generate().private_bytes_raw()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(raw.hex() + "\n")


def read_key(path: Path) -> Ed25519PrivateKey:
    """The signing key in a file."""
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text().strip()))


def public_key(key: Ed25519PrivateKey) -> str:
    """The public half, as hexadecimal text."""
    return key.public_key().public_bytes_raw().hex()


def commitment(charge: str, salt: str, noisy: Sequence[float]) -> str:
    """What the ledger keeps of noisy counts: a hash that fits them, and does not tell them."""
    text = json.dumps([charge, salt, [float(each) for each in noisy]], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def sign(fields: Mapping[str, Any], key: Ed25519PrivateKey) -> dict[str, Any]:
    """A receipt of these fields."""
    receipt = {"receipt": FORMAT, **fields, "key": public_key(key)}
    return receipt | {"signature": key.sign(_signed(receipt)).hex()}


def check_receipt(receipt: Any, *, trusted: str | Collection[str] | None = None) -> Answer:
    """The answer of a receipt whose signature and posterior are right; else a refusal.

    `trusted` is the office's public key, or all it ever had. Without it a receipt only proves to be
    whole.
    """
    if not isinstance(receipt, Mapping) or receipt.get("receipt") not in FORMATS:
        raise AnswerError(f"not a receipt of format {' or '.join(map(str, FORMATS))}.")
    for name in (*FIELDS, "signature"):
        if name not in receipt:
            raise AnswerError(f"the receipt has no field {name!r}.")
    keys = [trusted] if isinstance(trusted, str) else trusted
    if keys is not None and receipt["key"] not in {each.strip().lower() for each in keys}:
        raise AnswerError("the receipt was signed by another key than the one given.")
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(receipt["key"])).verify(
            bytes.fromhex(receipt["signature"]), _signed(receipt)
        )
    except (InvalidSignature, ValueError, TypeError):
        raise AnswerError("the receipt was changed: its signature does not fit it.") from None
    again = recompute(receipt["answer"])
    different = disagreements(receipt["answer"], again)
    if different:
        raise AnswerError(f"{', '.join(different)} can not come from the noisy counts.")
    return again


def _signed(receipt: Mapping[str, Any]) -> bytes:
    fields = {name: value for name, value in receipt.items() if name != "signature"}
    text = json.dumps(fields, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return text.encode()
