"""Bounded contribution: at most so many rows of each person are counted.

Which rows stay is decided by a keyed hash of what they hold, never by their order: the rows of
a person are ranked by the hash and the first ones stay. Whoever is added or removed changes
only their own rows, so no count moves by more rows than the bound. The key comes from the
operating system, is new in every run and is not kept.
"""

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

COPY, RANK = "countwise copy", "countwise rank"
SEPARATOR = "\x1f"
DIGITS = 16  # hexadecimal, 64 bits: two rows of a person are equal once in 10^19 pairs


def fresh_key() -> str:
    """128 bits of the operating system, in hexadecimal."""
    return secrets.token_hex(16)


def bounded(
    table: "ir.Table", *, person: str, columns: Sequence[str], most: int, key: str
) -> "ir.Table":
    """The rows that stay when no person may have more than `most`.

    People within the bound keep their rows; only the others' are ranked.
    """
    sizes = table.group_by(person).aggregate(table.count().name(RANK))
    over = sizes.filter(sizes[RANK] > most).select(person)
    ranked = _ranked(table.semi_join(over, person), person=person, columns=columns, key=key)
    chosen = ranked.filter(ranked[RANK] < most).drop(COPY, RANK)
    return table.anti_join(over, person).union(chosen)


def _ranked(table: "ir.Table", *, person: str, columns: Sequence[str], key: str) -> "ir.Table":
    """Each row with its rank among the rows of its person.

    Rows of a person that agree in all `columns` count alike; they are numbered, in whatever
    order, so that each is as likely to stay as any other row.
    """
    import ibis

    alike = ibis.window(group_by=[person, *columns])
    numbered = table.mutate(ibis.row_number().over(alike).name(COPY))
    parts = [numbered[name].cast("string").fill_null("") for name in (person, *columns, COPY)]
    text = ibis.literal(key)
    for part in parts:
        text = text + SEPARATOR + part
    own = ibis.window(group_by=person, order_by=_digest(text))
    return numbered.mutate(ibis.row_number().over(own).name(RANK))


def _digest(text: "ir.StringValue") -> "ir.StringValue":
    """Leading digits of SHA-256, or of MD5 on engines that have no other hash of text."""
    import ibis
    from ibis.expr.operations import HexDigest

    if text.get_backend().has_operation(HexDigest):
        return text.hexdigest("sha256").substr(0, DIGITS)

    md5 = ibis.udf.scalar.builtin(_md5, name="md5", signature=(("string",), "string"))
    return md5(text).substr(0, DIGITS)


def _md5(text: str) -> str:
    raise NotImplementedError("computed by the engine")
