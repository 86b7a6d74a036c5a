"""The canonical form of a request: what the noisy counts depend on, and nothing else.

Two texts that parse to the same model and claim have the same form: `x>1` and `1 < x`, spaces,
quotation marks. The prior and what is stated about skewness are not in it, because they are used
after the noise.
"""

import dataclasses
import hashlib
import json
from dataclasses import replace
from typing import Any

import numpy as np

from countwise.noise.numbers import written
from countwise.verification.claims import Significant, Within
from countwise.verification.request import Request

LEFT_OUT = {"text", "skewness"}


def canonical(request: Request, *, dataset: str, version: str) -> str:
    """The form as JSON text, of a request about a version of a data set."""
    return json.dumps(
        {
            "dataset": dataset,
            "version": version,
            "schema": _plain(request.schema),
            "model": _plain(request.model),
            "claim": _plain(replace(request.claim, parts=tuple(map(_turned, request.claim.parts)))),
            "family": request.family,
            "epsilon": written(request.epsilon),
            "partitions": request.partitions,
            "mechanism": request.mechanism,
        },
        sort_keys=True,
        ensure_ascii=True,
        separators=(",", ":"),
    )


def query_hash(request: Request, *, dataset: str, version: str) -> str:
    """The SHA-256 of the canonical form, by which stored answers are found."""
    return hashlib.sha256(canonical(request, dataset=dataset, version=version).encode()).hexdigest()


def _turned(part: Within | Significant) -> Within | Significant:
    """A comparison read so that its first coefficient counts positively: 1 < x is x > 1."""
    contrast = part.quantity.contrast
    leading = contrast[np.flatnonzero(contrast)[:1]]
    if not isinstance(part, Within) or part.quantity.special or not (leading < 0).any():
        return part
    return Within(
        quantity=replace(part.quantity, contrast=0.0 - contrast),
        low=-part.high,
        high=-part.low,
        low_open=part.high_open,
        high_open=part.low_open,
    )


def _plain(value: Any) -> Any:
    """Parsed trees as nested lists and objects; a number is written exactly."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: _plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.name not in LEFT_OUT
        }
        return [type(value).__name__, fields]
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(_plain(each)) for each in value)
    if hasattr(value, "items"):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, float):
        return repr(float(value))
    if value is None or isinstance(value, str | int | bool):
        return value
    raise TypeError(f"no canonical form of {type(value).__name__}")
