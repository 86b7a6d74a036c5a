"""One of several words: the check of every argument that has few possible values, and of keys."""

from collections.abc import Iterable
from difflib import get_close_matches

from countwise.errors import ChoiceError, InputError


def one_of(
    value: str, options: Iterable[str], *, what: str, error: type[InputError] = ChoiceError
) -> str:
    """The value if it is an option; else a refusal that names the options and the nearest.

    >>> one_of("mode", ("mode", "draw"), what="adjust")
    'mode'
    >>> one_of("mood", ("mode", "draw"), what="adjust")
    Traceback (most recent call last):
    countwise.errors.ChoiceError: adjust must be one of mode, draw; got 'mood'. Did you mean 'mode'?
    """
    options = list(options)
    if value in options:
        return value
    near = get_close_matches(value, options, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise error(f"{what} must be one of {', '.join(options)}; got {value!r}.{hint}")


def only_keys(
    keys: Iterable[str], known: Iterable[str], *, where: str, error: type[InputError]
) -> None:
    """Refuse a key that a file may not have.

    The key is shown if it is nearly a known one. Any other is not: it may be a line of a file of
    records that was given in the place of a plan or a schema.

    >>> only_keys(["rho1"], ["rho"], where="d.toml", error=InputError)
    Traceback (most recent call last):
    countwise.errors.InputError: d.toml: unknown key 'rho1'; known are rho. Did you mean 'rho'?
    """
    known = list(known)
    for key in keys:
        if key in known:
            continue
        near = get_close_matches(key, known, n=1)
        shown, hint = (f" {key!r}", f" Did you mean {near[0]!r}?") if near else ("", "")
        raise error(f"{where}: unknown key{shown}; known are {', '.join(known)}.{hint}")
