"""Schemas and made-up rows that the tests of verification share."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from countwise.verification.records import Records
from countwise.verification.schema import Schema, schema_from_dict

SCHEMA = schema_from_dict(
    {
        "person": {"id": "person"},
        "columns": {
            "y": {"type": "number", "low": -100, "high": 100},
            "x": {"type": "number", "low": 0.5, "high": 20},
            "a": {"type": "number", "low": -5, "high": 5},
            "b": {"type": "number", "low": 1, "high": 9},
            "age": {"type": "integer", "low": 17, "high": 90},
            "f": {"type": "category", "levels": ["p", "q", "r"]},
            "g": {"type": "category", "levels": ["u", "v"]},
            "year": {"type": "integer", "low": 2001, "high": 2004},
            "won": {"type": "binary"},
            "count": {"type": "integer", "low": 0, "high": 500},
            "odd name": {"type": "number", "low": 0, "high": 1},
        },
    }
)
CATEGORIES = ("f", "g")


def rows(size: int, *, seed: int = 0) -> dict[str, Any]:
    """Made-up values of every column; categories as places of their levels."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 20, size)
    a = rng.normal(0, 1.5, size).clip(-5, 5)
    f = rng.integers(0, 3, size)
    y = (1 + 0.5 * x - 2 * a + 1.5 * (f == 1) + rng.normal(0, 3, size)).clip(-100, 100)
    eta = -1 + 0.1 * x + 0.5 * a
    return {
        "y": y,
        "x": x,
        "a": a,
        "b": rng.uniform(1, 9, size),
        "age": rng.integers(17, 91, size).astype(float),
        "f": f.astype(float),
        "g": rng.integers(0, 2, size).astype(float),
        "year": rng.integers(2001, 2005, size).astype(float),
        "won": (rng.random(size) < 1 / (1 + np.exp(-eta))).astype(float),
        "count": rng.poisson(np.exp(0.5 + 0.05 * x + 0.2 * a)).clip(0, 500).astype(float),
        "odd name": rng.random(size),
    }


def records(
    columns: Mapping[str, Any], ids: list[str] | None = None, schema: Schema = SCHEMA
) -> Records:
    """Rows as confidential records, with the row number as id unless ids are given."""
    size = len(next(iter(columns.values())))
    names = [str(i) for i in range(size)] if ids is None else ids
    data = [name.encode() for name in names]
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in data])]).astype(np.int64)
    joined = np.frombuffer(b"".join(data) or b"\0", dtype=np.uint8).copy()
    arrays = {name: np.array(column, dtype=float) for name, column in columns.items()}
    return Records(schema, arrays, joined, offsets)
