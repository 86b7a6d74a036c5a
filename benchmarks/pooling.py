"""The figures of several runs of a row, taken together."""

from typing import Any


def pooled(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The figures of the releases of both."""
    both = one | other
    if "errors" in one and "errors" in other:
        both["errors"] = errors(one["errors"], other["errors"])
    if "totals" in one and "totals" in other:
        both["totals"] = totals(one["totals"], other["totals"])
    if "ranges" in one and "ranges" in other:
        both["ranges"] = ranges(one["ranges"], other["ranges"])
    return both


def errors(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Squared errors one after another, and counts added up."""
    releases = one["releases"] + other["releases"]
    share = one["releases"] / releases
    return one | {
        "code": sorted({*one["code"], *other["code"]}),
        "releases": releases,
        "seconds": one["seconds"] + other["seconds"],
        "chosen": added(one["chosen"], other["chosen"]),
        "squared": {
            name: one["squared"].get(name, []) + other["squared"].get(name, [])
            for name in one["squared"] | other["squared"]
        },
        "bias": {
            name: [
                share * a + (1 - share) * b for a, b in zip(each, other["bias"][name], strict=True)
            ]
            for name, each in one["bias"].items()
        },
        "empty_kept": {
            name: share * each + (1 - share) * other["empty_kept"][name]
            for name, each in one["empty_kept"].items()
        },
    }


def totals(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Squared errors one after another."""
    return {
        "code": sorted({*one["code"], *other["code"]}),
        "squared": {name: each + other["squared"][name] for name, each in one["squared"].items()},
    }


def ranges(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Cases, ranges that held, and widths, added up."""
    return {
        "code": sorted({*one["code"], *other["code"]}),
        **{name: added(one[name], other[name]) for name in ("releases", "seconds", "refused")},
        "why": one["why"] | other["why"],
        "tally": {
            prior: {
                group: [a + b for a, b in zip(each, other["tally"][prior][group], strict=True)]
                for group, each in groups.items()
            }
            for prior, groups in one["tally"].items()
        },
    }


def added(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    """Numbers by name, added up."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in one | other}
