"""How random secrets are kept: 256 bits as their SHA-256, since there is nothing to guess."""

import hashlib


def digest(secret: str) -> str:
    """The hash that is kept of a random secret."""
    return hashlib.sha256(secret.encode()).hexdigest()
